//! An authorization server as the flows use it: discovered from a server, or described by the configuration.

use std::collections::BTreeMap;

use rmcp::transport::auth::AuthorizationMetadata;
use serde_json::Value;
use switchboard_model::{
    ConnectError, ConnectErrorKind, Secret, TokenRequestFormat, is_on_this_machine,
};
use url::Url;

use crate::token_client::TokenClient;

/// The endpoints of an authorization server, and what its answers must look like.
#[derive(Debug)]
pub(crate) struct AuthorizationServer {
    /// Its name in the store.
    pub(crate) issuer: String,
    pub(crate) iss: IssRule,
    pub(crate) authorize_url: Option<Url>,
    pub(crate) token_url: Url,
    pub(crate) device_url: Option<Url>,
    pub(crate) revoke_url: Option<Url>,
    /// The `resource` (RFC 8707) of both requests.
    pub(crate) resource: Option<String>,
    pub(crate) extra_params: BTreeMap<String, String>,
    pub(crate) format: TokenRequestFormat,
    pub(crate) client_auth: ClientAuth,
    pub(crate) http: TokenClient,
}

/// What the `iss` of an authorization response (RFC 9207) must be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum IssRule {
    /// Announced: it must be there and equal this text.
    Required(String),
    /// If it is there, it must equal this text.
    IfPresent(String),
    /// The issuer has no name to compare with.
    Unknown,
}

/// How a client with a secret authenticates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClientAuth {
    Post,
    Basic,
}

/// The OAuth client of a flow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FlowClient {
    pub(crate) id: String,
    pub(crate) secret: Option<Secret>,
}

impl IssRule {
    /// Checks the `iss` of a response. The error says nothing that the response says.
    pub(crate) fn check(&self, iss: Option<&str>) -> Result<(), ConnectError> {
        let (expected, is_required) = match self {
            Self::Required(expected) => (expected, true),
            Self::IfPresent(expected) => (expected, false),
            Self::Unknown => return Ok(()),
        };
        match iss {
            Some(iss) if iss == expected => Ok(()),
            None if !is_required => Ok(()),
            None => Err(mix_up("issuer mismatch: the answer names no issuer, though it must")),
            Some(_) => Err(mix_up(
                "issuer mismatch: the answer comes from another issuer than the one asked",
            )),
        }
    }
}

fn mix_up(message: &str) -> ConnectError {
    ConnectError::new(ConnectErrorKind::Protocol, message)
        .with_operator_hint("sign in again; if it happens again, do not trust this server")
}

impl AuthorizationServer {
    /// The server that metadata describes. Refuses one that does not announce PKCE with S256.
    pub(crate) fn discovered(
        metadata: &AuthorizationMetadata,
        issuer: &str,
        resource: String,
        http: TokenClient,
    ) -> Result<Self, ConnectError> {
        check_pkce(metadata, issuer)?;
        let text = |key: &str| metadata.additional_fields.get(key).and_then(Value::as_str);
        let announces_iss = metadata
            .additional_fields
            .get("authorization_response_iss_parameter_supported")
            .is_some_and(|value| value == true);
        let iss = if announces_iss { IssRule::Required } else { IssRule::IfPresent };
        Ok(Self {
            issuer: issuer.to_owned(),
            iss: iss(issuer.to_owned()),
            authorize_url: Some(endpoint(&metadata.authorization_endpoint)?),
            token_url: endpoint(&metadata.token_endpoint)?,
            device_url: text("device_authorization_endpoint").map(endpoint).transpose()?,
            revoke_url: text("revocation_endpoint").map(endpoint).transpose()?,
            resource: Some(resource),
            extra_params: BTreeMap::new(),
            format: TokenRequestFormat::Form,
            client_auth: client_auth(
                metadata.additional_fields.get("token_endpoint_auth_methods_supported"),
            ),
            http,
        })
    }
}

/// Refuses an authorization server that does not announce PKCE.
pub(crate) fn check_pkce(
    metadata: &AuthorizationMetadata,
    issuer: &str,
) -> Result<(), ConnectError> {
    let methods = metadata.code_challenge_methods_supported.as_deref().unwrap_or_default();
    if methods.iter().any(|method| method == "S256") {
        return Ok(());
    }
    let message =
        format!("{issuer} does not announce PKCE with S256, so a sign-in there is not safe");
    Err(ConnectError::new(ConnectErrorKind::Protocol, message).with_operator_hint(
        "its metadata must list `code_challenge_methods_supported`; ask its operator",
    ))
}

/// Parses an endpoint: https, or on this machine. Codes, secrets and tokens are sent in the clear only there.
pub(crate) fn endpoint(text: &str) -> Result<Url, ConnectError> {
    let url = Url::parse(text).ok().filter(|url| match url.scheme() {
        "https" => true,
        "http" => is_on_this_machine(url),
        _ => false,
    });
    url.ok_or_else(|| {
        let message = format!("the authorization server names {text:?}, which is not safe to use");
        ConnectError::new(ConnectErrorKind::Protocol, message).with_operator_hint(
            "the endpoints of OAuth must be https, unless they are on this machine",
        )
    })
}

/// The method of clients with a secret: `client_secret_basic` where only that is announced. Nearly all servers take the
/// secret in the body.
pub(crate) fn client_auth(announced: Option<&Value>) -> ClientAuth {
    let methods = announced.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let has = |name: &str| methods.iter().any(|method| method == name);
    if has("client_secret_basic") && !has("client_secret_post") {
        ClientAuth::Basic
    } else {
        ClientAuth::Post
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_issuer_of_an_answer_is_compared_exactly() {
        let name = || "https://as".to_owned();
        let rows = [
            (IssRule::Required(name()), Some("https://as"), true),
            (IssRule::Required(name()), None, false),
            (IssRule::Required(name()), Some("https://as/"), false),
            (IssRule::Required(name()), Some("HTTPS://AS"), false),
            (IssRule::IfPresent(name()), None, true),
            (IssRule::IfPresent(name()), Some("https://evil"), false),
            (IssRule::Unknown, Some("https://any"), true),
        ];
        for (rule, iss, is_fine) in rows {
            let checked = rule.check(iss);
            assert_eq!(checked.is_ok(), is_fine, "{rule:?} {iss:?}");
            assert!(!format!("{checked:?}").contains("evil"));
        }
    }

    #[test]
    fn an_endpoint_beyond_this_machine_is_https() {
        let rows = [
            ("https://as/authorize", true),
            ("http://as/authorize", false),
            ("http://10.0.0.1/authorize", false),
            ("http://127.0.0.1/authorize", true),
            ("http://localhost:8080/authorize", true),
            ("http://[::1]/authorize", true),
            ("file:///etc/passwd", false),
            ("javascript:alert(1)", false),
            ("/authorize", false),
        ];
        for (text, is_safe) in rows {
            assert_eq!(endpoint(text).is_ok(), is_safe, "{text}");
        }
    }

    #[test]
    fn pkce_must_be_announced() {
        for (methods, is_fine) in
            [(json!(["S256"]), true), (json!(["plain"]), false), (json!(null), false)]
        {
            let metadata: AuthorizationMetadata = serde_json::from_value(json!({
                "issuer": "https://as", "authorization_endpoint": "https://as/a", "token_endpoint": "https://as/t",
                "code_challenge_methods_supported": methods,
            }))
            .unwrap();
            let http = TokenClient::configured().unwrap();
            let made = AuthorizationServer::discovered(&metadata, "https://as", "r".into(), http);
            assert_eq!(made.is_ok(), is_fine, "{methods}");
        }
    }

    #[test]
    fn the_secret_goes_into_the_body_unless_only_the_header_is_announced() {
        for (announced, expected) in [
            (json!(["client_secret_basic"]), ClientAuth::Basic),
            (json!(["client_secret_basic", "client_secret_post"]), ClientAuth::Post),
            (json!([]), ClientAuth::Post),
        ] {
            assert_eq!(client_auth(Some(&announced)), expected, "{announced}");
        }
        assert_eq!(client_auth(None), ClientAuth::Post);
    }
}
