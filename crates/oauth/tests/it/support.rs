//! Accounts of these tests, with a clock that only the test moves.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use switchboard_model::{
    DescribedIssuer, Endpoint, EraChoice, GrantId, LoopbackRedirect, OAuthGrant, OAuthSettings,
    ServerName, ServerSpec, Sharing, SignInClient, TokenRequestFormat, UpstreamAuth,
};
use switchboard_oauth::{
    Authorization, GrantState, GrantTarget, MemoryTokens, SignIn, SignInState, SignIns, SignedIn,
    TokenStore,
};
use switchboard_test_support::FakeAuthServer;
use url::Url;

pub(crate) const HOUR: Duration = Duration::from_hours(1);

/// A store in memory and its clock.
#[derive(Clone)]
pub(crate) struct Desk {
    pub(crate) tokens: Arc<MemoryTokens>,
    pub(crate) now: Arc<AtomicI64>,
}

impl Desk {
    pub(crate) fn new() -> Self {
        let now = Arc::new(AtomicI64::new(1_700_000_000_000));
        let clock = now.clone();
        let tokens = MemoryTokens::new(Arc::new(move || clock.load(Ordering::SeqCst)));
        Self { tokens: Arc::new(tokens), now }
    }

    pub(crate) fn jump(&self, milliseconds: i64) {
        self.now.fetch_add(milliseconds, Ordering::SeqCst);
    }

    pub(crate) fn wait(&self, duration: Duration) {
        self.jump(i64::try_from(duration.as_millis()).unwrap());
    }

    /// Another process that shares the store.
    pub(crate) fn process(&self, server: &FakeAuthServer) -> Arc<Authorization> {
        SignIns::new(self.tokens.clone()).described(id(), &url(server), &issuer(server))
    }

    pub(crate) async fn state(&self, server: &FakeAuthServer) -> GrantState {
        let (url, issuer) = (url(server), issuer(server));
        let target = GrantTarget::Described(&url, &issuer);
        SignInState::of(&id(), target, &*self.tokens).await.unwrap().state
    }

    pub(crate) async fn sign_in(&self, server: &FakeAuthServer) -> SignedIn {
        let tokens: Arc<dyn TokenStore> = self.tokens.clone();
        let begun = SignIn::described(id(), &url(server), &issuer(server), tokens).await.unwrap();
        let page = reqwest::get(begun.url().to_owned());
        let (signed_in, page) = tokio::join!(begun.finish(), page);
        assert!(page.unwrap().status().is_success());
        signed_in.unwrap()
    }
}

pub(crate) fn id() -> GrantId {
    GrantId::of_provider("google", "default")
}

/// The address that the tokens of the described account are for.
pub(crate) fn url(server: &FakeAuthServer) -> Url {
    server.url().parse().unwrap()
}

/// The authorization server as a configuration describes it.
pub(crate) fn issuer(server: &FakeAuthServer) -> DescribedIssuer {
    let at = |path: &str| format!("{}/{path}", server.issuer()).parse().unwrap();
    DescribedIssuer {
        issuer: Some(server.issuer()),
        authorize_url: Some(at("authorize")),
        token_url: Some(at("token")),
        device_url: Some(at("device")),
        revoke_url: Some(at("revoke")),
        client_id: "ours".into(),
        client_secret: None,
        scopes: vec!["chat".into()],
        extra_params: BTreeMap::from([("access_type".into(), "offline".into())]),
        token_auth: TokenRequestFormat::Form,
        redirect: LoopbackRedirect::default(),
    }
}

/// The MCP server that the authorization server protects.
pub(crate) fn spec(server: &FakeAuthServer, client: SignInClient) -> ServerSpec {
    let settings = OAuthSettings { grant: OAuthGrant::SignIn(client), ..OAuthSettings::default() };
    let endpoint = Endpoint::StreamableHttp {
        url: server.url().parse().unwrap(),
        headers: BTreeMap::new(),
        auth: UpstreamAuth::OAuth(settings),
    };
    ServerSpec {
        name: ServerName::new("tracker"),
        place: endpoint.to_string(),
        endpoint,
        referenced: Vec::new(),
        caller_headers: Vec::new(),
        era: EraChoice::Auto,
        connect_timeout: Duration::from_secs(5),
        sharing: Sharing::Shared,
        egress: None,
    }
}

/// The bearer token of a grant.
pub(crate) fn bearer(grant: &switchboard_oauth::Grant) -> String {
    grant.header().unwrap().to_str().unwrap().trim_start_matches("Bearer ").to_owned()
}
