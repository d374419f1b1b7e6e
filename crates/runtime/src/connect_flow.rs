//! One sign-in through the page of the board: who is asked, which browser does it, and its end.
//!
//! A flow belongs to the person whose call asked for it. A browser takes part once it has shown that it is that person's
//! (`bind`); the sign-in at the authorization server is then bound to this browser. A flow is used once and for at most
//! [`FLOW_LIFETIME`].

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use switchboard_mcp_client::challenge_request;
use switchboard_model::{
    ConnectError, ConnectErrorKind as Kind, GrantId, GrantOwner, OAuthGrant, Secret, ServerName,
    ServerSpec,
};
use switchboard_oauth::{CodeFlow, HostedSignIn, SignedIn, TokenStore, stored_token};
use switchboard_outbound::HttpPool;
use tokio::sync::{Semaphore, watch};
use tokio::time::Instant;
use url::Url;

/// How long a flow may be used.
pub const FLOW_LIFETIME: Duration = Duration::from_mins(10);
/// How many wrong codes end a flow.
const MAX_WRONG_CODES: u8 = 5;

/// How far a flow has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlowEnd {
    /// It waits for the person.
    Open,
    SignedIn,
    /// It was refused, failed, expired or was replaced.
    Failed,
}

/// One sign-in of one person at one server.
#[derive(Debug)]
pub struct ConnectFlow {
    /// 128 random bits.
    id: Arc<str>,
    /// What only the caller was shown.
    code: Arc<str>,
    spec: ServerSpec,
    owner: GrantOwner,
    /// The person who may take part.
    person: Arc<str>,
    /// The program whose call asked, as it names itself.
    client: Option<Arc<str>>,
    redirect_uri: Url,
    document: Option<Url>,
    born: Instant,
    expires_at_ms: i64,
    tokens: Arc<dyn TokenStore>,
    http: HttpPool,
    state: Mutex<FlowState>,
    /// Lets one request at a time begin or finish the sign-in.
    turn: Semaphore,
    end: watch::Sender<FlowEnd>,
}

#[derive(Debug, Default)]
struct FlowState {
    /// The browser that takes part, as the value of its cookie.
    browser: Option<Arc<str>>,
    wrong_codes: u8,
    sign_in: Option<HostedSignIn>,
    shown: Option<Arc<SignInOffer>>,
    /// A sign-in at the issuer of the board that shows who the person is, and the browser that began it.
    identity: Option<(Arc<str>, CodeFlow)>,
}

/// What a person decides about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignInOffer {
    pub issuer: String,
    pub scopes: Vec<String>,
    /// The address of the authorization server, for the browser.
    pub url: String,
    /// The `state` in that address.
    pub state: String,
}

/// The inputs of a new flow.
#[derive(Debug, Clone)]
pub(crate) struct FlowDraft {
    pub(crate) spec: ServerSpec,
    pub(crate) owner: GrantOwner,
    pub(crate) person: Arc<str>,
    pub(crate) client: Option<Arc<str>>,
    pub(crate) redirect_uri: Url,
    pub(crate) document: Option<Url>,
}

impl ConnectFlow {
    pub(crate) fn new(
        id: Arc<str>,
        code: Arc<str>,
        draft: FlowDraft,
        tokens: Arc<dyn TokenStore>,
        http: HttpPool,
    ) -> Self {
        let FlowDraft { spec, owner, person, client, redirect_uri, document } = draft;
        Self {
            id,
            code,
            spec,
            owner,
            person,
            client,
            redirect_uri,
            document,
            born: Instant::now(),
            expires_at_ms: tokens.now_ms()
                + i64::try_from(FLOW_LIFETIME.as_millis()).unwrap_or_default(),
            tokens,
            http,
            state: Mutex::default(),
            turn: Semaphore::new(1),
            end: watch::Sender::new(FlowEnd::Open),
        }
    }

    pub fn id(&self) -> &Arc<str> {
        &self.id
    }

    /// When it can no longer be used, in milliseconds since 1970.
    pub fn expires_at_ms(&self) -> i64 {
        self.expires_at_ms
    }

    pub fn code(&self) -> &Arc<str> {
        &self.code
    }

    pub fn server(&self) -> &ServerName {
        &self.spec.name
    }

    pub fn owner(&self) -> &GrantOwner {
        &self.owner
    }

    /// The person who may take part.
    pub fn person(&self) -> &Arc<str> {
        &self.person
    }

    /// The program whose call asked, as it names itself.
    pub fn client(&self) -> Option<&str> {
        self.client.as_deref()
    }

    /// Whether the person enters a token instead of signing in at an authorization server.
    pub fn takes_token(&self) -> bool {
        self.spec.endpoint.oauth().is_some_and(|(_, it)| it.grant == OAuthGrant::StoredToken)
    }

    /// How far it has come.
    pub fn end(&self) -> FlowEnd {
        let end = *self.end.borrow();
        if end == FlowEnd::Open && self.born.elapsed() >= FLOW_LIFETIME {
            return FlowEnd::Failed;
        }
        end
    }

    /// Waits until the person has signed in, or until the flow can no longer succeed. Cancel-safe.
    pub async fn ended(&self) -> FlowEnd {
        let mut end = self.end.subscribe();
        let ended = end.wait_for(|end| *end != FlowEnd::Open);
        let ended = tokio::time::timeout_at(self.born + FLOW_LIFETIME, ended).await;
        ended.ok().and_then(Result::ok).map_or(FlowEnd::Failed, |end| *end)
    }

    /// Ends the flow without a sign-in.
    pub fn give_up(&self) {
        self.end.send_if_modified(|end| {
            let is_open = *end == FlowEnd::Open;
            if is_open {
                *end = FlowEnd::Failed;
            }
            is_open
        });
        self.state.lock().sign_in = None;
    }

    /// Checks the code that only the caller was shown. After some wrong codes the flow ends.
    pub fn check_code(&self, entered: &str) -> bool {
        let plain = |text: &str| -> String {
            text.chars()
                .filter(char::is_ascii_alphanumeric)
                .map(|c| c.to_ascii_uppercase())
                .collect()
        };
        // Hashes compare in constant time.
        let hash = |text: &str| blake3::hash(plain(text).as_bytes());
        if self.end() == FlowEnd::Open && hash(entered) == hash(&self.code) {
            return true;
        }
        let is_spent = {
            let mut state = self.state.lock();
            state.wrong_codes = state.wrong_codes.saturating_add(1);
            state.wrong_codes >= MAX_WRONG_CODES
        };
        if is_spent {
            self.give_up();
        }
        false
    }

    /// Notes that this browser shows at the issuer of the board who its person is. An earlier attempt is given up.
    pub fn begin_identity(&self, browser: &str, identity: CodeFlow) {
        self.state.lock().identity = Some((browser.into(), identity));
    }

    /// Whether the identity check of this flow carries this `state`.
    pub fn has_identity_state(&self, wanted: &str) -> bool {
        let state = self.state.lock();
        let hash = |text: &str| blake3::hash(text.as_bytes());
        state.identity.as_ref().is_some_and(|(_, it)| hash(it.state()) == hash(wanted))
    }

    /// Takes the identity check that this browser began. It is used then.
    pub fn take_identity(&self, browser: &str) -> Option<CodeFlow> {
        let mut state = self.state.lock();
        let hash = |text: &str| blake3::hash(text.as_bytes());
        let is_theirs = state.identity.as_ref().is_some_and(|(own, _)| hash(own) == hash(browser));
        if is_theirs { state.identity.take().map(|(_, identity)| identity) } else { None }
    }

    /// Lets this browser take part, and no other one any more.
    pub fn bind(&self, browser: &str) {
        let mut state = self.state.lock();
        if state.browser.as_deref() != Some(browser) {
            // What another browser began is not continued here.
            *state = FlowState {
                browser: Some(browser.into()),
                wrong_codes: state.wrong_codes,
                ..FlowState::default()
            };
        }
    }

    /// Whether this browser takes part.
    pub fn is_bound_to(&self, browser: Option<&str>) -> bool {
        let state = self.state.lock();
        let hash = |text: &str| blake3::hash(text.as_bytes());
        matches!((state.browser.as_deref(), browser), (Some(own), Some(other)) if hash(own) == hash(other))
    }

    /// Whether the sign-in of this browser carries this `state`.
    pub fn has_state(&self, wanted: &str) -> bool {
        let state = self.state.lock();
        let hash = |text: &str| blake3::hash(text.as_bytes());
        state.shown.as_ref().is_some_and(|shown| hash(&shown.state) == hash(wanted))
    }

    /// Where the person signs in: asks the server and the authorization server, once for each browser.
    pub async fn offer(&self) -> Result<Arc<SignInOffer>, ConnectError> {
        let _turn = self.turn.acquire().await;
        let shown = self.state.lock().shown.clone();
        if let Some(shown) = shown {
            return Ok(shown);
        }
        let unsigned = challenge_request(&self.spec, &self.http)?;
        let begun = HostedSignIn::begin(
            &self.spec,
            self.owner.clone(),
            &self.redirect_uri,
            self.document.as_ref(),
            unsigned,
            self.tokens.clone(),
        );
        let sign_in = begun.await?;
        let url = safe_address(sign_in.url())?;
        let shown = Arc::new(SignInOffer {
            issuer: sign_in.issuer().to_owned(),
            scopes: sign_in.scopes().to_vec(),
            url,
            state: sign_in.state().to_owned(),
        });
        let mut state = self.state.lock();
        (state.sign_in, state.shown) = (Some(sign_in), Some(shown.clone()));
        Ok(shown)
    }

    /// Takes the answer of the authorization server: exchanges the code and stores the tokens for the owner. Whatever
    /// comes of it, the flow is used then.
    pub async fn finish(&self, code: &str, issuer: Option<&str>) -> Result<SignedIn, ConnectError> {
        let _turn = self.turn.acquire().await;
        let sign_in = self.state.lock().sign_in.take();
        let Some(sign_in) = sign_in.filter(|_| self.end() == FlowEnd::Open) else {
            return Err(ConnectError::new(
                Kind::SignIn,
                "this sign-in was used already, or has expired",
            ));
        };
        let finished = sign_in.finish(code, issuer).await;
        self.note_end(finished.is_ok());
        finished
    }

    /// Checks the `iss` of an answer that is an error. Its text may be shown only if this succeeds.
    pub fn is_issuer(&self, issuer: Option<&str>) -> bool {
        let state = self.state.lock();
        state.sign_in.as_ref().is_some_and(|sign_in| sign_in.accepts_issuer(issuer))
    }

    /// Stores a token that the person entered.
    pub async fn take_token(&self, token: &Secret) -> Result<(), ConnectError> {
        let _turn = self.turn.acquire().await;
        if self.end() != FlowEnd::Open || !self.takes_token() {
            return Err(ConnectError::new(
                Kind::SignIn,
                "this page was used already, or has expired",
            ));
        }
        let kept = stored_token(&self.spec, token, &*self.tokens, &self.grant_id()).await;
        if kept.is_ok() {
            self.note_end(true);
        }
        kept
    }

    fn grant_id(&self) -> GrantId {
        GrantId::of_server(&self.spec.name).with_owner(self.owner.clone())
    }

    fn note_end(&self, is_signed_in: bool) {
        let end = if is_signed_in { FlowEnd::SignedIn } else { FlowEnd::Failed };
        self.end.send_replace(end);
    }
}

/// The address for the browser, if it is one that a browser may be sent to.
fn safe_address(text: &str) -> Result<String, ConnectError> {
    let url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "https" | "http"));
    url.map(String::from).ok_or_else(|| {
        let message = "the authorization server names an address that is neither http nor https";
        ConnectError::new(Kind::Protocol, message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_browser_is_sent_only_to_web_addresses() {
        for bad in ["javascript:alert(1)", "file:///etc/passwd", "data:text/html,x", "sh -c ls", ""]
        {
            assert!(safe_address(bad).is_err(), "{bad}");
        }
        assert_eq!(safe_address("https://i/a?b=$(c)").unwrap(), "https://i/a?b=$(c)");
    }
}
