//! The board: servers, catalog, calls and records behind one handle.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;
use switchboard_mcp_client::ConnectOptions;
use switchboard_model::{
    AccountScope, ConnectErrorKind, OAuthGrant, Plan, ServerName, ServerPlan, ServerState,
    ToolDescriptor,
};
use switchboard_oauth::SignIns;
use switchboard_registry::{Catalog, Notice, Violation};
use switchboard_store::Store;
use switchboard_view::{UnmatchedPattern, unmatched_patterns};
use tokio::sync::{Notify, Semaphore, mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::accounts::Accounts;
use crate::activity::ActivityFeed;
use crate::attachments::Attachments;
use crate::board_lease::BoardLease;
use crate::catalog_reconciler::{
    Before, CatalogReconciler, Commit, OnViolation, ReconcilerOrder, Seen, discovered_servers,
};
use crate::catalog_writer::CatalogWriter;
use crate::content_checks::ContentChecks;
use crate::exposure_rule::ExposureRule;
use crate::first_attempts::{StartEvent, grace_of_reload, wait_for_all};
use crate::grant_encryption::encrypt_grants;
use crate::heartbeat::{Heartbeat, machine_name};
use crate::known_owners::KnownOwners;
use crate::lent_slots::{SlotDemand, SlotLending};
use crate::local::LocalTools;
use crate::max_instances::ConcurrencyTable;
use crate::memory::Memory;
use crate::offers::Outgoing;
use crate::prompt_tools::PromptRunner;
use crate::rate_limits::RateTable;
use crate::record_redaction::RecordRedaction;
use crate::records::Recorder;
use crate::running_calls::RunningCalls;
use crate::server::{ServerStatus, Servers};
use crate::server_context::{Audience, ServerContext};
use crate::slot_lender::{SlotLender, SlotParts};
use crate::snapshot::{PublishedSnapshot, Snapshot};
use crate::start_error::{StartError, StartFailure};
use crate::startup::{StartingBoard, Startup};
use crate::supervisor::start_server;
use crate::tokens::StoredTokens;

/// How long cancelled calls may take to write their records.
const AFTER_THE_CUT: Duration = Duration::from_secs(2);
/// How long closing all connections may take. A child process gets two requests to exit before it is killed, which
/// takes less.
const CLOSING: Duration = Duration::from_secs(8);
/// Maximum number of ambiguous bare names that are remembered as warned about; further ones are not warned about.
const MOST_WARNED: usize = 256;

/// The inputs of a board besides its plan.
#[derive(Debug)]
pub struct BoardOptions {
    pub store: Store,
    pub memory: Memory,
    pub local_tools: LocalTools,
    pub exposure: ExposureRule,
    /// The executable of the guard process for stdio children.
    pub guard: Option<PathBuf>,
}

/// A running board. Clones of the `Arc` share it; [`Board::shutdown`] ends it.
#[derive(Debug)]
pub struct Board {
    /// Replaced only by the reconciler.
    pub(crate) published: PublishedSnapshot,
    pub(crate) slots: Arc<ConcurrencyTable>,
    /// Lends slots, if other boards may use the same database.
    pub(crate) lender: Option<Arc<SlotLender>>,
    pub(crate) rates: RateTable,
    pub(crate) store: Store,
    pub(crate) recorder: Recorder,
    pub(crate) record_redaction: RecordRedaction,
    pub(crate) local_tools: LocalTools,
    /// Answers prompt tools.
    pub(crate) prompt_runner: OnceLock<Arc<dyn PromptRunner>>,
    pub(crate) content_checks: ContentChecks,
    versions: watch::Receiver<u64>,
    /// The configuration at the start, for settings that only a restart changes.
    first_plan: Arc<Plan>,
    /// Orders to the reconciler, processed one at a time; senders wait for their turn.
    pub(crate) orders: mpsc::Sender<ReconcilerOrder>,
    /// Ambiguous bare names that callers used and that were warned about.
    warned_names: Mutex<HashSet<String>>,
    /// Admits one configuration change at a time.
    applying: Semaphore,
    pub(crate) around: ServerContext,
    pub(crate) accounts: Accounts,
    pub(crate) startup: Startup,
    /// Calls that wait or run, by id.
    pub(crate) running: RunningCalls,
    /// Running calls that the shutdown waits for.
    pub(crate) calls: TaskTracker,
    /// Cancels the calls that outlast the shutdown's drain time.
    pub(crate) cut: CancellationToken,
}

impl Board {
    /// Connects all servers concurrently and admits their tools. An error lists every reason, and nothing is left
    /// running then.
    pub async fn start(
        plan: Plan,
        options: BoardOptions,
        on_event: impl FnMut(StartEvent),
    ) -> Result<Arc<Self>, StartError> {
        Self::open(plan, options).await?.finish(on_event).await
    }

    /// Starts to connect all servers. The board has no tools until [`StartingBoard::finish`] has admitted them; faces
    /// may subscribe to its snapshots in the meantime.
    #[expect(clippy::too_many_lines, reason = "one line for each part of the board")]
    pub async fn open(plan: Plan, options: BoardOptions) -> Result<StartingBoard, StartError> {
        let exposure = options.exposure.decide(&plan).map_err(StartError::exposure)?;
        if !exposure.reason.is_empty() {
            tracing::info!("exposure: {}", exposure.reason);
        }
        options.store.set_grant_keys(&plan.security.store_keys);
        let remembered = options.store.remembered_tools().await?;
        let sign_ins = SignIns::new(Arc::new(StoredTokens::new(options.store.clone())));
        sign_ins.subjects().set_wanted(exchanges_tokens(&plan));
        let around = ServerContext {
            store: options.store.clone(),
            memory: options.memory,
            options: ConnectOptions {
                guard: options.guard,
                sign_ins: Some(sign_ins.clone()),
                ..ConnectOptions::default()
            },
            dirty: Arc::new(Notify::new()),
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
            outgoing: Outgoing::new(),
            audience: Audience::Everybody,
            owners: KnownOwners::default(),
            activity: ActivityFeed::default(),
        };
        let accounts = Accounts::new(sign_ins, around.options.http.clone());
        // Dropping the future before the end of this function stops what was started.
        let unless_started = around.stop.clone().drop_guard();
        around.tasks.spawn(encrypt_grants(options.store.clone()));
        let servers = start_servers(&plan.servers, &remembered, &around);

        let (versions_sender, versions) = watch::channel(0);
        let published = PublishedSnapshot::default();
        let plan = Arc::new(plan);
        let running = RunningCalls::default();
        let (slots, lender) = slots(&plan, &around, &running);
        let writer = CatalogWriter::of(&options.store, options.memory);
        let reconciler = CatalogReconciler {
            writer,
            local: options.local_tools.descriptors(),
            slots: slots.clone(),
            published: published.clone(),
            versions: versions_sender,
            plan: plan.clone(),
            exposure_rule: options.exposure,
            exposure,
            servers,
            attachments: Attachments::new(&around, plan.security.egress.clone()),
            tasks: around.tasks.clone(),
            before: seen(remembered),
            discovered: discovered_servers(&plan),
            quarantined: Arc::default(),
            told: HashSet::new(),
        };
        // The configuration is published before the first tool, so that early requests are judged by it.
        reconciler.show(Arc::default());
        let (orders, inbox) = mpsc::channel(1);
        let recorder = Recorder::start(options.store.clone(), published.clone());
        let board = Arc::new(Self {
            published,
            slots,
            rates: RateTable::new(&options.store, lender.as_ref()),
            lender,
            recorder,
            record_redaction: RecordRedaction::default(),
            content_checks: ContentChecks::new(options.store.clone()),
            store: options.store,
            local_tools: options.local_tools,
            prompt_runner: OnceLock::new(),
            versions,
            first_plan: plan,
            startup: Startup::default(),
            accounts,
            orders,
            warned_names: Mutex::default(),
            applying: Semaphore::new(1),
            around,
            running,
            calls: TaskTracker::new(),
            cut: CancellationToken::new(),
        });
        Ok(StartingBoard { board, reconciler, inbox, unless_started })
    }

    /// How far the start has come.
    pub fn startup(&self) -> &Startup {
        &self.startup
    }

    /// The holder of the current snapshot.
    pub fn published(&self) -> &PublishedSnapshot {
        &self.published
    }

    /// The current snapshot, which every decision of a request is based on. Load it once for each request.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.published.load_full()
    }

    /// Warnings for the operator: names that shadow each other and, once the start has finished, toolset patterns that
    /// match nothing. Before that the catalog is incomplete.
    pub fn warnings(&self) -> Vec<String> {
        let unmatched = self.startup.is_finished().then(|| self.unmatched_patterns());
        let unmatched = unmatched.into_iter().flatten().map(|it| match &it.nearest {
            Some(near) => format!("{it}; did you mean `{near}`?"),
            None => it.to_string(),
        });
        self.snapshot().warnings().chain(unmatched).collect()
    }

    /// The toolset patterns that match no tool. The tools of a server that was never connected are unknown, so patterns
    /// that could match them are left out.
    pub fn unmatched_patterns(&self) -> Vec<UnmatchedPattern> {
        let (snapshot, statuses) = (self.snapshot(), self.servers());
        let is_listed = |name: &ServerName| {
            let status = statuses.iter().map(|(_, status)| status).find(|it| it.name == *name);
            status.is_some_and(|it| it.offered > 0 || it.state == ServerState::Ready)
        };
        unmatched_patterns(snapshot.catalog(), snapshot.plan(), is_listed)
    }

    /// The version of the current snapshot.
    pub fn version(&self) -> u64 {
        self.published.load().version()
    }

    /// A channel that receives the version of every new snapshot.
    pub fn versions(&self) -> watch::Receiver<u64> {
        self.versions.clone()
    }

    /// The current catalog.
    pub fn catalog(&self) -> Arc<Catalog> {
        self.published.load().catalog().clone()
    }

    /// The names of the settings in `plan` that differ from those at the start and take effect only after a restart.
    pub(crate) fn waiting_for_restart(&self, plan: &Plan) -> Vec<&'static str> {
        let first = &self.first_plan;
        let changed = [
            ("security.jwt", plan.security.jwt != first.security.jwt),
            ("store", plan.store != first.store),
        ];
        changed.into_iter().filter_map(|(name, differs)| differs.then_some(name)).collect()
    }

    pub(crate) fn outgoing(&self) -> &Outgoing {
        &self.around.outgoing
    }

    /// The configuration in force.
    pub fn plan(&self) -> Arc<Plan> {
        self.published.load().plan().clone()
    }

    /// The sign-ins at servers and providers.
    pub fn sign_ins(&self) -> Option<&SignIns> {
        self.around.options.sign_ins.as_ref()
    }

    /// The id of this board among those of its database, if others may use it.
    pub fn replica(&self) -> Option<&str> {
        self.lender.as_deref().map(SlotLender::board)
    }

    /// The store that this board writes to.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Returns when the records of all calls that have ended are written.
    pub async fn flush_records(&self) {
        self.recorder.flush().await;
    }

    /// The status of each configured server, in the order of the configuration.
    pub fn servers(&self) -> Vec<(ServerPlan, ServerStatus)> {
        let snapshot = self.published.load();
        let servers = snapshot.plan().servers.iter();
        servers
            .filter_map(|plan| {
                Some((plan.clone(), snapshot.servers.get(&plan.spec.name)?.status()))
            })
            .collect()
    }

    /// Warns, once for each name, that a caller used a bare name that several tools share.
    pub(crate) fn warn_of_rival(&self, catalog: &Catalog, bare: &str) {
        let (Some(rival), Ok(winner)) = (catalog.rival_of(bare), catalog.resolve(bare)) else {
            return;
        };
        let mut warned = self.warned_names.lock();
        if warned.len() < MOST_WARNED && warned.insert(bare.to_owned()) {
            let (loser, winner) = (rival.clone(), winner.name.clone());
            let bare = bare.to_owned();
            tracing::warn!("{}", Notice::Collision { bare, loser, winner, is_used: true });
        }
    }

    /// Requests a new listing from every server.
    pub fn refresh(&self) {
        for server in self.published.load().servers.values() {
            server.suspect();
        }
    }

    /// Applies a new configuration, or rejects it as a whole and keeps the old one. Only servers whose address or
    /// credentials changed are reconnected; the old connection serves until the new one is ready and its own last call
    /// has ended.
    pub async fn apply(&self, plan: Plan) -> Result<(), StartError> {
        self.apply_with(plan, OnViolation::Refuse).await
    }

    /// Like [`Board::apply`], for a plan whose configuration is in force already and whose discovered servers changed: a
    /// violation, which only a server of the file can have by now, is logged and does not keep it from being applied.
    pub(crate) async fn apply_discovered(&self, plan: Plan) -> Result<(), StartError> {
        self.apply_with(plan, OnViolation::Report).await
    }

    async fn apply_with(&self, plan: Plan, on_violation: OnViolation) -> Result<(), StartError> {
        let Ok(_one_at_a_time) = self.applying.acquire().await else { return Ok(()) };
        let present = self.published.load().servers.clone();
        let (kept, changed): (Vec<_>, Vec<_>) = plan.servers.iter().partition(|server| {
            present.get(&server.spec.name).is_some_and(|running| {
                *running.spec() == server.spec && running.poll() == server.poll_interval
            })
        });
        // Before the servers start: what callers show from now on lists their tools.
        let exchanges = exchanges_tokens(&plan);
        if let Some(sign_ins) = self.sign_ins().filter(|_| exchanges) {
            sign_ins.subjects().set_wanted(true);
        }
        let mut remembered = self.remembered_tools(&changed).await;
        for name in changed.iter().map(|server| &server.spec.name) {
            let running = present.get(name).filter(|_| !remembered.contains_key(name));
            if let Some(tools) = running.and_then(|running| running.listing().tools) {
                remembered.insert(name.clone(), Vec::clone(&tools));
            }
        }
        let mut fresh = Candidates(start_servers(changed, &remembered, &self.around));
        wait_for_all(&plan, &fresh.0, grace_of_reload(&present, &fresh.0), |_| {}).await;
        // A server that connected and was lost since does not reject the configuration; a required one that never
        // connected does.
        let failures = failures(&plan, &fresh.0, Vec::new());
        if !failures.is_empty() {
            return Err(StartError { failures });
        }
        warn_of_absent(&plan, &fresh.0);
        let kept = kept.into_iter().filter_map(|server| present.get_key_value(&server.spec.name));
        let kept = kept.map(|(name, server)| (name.clone(), server.clone()));
        let servers = kept.chain(fresh.0.clone()).collect();

        let store_keys = plan.security.store_keys.clone();
        let (reply, answer) = oneshot::channel();
        let commit = Commit { plan: Arc::new(plan), servers, on_violation, reply };
        // An error, here and below, means that the board is shutting down and needs no configuration.
        let Ok(place) = self.orders.reserve().await else { return Ok(()) };
        place.send(ReconcilerOrder::Commit(commit));
        fresh.0.clear();
        let violations = answer.await.unwrap_or(Ok(())).err();
        if violations.is_none() {
            if let Some(sign_ins) = self.sign_ins() {
                sign_ins.subjects().set_wanted(exchanges);
            }
            self.store.set_grant_keys(&store_keys);
            self.around.tasks.spawn(encrypt_grants(self.store.clone()));
        }
        violations.map_or(Ok(()), |violations| {
            let failures = violations.into_iter().map(StartFailure::Violation).collect();
            Err(StartError { failures })
        })
    }

    /// The stored tools of servers that are about to be started. A failing store does not delay a configuration: it
    /// counts as empty.
    async fn remembered_tools(
        &self,
        servers: &[&ServerPlan],
    ) -> HashMap<ServerName, Vec<ToolDescriptor>> {
        if servers.is_empty() {
            return HashMap::new();
        }
        self.store.remembered_tools().await.unwrap_or_else(|error| {
            let error = error.in_full();
            tracing::warn!(
                error,
                "cannot load the remembered tools of the servers from the store; starting without them"
            );
            HashMap::new()
        })
    }

    /// Waits up to `drain` for running calls, then cancels the rest, closes every connection and writes every record.
    /// New calls are refused from now on.
    pub async fn shutdown(&self, drain: Duration) {
        self.calls.close();
        if tokio::time::timeout(drain, self.calls.wait()).await.is_err() {
            tracing::warn!(cancelled = self.calls.len(), "calls did not finish in time");
            self.cut.cancel();
            // Cancelled calls end as soon as their tasks are polled.
            let _unwatched = tokio::time::timeout(AFTER_THE_CUT, self.calls.wait()).await;
        }
        self.recorder.flush().await;
        self.content_checks.finish().await;
        self.around.stop.cancel();
        self.around.tasks.close();
        if tokio::time::timeout(CLOSING, self.around.tasks.wait()).await.is_err() {
            tracing::warn!("connections did not close in time");
        }
        self.store.close().await;
    }
}

impl Drop for Board {
    fn drop(&mut self) {
        self.around.stop.cancel();
    }
}

/// Servers that were started for a new plan. Dropping this stops them, unless the plan was applied.
struct Candidates(Servers);

impl Drop for Candidates {
    fn drop(&mut self) {
        for server in self.0.values() {
            server.stop();
        }
    }
}

/// The slots of tools. With a database that other boards may use, they are lent, and this board keeps a lease.
fn slots(
    plan: &Plan,
    around: &ServerContext,
    running: &RunningCalls,
) -> (Arc<ConcurrencyTable>, Option<Arc<SlotLender>>) {
    if !around.store.is_shared() {
        return (Arc::new(ConcurrencyTable::new(plan.max_concurrent, None)), None);
    }
    let lease = Arc::new(BoardLease::new());
    let lending = SlotLending { lease: lease.clone(), demand: Arc::new(SlotDemand::default()) };
    let slots = Arc::new(ConcurrencyTable::new(plan.max_concurrent, Some(lending.clone())));
    let lender = SlotLender::new(SlotParts {
        store: around.store.clone(),
        board: uuid::Uuid::now_v7().to_string(),
        lending,
        slots: slots.clone(),
        running: running.clone(),
        plan: plan.store.slots,
        tasks: around.tasks.clone(),
        stop: around.stop.clone(),
    });
    let heartbeat = Heartbeat {
        store: around.store.clone(),
        name: machine_name(),
        lease,
        lender: lender.clone(),
    };
    around.tasks.spawn(heartbeat.run(around.stop.clone()));
    around.tasks.spawn(around.stop.clone().run_until_cancelled_owned(lender.clone().run()));
    (slots, Some(lender))
}

fn start_servers<'a>(
    plans: impl IntoIterator<Item = &'a ServerPlan>,
    remembered: &HashMap<ServerName, Vec<ToolDescriptor>>,
    around: &ServerContext,
) -> Servers {
    plans
        .into_iter()
        .map(|plan| {
            let name = &plan.spec.name;
            let had = remembered.get(name).cloned();
            (name.clone(), start_server(plan.spec.clone(), None, plan.poll_interval, had, around))
        })
        .collect()
}

pub(crate) fn failures(
    plan: &Plan,
    servers: &Servers,
    violations: Vec<Violation>,
) -> Vec<StartFailure> {
    let unreachable = plan.servers.iter().filter(|server| server.required).filter_map(|plan| {
        let status = servers.get(&plan.spec.name)?.status();
        let error = status.error.filter(|_| status.state != ServerState::Ready)?;
        // Its users sign in once the board runs.
        let waits_for_users = plan.spec.endpoint.account_scope() != AccountScope::Board
            && error.kind == ConnectErrorKind::SignIn;
        if waits_for_users {
            return None;
        }
        Some(StartFailure::Connect {
            server: plan.spec.name.clone(),
            place: plan.spec.place.clone(),
            required: plan.required_origin.clone(),
            error,
        })
    });
    unreachable.chain(violations.into_iter().map(StartFailure::Violation)).collect()
}

/// Warns about servers that are not required and not connected; they are retried in the background.
pub(crate) fn warn_of_absent(plan: &Plan, servers: &Servers) {
    for server in plan.servers.iter().filter(|server| !server.required) {
        let name = &server.spec.name;
        let Some(status) = servers.get(name).map(|server| server.status()) else { continue };
        if let Some(error) = status.error.filter(|_| status.state != ServerState::Ready) {
            tracing::warn!(server = %name, %error, "MCP server cannot be reached; going on without it");
        } else if let Some(waiting) = status.waiting {
            tracing::warn!(server = %name, "MCP server is not connected yet ({waiting}); going on without it");
        }
    }
}

fn seen(remembered: HashMap<ServerName, Vec<ToolDescriptor>>) -> Before {
    remembered.into_iter().map(|(server, tools)| (server, Seen::new(Arc::new(tools)))).collect()
}

/// Whether a server exchanges the tokens of callers.
fn exchanges_tokens(plan: &Plan) -> bool {
    plan.servers.iter().any(|server| {
        let grant = server.spec.endpoint.oauth().map(|(_, settings)| &settings.grant);
        matches!(grant, Some(OAuthGrant::TokenExchange(_)))
    })
}
