//! The metadata of an authorization server that the configuration names: RFC 8414 and OpenID Connect Discovery.

use http::header::{ACCEPT, HeaderValue};
use reqwest::{Method, Request};
use serde_json::{Map, Value};
use switchboard_model::{ConnectError, ConnectErrorKind, DescribedIssuer};
use url::Url;

use crate::authorization_server::{
    AuthorizationServer, ClientAuth, IssRule, client_auth, endpoint,
};
use crate::failure::unusable;
use crate::token_client::TokenClient;
use crate::token_request::printable;

/// The endpoints that an authorization server announces. The issuer in it is the one that was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct IssuerMetadata {
    pub(crate) authorize_url: Option<Url>,
    pub(crate) token_url: Url,
    pub(crate) device_url: Option<Url>,
    pub(crate) revoke_url: Option<Url>,
    /// Whether its authorization responses carry `iss` (RFC 9207).
    pub(crate) announces_iss: bool,
    pub(crate) client_auth: ClientAuth,
}

impl IssuerMetadata {
    /// Reads the first document that the issuer publishes at a well-known address.
    pub(crate) async fn fetch(issuer: &str, http: &TokenClient) -> Result<Self, ConnectError> {
        let url = endpoint(issuer)?;
        for address in well_known(&url) {
            let mut request = Request::new(Method::GET, address);
            request.headers_mut().insert(ACCEPT, HeaderValue::from_static("application/json"));
            let response = http.exchange(request).await?;
            if !response.status().is_success() {
                continue;
            }
            if let Ok(document) = serde_json::from_slice::<Map<String, Value>>(response.body()) {
                return Self::read(&document, issuer);
            }
        }
        let message = format!("{issuer} publishes no metadata, so its endpoints are not known");
        Err(ConnectError::new(ConnectErrorKind::Protocol, message)
            .with_operator_hint("check `issuer`, or configure `authorize_url` and `token_url`"))
    }

    /// Reads a document. One of another issuer is refused: it would direct codes and secrets elsewhere. So is one without
    /// PKCE, if it lists the methods that it has.
    fn read(document: &Map<String, Value>, issuer: &str) -> Result<Self, ConnectError> {
        let text = |key: &str| document.get(key).and_then(Value::as_str);
        let refuse = |why: String| {
            let message = printable(&format!("the metadata of {issuer} {why}"));
            ConnectError::new(ConnectErrorKind::Protocol, message)
        };
        match text("issuer") {
            Some(named) if named == issuer => {}
            Some(named) => {
                let error = refuse(format!("names the issuer {named:?}"));
                let hint = "`issuer` must be written exactly as its metadata has it";
                return Err(error.with_operator_hint(hint));
            }
            None => return Err(refuse("names no issuer".into())),
        }
        let methods = document.get("code_challenge_methods_supported").and_then(Value::as_array);
        if methods.is_some_and(|methods| !methods.iter().any(|method| method == "S256")) {
            return Err(refuse("does not list PKCE with S256".into()));
        }
        let at = |key: &str| text(key).map(endpoint).transpose();
        let token_url = at("token_endpoint")?;
        Ok(Self {
            authorize_url: at("authorization_endpoint")?,
            token_url: token_url.ok_or_else(|| refuse("names no token endpoint".into()))?,
            device_url: at("device_authorization_endpoint")?,
            revoke_url: at("revocation_endpoint")?,
            announces_iss: document
                .get("authorization_response_iss_parameter_supported")
                .is_some_and(|value| value == true),
            client_auth: client_auth(document.get("token_endpoint_auth_methods_supported")),
        })
    }
}

impl AuthorizationServer {
    /// The server that the configuration describes. Where it names only the issuer, the rest comes from the metadata.
    pub(crate) async fn described(described: &DescribedIssuer) -> Result<Self, ConnectError> {
        let http = TokenClient::configured()?;
        let metadata = match (&described.token_url, &described.issuer) {
            (None, Some(issuer)) => Some(IssuerMetadata::fetch(issuer, &http).await?),
            _ => None,
        };
        let announces_iss = metadata.as_ref().is_some_and(|metadata| metadata.announces_iss);
        let iss = if announces_iss { IssRule::Required } else { IssRule::IfPresent };
        let of_metadata =
            |read: fn(&IssuerMetadata) -> Option<Url>| metadata.as_ref().and_then(read);
        let token_url =
            described.token_url.clone().or_else(|| of_metadata(|it| Some(it.token_url.clone())));
        let either = |own: &Option<Url>, read| own.clone().or_else(|| of_metadata(read));
        Ok(Self {
            issuer: described.name().to_owned(),
            iss: described.issuer.clone().map_or(IssRule::Unknown, iss),
            authorize_url: either(&described.authorize_url, |it| it.authorize_url.clone()),
            token_url: token_url.ok_or_else(|| unusable("the issuer has no token endpoint"))?,
            device_url: either(&described.device_url, |it| it.device_url.clone()),
            revoke_url: either(&described.revoke_url, |it| it.revoke_url.clone()),
            resource: None,
            extra_params: described.extra_params.clone(),
            format: described.token_auth,
            client_auth: metadata.as_ref().map_or(ClientAuth::Post, |it| it.client_auth),
            http,
        })
    }
}

/// The addresses at which metadata may be, in the order in which they are tried.
fn well_known(issuer: &Url) -> Vec<Url> {
    let path = issuer.path().trim_end_matches('/');
    let mut paths = vec![
        format!("/.well-known/oauth-authorization-server{path}"),
        format!("/.well-known/openid-configuration{path}"),
    ];
    if !path.is_empty() {
        paths.push(format!("{path}/.well-known/openid-configuration"));
    }
    let at = |path: String| {
        let mut url = issuer.clone();
        url.set_path(&path);
        url.set_query(None);
        url
    };
    paths.into_iter().map(at).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn metadata_is_looked_for_where_the_standards_put_it() {
        let check = |issuer: &str, expected: &[&str]| {
            let found = well_known(&Url::parse(issuer).unwrap());
            let found: Vec<_> = found.iter().map(Url::as_str).collect();
            assert_eq!(found, expected, "{issuer}");
        };
        check(
            "https://as.example",
            &[
                "https://as.example/.well-known/oauth-authorization-server",
                "https://as.example/.well-known/openid-configuration",
            ],
        );
        check(
            "https://as.example/tenant/",
            &[
                "https://as.example/.well-known/oauth-authorization-server/tenant",
                "https://as.example/.well-known/openid-configuration/tenant",
                "https://as.example/tenant/.well-known/openid-configuration",
            ],
        );
    }

    #[test]
    fn a_document_of_another_issuer_or_without_pkce_is_refused() {
        let check = |change: Value, expected: Result<(), &str>| {
            let mut document = json!({
                "issuer": "https://as", "authorization_endpoint": "https://as/a", "token_endpoint": "https://as/t",
                "code_challenge_methods_supported": ["plain", "S256"],
            });
            for (key, value) in change.as_object().unwrap() {
                document[key] = value.clone();
            }
            let read = IssuerMetadata::read(document.as_object().unwrap(), "https://as");
            match (read, expected) {
                (Ok(_), Ok(())) => {}
                (Err(error), Err(part)) => assert!(error.message.contains(part), "{error}"),
                (read, _) => panic!("{change}: {read:?}"),
            }
        };
        check(json!({}), Ok(()));
        check(json!({"code_challenge_methods_supported": null}), Ok(()));
        check(json!({"authorization_endpoint": null}), Ok(()));
        check(json!({"issuer": "https://evil"}), Err("names the issuer \"https://evil\""));
        check(json!({"issuer": "https://as/"}), Err("names the issuer"));
        check(json!({"issuer": null}), Err("names no issuer"));
        check(json!({"token_endpoint": null}), Err("names no token endpoint"));
        check(json!({"token_endpoint": "http://as/t"}), Err("not safe to use"));
        check(json!({"authorization_endpoint": "javascript:x"}), Err("not safe to use"));
        check(json!({"code_challenge_methods_supported": ["plain"]}), Err("PKCE"));
    }
}
