//! Removes a server's credentials from its error messages.
//!
//! Servers quote the credentials that they reject. Their error messages go to callers and into logs, which must not
//! contain credentials.

use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use switchboard_model::{ConnectError, Endpoint, JsonText, Secret, ServerSpec, UpstreamAuth};
use url::Url;

use crate::secret_forms::{SHORTEST, percent_decoded, redact};

/// A secret that changes while it is in use, such as a token.
pub trait CurrentSecret: fmt::Debug + Send + Sync {
    /// Its value at this moment, if there is one.
    fn current(&self) -> Option<Secret>;
}

/// The secrets of one server.
#[derive(Debug, Default)]
pub struct Redactor {
    /// Longest first, because one may be part of another.
    secrets: Vec<Secret>,
    changing: Vec<Arc<dyn CurrentSecret>>,
}

impl Redactor {
    /// Removes the secrets in the server's configuration.
    pub fn of(spec: &ServerSpec) -> Self {
        Self::of_secrets(configured_secrets(spec))
    }

    /// Removes these secrets.
    pub fn of_secrets(secrets: impl IntoIterator<Item = Secret>) -> Self {
        let mut secrets: Vec<_> = secrets.into_iter().collect();
        secrets.retain(|secret| secret.expose().len() >= SHORTEST);
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.expose().len()));
        Self { secrets, changing: Vec::new() }
    }

    /// Also removes the value that this secret has when a text is redacted.
    #[must_use]
    pub fn with(mut self, changing: Option<Arc<dyn CurrentSecret>>) -> Self {
        self.changing.extend(changing);
        self
    }

    /// Replaces the secrets in the message and the hints of a connection error.
    pub fn redact_error(&self, error: ConnectError) -> ConnectError {
        let ConnectError { kind, message, mut hints } = error;
        for hint in &mut hints {
            hint.text = self.redact_text(&hint.text);
        }
        ConnectError { kind, message: self.redact_text(&message), hints }
    }

    /// Replaces the secrets in a text.
    pub fn redact_text(&self, text: &str) -> String {
        let changing: Vec<_> = self.changing.iter().filter_map(|secret| secret.current()).collect();
        let secrets = self.secrets.iter().chain(&changing).map(Secret::expose);
        secrets.fold(text.to_owned(), |text, secret| redact(&text, secret))
    }

    /// Redacts the strings in a JSON value by their decoded content, because escapes vary. Unparsable JSON is dropped,
    /// and duplicate keys are merged.
    pub fn redact_json(&self, json: JsonText) -> Option<JsonText> {
        let before: Value = serde_json::from_str(json.as_str()).ok()?;
        let mut after = before.clone();
        self.redact_value(&mut after);
        let is_clean = after == before && self.redact_text(json.as_str()) == json.as_str();
        Some(if is_clean { json } else { JsonText::from(&after) })
    }

    fn redact_value(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.redact_text(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.redact_value(item)),
            Value::Object(members) => {
                let taken = std::mem::take(members).into_iter();
                members.extend(taken.map(|(key, mut value)| {
                    self.redact_value(&mut value);
                    (self.redact_text(&key), value)
                }));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

/// The secrets in a server's configuration: credentials, headers, variables, and what references were replaced with.
pub fn configured_secrets(spec: &ServerSpec) -> Vec<Secret> {
    let mut secrets = spec.referenced.clone();
    match &spec.endpoint {
        Endpoint::StreamableHttp { url, headers, auth } | Endpoint::Sse { url, headers, auth } => {
            let own = match auth {
                UpstreamAuth::None => None,
                UpstreamAuth::Bearer(token) | UpstreamAuth::BearerFile { token, .. } => Some(token),
                UpstreamAuth::OAuth(settings) => settings.grant.secret(),
            };
            secrets.extend(headers.values().chain(own).cloned());
            // A server may quote the token without `Bearer`.
            let bare = headers.values().filter_map(|value| value.expose().split_once(' '));
            secrets.extend(bare.map(|(_, rest)| Secret::new(rest)));
            secrets.extend(of_address(url));
        }
        Endpoint::Stdio { env, .. } => secrets.extend(env.values().cloned()),
    }
    secrets
}

/// The secrets in a URL: the values of its query and the password, encoded and decoded; and user and password as the
/// `Authorization` header has them.
fn of_address(url: &Url) -> impl Iterator<Item = Secret> {
    let meant = url.query_pairs().map(|(_, value)| value.into_owned());
    let written = url.query().into_iter().flat_map(|query| query.split('&'));
    let written = written.filter_map(|pair| Some(pair.split_once('=')?.1.to_owned()));
    // A user name without a password is a token.
    let user = Some(url.username()).filter(|user| !user.is_empty());
    let own = url.password().or(user);
    let basic = own.map(|_| {
        let password = percent_decoded(url.password().unwrap_or_default());
        STANDARD.encode([percent_decoded(url.username()), b":".to_vec(), password].concat())
    });
    meant.chain(written).chain(own.map(str::to_owned)).chain(basic).map(Secret::new)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use serde_json::value::RawValue;
    use switchboard_model::{ConnectErrorKind, EraChoice, ServerName};

    use super::*;

    fn redactor() -> Redactor {
        let headers = BTreeMap::from([
            ("x-key".to_owned(), Secret::new("s3cret-header")),
            ("x-basic".to_owned(), Secret::new("Basic czNjcmV0")),
            ("x-short".to_owned(), Secret::new("on")),
        ]);
        let endpoint = Endpoint::StreamableHttp {
            url: "http://me:s3cret%20pw@127.0.0.1:1/mcp?apikey=s3cret%20query&x=1".parse().unwrap(),
            headers,
            auth: UpstreamAuth::Bearer(Secret::new("s3cret-token")),
        };
        let spec = ServerSpec {
            name: ServerName::new("tested"),
            place: endpoint.to_string(),
            endpoint,
            era: EraChoice::Auto,
            connect_timeout: Duration::from_secs(1),
            sharing: switchboard_model::Sharing::Shared,
            egress: None,
            referenced: ["s3cret/path", "s3cret-token-2", "true"].map(Secret::new).into(),
            caller_headers: Vec::new(),
        };
        Redactor::of(&spec)
    }

    #[test]
    fn what_was_sent_is_not_told_wherever_it_is_quoted() {
        let redactor = redactor();
        for (said, expected) in [
            ("no: Bearer s3cret-token, x-key: s3cret-header", "no: Bearer ***, x-key: ***"),
            ("x-basic is czNjcmV0 and x-short is on", "x-basic is *** and x-short is on"),
            ("apikey s3cret query or s3cret%20query", "apikey *** or ***"),
            ("s3cret pw or Basic bWU6czNjcmV0IHB3", "*** or Basic ***"),
            ("no /s3cret/path, /s3cret%2Fpath: true", "no /***, /***: true"),
            ("the longer one first: s3cret-token-2", "the longer one first: ***"),
            ("an end that was cut: s3cret-tok", "an end that was cut: ***"),
            ("an end that only looks like it: s3cre", "an end that only looks like it: s3cre"),
            ("", ""),
        ] {
            let error = ConnectError::new(ConnectErrorKind::Protocol, said);
            assert_eq!(redactor.redact_error(error.with_operator_hint(said)), {
                ConnectError::new(ConnectErrorKind::Protocol, expected).with_operator_hint(expected)
            });
            let data = redactor.redact_json((&serde_json::json!({ "said": said })).into()).unwrap();
            assert_eq!(data.parse(), serde_json::json!({ "said": expected }));
        }
    }

    #[derive(Debug, Default)]
    struct Token(std::sync::Mutex<Option<Secret>>);

    impl CurrentSecret for Token {
        fn current(&self) -> Option<Secret> {
            self.0.lock().unwrap().clone()
        }
    }

    #[test]
    fn a_secret_that_changes_is_removed_with_the_value_that_it_has() {
        let token = Arc::new(Token::default());
        let redactor = redactor().with(Some(token.clone()));
        let said = "s3cret-first and s3cret-other";
        assert_eq!(redactor.redact_text(said), said);
        for (current, expected) in
            [("s3cret-first", "*** and s3cret-other"), ("s3cret-other", "s3cret-first and ***")]
        {
            *token.0.lock().unwrap() = Some(Secret::new(current));
            assert_eq!(redactor.redact_text(said), expected);
        }
    }

    #[test]
    fn what_was_sent_is_found_however_it_is_written() {
        for (said, expected) in [
            (r#"{"a":["Basic\u0020czNjcmV0"],"b":1.0}"#, r#"{"a":["***"],"b":1.0}"#),
            (r#"{"\u00733cret-token":{"x":"s3cret\u002dtoken"}}"#, r#"{"***":{"x":"***"}}"#),
            (r#"{"a" : "on", "b":1e2}"#, r#"{"a" : "on", "b":1e2}"#),
            (r#"{"a":"s3cret-token","a":1}"#, r#"{"a":1}"#),
            (r#"{"a":"s3cret-token \ud83d"}"#, ""),
            (r#"{"a":"s3cret-token","b":1e999}"#, ""),
        ] {
            let data: &RawValue = serde_json::from_str(said).unwrap();
            let redacted = redactor().redact_json(data.into());
            assert_eq!(redacted.as_ref().map_or("", JsonText::as_str), expected);
        }
    }
}
