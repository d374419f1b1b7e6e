//! Metrics. Every name is a constant here; every label has few values.

use std::sync::OnceLock;
use std::time::Duration;

use metrics::{
    Counter, Gauge, Histogram, counter, describe_counter, describe_gauge, describe_histogram,
    gauge, histogram,
};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};

/// A summary of the time that each tool was used.
const TOOL_USAGE: &str = "tool_usage";
const CALLS: &str = "switchboard_tool_calls_total";
const QUEUED: &str = "switchboard_tool_queue_seconds";
const CALL_SECONDS: &str = "switchboard_tool_call_seconds";
const WAIT_SECONDS: &str = "switchboard_tool_wait_seconds";
const IN_FLIGHT: &str = "switchboard_calls_in_flight";
const CATALOG_TOOLS: &str = "switchboard_catalog_tools";
const CATALOG_REVISION: &str = "switchboard_catalog_revision";
const SERVER_UP: &str = "switchboard_server_up";
const RECORDS_DROPPED: &str = "switchboard_call_records_dropped_total";
const RECORDS_PRUNED: &str = "switchboard_call_records_pruned_total";
const STORE_UP: &str = "switchboard_store_up";
const STORE_WRITE_FAILURES: &str = "switchboard_store_write_failures_total";
const BOARDS: &str = "switchboard_boards";
const BOARD_LEASE: &str = "switchboard_board_lease";
const SLOTS_HELD: &str = "switchboard_slots_held";
const SLOT_TRADES: &str = "switchboard_slot_trades_total";
const MODEL_REQUESTS: &str = "switchboard_model_requests_total";
const MODEL_SECONDS: &str = "switchboard_model_request_seconds";
const MODEL_TOKENS: &str = "switchboard_model_tokens_total";
const TURNS: &str = "switchboard_turns_total";
const TURN_SECONDS: &str = "switchboard_turn_seconds";
const HTTP_SECONDS: &str = "switchboard_http_request_seconds";
const APP_TURNS: &str = "switchboard_app_turns_total";
const APP_TURN_ROUNDS: &str = "switchboard_app_turn_rounds_total";
const CONTENT_CHECKS: &str = "switchboard_content_checks_total";
const CONTENT_CHECK_SECONDS: &str = "switchboard_content_check_seconds";
const SOURCE_UP: &str = "switchboard_source_up";
const SOURCE_SERVERS: &str = "switchboard_source_servers";
const SOURCE_FAILURES: &str = "switchboard_source_failures_total";
const TASKS: &str = "switchboard_tasks";
const BUILD_INFO: &str = "switchboard_build_info";
const TLS_CERTIFICATE_ENDS: &str = "switchboard_tls_certificate_expiry_timestamp_seconds";
const TLS_RELOAD_FAILURES: &str = "switchboard_tls_reload_failures_total";

/// The upper bounds of the buckets of histograms, in seconds: from a call on this machine to a turn of several minutes.
/// Replicas have the same, so that their histograms can be added; summaries cannot.
const BUCKETS: [f64; 16] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0,
];
const HISTOGRAMS: [&str; 4] = [CALL_SECONDS, WAIT_SECONDS, TURN_SECONDS, HTTP_SECONDS];

/// Looked up once, when counting starts.
static IN_FLIGHT_GAUGE: OnceLock<Gauge> = OnceLock::new();

/// The page that Prometheus scrapes.
#[derive(Debug, Clone)]
pub struct MetricsPage(Option<PrometheusHandle>);

impl MetricsPage {
    /// The current content of the page.
    pub fn render(&self) -> String {
        self.0.as_ref().map(PrometheusHandle::render).unwrap_or_default()
    }

    /// Processes the collected samples; without it, metrics that are never scraped use more and more memory.
    pub fn fold(&self) {
        if let Some(handle) = &self.0 {
            handle.run_upkeep();
        }
    }
}

/// Starts the metrics. Every call returns the page of the only recorder of this process.
pub fn install_metrics() -> MetricsPage {
    static PAGE: OnceLock<MetricsPage> = OnceLock::new();
    PAGE.get_or_init(|| {
        let recorder = builder().build_recorder();
        let handle = recorder.handle();
        let installed = metrics::set_global_recorder(recorder).is_ok();
        describe();
        let in_flight = gauge!(IN_FLIGHT);
        in_flight.set(0.0);
        let _only_once = IN_FLIGHT_GAUGE.set(in_flight);
        // A failing store sets this to false; a store that was opened before has set nothing yet.
        store_up(true);
        MetricsPage(installed.then_some(handle))
    })
    .clone()
}

/// Metrics are summaries, but for [`HISTOGRAMS`].
fn builder() -> PrometheusBuilder {
    let with_buckets = |builder: PrometheusBuilder, name: &str| {
        // Fails only without buckets.
        builder.set_buckets_for_metric(Matcher::Full(name.to_owned()), &BUCKETS)
    };
    HISTOGRAMS
        .into_iter()
        .try_fold(PrometheusBuilder::new(), with_buckets)
        .unwrap_or_else(|_| PrometheusBuilder::new())
}

fn describe() {
    describe_histogram!(TOOL_USAGE, "Summary of tool usage by tool name, in seconds");
    describe_counter!(CALLS, "Calls by server, tool and outcome");
    describe_histogram!(QUEUED, "Seconds that calls waited for a slot, by server");
    describe_histogram!(CALL_SECONDS, "Seconds that calls ran, by server and tool");
    describe_histogram!(
        WAIT_SECONDS,
        "Seconds that calls waited for a slot, by server, as a histogram"
    );
    describe_histogram!(
        TURN_SECONDS,
        "Seconds from the begin to the end of turns, by how they ended"
    );
    describe_histogram!(
        HTTP_SECONDS,
        "Seconds from a request to the begin of its response, by face and class of status"
    );
    describe_gauge!(IN_FLIGHT, "Calls that wait or run just now");
    describe_gauge!(CATALOG_TOOLS, "Tools in the catalog");
    describe_gauge!(CATALOG_REVISION, "Revision of the catalog");
    describe_gauge!(SERVER_UP, "1 while the server can be reached");
    describe_counter!(RECORDS_DROPPED, "Call records that could not be kept");
    describe_counter!(RECORDS_PRUNED, "Call records that were deleted by age or number");
    describe_gauge!(STORE_UP, "1 while the store takes writes");
    describe_counter!(STORE_WRITE_FAILURES, "Writes that the store did not take, by reason");
    describe_gauge!(BOARDS, "Boards that share the database, as this one saw it last");
    describe_gauge!(BOARD_LEASE, "1 while the lease of this board in a shared database holds");
    describe_gauge!(SLOTS_HELD, "Slots that this board was lent, by server and tool");
    describe_counter!(SLOT_TRADES, "Trades of slots with other boards, by outcome");
    describe_counter!(MODEL_REQUESTS, "Requests to models by provider and outcome");
    describe_histogram!(MODEL_SECONDS, "Seconds that models took to answer, by provider");
    describe_counter!(MODEL_TOKENS, "Tokens by provider and direction, input or output");
    describe_counter!(TURNS, "Turns that have ended, by how");
    describe_counter!(APP_TURNS, "Turns of apps that have ended, by API and how");
    describe_counter!(APP_TURN_ROUNDS, "Rounds of the turns of apps that have ended");
    describe_counter!(CONTENT_CHECKS, "Content checks by hook and verdict");
    describe_histogram!(CONTENT_CHECK_SECONDS, "Seconds that content checks took, by hook");
    describe_gauge!(SOURCE_UP, "1 while the source of servers can be read");
    describe_gauge!(SOURCE_SERVERS, "Servers that the source named last");
    describe_counter!(SOURCE_FAILURES, "Fetches of a source of servers that failed");
    describe_gauge!(TASKS, "Tasks that are alive just now");
    describe_gauge!(
        BUILD_INFO,
        "1, with the version of the program and the commit that it was built from"
    );
    describe_gauge!(
        TLS_CERTIFICATE_ENDS,
        "When the certificate of the HTTP server expires, in Unix time"
    );
    describe_counter!(TLS_RELOAD_FAILURES, "Changed certificate files that were refused");
}

/// The outcome of nearly all calls.
const OK: &str = "ok";

/// A call that has ended.
#[derive(Debug)]
pub struct CallFinished {
    pub outcome: &'static str,
    /// `None` for a call that was rejected before it waited for a slot.
    pub wait: Option<Duration>,
    /// `None` for a call that never ran.
    pub run: Option<Duration>,
}

/// The metrics of one tool, looked up once: a lookup by labels costs more than the counting.
pub struct ToolMeter {
    server: String,
    tool: String,
    usage: Histogram,
    queued: Histogram,
    ran: Histogram,
    waited: Histogram,
    ok: Counter,
}

impl std::fmt::Debug for ToolMeter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ToolMeter").field("tool", &self.tool).finish_non_exhaustive()
    }
}

impl ToolMeter {
    pub fn new(server: &str, tool: &str) -> Self {
        let (server, tool) = (server.to_owned(), tool.to_owned());
        Self {
            usage: histogram!(TOOL_USAGE, "tool_name" => tool.clone()),
            queued: histogram!(QUEUED, "server" => server.clone()),
            ran: histogram!(CALL_SECONDS, "server" => server.clone(), "tool" => tool.clone()),
            waited: histogram!(WAIT_SECONDS, "server" => server.clone()),
            ok: calls(&server, &tool, OK),
            server,
            tool,
        }
    }

    /// Counts a call that has ended.
    pub fn count(&self, call: &CallFinished) {
        if let Some(run) = call.run {
            self.usage.record(run.as_secs_f64());
            self.ran.record(run.as_secs_f64());
        }
        if let Some(wait) = call.wait {
            self.queued.record(wait.as_secs_f64());
            self.waited.record(wait.as_secs_f64());
        }
        if call.outcome == OK {
            self.ok.increment(1);
        } else {
            calls(&self.server, &self.tool, call.outcome).increment(1);
        }
    }
}

fn calls(server: &str, tool: &str, outcome: &'static str) -> Counter {
    let (server, tool) = (server.to_owned(), tool.to_owned());
    counter!(CALLS, "server" => server, "tool" => tool, "outcome" => outcome)
}

/// Counts a call as in flight until the returned guard is dropped.
pub fn call_started() -> impl Drop + Send + Sync {
    struct InFlight;
    impl Drop for InFlight {
        fn drop(&mut self) {
            if let Some(gauge) = IN_FLIGHT_GAUGE.get() {
                gauge.decrement(1.0);
            }
        }
    }
    if let Some(gauge) = IN_FLIGHT_GAUGE.get() {
        gauge.increment(1.0);
    }
    InFlight
}

/// Sets the size and revision of the catalog.
pub fn catalog_published(tools: usize, revision: u64) {
    // Both are far below the limit up to which floats represent integers exactly.
    #[expect(clippy::cast_precision_loss, reason = "counts, far below 2^52")]
    let (tools, revision) = (tools as f64, revision as f64);
    gauge!(CATALOG_TOOLS).set(tools);
    gauge!(CATALOG_REVISION).set(revision);
}

/// Sets whether a server is reachable.
pub fn server_state(server: &str, is_up: bool) {
    gauge!(SERVER_UP, "server" => server.to_owned()).set(if is_up { 1.0 } else { 0.0 });
}

/// Counts records that were dropped because the store was too slow.
pub fn records_dropped(count: u64) {
    counter!(RECORDS_DROPPED).increment(count);
}

/// Counts records that were deleted by age or number.
pub fn records_pruned(count: u64) {
    counter!(RECORDS_PRUNED).increment(count);
}

/// Sets whether the store accepts writes.
pub fn store_up(is_up: bool) {
    gauge!(STORE_UP).set(if is_up { 1.0 } else { 0.0 });
}

/// Sets how many boards share the database.
pub fn boards_seen(boards: u32) {
    gauge!(BOARDS).set(f64::from(boards));
}

/// Sets whether the lease of this board holds.
pub fn board_lease(is_held: bool) {
    gauge!(BOARD_LEASE).set(if is_held { 1.0 } else { 0.0 });
}

/// Sets how many slots of a tool this board was lent.
pub fn slots_held(server: &str, tool: &str, held: u32) {
    gauge!(SLOTS_HELD, "server" => server.to_owned(), "tool" => tool.to_owned())
        .set(f64::from(held));
}

/// Counts a trade of slots.
pub fn slots_traded(outcome: &'static str) {
    counter!(SLOT_TRADES, "outcome" => outcome).increment(1);
}

/// Counts a failed write to the store.
pub fn store_write_failed(reason: &'static str) {
    counter!(STORE_WRITE_FAILURES, "reason" => reason).increment(1);
}

/// Counts a model request that has ended. `tokens` are those of its input and output.
pub fn model_answered(
    provider: &str,
    outcome: &'static str,
    took: Duration,
    tokens: Option<(u64, u64)>,
) {
    let provider = || provider.to_owned();
    counter!(MODEL_REQUESTS, "provider" => provider(), "outcome" => outcome).increment(1);
    histogram!(MODEL_SECONDS, "provider" => provider()).record(took.as_secs_f64());
    if let Some((input, output)) = tokens {
        counter!(MODEL_TOKENS, "provider" => provider(), "direction" => "input").increment(input);
        counter!(MODEL_TOKENS, "provider" => provider(), "direction" => "output").increment(output);
    }
}

/// Counts a turn that has ended.
pub fn turn_ended(status: &'static str, took: Duration) {
    counter!(TURNS, "status" => status).increment(1);
    histogram!(TURN_SECONDS, "status" => status).record(took.as_secs_f64());
}

/// Which part of the HTTP server answers a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HttpFace {
    Mcp,
    Api,
    /// Pages, health and metrics.
    Other,
}

impl HttpFace {
    const ALL: [Self; 3] = [Self::Mcp, Self::Api, Self::Other];

    fn as_str(self) -> &'static str {
        match self {
            Self::Mcp => "mcp",
            Self::Api => "api",
            Self::Other => "other",
        }
    }
}

/// Counts an HTTP request, when its response begins. Event streams go on after that.
pub fn http_answered(face: HttpFace, status: u16, took: Duration) {
    const CLASSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];
    static METERS: OnceLock<[[Histogram; 5]; 3]> = OnceLock::new();
    let meters = METERS.get_or_init(|| {
        HttpFace::ALL.map(|face| {
            CLASSES
                .map(|class| histogram!(HTTP_SECONDS, "face" => face.as_str(), "status" => class))
        })
    });
    let of_face =
        HttpFace::ALL.iter().position(|other| *other == face).and_then(|at| meters.get(at));
    let class = usize::from(status / 100).saturating_sub(1);
    if let Some(meter) = of_face.and_then(|classes| classes.get(class)) {
        meter.record(took.as_secs_f64());
    }
}

/// Counts a turn of an app that has ended, with its rounds.
pub fn app_turn_ended(api: &'static str, outcome: &'static str, rounds: u32) {
    counter!(APP_TURNS, "api" => api, "outcome" => outcome).increment(1);
    counter!(APP_TURN_ROUNDS, "api" => api).increment(rounds.into());
}

/// Counts a content check that has ended.
pub fn content_checked(hook: &'static str, verdict: &'static str, took: Duration) {
    counter!(CONTENT_CHECKS, "hook" => hook, "verdict" => verdict).increment(1);
    histogram!(CONTENT_CHECK_SECONDS, "hook" => hook).record(took.as_secs_f64());
}

/// Counts a content check that was not made, because too many ran beside the work already.
pub fn content_check_skipped(hook: &'static str) {
    counter!(CONTENT_CHECKS, "hook" => hook, "verdict" => "skipped").increment(1);
}

/// Counts a fetch of a source of servers, with the number of servers that it named; `None` if it failed.
pub fn source_fetched(source: &str, servers: Option<usize>) {
    let source = || source.to_owned();
    gauge!(SOURCE_UP, "source" => source()).set(if servers.is_some() { 1.0 } else { 0.0 });
    match servers {
        #[expect(clippy::cast_precision_loss, reason = "a count, far below 2^52")]
        Some(servers) => gauge!(SOURCE_SERVERS, "source" => source()).set(servers as f64),
        None => counter!(SOURCE_FAILURES, "source" => source()).increment(1),
    }
}

/// Sets the version of the program. `commit` is empty if the build does not know it.
pub fn build_info(version: &'static str, commit: &'static str) {
    gauge!(BUILD_INFO, "version" => version, "commit" => commit).set(1.0);
}

/// Sets when the certificate of the HTTP server expires, in seconds of Unix time.
pub fn tls_certificate_ends(seconds: i64) {
    #[expect(
        clippy::cast_precision_loss,
        reason = "far below 2^52 for every date of a certificate"
    )]
    gauge!(TLS_CERTIFICATE_ENDS).set(seconds as f64);
}

/// Counts changed certificate files that were refused.
pub fn tls_reload_failed() {
    counter!(TLS_RELOAD_FAILURES).increment(1);
}

/// Sets the number of tasks. The server of the page reads it from the runtime, because tasks are not counted as they
/// start and end.
pub fn tasks_alive(count: usize) {
    #[expect(clippy::cast_precision_loss, reason = "a count, far below 2^52")]
    gauge!(TASKS).set(count as f64);
}
