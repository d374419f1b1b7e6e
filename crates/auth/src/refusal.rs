//! Refusals of requests: status, `WWW-Authenticate` and message.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Why a request is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// There are no credentials.
    Missing,
    /// The credentials are invalid, for this reason.
    BadCredentials(Cow<'static, str>),
    /// The token is valid but lacks a scope.
    InsufficientScope {
        /// All scopes that a token needs, not only the missing ones.
        needed: Vec<String>,
    },
    /// The credentials cannot be checked now, for this reason.
    Unavailable(String),
}

impl Refusal {
    /// The HTTP status.
    pub fn status(&self) -> u16 {
        match self {
            Self::Missing | Self::BadCredentials(_) => 401,
            Self::InsufficientScope { .. } => 403,
            Self::Unavailable(_) => 503,
        }
    }

    /// The value of `WWW-Authenticate` (RFC 6750, RFC 9728) for status 401 or 403. It is a valid header value for any parts.
    /// `scopes` are those that a token needs, so that a client without a token can request them at once.
    pub fn www_authenticate(&self, metadata_url: Option<&str>, scopes: &[String]) -> String {
        let needed = match self {
            Self::InsufficientScope { needed } => needed,
            Self::Missing | Self::BadCredentials(_) | Self::Unavailable(_) => scopes,
        };
        let needed = needed.join(" ");
        let mut parameters: Vec<(&str, &str)> = Vec::new();
        match self {
            // A request without credentials gets no error code (RFC 6750, section 3.1).
            Self::Missing | Self::Unavailable(_) => {}
            Self::BadCredentials(reason) => {
                parameters.extend([("error", "invalid_token"), ("error_description", reason)]);
            }
            Self::InsufficientScope { .. } => {
                parameters.push(("error", "insufficient_scope"));
                parameters.push(("error_description", self.message()));
            }
        }
        parameters.extend(metadata_url.map(|url| ("resource_metadata", url)));
        if !needed.is_empty() {
            parameters.push(("scope", &needed));
        }
        let mut header = "Bearer".to_owned();
        for (n, (name, value)) in parameters.into_iter().enumerate() {
            let separator = if n == 0 { " " } else { ", " };
            // Writing to a string does not fail.
            let _written = write!(header, "{separator}{name}=\"{}\"", quotable(value));
        }
        header
    }

    /// A message for people.
    pub fn message(&self) -> &str {
        match self {
            Self::Missing => {
                "credentials are needed: send an API key or a token as `Authorization: Bearer ...`"
            }
            Self::BadCredentials(reason) => reason,
            Self::InsufficientScope { .. } => "the token lacks a scope that is needed here",
            Self::Unavailable(reason) => reason,
        }
    }

    pub(crate) fn bad(reason: impl Into<Cow<'static, str>>) -> Self {
        Self::BadCredentials(reason.into())
    }
}

/// Replaces the characters that must not stand in a quoted header value (RFC 6750 excludes `"` and `\` too).
fn quotable(text: &str) -> String {
    let allowed = |c: char| matches!(c, ' '..='~') && !matches!(c, '"' | '\\');
    text.chars().map(|c| if allowed(c) { c } else { '\'' }).collect()
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn every_refusal_has_its_status_and_challenge() {
        let scopes = ["mcp:use".to_owned()];
        let check = |refusal: &Refusal, status: u16, wanted: &str| {
            assert_eq!(refusal.status(), status);
            assert_eq!(refusal.www_authenticate(Some("https://h/m"), &scopes), wanted);
        };
        check(&Refusal::Missing, 401, r#"Bearer resource_metadata="https://h/m", scope="mcp:use""#);
        check(
            &Refusal::bad("the token has expired"),
            401,
            r#"Bearer error="invalid_token", error_description="the token has expired", resource_metadata="https://h/m", scope="mcp:use""#,
        );
        check(
            &Refusal::InsufficientScope { needed: vec!["a".into(), "b:c".into()] },
            403,
            r#"Bearer error="insufficient_scope", error_description="the token lacks a scope that is needed here", resource_metadata="https://h/m", scope="a b:c""#,
        );
        check(
            &Refusal::Unavailable("later".into()),
            503,
            r#"Bearer resource_metadata="https://h/m", scope="mcp:use""#,
        );
        assert_eq!(Refusal::Missing.www_authenticate(None, &[]), "Bearer");
    }

    #[test]
    fn nothing_breaks_out_of_the_quotes() {
        let header = Refusal::bad("a\"b\\c\r\nSet-Cookie: ü").www_authenticate(None, &[]);
        assert_eq!(
            header,
            "Bearer error=\"invalid_token\", error_description=\"a'b'c''Set-Cookie: '\""
        );
        assert!(http::HeaderValue::from_str(&header).is_ok());
    }
}
