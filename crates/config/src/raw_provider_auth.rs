//! The type of a credential of a provider. As in [`crate::raw`], its doc comments become the JSON Schema that users read.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

/// A credential of a provider: a sign-in at an authorization server, the token file of another program, or a value.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ProviderAuth")]
pub(crate) struct RawProviderAuth {
    /// `oauth`: a person signs in with `switchboard auth login NAME`. `token_file`: another program keeps the token in a
    /// JSON file, which is read and never written. `api_key`, `bearer`: the `value` itself.
    #[schemars(required)]
    pub(crate) kind: Option<RawProviderAuthKind>,
    /// For `api_key` and `bearer`. A secret: use `${VAR}` or `file:/path`.
    #[schemars(length(min = 1), extend("examples" = ["${WORK_KEY}"]))]
    pub(crate) value: Option<String>,
    /// For `oauth`: the identifier of the authorization server. If it names itself in an answer, the two must be equal.
    /// Without `token_url`, the endpoints are read from its metadata (RFC 8414 or OpenID Connect Discovery).
    #[schemars(extend("format" = "uri"), extend("examples" = ["https://login.example.com"]))]
    pub(crate) issuer: Option<String>,
    /// For `oauth`: the page at which people sign in. Default: that of the metadata of `issuer`.
    #[schemars(extend("format" = "uri"), extend("examples" = ["https://login.example.com/authorize"]))]
    pub(crate) authorize_url: Option<String>,
    /// For `oauth`: the token endpoint. With it, no metadata is read.
    #[schemars(extend("format" = "uri"), extend("examples" = ["https://login.example.com/token"]))]
    pub(crate) token_url: Option<String>,
    /// For `oauth`: the id of the client that you registered at the authorization server.
    #[schemars(length(min = 1), extend("examples" = ["my-client"]))]
    pub(crate) client_id: Option<String>,
    /// For `oauth`: the secret of that client, if it has one: use `${VAR}` or `file:/path`.
    #[schemars(length(min = 1), extend("examples" = ["${CLIENT_SECRET}"]))]
    pub(crate) client_secret: Option<String>,
    /// For `oauth`: the scopes to request.
    #[schemars(extend("examples" = [["openid", "offline_access"]]))]
    pub(crate) scopes: Option<Vec<String>>,
    /// For `oauth`: the port of the redirect URI on this machine. Default: any free port.
    #[schemars(range(min = 1, max = 65_535), extend("examples" = [8765]))]
    pub(crate) redirect_port: Option<u16>,
    /// For `oauth`: how the redirect URI names this machine. Authorization servers compare it literally.
    #[schemars(extend("default" = "127.0.0.1"))]
    pub(crate) redirect_host: Option<RawLoopbackHost>,
    /// For `oauth`: the path of the redirect URI. Default: `/callback`.
    #[schemars(length(min = 1), extend("examples" = ["/auth/callback"]))]
    pub(crate) redirect_path: Option<String>,
    /// For `oauth`: the device authorization endpoint, for machines without a browser.
    #[schemars(extend("format" = "uri"), extend("examples" = ["https://login.example.com/device"]))]
    pub(crate) device_url: Option<String>,
    /// For `oauth`: the revocation endpoint.
    #[schemars(extend("format" = "uri"), extend("examples" = ["https://login.example.com/revoke"]))]
    pub(crate) revoke_url: Option<String>,
    /// For `oauth`: further parameters of the authorization request.
    #[schemars(extend("examples" = [{"access_type": "offline"}]))]
    pub(crate) extra_params: Option<BTreeMap<String, String>>,
    /// For `oauth`: the format of requests to the token endpoint.
    #[schemars(extend("default" = "form"))]
    pub(crate) token_auth: Option<RawTokenAuth>,
    /// For `token_file`: the file. `~/` is the home directory; other relative paths are below this configuration.
    #[schemars(length(min = 1), extend("examples" = ["~/.example/credentials.json"]))]
    pub(crate) path: Option<String>,
    /// For `token_file`: the JSON pointer of the access token.
    #[schemars(length(min = 1), extend("examples" = ["/tokens/access_token"]))]
    pub(crate) access_token: Option<String>,
    /// For `token_file`: the JSON pointer of the expiry, in seconds or milliseconds since 1970 or as RFC 3339.
    #[schemars(length(min = 1), extend("examples" = ["/tokens/expires_at"]))]
    pub(crate) expires_at: Option<String>,
    /// For `token_file`: the JSON pointer of the account id, for `chatgpt`.
    #[schemars(length(min = 1), extend("examples" = ["/tokens/account_id"]))]
    pub(crate) account_id: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub(crate) enum RawProviderAuthKind {
    #[serde(rename = "oauth")]
    OAuth,
    TokenFile,
    ApiKey,
    Bearer,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[schemars(inline)]
pub(crate) enum RawLoopbackHost {
    #[serde(rename = "127.0.0.1")]
    Address,
    #[serde(rename = "localhost")]
    Name,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub(crate) enum RawTokenAuth {
    Form,
    Json,
}
