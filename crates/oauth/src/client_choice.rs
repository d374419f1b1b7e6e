//! Which OAuth client a sign-in uses: the configured one, a client metadata document, the one of the last sign-in, or a
//! newly registered one (RFC 7591).

use http::header::{ACCEPT, CONTENT_TYPE, HeaderValue};
use reqwest::{Method, Request};
use serde_json::{Value, json};
use switchboard_model::{ConnectError, ConnectErrorKind, Secret, SignInClient, is_on_this_machine};
use url::Url;

use crate::authorization_server::{FlowClient, endpoint};
use crate::device_flow::DEVICE_GRANT;
use crate::discovery::Discovered;
use crate::grant::Grant;
use crate::refresh::client_of;
use crate::token_client::TokenClient;
use crate::token_request::printable;

const OUR_NAME: &str = "Switchboard";
const BY_HAND: &str = "register a client there by hand and give its `client_id` in `auth.oauth`";

/// The redirect URI in the registration of a client for sign-ins on other devices. Nothing returns to it, but registration
/// endpoints may require one.
pub(crate) const DEVICE_REDIRECT: &str = "http://127.0.0.1/callback";

/// Chooses the client. `document` is the board's own metadata document; a configured one comes first.
pub(crate) async fn choose_client(
    found: &Discovered,
    ours: &SignInClient,
    before: Option<&Grant>,
    redirect_uri: &str,
    document: Option<&Url>,
    scopes: &[String],
) -> Result<FlowClient, ConnectError> {
    if let Some(id) = &ours.id {
        return Ok(FlowClient { id: id.clone(), secret: ours.secret.clone() });
    }
    let reads_documents = found
        .metadata
        .additional_fields
        .get("client_id_metadata_document_supported")
        .is_some_and(|value| value == true);
    let document = ours.metadata_url.as_ref().or(document).filter(|_| reads_documents);
    if let Some(document) = document {
        return Ok(FlowClient { id: document.as_str().to_owned(), secret: None });
    }
    // A client is registered for one redirect URI.
    match before.filter(|grant| grant.redirect_uri == redirect_uri) {
        Some(before) => Ok(client_of(before)),
        None => register(found, redirect_uri, scopes).await,
    }
}

async fn register(
    found: &Discovered,
    redirect_uri: &str,
    scopes: &[String],
) -> Result<FlowClient, ConnectError> {
    let Some(url) = &found.metadata.registration_endpoint else {
        let message = format!("{} does not support dynamic client registration", found.issuer);
        return Err(
            ConnectError::new(ConnectErrorKind::Protocol, message).with_operator_hint(BY_HAND)
        );
    };
    let failed = |why: &str| {
        let message = printable(&format!("{} registers no client: {why}", found.issuer));
        ConnectError::new(ConnectErrorKind::Protocol, message).with_operator_hint(BY_HAND)
    };
    let mut request = Request::new(Method::POST, endpoint(url)?);
    let json = HeaderValue::from_static("application/json");
    request.headers_mut().insert(CONTENT_TYPE, json.clone());
    request.headers_mut().insert(ACCEPT, json);
    *request.body_mut() = Some(registration(redirect_uri, scopes).to_string().into());
    let response = TokenClient::new(&found.url).await?.exchange(request).await?;
    let answer: Value = serde_json::from_slice(response.body()).unwrap_or_default();
    let text = |key: &str| {
        let text = answer.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
        text.map(str::to_owned)
    };
    if !response.status().is_success() {
        let why = text("error_description").or_else(|| text("error"));
        return Err(failed(&why.unwrap_or_else(|| format!("HTTP {}", response.status()))));
    }
    let id = text("client_id").ok_or_else(|| failed("its answer has no client id"))?;
    Ok(FlowClient { id, secret: text("client_secret").map(Secret::new) })
}

/// The request: a native client for a page on this machine, a web client for a hosted callback.
fn registration(redirect_uri: &str, scopes: &[String]) -> Value {
    let mut grant_types = vec!["authorization_code", "refresh_token"];
    if redirect_uri == DEVICE_REDIRECT {
        grant_types.push(DEVICE_GRANT);
    }
    let is_native = Url::parse(redirect_uri).is_ok_and(|url| is_on_this_machine(&url));
    let mut request = json!({
        "client_name": OUR_NAME,
        "redirect_uris": [redirect_uri],
        "grant_types": grant_types,
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
        "application_type": if is_native { "native" } else { "web" },
    });
    if !scopes.is_empty() {
        request["scope"] = scopes.join(" ").into();
    }
    request
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_registration_names_its_kind_of_application() {
        for (redirect_uri, kind) in [
            ("http://127.0.0.1:5/callback", "native"),
            ("http://localhost:5/callback", "native"),
            ("https://board.example.com/oauth/callback", "web"),
        ] {
            let request = registration(redirect_uri, &["a".into(), "b".into()]);
            assert_eq!(
                (&request["application_type"], &request["scope"]),
                (&json!(kind), &json!("a b"))
            );
        }
        assert_eq!(registration("https://h", &[]).get("scope"), None);
        let of_device = registration(DEVICE_REDIRECT, &[]);
        assert_eq!(
            of_device["grant_types"],
            json!(["authorization_code", "refresh_token", DEVICE_GRANT])
        );
    }
}
