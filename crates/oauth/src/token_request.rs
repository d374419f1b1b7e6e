//! Requests to the endpoints of an authorization server, and what their answers mean.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::{StatusCode, header};
use reqwest::{Method, Request};
use serde_json::{Map, Value};
use switchboard_model::{ConnectError, ConnectErrorKind, TokenRequestFormat};
use tokio::time::timeout;
use url::Url;
use url::form_urlencoded::Serializer;

use crate::authorization_server::{AuthorizationServer, ClientAuth, FlowClient};

/// How long an answer may take. Shorter than the turn of a renewal.
const LONGEST_ANSWER: Duration = Duration::from_secs(10);
/// How much of an error of the authorization server is shown.
const LONGEST_SHOWN: usize = 300;
/// Errors that end a grant: the refresh token will never work again.
const TERMINAL: [&str; 6] = [
    "invalid_grant",
    "refresh_token_reused",
    "refresh_token_expired",
    "refresh_token_invalidated",
    "token_revoked",
    "token_expired",
];

/// Why there are no tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TokenFailure {
    /// The authorization server refuses, with the code of RFC 6749 or RFC 8628.
    Refused { code: String, description: Option<String>, status: StatusCode },
    /// It could not be asked, or its answer cannot be used.
    Failed(ConnectError),
}

impl TokenFailure {
    /// Whether the grant is over, so that another attempt cannot succeed.
    pub(crate) fn is_terminal(&self) -> bool {
        matches!(self, Self::Refused { code, .. } if TERMINAL.contains(&code.as_str()))
    }

    pub(crate) fn into_error(self, issuer: &str) -> ConnectError {
        match self {
            Self::Failed(error) => error,
            Self::Refused { code, description, status } => {
                let is_temporary =
                    status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS;
                let kind = if is_temporary {
                    ConnectErrorKind::Unreachable
                } else {
                    ConnectErrorKind::Unauthorized
                };
                let why = description.map(|text| format!(": {text}")).unwrap_or_default();
                let message = printable(&format!("{issuer} refuses: {code}{why}"));
                ConnectError::new(kind, message)
            }
        }
    }
}

/// Text of an authorization server, without control characters and of a bounded length.
pub(crate) fn printable(text: &str) -> String {
    let shown = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    shown.take(LONGEST_SHOWN).collect()
}

impl AuthorizationServer {
    /// Asks the token endpoint.
    pub(crate) async fn request_token(
        &self,
        client: &FlowClient,
        params: &[(&str, &str)],
    ) -> Result<Value, TokenFailure> {
        self.post(&self.token_url, client, params).await
    }

    /// Sends a request of the client to one of the endpoints. The answer is an object in JSON.
    pub(crate) async fn post(
        &self,
        url: &Url,
        client: &FlowClient,
        params: &[(&str, &str)],
    ) -> Result<Value, TokenFailure> {
        let request = self.request(url, client, params);
        let host = url.host_str().unwrap_or_default();
        let answered = timeout(LONGEST_ANSWER, self.http.exchange(request)).await;
        let response = match answered {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return Err(TokenFailure::Failed(error)),
            Err(_) => {
                let message =
                    format!("{host} did not answer within {} seconds", LONGEST_ANSWER.as_secs());
                return Err(TokenFailure::Failed(ConnectError::new(
                    ConnectErrorKind::Timeout,
                    message,
                )));
            }
        };
        let status = response.status();
        let read = serde_json::from_slice::<Map<String, Value>>(response.body());
        match read {
            Ok(body) if status.is_success() && !body.contains_key("error") => {
                Ok(Value::Object(body))
            }
            // Revocation answers need no body.
            Err(_)
                if status.is_success() && response.body().iter().all(u8::is_ascii_whitespace) =>
            {
                Ok(Value::Object(Map::new()))
            }
            Ok(body) if refusal(&body).is_some() => {
                let (code, description) = refusal(&body).unwrap_or_default();
                Err(TokenFailure::Refused { code, description, status })
            }
            Ok(_) | Err(_) => {
                let kind = response.headers().get(header::CONTENT_TYPE);
                let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or("no content type");
                let message = printable(&format!(
                    "{host} answered HTTP {status} with {kind}, not with the JSON of OAuth"
                ));
                let is_down = status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS;
                let kind = if is_down {
                    ConnectErrorKind::Unreachable
                } else {
                    ConnectErrorKind::Protocol
                };
                Err(TokenFailure::Failed(ConnectError::new(kind, message)))
            }
        }
    }

    fn request(&self, url: &Url, client: &FlowClient, params: &[(&str, &str)]) -> Request {
        let mut all: Vec<(&str, &str)> = params.to_vec();
        let is_basic = self.client_auth == ClientAuth::Basic && client.secret.is_some();
        if !is_basic {
            all.push(("client_id", &client.id));
            if let Some(secret) = &client.secret {
                all.push(("client_secret", secret.expose()));
            }
        }
        let (kind, body) = match self.format {
            TokenRequestFormat::Form => {
                let mut form = Serializer::new(String::new());
                form.extend_pairs(&all);
                ("application/x-www-form-urlencoded", form.finish())
            }
            TokenRequestFormat::Json => {
                let object: Map<String, Value> =
                    all.iter().map(|(key, value)| ((*key).to_owned(), (*value).into())).collect();
                ("application/json", Value::Object(object).to_string())
            }
        };
        let mut request = Request::new(Method::POST, url.clone());
        let headers = request.headers_mut();
        headers.insert(header::CONTENT_TYPE, header::HeaderValue::from_static(kind));
        headers.insert(header::ACCEPT, header::HeaderValue::from_static("application/json"));
        if let Some(value) = client
            .secret
            .as_ref()
            .filter(|_| is_basic)
            .and_then(|secret| basic(&client.id, secret.expose()))
        {
            headers.insert(header::AUTHORIZATION, value);
        }
        *request.body_mut() = Some(body.into());
        request
    }
}

fn basic(id: &str, secret: &str) -> Option<header::HeaderValue> {
    let encoded =
        |text: &str| url::form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
    let pair = STANDARD.encode(format!("{}:{}", encoded(id), encoded(secret)));
    let mut value = header::HeaderValue::try_from(format!("Basic {pair}")).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// The code and the description of a refusal: as RFC 6749 has them, or below `error` as some providers do.
fn refusal(body: &Map<String, Value>) -> Option<(String, Option<String>)> {
    let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
    match body.get("error")? {
        Value::String(code) => Some((code.clone(), text(body.get("error_description")))),
        Value::Object(inner) => {
            let code = text(inner.get("code")).or_else(|| text(inner.get("type")))?;
            Some((code, text(inner.get("message"))))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn refusals_are_read_in_both_forms_and_some_end_the_grant() {
        for (body, code, is_terminal) in [
            (json!({"error": "invalid_grant", "error_description": "gone"}), "invalid_grant", true),
            (
                json!({"error": {"code": "refresh_token_reused", "message": "x"}}),
                "refresh_token_reused",
                true,
            ),
            (json!({"error": "invalid_client"}), "invalid_client", false),
            (json!({"error": "temporarily_unavailable"}), "temporarily_unavailable", false),
        ] {
            let (read, description) = refusal(body.as_object().unwrap()).unwrap();
            assert_eq!(read, code);
            let status = StatusCode::BAD_REQUEST;
            let failure = TokenFailure::Refused { code: read, description, status };
            assert_eq!(failure.is_terminal(), is_terminal, "{code}");
        }
        assert_eq!(refusal(json!({"error": 5}).as_object().unwrap()), None);
    }

    #[test]
    fn what_an_issuer_says_is_shown_short_and_without_control_characters() {
        let description = Some(format!("a\u{1b}[31m\n{}", "x".repeat(1000)));
        let failure = TokenFailure::Refused {
            code: "invalid_request".into(),
            description,
            status: StatusCode::BAD_REQUEST,
        };
        let shown = failure.into_error("https://as").message;
        assert!(shown.starts_with("https://as refuses: invalid_request: a [31m x"), "{shown}");
        assert!(shown.chars().count() <= LONGEST_SHOWN && !shown.contains('\u{1b}'));
    }
}
