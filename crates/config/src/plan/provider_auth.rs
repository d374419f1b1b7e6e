//! Validates the credentials of a provider: `auth` and `credentials`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use http::HeaderValue;
use switchboard_model::{
    DEFAULT_CREDENTIAL, DescribedIssuer, LoopbackRedirect, ProviderAuth, ProviderKind,
    RedirectHost, Secret, TokenFile, TokenRequestFormat, is_on_this_machine,
};
use url::Url;

use super::{At, Planner};
use crate::problem::ConfigProblem;
use crate::raw_provider_auth::{
    RawLoopbackHost, RawProviderAuth, RawProviderAuthKind, RawTokenAuth,
};

const OAUTH_KEYS: [&str; 13] = [
    "issuer",
    "authorize_url",
    "token_url",
    "client_id",
    "client_secret",
    "scopes",
    "redirect_port",
    "redirect_host",
    "redirect_path",
    "device_url",
    "revoke_url",
    "extra_params",
    "token_auth",
];
const FILE_KEYS: [&str; 4] = ["path", "access_token", "expires_at", "account_id"];
const VALUE_KEYS: [&str; 1] = ["value"];
const ENDPOINT: &str = "https://login.example.com/token";
/// Parameters of the authorization request that a sign-in sets itself.
const OWN_PARAMS: [&str; 9] = [
    "response_type",
    "client_id",
    "client_secret",
    "redirect_uri",
    "state",
    "scope",
    "code_challenge",
    "code_challenge_method",
    "code_verifier",
];

impl Planner<'_> {
    /// The credential of `auth`.
    pub(super) fn described_auth(
        &mut self,
        at: &At<'_>,
        kind: Option<ProviderKind>,
        raw: RawProviderAuth,
    ) -> Option<ProviderAuth> {
        for key in ["api_key", "bearer"].iter().filter(|key| at.has(key)) {
            let message = format!("{} has both `{key}` and `auth`", at.path);
            let problem = ConfigProblem::error(message).about(&at.path.key("auth"));
            self.push(at.key_origin("auth"), problem.help("remove one of the two"));
        }
        self.credential(&at.get("auth")?, kind, raw)
    }

    /// The entries of `credentials`.
    pub(super) fn credentials(
        &mut self,
        at: &At<'_>,
        kind: Option<ProviderKind>,
        raw: BTreeMap<String, RawProviderAuth>,
    ) -> BTreeMap<String, ProviderAuth> {
        let Some(place) = at.get("credentials") else { return BTreeMap::new() };
        let mut all = BTreeMap::new();
        for (name, raw) in raw {
            let why = if name == DEFAULT_CREDENTIAL {
                Some("is the name of the credential of `auth`, `api_key` or `bearer`")
            } else if !is_credential_name(&name) {
                Some("is not a name: use up to 64 letters, digits, `_` and `-`")
            } else {
                None
            };
            if let Some(why) = why {
                let problem = ConfigProblem::error(format!("{}: `{name}` {why}", place.path));
                self.push(place.key_origin(&name), problem.about(&place.path));
            }
            let found = place.get(&name).and_then(|at| self.credential(&at, kind, raw));
            all.extend(found.map(|auth| (name, auth)));
        }
        all
    }

    fn credential(
        &mut self,
        at: &At<'_>,
        kind: Option<ProviderKind>,
        raw: RawProviderAuth,
    ) -> Option<ProviderAuth> {
        if kind == Some(ProviderKind::Demo) {
            self.misplaced(at, "kind", "the demo model takes no credential", "remove it");
        }
        let (word, own): (_, &[&str]) = match raw.kind? {
            RawProviderAuthKind::OAuth => ("oauth", &OAUTH_KEYS),
            RawProviderAuthKind::TokenFile => ("token_file", &FILE_KEYS),
            RawProviderAuthKind::ApiKey => ("api_key", &VALUE_KEYS),
            RawProviderAuthKind::Bearer => ("bearer", &VALUE_KEYS),
        };
        let all = OAUTH_KEYS.iter().chain(&FILE_KEYS).chain(&VALUE_KEYS);
        for key in all.filter(|key| !own.contains(*key) && at.has(key)) {
            let why = format!("it has no effect with `kind: {word}`");
            self.misplaced(at, key, &why, "remove it, or change `kind`");
        }
        match raw.kind? {
            RawProviderAuthKind::OAuth => {
                self.issuer(at, raw).map(Box::new).map(ProviderAuth::OAuth)
            }
            RawProviderAuthKind::TokenFile => {
                self.token_file(at, raw).map(Box::new).map(ProviderAuth::TokenFile)
            }
            RawProviderAuthKind::ApiKey | RawProviderAuthKind::Bearer => {
                let is_key = raw.kind == Some(RawProviderAuthKind::ApiKey);
                if is_key && matches!(kind, Some(ProviderKind::ChatGpt | ProviderKind::CodeAssist))
                {
                    self.misplaced(at, "kind", "this provider takes no API key", "use `bearer`");
                }
                let value = self.given(at, "value", raw.value, "${TOKEN}")?;
                if value.trim().is_empty() || HeaderValue::from_str(&value).is_err() {
                    let why = "is empty or holds characters that a header cannot carry";
                    self.misplaced(at, "value", why, "check the variable or the file");
                    return None;
                }
                let value = Secret::new(value);
                Some(if is_key { ProviderAuth::ApiKey(value) } else { ProviderAuth::Bearer(value) })
            }
        }
    }

    fn issuer(&mut self, at: &At<'_>, raw: RawProviderAuth) -> Option<DescribedIssuer> {
        let mut endpoint = |key: &str, text: Option<String>| {
            text.and_then(|text| self.issuer_endpoint(at, key, &text))
        };
        let authorize_url = endpoint("authorize_url", raw.authorize_url);
        let token_url = endpoint("token_url", raw.token_url);
        let device_url = endpoint("device_url", raw.device_url);
        let revoke_url = endpoint("revoke_url", raw.revoke_url);
        let issuer = raw.issuer.filter(|text| self.issuer_endpoint(at, "issuer", text).is_some());
        if !at.has("token_url") && !at.has("issuer") {
            let message = format!("missing key `token_url` in {}", at.path);
            let help = format!(
                "add the token endpoint: `token_url: {ENDPOINT}`; or `issuer` alone, if it publishes metadata"
            );
            let problem = ConfigProblem::error(message).about(&at.path.key("token_url")).help(help);
            self.push(&at.node.origin, problem);
        } else if at.has("token_url") && !at.has("authorize_url") && !at.has("device_url") {
            let message = format!("{} has no page to sign in at", at.path);
            let help = "add `authorize_url`, or `device_url` for machines without a browser";
            let about = at.path.key("authorize_url");
            let problem = ConfigProblem::error(message).about(&about).help(help);
            self.push(&at.node.origin, problem);
        }
        let client_id = self.given(at, "client_id", raw.client_id, "the-id-of-your-client");
        let scopes = raw.scopes.unwrap_or_default();
        self.check_scopes(at, "scopes", &scopes);
        if raw.redirect_path.as_deref().is_some_and(|path| !is_path(path)) {
            let why = "it is not a path of letters, digits, `/`, `-`, `_`, `.` and `~`";
            self.misplaced(at, "redirect_path", why, "write it as `/auth/callback`");
        }
        let extra_params = raw.extra_params.unwrap_or_default();
        if let Some(name) = extra_params.keys().find(|name| OWN_PARAMS.contains(&name.as_str())) {
            let why = format!("`{name}` is set by the sign-in itself");
            self.misplaced(at, "extra_params", &why, "remove it");
        }
        Some(DescribedIssuer {
            issuer,
            authorize_url,
            token_url,
            client_id: client_id?,
            client_secret: raw.client_secret.map(Secret::new),
            scopes,
            redirect: LoopbackRedirect {
                port: raw.redirect_port,
                host: raw.redirect_host.map(host).unwrap_or_default(),
                path: raw.redirect_path.unwrap_or_else(|| LoopbackRedirect::DEFAULT_PATH.into()),
            },
            device_url,
            revoke_url,
            extra_params,
            token_auth: raw.token_auth.map(token_auth).unwrap_or_default(),
        })
    }

    /// A URL that receives credentials: https, or http on this machine, without credentials and fragment.
    fn issuer_endpoint(&mut self, at: &At<'_>, key: &str, text: &str) -> Option<Url> {
        let url = self.url(at, key, text, ENDPOINT)?;
        let why = if !url.username().is_empty() || url.password().is_some() {
            "the address carries credentials"
        } else if url.fragment().is_some() {
            "the address has a fragment"
        } else if url.scheme() != "https" && !is_on_this_machine(&url) {
            "tokens must not travel unencrypted"
        } else {
            return Some(url);
        };
        self.misplaced(at, key, why, &format!("write an https address such as `{ENDPOINT}`"));
        None
    }

    fn token_file(&mut self, at: &At<'_>, raw: RawProviderAuth) -> Option<TokenFile> {
        let path = self.given(at, "path", raw.path, "~/.example/credentials.json");
        let token = self.given(at, "access_token", raw.access_token, "/access_token");
        let pointers = [
            ("access_token", token.as_ref()),
            ("expires_at", raw.expires_at.as_ref()),
            ("account_id", raw.account_id.as_ref()),
        ];
        for (key, _) in pointers.iter().filter(|(_, text)| text.is_some_and(|t| !is_pointer(t))) {
            let why = "it is not a JSON pointer";
            self.misplaced(
                at,
                key,
                why,
                "write the keys with a slash before each: `/tokens/access`",
            );
        }
        let path = path?;
        let path =
            if path.starts_with("~/") { PathBuf::from(path) } else { self.directory.join(path) };
        Some(TokenFile {
            path,
            access_token: token?,
            expires_at: raw.expires_at,
            account_id: raw.account_id,
        })
    }

    /// The value of a required key.
    fn given(
        &mut self,
        at: &At<'_>,
        key: &str,
        value: Option<String>,
        example: &str,
    ) -> Option<String> {
        if !at.has(key) {
            let problem = ConfigProblem::error(format!("missing key `{key}` in {}", at.path))
                .about(&at.path.key(key))
                .help(format!("add `{key}: {example}`"));
            self.push(&at.node.origin, problem);
        }
        value
    }

    fn misplaced(&mut self, at: &At<'_>, key: &str, why: &str, help: &str) {
        let problem = ConfigProblem::error(format!("{}.{key}: {why}", at.path));
        self.push(at.key_origin(key), problem.about(&at.path.key(key)).help(help));
    }
}

/// Whether a text can name a credential: in the store it is part of a key.
fn is_credential_name(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    (1..=64).contains(&name.len()) && name.bytes().all(is_plain)
}

/// Whether a text can be the path of a redirect URI as it is.
fn is_path(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-_.~".contains(&byte);
    text.starts_with('/') && !text.starts_with("//") && text.bytes().all(is_plain)
}

/// Whether a text is a JSON pointer (RFC 6901) to something inside of a document.
fn is_pointer(text: &str) -> bool {
    let has_sound_escapes = text.split('~').skip(1).all(|rest| rest.starts_with(['0', '1']));
    text.starts_with('/') && has_sound_escapes
}

fn host(raw: RawLoopbackHost) -> RedirectHost {
    match raw {
        RawLoopbackHost::Address => RedirectHost::Address,
        RawLoopbackHost::Name => RedirectHost::Localhost,
    }
}

fn token_auth(raw: RawTokenAuth) -> TokenRequestFormat {
    match raw {
        RawTokenAuth::Form => TokenRequestFormat::Form,
        RawTokenAuth::Json => TokenRequestFormat::Json,
    }
}
