//! The accounts of single owners at servers: who is asked to sign in, and the flows that are open.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use switchboard_model::{
    Caller, ConnectError, ConnectErrorKind as Kind, GrantId, GrantOwner, ServerName, SignInPage,
};
use switchboard_oauth::{GrantTarget, SignInState, SignIns, TokenStore};
use switchboard_outbound::HttpPool;
use tokio::time::Instant;
use url::Url;

use crate::connect_flow::{ConnectFlow, FLOW_LIFETIME, FlowDraft, FlowEnd};
use crate::connection_pool::ClientProfile;
use crate::server::Server;
use crate::sign_in_pages::{PagesSource, SignInPages};
use crate::sign_in_prompt::SignInPrompt;

/// How many flows may be open; beyond it the oldest is given up.
const MAX_FLOWS: usize = 4096;
/// How long a person is not asked for the same sign-in again.
const PROMPT_PAUSE: Duration = Duration::from_mins(10);
/// The letters of codes: none that people confuse.
const CODE_LETTERS: &[u8; 32] = b"ABCDEFGHJKLMNPQRSTUVWXYZ23456789";

/// The sign-ins that callers are asked for. Clones share them.
#[derive(Debug, Clone)]
pub struct Accounts {
    sign_ins: SignIns,
    http: HttpPool,
    pages: PagesSource,
    flows: Arc<Mutex<Flows>>,
}

#[derive(Debug, Default)]
struct Flows {
    by_id: HashMap<Arc<str>, (Instant, FlowTopic, Arc<ConnectFlow>)>,
    /// When a person was last asked for a sign-in.
    asked: HashMap<FlowTopic, Instant>,
}

/// What a person is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct FlowTopic {
    owner: GrantOwner,
    server: ServerName,
    scopes: Vec<String>,
}

impl Accounts {
    pub(crate) fn new(sign_ins: SignIns, http: HttpPool) -> Self {
        Self { sign_ins, http, pages: PagesSource::default(), flows: Arc::default() }
    }

    /// Sets where the address of the pages is read. Without one, a call that needs a sign-in names a command instead.
    /// Later calls have no effect.
    pub fn serve_pages(&self, current: impl Fn() -> Option<SignInPages> + Send + Sync + 'static) {
        self.pages.set(Box::new(current));
    }

    /// The address of the pages.
    pub fn pages(&self) -> Option<SignInPages> {
        self.pages.current()
    }

    /// Makes the next request of an owner read its account again.
    pub(crate) fn look_again(&self, server: &ServerName, owner: &GrantOwner) {
        self.sign_ins.look_again(&GrantId::of_server(server).with_owner(owner.clone()));
    }

    /// The store of the grants.
    pub fn tokens(&self) -> &Arc<dyn TokenStore> {
        self.sign_ins.tokens()
    }

    /// The flow of this id, also one that has ended.
    pub fn flow(&self, id: &str) -> Option<Arc<ConnectFlow>> {
        self.flows.lock().by_id.get(id).map(|(_, _, flow)| flow.clone())
    }

    /// The flow whose sign-in carries this `state`.
    pub fn flow_of_state(&self, state: &str) -> Option<Arc<ConnectFlow>> {
        let flows = self.flows.lock();
        let mut flows = flows.by_id.values().map(|(_, _, flow)| flow);
        flows.find(|flow| flow.has_state(state)).cloned()
    }

    /// The flow whose identity check carries this `state`.
    pub fn flow_of_identity(&self, state: &str) -> Option<Arc<ConnectFlow>> {
        let flows = self.flows.lock();
        let mut flows = flows.by_id.values().map(|(_, _, flow)| flow);
        flows.find(|flow| flow.has_identity_state(state)).cloned()
    }

    /// Opens a sign-in flow for the user behind a request, and returns the address to show to that user. `None` where all
    /// callers share one account at the server, the user is unknown, or no flow can be opened.
    pub(crate) async fn prompt(
        &self,
        server: &Server,
        client: &ClientProfile,
    ) -> Option<SignInPrompt> {
        let owner = server.account_owner(client).ok().filter(|_| server.has_owners())?;
        let person = client.identity.as_ref()?.person.clone();
        let prompted = self.open_flow(server, owner, person, client.program.clone()).await;
        prompted.inspect_err(|error| {
            tracing::warn!(server = %server.spec().name, %error, "a sign-in page cannot be opened");
        }).ok()
    }

    /// Opens a flow for a caller who wants to sign in as this owner.
    pub(crate) async fn begin(
        &self,
        server: &Server,
        owner: GrantOwner,
        caller: &Caller,
    ) -> Result<SignInPrompt, ConnectError> {
        let (person, program) = (caller.person().clone(), caller.client.name.clone());
        self.open_flow(server, owner, person, program).await
    }

    /// Whether the person may be asked now to open the page of this flow. A person is not asked again for the same sign-in
    /// for a while: an error names the page then. Errors in other programs do not count as asking.
    pub fn begin_asking(&self, flow: &ConnectFlow) -> bool {
        let mut flows = self.flows.lock();
        let Some(topic) = flows.by_id.get(flow.id()).map(|(_, topic, _)| topic.clone()) else {
            return false;
        };
        let now = Instant::now();
        flows.asked.retain(|_, at| now - *at < PROMPT_PAUSE);
        if flows.asked.len() >= MAX_FLOWS {
            flows.asked.clear();
        }
        if flows.asked.contains_key(&topic) {
            return false;
        }
        flows.asked.insert(topic, now);
        true
    }

    /// Lets a person who signed out be asked at once when a call needs the account again.
    pub(crate) fn may_ask_again(&self, server: &ServerName, owner: &GrantOwner) {
        let is_other = |topic: &FlowTopic| topic.server != *server || topic.owner != *owner;
        self.flows.lock().asked.retain(|topic, _| is_other(topic));
    }

    async fn open_flow(
        &self,
        server: &Server,
        owner: GrantOwner,
        person: Arc<str>,
        client: Option<Arc<str>>,
    ) -> Result<SignInPrompt, ConnectError> {
        let spec = server.spec();
        let Some(pages) = self.pages() else {
            let message = format!("this program serves no pages to sign in at '{}'", spec.name);
            return Err(ConnectError::new(Kind::SignIn, message));
        };
        let id = GrantId::of_server(&spec.name).with_owner(owner.clone());
        let scopes = match spec.endpoint.oauth() {
            Some((url, settings)) => {
                let target = GrantTarget::Server(url, settings);
                let state = SignInState::of(&id, target, &**self.tokens()).await;
                state.map(|state| state.wanted_scopes).unwrap_or_default()
            }
            None => Vec::new(),
        };
        let topic = FlowTopic { owner: owner.clone(), server: spec.name.clone(), scopes };
        let page_at = |path: &str| address(&pages.base, path);
        let draft = FlowDraft {
            spec: spec.clone(),
            owner,
            person,
            client,
            redirect_uri: page_at("oauth/callback")?,
            document: Some(page_at(&format!(".well-known/oauth-client/{}.json", spec.name))?)
                .filter(|url| url.scheme() == "https"),
        };
        let (id, code) = (random_id()?, random_code()?);
        let flow = self.flows.lock().enter(topic, || {
            ConnectFlow::new(id, code, draft, self.tokens().clone(), self.http.clone())
        });
        let page = page_of(&flow, &pages)?;
        Ok(SignInPrompt { page, flow })
    }

    /// The page of a flow.
    pub fn page_of(&self, flow: &ConnectFlow) -> Option<SignInPage> {
        page_of(flow, &self.pages()?).ok()
    }
}

impl Flows {
    /// The open flow about this topic, or a new one.
    fn enter(&mut self, topic: FlowTopic, make: impl FnOnce() -> ConnectFlow) -> Arc<ConnectFlow> {
        let now = Instant::now();
        self.by_id.retain(|_, (since, _, _)| now - *since < FLOW_LIFETIME);
        let open = self
            .by_id
            .values()
            .find(|(_, other, flow)| *other == topic && flow.end() == FlowEnd::Open);
        if let Some((_, _, flow)) = open {
            return flow.clone();
        }
        if self.by_id.len() >= MAX_FLOWS
            && let Some(oldest) =
                self.by_id.iter().min_by_key(|(_, (since, _, _))| *since).map(|(id, _)| id.clone())
            && let Some((_, _, flow)) = self.by_id.remove(&oldest)
        {
            flow.give_up();
        }
        let flow = Arc::new(make());
        self.by_id.insert(flow.id().clone(), (now, topic, flow.clone()));
        flow
    }
}

fn page_of(flow: &ConnectFlow, pages: &SignInPages) -> Result<SignInPage, ConnectError> {
    Ok(SignInPage {
        server: flow.server().clone(),
        url: address(&pages.base, &format!("connect/{}", flow.id()))?.into(),
        code: pages.needs_proof.then(|| flow.code().to_string()),
        expires_at_ms: flow.expires_at_ms(),
    })
}

/// An address below the board's own.
pub(crate) fn address(base: &Url, path: &str) -> Result<Url, ConnectError> {
    let text = format!("{}/{path}", base.as_str().trim_end_matches('/'));
    Url::parse(&text).map_err(|_| {
        ConnectError::new(
            Kind::Protocol,
            format!("the sign-in page has no valid URL: {text}; check `gateway.public_url`"),
        )
    })
}

fn random_bytes<const N: usize>() -> Result<[u8; N], ConnectError> {
    let mut bytes = [0; N];
    let filled = getrandom::fill(&mut bytes);
    filled.map_err(|_| ConnectError::new(Kind::Process, "the system has no randomness"))?;
    Ok(bytes)
}

/// 128 random bits, as text.
pub(crate) fn random_id() -> Result<Arc<str>, ConnectError> {
    let number = u128::from_be_bytes(random_bytes::<16>()?);
    Ok(format!("{number:032x}").into())
}

/// 128 random bits, as text; `None` if the system has no randomness.
pub fn random_text() -> Option<String> {
    random_id().ok().map(|id| id.to_string())
}

/// 40 random bits, in letters that a person can type.
fn random_code() -> Result<Arc<str>, ConnectError> {
    let letters: String = random_bytes::<8>()?
        .iter()
        .map(|byte| char::from(CODE_LETTERS[usize::from(byte % 32)]))
        .collect();
    let (first, second) = letters.split_at(4);
    Ok(format!("{first}-{second}").into())
}
