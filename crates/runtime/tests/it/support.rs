//! Boards from texts, calls, and the log lines of a test.

use std::cell::RefCell;
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, Once};
use std::time::Duration;

use serde_json::Value;
use switchboard_config::{ConfigInput, SourceFile, load};
use switchboard_model::{CallError, CallRecord, Caller, Face, Plan, ServerState};
use switchboard_runtime::{
    Board, BoardOptions, CallReport, CallRequest, ExposureRule, LocalTools, Memory, ServerStatus,
    StartError,
};
use switchboard_store::{CallFilter, Store};
use switchboard_test_support::{ScriptedServer, Tool, wait_until};
use tokio::task::JoinSet;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};

/// Longer than anything that goes right takes, also on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(9);

pub(crate) async fn server(tools: impl IntoIterator<Item = Tool>) -> ScriptedServer {
    ScriptedServer::builder().tools(tools).start().await
}

/// The entry of a dynamic server.
pub(crate) fn dynamic(name: &str, server: &ScriptedServer) -> String {
    dynamic_at(name, &server.url())
}

pub(crate) fn dynamic_at(name: &str, url: &str) -> String {
    format!(
        "{{name: {name}, url: \"{url}\", mode: dynamic, connect_timeout: 5s, \
         default_tool_config: {{max_instances: 5, timeout: 8s}}}}"
    )
}

/// The entry of a strict server.
pub(crate) fn strict(name: &str, server: &ScriptedServer) -> String {
    strict_at(name, &server.url())
}

pub(crate) fn strict_at(name: &str, url: &str) -> String {
    format!("{{name: {name}, url: \"{url}\", mode: strict, connect_timeout: 5s}}")
}

/// An entry that says more; what it says again counts.
pub(crate) fn with(entry: &str, more: &str) -> String {
    let mut fields: Vec<&str> = Vec::new();
    let key = more.split(':').next().expect("a key");
    let inner = entry.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).expect("a map");
    // Only the simple fields in front are ever said again.
    fields.extend(inner.split(", ").filter(|field| !field.starts_with(&format!("{key}:"))));
    format!("{{{more}, {}}}", fields.join(", "))
}

/// A configuration of these entries of `tools` and `mcps`.
pub(crate) fn yaml(tools: &[&str], servers: &[String]) -> String {
    yaml_with("max_concurrent: 64", tools, servers)
}

pub(crate) fn yaml_with(toolbox: &str, tools: &[&str], servers: &[String]) -> String {
    let list = |entries: &mut dyn Iterator<Item = &str>| {
        entries.flat_map(|entry| ["\n      - ", entry]).collect::<String>()
    };
    let tools = list(&mut tools.iter().copied());
    let servers = list(&mut servers.iter().map(String::as_str));
    let or_none = |list: String| if list.is_empty() { " []".to_owned() } else { list };
    format!(
        "switchboard:\n  toolbox:\n    {toolbox}\n    tools:{}\n    mcps:{}\n",
        or_none(tools),
        or_none(servers)
    )
}

pub(crate) fn plan(yaml: &str) -> Plan {
    let file = SourceFile { name: "test.yaml", directory: Path::new("."), text: yaml };
    let read_secret = |_: &Path| Err(std::io::ErrorKind::NotFound.into());
    match load(&ConfigInput {
        file: Some(file),
        env: &[],
        read_secret: &read_secret,
        read_keyring: None,
    }) {
        Ok(loaded) => loaded.plan,
        Err(problems) => panic!("{problems}\n{yaml}"),
    }
}

pub(crate) async fn options() -> BoardOptions {
    listen_everywhere();
    BoardOptions {
        store: Store::in_memory().await.unwrap(),
        memory: Memory::Keep,
        local_tools: LocalTools::built_in(),
        exposure: ExposureRule::default(),
        guard: None,
    }
}

pub(crate) async fn try_board(yaml: &str) -> Result<Arc<Board>, StartError> {
    Board::start(plan(yaml), options().await, |_| {}).await
}

/// A board with a store of its own.
pub(crate) async fn board(yaml: &str) -> Arc<Board> {
    started(try_board(yaml).await)
}

/// A board on the store of a directory.
pub(crate) async fn board_on(directory: &Path, memory: Memory, yaml: &str) -> Arc<Board> {
    let store = Store::open(directory).await.unwrap();
    let options = BoardOptions { store, memory, ..options().await };
    started(Board::start(plan(yaml), options, |_| {}).await)
}

pub(crate) fn started(outcome: Result<Arc<Board>, StartError>) -> Arc<Board> {
    outcome.unwrap_or_else(|error| panic!("{error}"))
}

pub(crate) fn refused<T>(outcome: Result<T, StartError>) -> String {
    match outcome {
        Ok(_) => panic!("this should have been refused"),
        Err(error) => error.to_string(),
    }
}

pub(crate) async fn end(board: &Board) {
    board.shutdown(Duration::from_secs(5)).await;
}

pub(crate) fn request(tool: &str, arguments: Value) -> CallRequest {
    CallRequest {
        check: None,
        tool: tool.to_owned().into(),
        arguments,
        caller: Arc::new(Caller::local(Face::Cli)),
        requested: None,
        progress: None,
        conversation: None,
    }
}

pub(crate) async fn call(board: &Board, tool: &str, arguments: Value) -> CallReport {
    board.call(request(tool, arguments)).await
}

/// The text of a call that has to work.
pub(crate) async fn text(board: &Board, tool: &str, arguments: Value) -> String {
    answer(&call(board, tool, arguments).await)
}

#[track_caller]
pub(crate) fn answer(report: &CallReport) -> String {
    let result = report.result.as_ref().unwrap_or_else(|error| panic!("{error}"));
    result.content[0]["text"].as_str().expect("a text").to_owned()
}

/// The failure of a call that has to fail.
pub(crate) async fn failure(board: &Board, tool: &str, arguments: Value) -> CallError {
    call(board, tool, arguments).await.result.expect_err("this call should have failed")
}

/// A call that runs beside the test.
pub(crate) fn spawn_call(tasks: &mut JoinSet<CallReport>, board: &Arc<Board>, call: CallRequest) {
    let board = board.clone();
    tasks.spawn(async move { board.call(call).await });
}

pub(crate) fn names(board: &Board) -> Vec<String> {
    board.catalog().tools().iter().map(|tool| tool.name.to_string()).collect()
}

pub(crate) fn revision(board: &Board) -> u64 {
    board.catalog().revision()
}

pub(crate) fn status(board: &Board, server: &str) -> ServerStatus {
    let found = board.servers().into_iter().find(|(plan, _)| plan.spec.name.as_str() == server);
    found.expect("a configured server").1
}

pub(crate) async fn until_state(board: &Board, server: &str, state: ServerState) {
    until(|| status(board, server).state == state).await;
}

pub(crate) async fn until(probe: impl Fn() -> bool) {
    wait_until(PATIENCE, async || probe().then_some(())).await;
}

/// The records, once there are `count` of them; the newest first.
pub(crate) async fn records(board: &Board, count: usize) -> Vec<CallRecord> {
    wait_until(PATIENCE, async || {
        board.flush_records().await;
        let calls = board.store().recent_calls(&CallFilter::newest(20_000)).await.unwrap();
        (calls.len() >= count).then_some(calls)
    })
    .await
}

/// What was logged on this thread, in its order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Logs(Arc<Mutex<Vec<Line>>>);

#[derive(Debug, Clone)]
pub(crate) struct Line {
    pub(crate) level: Level,
    pub(crate) message: String,
    /// The message and all fields.
    pub(crate) whole: String,
}

impl Logs {
    /// Listens to this thread from now on. The runtime of the test must have no other.
    pub(crate) fn listen() -> Self {
        listen_everywhere();
        let logs = Self::default();
        HEARD.replace(Some(logs.clone()));
        logs
    }

    pub(crate) fn lines(&self) -> Vec<Line> {
        self.0.lock().unwrap().clone()
    }

    pub(crate) fn forget(&self) {
        self.0.lock().unwrap().clear();
    }

    /// How often this message was logged at this level.
    pub(crate) fn count(&self, level: Level, message: &str) -> usize {
        let is_it = |line: &&Line| line.level == level && line.message == message;
        self.lines().iter().filter(is_it).count()
    }

    pub(crate) fn count_of_level(&self, level: Level) -> usize {
        self.lines().iter().filter(|line| line.level == level).count()
    }

    #[track_caller]
    pub(crate) fn assert_once(&self, level: Level, message: &str) {
        assert_eq!(self.count(level, message), 1, "{level} {message:?} in {:#?}", self.lines());
    }

    #[track_caller]
    pub(crate) fn assert_nothing_of(&self, part: &str) {
        let found: Vec<_> =
            self.lines().into_iter().filter(|line| line.whole.contains(part)).collect();
        assert!(found.is_empty(), "{found:#?}");
    }
}

thread_local! {
    /// Where the lines of this thread go. Every test has a thread of its own.
    static HEARD: RefCell<Option<Logs>> = const { RefCell::new(None) };
}

/// Subscribes once for the whole process, and before the first line: a subscriber per test would race with
/// the lines of other tests for what `tracing` remembers about them.
fn listen_everywhere() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let subscriber = tracing_subscriber::registry().with(ByThread);
        tracing::subscriber::set_global_default(subscriber).unwrap();
    });
}

struct ByThread;

impl<S: Subscriber> Layer<S> for ByThread {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let Some(logs) = HEARD.with_borrow(Clone::clone) else { return };
        if !event.metadata().target().starts_with("switchboard") {
            return;
        }
        let mut fields = Fields::default();
        event.record(&mut fields);
        let line = Line {
            level: *event.metadata().level(),
            whole: format!("{} {}", fields.message, fields.rest),
            message: fields.message,
        };
        logs.0.lock().unwrap().push(line);
    }
}

#[derive(Default)]
struct Fields {
    message: String,
    rest: String,
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        use fmt::Write as _;
        match field.name() {
            "message" => self.message = format!("{value:?}"),
            name => write!(self.rest, "{name}={value:?} ").unwrap(),
        }
    }
}
