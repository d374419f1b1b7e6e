//! Validates `auth.oauth` of a server: sign-in with a browser, client credentials, or token exchange.

use switchboard_model::{
    AccountScope, ClientProof, ExchangeClient, ListingAccount, LoopbackRedirect, OAuthGrant,
    OAuthSettings, OwnClient, RedirectHost, Secret, ServerPlan, SignInClient, SigningAlgorithm,
    is_on_this_machine,
};
use url::Url;

use super::{At, Planner};
use crate::problem::ConfigProblem;
use crate::raw::{
    RawAccountScope, RawAuth, RawBearer, RawGrant, RawListing, RawOAuth, RawRedirectHost,
    RawSigningAlgorithm,
};

const ISSUER: &str = "https://login.example.com";
const SIGN_IN_KEYS: [&str; 4] =
    ["client_metadata_url", "redirect_host", "redirect_port", "redirect_path"];
const OWN_CLIENT_KEYS: [&str; 3] = ["issuer", "private_key", "signing_algorithm"];
const KEY_KEYS: [&str; 2] = ["private_key", "signing_algorithm"];

impl Planner<'_> {
    /// The settings below `auth.oauth` of a server.
    pub(super) fn oauth(&mut self, at: &At<'_>, mut raw: RawOAuth) -> Option<OAuthSettings> {
        let place = at.get("auth").and_then(|auth| auth.get("oauth"))?;
        let per = of_oauth(&raw);
        if raw.grant != Some(RawGrant::TokenExchange) && place.has("audience") {
            let help = "add `grant: token_exchange`, or remove it";
            self.wrong_key(&place, "audience", "it belongs to `grant: token_exchange`", help);
        }
        if per != AccountScope::Board && raw.grant == Some(RawGrant::ClientCredentials) {
            let why = "the client credentials grant gives the program an account of its own";
            self.wrong_key(
                &place,
                "per",
                why,
                "remove it, or the line `grant: client_credentials`",
            );
        }
        let scopes = raw.scopes.take().unwrap_or_default();
        self.check_scopes(&place, "scopes", &scopes);
        let grant = match raw.grant.unwrap_or(RawGrant::SignIn) {
            RawGrant::SignIn => OAuthGrant::SignIn(self.sign_in_client(&place, raw)),
            RawGrant::ClientCredentials => {
                OAuthGrant::ClientCredentials(self.own_client(&place, raw)?)
            }
            RawGrant::TokenExchange => {
                OAuthGrant::TokenExchange(self.exchange_client(at, &place, raw)?)
            }
        };
        Some(OAuthSettings { grant, scopes, per, listing: ListingAccount::default() })
    }

    /// Checks `listing`, which needs accounts of single owners.
    pub(super) fn listing(
        &mut self,
        at: &At<'_>,
        raw: Option<RawListing>,
        per: AccountScope,
    ) -> ListingAccount {
        if let Some(listing) = at.get("listing").filter(|_| per == AccountScope::Board) {
            let help =
                "it belongs to `auth.oauth.per: user` or `session`: add that, or remove this key";
            self.refuse(&listing, "has no effect, because all callers share one account", help);
        }
        match raw {
            Some(RawListing::Board) => ListingAccount::Board,
            Some(RawListing::First) | None => ListingAccount::First,
        }
    }

    /// Refuses accounts of single owners on a board that is reachable from elsewhere and would store their tokens in
    /// clear text.
    pub(super) fn check_account_storage(
        &mut self,
        config: &At<'_>,
        servers: &[(ServerPlan, At<'_>)],
        public_url: Option<&Url>,
    ) {
        let has_key = config.get("security").is_some_and(|security| security.has("store_key"));
        if has_key || public_url.is_none_or(is_on_this_machine) {
            return;
        }
        for (server, at) in servers {
            let endpoint = &server.spec.endpoint;
            let per = endpoint.account_scope();
            // Exchanged tokens are not stored.
            let is_stored = endpoint
                .oauth()
                .is_some_and(|(_, it)| !matches!(it.grant, OAuthGrant::TokenExchange(_)));
            if per == AccountScope::Board || !is_stored {
                continue;
            }
            let message = format!(
                "{}.auth stores tokens for each {}, and `gateway.public_url` is not on this machine: they must be \
                 encrypted",
                at.path,
                per.as_str()
            );
            let problem = ConfigProblem::error(message).about(&at.path.key("auth"));
            let help =
                "set `security.store_key: file:/path`; `openssl rand -base64 32` makes a key";
            self.push(at.key_origin("auth"), problem.help(help));
        }
    }

    fn sign_in_client(&mut self, place: &At<'_>, raw: RawOAuth) -> SignInClient {
        for key in OWN_CLIENT_KEYS.iter().filter(|key| place.has(key)) {
            let help = "add `grant: client_credentials`, or remove it";
            self.wrong_key(place, key, "it belongs to `grant: client_credentials`", help);
        }
        if raw.client_secret.is_some() && raw.client_id.is_none() {
            let message = format!("{} has a `client_secret` without a `client_id`", place.path);
            let problem = ConfigProblem::error(message).about(&place.path);
            self.push(
                place.key_origin("client_secret"),
                problem.help("add the `client_id` that it belongs to"),
            );
        }
        SignInClient {
            id: raw.client_id,
            secret: raw.client_secret.map(Secret::new),
            metadata_url: self.metadata_url(place, raw.client_metadata_url),
            redirect: self.redirect(place, raw.redirect_host, raw.redirect_port, raw.redirect_path),
        }
    }

    /// The redirect URI on this machine.
    pub(super) fn redirect(
        &mut self,
        place: &At<'_>,
        host: Option<RawRedirectHost>,
        port: Option<u16>,
        path: Option<String>,
    ) -> LoopbackRedirect {
        let host = match host {
            Some(RawRedirectHost::Localhost) => RedirectHost::Localhost,
            Some(RawRedirectHost::Address) | None => RedirectHost::Address,
        };
        let path = path.unwrap_or_else(|| LoopbackRedirect::DEFAULT_PATH.into());
        let is_path = path.starts_with('/')
            && !path.contains("//")
            && path.chars().all(|c| c.is_ascii_alphanumeric() || "/-._~".contains(c));
        if !is_path {
            let why = "it is not a path such as `/callback`";
            let help = "begin with `/`, and use letters, digits and `-._~`";
            self.wrong_key(place, "redirect_path", why, help);
        }
        LoopbackRedirect { host, port, path }
    }

    /// The client that exchanges the tokens of callers.
    fn exchange_client(
        &mut self,
        at: &At<'_>,
        place: &At<'_>,
        raw: RawOAuth,
    ) -> Option<ExchangeClient> {
        for key in SIGN_IN_KEYS.iter().chain(&KEY_KEYS).filter(|key| place.has(key)) {
            let help = "remove it, or the line `grant: token_exchange`";
            self.wrong_key(place, key, "it has no effect with `grant: token_exchange`", help);
        }
        if matches!(raw.per, Some(RawAccountScope::Board | RawAccountScope::Session)) {
            let why = "the token of a caller is exchanged for one of the same person";
            self.wrong_key(place, "per", why, "remove it: `user` is the default here");
        }
        if let Some(listing) = at.get("listing").filter(|it| it.text() == Some("board")) {
            let help = "remove it: the first caller with a token lists the tools";
            self.refuse(&listing, "needs an account of the board, and there is none", help);
        }
        if raw.client_id.is_none() {
            let help = "add the `client_id` of the client that may exchange tokens";
            self.wrong_grant(place, "token_exchange", "no `client_id`", help);
        }
        if self.jwt_issuer.is_none() {
            let help = "callers show tokens only where `security.jwt` is configured: add it";
            self.wrong_grant(place, "token_exchange", "there is no `security.jwt`", help);
        }
        let own = raw.issuer.filter(|text| self.url(place, "issuer", text, ISSUER).is_some());
        let issuer = if place.has("issuer") { own } else { self.jwt_issuer.clone() };
        Some(ExchangeClient {
            id: raw.client_id?,
            secret: raw.client_secret.map(Secret::new),
            issuer: issuer?,
            audience: raw.audience,
        })
    }

    fn own_client(&mut self, place: &At<'_>, raw: RawOAuth) -> Option<OwnClient> {
        for key in SIGN_IN_KEYS.iter().filter(|key| place.has(key)) {
            let help = "remove it, or the line `grant: client_credentials`";
            self.wrong_key(place, key, "it belongs to `grant: sign_in`", help);
        }
        if place.has("signing_algorithm") && !place.has("private_key") {
            let help = "add the `private_key` that signs, or remove it";
            self.wrong_key(place, "signing_algorithm", "there is no `private_key`", help);
        }
        let proof = match (raw.client_secret, raw.private_key) {
            (Some(secret), None) => Some(ClientProof::Secret(Secret::new(secret))),
            (None, Some(pem)) => {
                let algorithm = raw.signing_algorithm.map(algorithm).unwrap_or_default();
                Some(ClientProof::Key { pem: Secret::new(pem), algorithm })
            }
            (Some(_), Some(_)) => {
                let help =
                    "a client uses only one of them: remove `client_secret` or `private_key`";
                self.wrong_grant(place, "client_credentials", "two client credentials", help);
                None
            }
            (None, None) => {
                let help = "add `client_secret: ${VAR}`, or `private_key: file:/path`";
                self.wrong_grant(place, "client_credentials", "no client credential", help);
                None
            }
        };
        if raw.client_id.is_none() {
            let help = "add the `client_id` of the client that was registered for this";
            self.wrong_grant(place, "client_credentials", "no `client_id`", help);
        }
        let issuer = raw.issuer.filter(|text| self.url(place, "issuer", text, ISSUER).is_some());
        Some(OwnClient { id: raw.client_id?, proof: proof?, issuer })
    }

    fn metadata_url(&mut self, place: &At<'_>, text: Option<String>) -> Option<Url> {
        let url = Url::parse(&text?).ok();
        // The URL itself is the client id, so it must be https and have a path.
        let url = url.filter(|url| url.scheme() == "https" && url.path().len() > 1);
        if url.is_none() {
            let message =
                format!("{}.client_metadata_url is not an https URL with a path", place.path);
            let problem = ConfigProblem::error(message)
                .about(&place.path.key("client_metadata_url"))
                .help("write an address such as `https://example.com/switchboard.json`");
            self.push(place.key_origin("client_metadata_url"), problem);
        }
        url
    }

    pub(super) fn check_scopes(&mut self, place: &At<'_>, key: &str, scopes: &[String]) {
        if scopes.iter().any(|scope| !is_scope(scope)) {
            let why = "a scope is one word without quotes and backslashes";
            self.wrong_key(place, key, why, "write each as an entry of its own");
        }
    }

    fn wrong_key(&mut self, place: &At<'_>, key: &str, why: &str, help: &str) {
        let problem = ConfigProblem::error(format!("{}.{key}: {why}", place.path));
        self.push(place.key_origin(key), problem.about(&place.path.key(key)).help(help));
    }

    fn wrong_grant(&mut self, place: &At<'_>, grant: &str, what: &str, help: &str) {
        let message = format!("{} has `grant: {grant}` and {what}", place.path);
        let problem = ConfigProblem::error(message).about(&place.path);
        self.push(place.key_origin("grant"), problem.help(help));
    }
}

/// Whose account a server's credentials mean.
pub(super) fn scope_of(auth: Option<&RawAuth>) -> AccountScope {
    let Some(auth) = auth else { return AccountScope::Board };
    let of_bearer = auth.bearer.as_ref().and_then(|bearer| match bearer {
        RawBearer::Token(_) => None,
        RawBearer::PerOwner(owner) => owner.per,
    });
    match (of_bearer, &auth.oauth) {
        (Some(per), _) => account_scope(per),
        (None, Some(oauth)) => of_oauth(oauth),
        (None, None) => AccountScope::Board,
    }
}

fn of_oauth(oauth: &RawOAuth) -> AccountScope {
    match (oauth.per, oauth.grant) {
        (Some(per), _) => account_scope(per),
        (None, Some(RawGrant::TokenExchange)) => AccountScope::Person,
        (None, _) => AccountScope::Board,
    }
}

fn account_scope(raw: RawAccountScope) -> AccountScope {
    match raw {
        RawAccountScope::User => AccountScope::Person,
        RawAccountScope::Board => AccountScope::Board,
        RawAccountScope::Session => AccountScope::Session,
    }
}

fn algorithm(raw: RawSigningAlgorithm) -> SigningAlgorithm {
    match raw {
        RawSigningAlgorithm::Es256 => SigningAlgorithm::Es256,
        RawSigningAlgorithm::Es384 => SigningAlgorithm::Es384,
        RawSigningAlgorithm::Rs256 => SigningAlgorithm::Rs256,
        RawSigningAlgorithm::Rs384 => SigningAlgorithm::Rs384,
        RawSigningAlgorithm::Rs512 => SigningAlgorithm::Rs512,
    }
}

/// Whether a text is a scope token of RFC 6749.
fn is_scope(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| matches!(b, 0x21 | 0x23..=0x5b | 0x5d..=0x7e))
}
