//! Headers that pass between an app and its provider.

use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderName};

/// Headers of an app that its provider gets.
const TO_PROVIDER: [&str; 4] =
    ["anthropic-beta", "anthropic-version", "openai-beta", "x-goog-api-client"];

/// Headers with these beginnings concern the way to the board, or describe the machine of the app.
const NOT_TO_PROVIDER: [&str; 6] =
    ["x-switchboard-", "x-forwarded-", "x-real-", "x-mcp-", "x-stainless-", "x-goog-"];

/// Parts of names of headers that hold a secret, or that a proxy added about a person.
const SECRET: [&str; 9] =
    ["key", "token", "auth", "secret", "cookie", "csrf", "password", "credential", "user"];

/// Headers of a provider that its app gets: they say when to come back and by which id the provider knows the request.
const TO_APP: [&str; 6] = [
    "request-id",
    "x-request-id",
    "retry-after-ms",
    "x-should-retry",
    "openai-processing-ms",
    "openai-version",
];
const TO_APP_PREFIXES: [&str; 2] = ["x-ratelimit-", "anthropic-ratelimit-"];

/// The headers of an app's request that its provider gets: features, versions and what the board does not know. Never
/// credentials or cookies.
pub fn headers_for_provider(headers: &HeaderMap) -> HeaderMap {
    only(headers, |name| {
        let is_unknown = name.starts_with("x-")
            && !NOT_TO_PROVIDER.iter().any(|start| name.starts_with(start))
            && !SECRET.iter().any(|word| name.contains(word));
        TO_PROVIDER.contains(&name) || is_unknown
    })
}

/// The headers of a provider's response that the app gets.
pub(crate) fn headers_for_app(headers: &HeaderMap) -> HeaderMap {
    only(headers, |name| {
        name == CONTENT_TYPE.as_str()
            || name == RETRY_AFTER.as_str()
            || TO_APP.contains(&name)
            || TO_APP_PREFIXES.iter().any(|start| name.starts_with(start))
    })
}

fn only(headers: &HeaderMap, passes: impl Fn(&str) -> bool) -> HeaderMap {
    let passing = headers.iter().filter(|(name, _)| passes(name.as_str()));
    let mut passed = HeaderMap::new();
    for (name, value) in passing {
        passed.append(HeaderName::clone(name), value.clone());
    }
    passed
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use pretty_assertions::assert_eq;

    use super::*;

    fn names(passed: &HeaderMap) -> Vec<&str> {
        let mut names: Vec<_> = passed.keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        names
    }

    fn with(names: &[&'static str]) -> HeaderMap {
        let value = HeaderValue::from_static("v");
        names.iter().map(|name| (HeaderName::from_static(name), value.clone())).collect()
    }

    #[test]
    fn features_pass_and_credentials_do_not() {
        let headers = with(&[
            "anthropic-beta",
            "anthropic-version",
            "openai-beta",
            "openai-organization",
            "x-team",
            "x-api-key",
            "x-goog-api-key",
            "x-goog-api-client",
            "x-goog-user-project",
            "x-auth-request-email",
            "x-amz-security-token",
            "x-forwarded-for",
            "x-switchboard-key",
            "x-stainless-os",
            "authorization",
            "cookie",
            "host",
            "content-length",
            "idempotency-key",
        ]);
        let passed = headers_for_provider(&headers);
        let expected =
            ["anthropic-beta", "anthropic-version", "openai-beta", "x-goog-api-client", "x-team"];
        assert_eq!(names(&passed), expected);
    }

    #[test]
    fn an_app_learns_when_to_come_back_and_nothing_about_the_account() {
        let headers = with(&[
            "content-type",
            "retry-after",
            "request-id",
            "x-ratelimit-remaining-tokens",
            "anthropic-ratelimit-tokens-reset",
            "anthropic-organization-id",
            "openai-organization",
            "set-cookie",
            "content-encoding",
            "transfer-encoding",
        ]);
        let expected = [
            "anthropic-ratelimit-tokens-reset",
            "content-type",
            "request-id",
            "retry-after",
            "x-ratelimit-remaining-tokens",
        ];
        assert_eq!(names(&headers_for_app(&headers)), expected);
    }
}
