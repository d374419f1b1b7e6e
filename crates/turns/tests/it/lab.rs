//! A board with one scripted MCP server, every fake model backend, and the sessions and turns above them.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use switchboard_chat::{Message, TurnStatus};
use switchboard_config::{ConfigInput, ExposureSource, SourceFile, load, resolve_exposure};
use switchboard_model::{Caller, Face};
use switchboard_runtime::{Board, BoardOptions, ExposureRule, LocalTools, Memory};
use switchboard_sessions::{Change, Session, SessionService};
use switchboard_store::Store;
use switchboard_test_support::model_backends::{Account, FakeBackends, SECRET};
use switchboard_test_support::{AccountServer, ScriptedServer, Tool, wait_until};
use switchboard_turns::{LiveTurn, NewTurn, PromptTools, TurnEnd, TurnError, Turns, Words};
use tempfile::TempDir;

/// The timeout of steps that are expected to succeed, also on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) struct Lab {
    pub(crate) fake: FakeBackends,
    /// The MCP server `shop`. The toolset `look` has its tools `find` and `price`, `buy` has `order`.
    pub(crate) shop: ScriptedServer,
    pub(crate) directory: TempDir,
    pub(crate) board: Arc<Board>,
    pub(crate) sessions: Arc<SessionService>,
    pub(crate) turns: Arc<Turns>,
}

pub(crate) fn shop_tools() -> Vec<Tool> {
    vec![Tool::echo("find"), Tool::echo("price"), Tool::echo("order")]
}

/// The tools of `shop` and further ones.
pub(crate) fn shop_tools_and(more: impl IntoIterator<Item = Tool>) -> Vec<Tool> {
    shop_tools().into_iter().chain(more).collect()
}

impl Lab {
    pub(crate) async fn open() -> Self {
        Self::with("", shop_tools()).await
    }

    /// With these members of the `gateway` section and these tools.
    pub(crate) async fn with(gateway: &str, tools: Vec<Tool>) -> Self {
        Self::with_entries(gateway, tools, "[]").await
    }

    /// The same with this list in `toolbox.tools`. Its prompt tools are answered.
    pub(crate) async fn with_entries(gateway: &str, tools: Vec<Tool>, entries: &str) -> Self {
        Self::with_sections(gateway, tools, entries, "").await
    }

    /// With these members of the section `threat_protection`, and these entries in `toolbox.tools`.
    pub(crate) async fn protected(
        threat_protection: &str,
        tools: Vec<Tool>,
        entries: &str,
    ) -> Self {
        let section = format!("threat_protection: {{{threat_protection}}}");
        Self::with_sections("", tools, entries, &section).await
    }

    /// With these entries of `providers` beside the usual ones.
    pub(crate) async fn with_providers(fake: FakeBackends, more: Vec<String>) -> Self {
        Self::open_with(fake, "", shop_tools(), "[]", "", "", more).await
    }

    async fn with_sections(gateway: &str, tools: Vec<Tool>, entries: &str, section: &str) -> Self {
        let fake = FakeBackends::start().await;
        Self::open_with(fake, gateway, tools, entries, "", section, Vec::new()).await
    }

    async fn open_with(
        fake: FakeBackends,
        gateway: &str,
        tools: Vec<Tool>,
        entries: &str,
        servers: &str,
        section: &str,
        more: Vec<String>,
    ) -> Self {
        let shop = ScriptedServer::builder().tools(tools).start().await;
        let mut providers =
            Account::ALL.map(|account| account.entry(account.name, &fake, "")).to_vec();
        providers.push(Account::CHAT.entry("text-only", &fake, "native_tools: false"));
        providers.push(Account::CHAT.entry("native-only", &fake, "strategy: native"));
        providers.extend(more);
        let yaml = format!(
            "switchboard:\n  gateway: {{{gateway}}}\n  providers:\n    - {}\n  toolsets:\n    \
             - {{name: look, description: Looks, tools: [find, price]}}\n    \
             - {{name: buy, description: Buys, tools: [order]}}\n  toolbox:\n    tools: {entries}\n    mcps:\n      \
             - {{name: shop, url: \"{}\", mode: dynamic, default_tool_config: {{max_instances: 50, timeout: 30s}}}}\n  {servers}\n  \
             security: {{egress: {{allow: [\"127.0.0.0/8\"]}}}}\n  {section}\n",
            providers.join("\n    - "),
            shop.url()
        );
        let file = SourceFile { name: "test.yaml", directory: Path::new("."), text: &yaml };
        let read_secret = |_: &Path| Err(std::io::ErrorKind::NotFound.into());
        let plan = load(&ConfigInput {
            file: Some(file),
            env: &[],
            read_secret: &read_secret,
            read_keyring: None,
        });
        let plan = plan.unwrap_or_else(|problems| panic!("{problems}\n{yaml}")).plan;
        let directory = tempfile::tempdir().unwrap();
        let options = BoardOptions {
            store: Store::open(directory.path()).await.unwrap(),
            memory: Memory::Keep,
            local_tools: LocalTools::built_in(),
            exposure: ExposureRule::new(|plan| {
                let silent = ExposureSource::default();
                resolve_exposure(&silent, &silent, plan)
            }),
            guard: None,
        };
        let board = Board::start(plan, options, |_| {}).await.unwrap();
        PromptTools::install(&board, &|_| None);
        let sessions = SessionService::start(board.clone());
        let turns = Turns::start(&board, sessions.clone(), &|_| None);
        Self { fake, shop, directory, board, sessions, turns }
    }

    /// With a further MCP server `tracker`, at which each person has an account.
    pub(crate) async fn with_accounts(tracker: &AccountServer) -> Self {
        let entry = format!(
            "    - {{name: tracker, url: \"{}\", mode: dynamic, required: false, auth: {{oauth: {{per: user}}}}, \
             default_tool_config: {{max_instances: 50, timeout: 30s}}}}",
            tracker.url()
        );
        let fake = FakeBackends::start().await;
        Self::open_with(fake, "", shop_tools(), "[]", &entry, "", Vec::new()).await
    }

    /// A new session that uses this account.
    pub(crate) async fn talk(&self, account: Account) -> Talk<'_> {
        self.talk_with(account, Change::default()).await
    }

    /// The same without the toolset `buy`.
    pub(crate) async fn talk_without_buy(&self, account: Account) -> Talk<'_> {
        self.talk_with(account, toolset("buy", false)).await
    }

    async fn talk_with(&self, account: Account, change: Change) -> Talk<'_> {
        self.talk_to(account.name, change).await
    }

    /// A new session that uses the provider of this name.
    pub(crate) async fn talk_to(&self, provider: &str, change: Change) -> Talk<'_> {
        let change = Change { provider: Some(Some(provider.into())), ..change };
        let session = self.sessions.new_session(None, "local", change, Duration::ZERO).await;
        Talk { lab: self, session: session.unwrap() }
    }

    /// How many tool calls the MCP server has received.
    pub(crate) fn calls(&self) -> usize {
        self.shop.stats().total_calls()
    }

    /// Whether `tool` is declared in each request to the account's model after the first `skipped` ones.
    pub(crate) fn declares(&self, account: Account, skipped: usize, tool: &str) -> Vec<bool> {
        let requests = self.fake.answers(account).split_off(skipped);
        requests.iter().map(|request| request.tools.iter().any(|name| name == tool)).collect()
    }

    /// Asserts that no request broke a rule of its backend.
    #[track_caller]
    pub(crate) fn is_clean(&self) {
        let violations = self.fake.violations();
        assert!(violations.is_empty(), "{violations:#?}\n{:#?}", self.fake.requests().last());
    }

    pub(crate) async fn end(self) {
        self.turns.shutdown(Duration::ZERO).await;
        self.sessions.shutdown().await;
        self.board.shutdown(Duration::ZERO).await;
    }
}

/// A session with a conversation.
pub(crate) struct Talk<'a> {
    lab: &'a Lab,
    pub(crate) session: Arc<Session>,
}

impl Talk<'_> {
    pub(crate) async fn try_begin(&self, wanted: NewTurn) -> Result<Arc<LiveTurn>, TurnError> {
        self.try_begin_as(Caller::local(Face::Http), wanted).await
    }

    /// The same for this caller.
    pub(crate) async fn try_begin_as(
        &self,
        caller: Caller,
        wanted: NewTurn,
    ) -> Result<Arc<LiveTurn>, TurnError> {
        self.lab.turns.begin(&self.session, caller, wanted).await
    }

    pub(crate) async fn begin(&self, text: &str) -> Arc<LiveTurn> {
        self.try_begin(said(text)).await.unwrap()
    }

    /// A turn that must complete; returns the text of its last reply.
    pub(crate) async fn say(&self, account: Account, text: &str) -> String {
        let wanted = NewTurn { provider: Some(account.name.into()), ..said(text) };
        let turn = self.try_begin(wanted).await.unwrap();
        let end = ended(&turn).await;
        assert_eq!(end.status, TurnStatus::Completed, "{}: {end:#?}", account.name);
        self.history().await;
        end.text()
    }

    pub(crate) async fn change(&self, change: Change) {
        let changing = self.lab.sessions.change_session(&self.session, None, change, PATIENCE);
        changing.await.unwrap();
    }

    /// Changes the session and applies the change to the running turn.
    pub(crate) async fn apply_now(&self, change: Change) {
        self.change(change).await;
        self.lab.turns.apply_now(&self.session.id);
    }

    /// The stored conversation, which is valid and contains no key.
    pub(crate) async fn history(&self) -> Vec<Message> {
        let messages = self.lab.turns.history(&self.session).await.unwrap().messages;
        switchboard_chat::check(&messages).unwrap();
        assert!(!serde_json::to_string(&messages).unwrap().contains(SECRET), "{messages:#?}");
        messages
    }

    /// The texts and error flags of all results in the conversation, in order.
    pub(crate) async fn results(&self) -> Vec<(String, bool)> {
        let results = self.history().await.into_iter().filter_map(|message| match message {
            Message::Tool(result) => {
                Some((serde_json::to_string(&result.content).unwrap(), result.is_error))
            }
            Message::System(_) | Message::User(_) | Message::Assistant(_) => None,
        });
        results.collect()
    }
}

/// A turn with this message and no other settings.
pub(crate) fn said(text: &str) -> NewTurn {
    NewTurn { message: Some(Words::Text(text.into())), ..NewTurn::default() }
}

/// A change that enables or disables a toolset.
pub(crate) fn toolset(name: &str, is_on: bool) -> Change {
    Change { toolsets: [(name.to_owned(), is_on)].into(), ..Change::default() }
}

/// The end of a turn. Its events are numbered without gaps, `done` is the last one and the only one of its kind.
pub(crate) async fn ended(turn: &LiveTurn) -> TurnEnd {
    let end = tokio::time::timeout(PATIENCE, turn.ended()).await;
    let end = end.unwrap_or_else(|_| panic!("the turn does not end: {:?}", names(turn)));
    let events = turn.events_after(0);
    let ids: Vec<_> = events.iter().map(|event| event.id).collect();
    assert_eq!(ids, (1..).take(ids.len()).collect::<Vec<u64>>());
    assert_eq!((count(turn, "done"), names(turn).pop()), (1, Some("done")));
    assert!(count(turn, "error") <= 1, "{:?}", names(turn));
    for event in &events {
        let text = String::from_utf8_lossy(&event.json);
        assert!(!text.contains(SECRET), "{text}");
    }
    end.unwrap().clone()
}

/// Waits for an event of this name and returns its data.
pub(crate) async fn until_event(turn: &LiveTurn, name: &str) -> Value {
    let mut told = turn.follow();
    let found = tokio::time::timeout(PATIENCE, async {
        loop {
            told.borrow_and_update();
            let events = turn.events_after(0);
            if let Some(event) = events.iter().find(|event| event.name == name) {
                return serde_json::from_slice(&event.json).unwrap();
            }
            told.changed().await.unwrap();
        }
    });
    found.await.unwrap_or_else(|_| panic!("no {name} in {:?}", names(turn)))
}

/// Waits until the text of the current reply is this one.
pub(crate) async fn until_text(turn: &LiveTurn, text: &str) {
    until(|| text_so_far(turn) == text).await;
}

pub(crate) fn text_so_far(turn: &LiveTurn) -> String {
    let deltas = turn.events_after(0).into_iter().filter(|event| event.name == "content");
    let delta = |json: &[u8]| serde_json::from_slice::<Value>(json).unwrap()["delta"].clone();
    deltas.map(|event| delta(&event.json).as_str().unwrap().to_owned()).collect()
}

pub(crate) fn names(turn: &LiveTurn) -> Vec<&'static str> {
    turn.events_after(0).iter().map(|event| event.name).collect()
}

pub(crate) fn count(turn: &LiveTurn, name: &str) -> usize {
    names(turn).iter().filter(|event| **event == name).count()
}

pub(crate) async fn until(probe: impl Fn() -> bool) {
    wait_until(PATIENCE, async || probe().then_some(())).await;
}
