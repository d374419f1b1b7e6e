//! The board: everything that runs, behind one handle.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use switchboard_mcp_client::{ConnectOptions, SignIns};
use switchboard_model::{Plan, ServerName, ServerPlan, ServerState, ToolDescriptor};
use switchboard_registry::{Catalog, Notice, Violation};
use switchboard_store::Store;
use switchboard_view::{UnmatchedPattern, unmatched_patterns};
use tokio::sync::{Notify, Semaphore, mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::attachments::Attachments;
use crate::catalog_reconciler::{
    Before, CatalogReconciler, Commit, ReconcilerOrder, Seen, Servers,
};
use crate::catalog_writer::CatalogWriter;
use crate::exposure_rule::ExposureRule;
use crate::first_attempts::{grace_of_reload, wait_for_all};
use crate::local::LocalTools;
use crate::max_instances::ConcurrencyTable;
use crate::offers::Outgoing;
use crate::records::Recorder;
use crate::snapshot::{PublishedSnapshot, Snapshot};
use crate::start_error::{StartError, StartFailure};
use crate::startup::{StartingBoard, Startup};
use crate::supervisor::{Audience, Server, ServerContext, ServerStatus};
use crate::tokens::StoredTokens;

/// How long calls that were cut off may take to write their records.
const AFTER_THE_CUT: Duration = Duration::from_secs(2);
/// Children get two polite requests before they are killed; nothing can take longer than that.
const CLOSING: Duration = Duration::from_secs(8);
/// Bare names that are warned of; who uses more of them has been told often enough.
const MOST_WARNED: usize = 256;

/// Whether what is seen is remembered for the next run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Memory {
    /// A long-running board: its catalog is the one that revisions and news refer to.
    Keep,
    /// A single command: it looks, and leaves no trace but its calls.
    ReadOnly,
}

/// What a board needs besides its plan.
#[derive(Debug)]
pub struct BoardOptions {
    pub store: Store,
    pub memory: Memory,
    pub local_tools: LocalTools,
    pub exposure: ExposureRule,
    /// The program that guards stdio children.
    pub guard: Option<PathBuf>,
}

/// What happens while a board starts.
#[derive(Debug)]
pub enum StartEvent {
    /// A server is connected, or could not be.
    Attempted(Box<ServerStatus>),
    /// A server has not been connected yet; told about every second.
    Waiting(Box<ServerStatus>),
}

/// A running board. Clones of the `Arc` share it; [`Board::shutdown`] ends it.
#[derive(Debug)]
pub struct Board {
    /// Written by the reconciler alone.
    pub(crate) published: PublishedSnapshot,
    pub(crate) slots: Arc<ConcurrencyTable>,
    pub(crate) store: Store,
    pub(crate) recorder: Recorder,
    pub(crate) local_tools: LocalTools,
    versions: watch::Receiver<u64>,
    /// The configuration of the start, for what only a start takes over.
    first_plan: Arc<Plan>,
    /// To the reconciler, one at a time; who comes meanwhile waits.
    pub(crate) orders: mpsc::Sender<ReconcilerOrder>,
    /// Bare names that somebody used although two tools have them.
    warned_names: Mutex<HashSet<String>>,
    /// One configuration change at a time.
    applying: Semaphore,
    pub(crate) around: ServerContext,
    pub(crate) startup: Startup,
    /// Calls that are waited for at the end.
    pub(crate) calls: TaskTracker,
    /// Ends calls that the end does not wait for.
    pub(crate) cut: CancellationToken,
}

impl Board {
    /// Connects all servers at the same time and admits their tools. An error lists every reason, and then
    /// nothing is left running.
    pub async fn start(
        plan: Plan,
        options: BoardOptions,
        on_event: impl FnMut(StartEvent),
    ) -> Result<Arc<Self>, StartError> {
        Self::open(plan, options).await?.finish(on_event).await
    }

    /// Begins to connect all servers. The board has no tools until [`StartingBoard::finish`] has admitted them; what
    /// serves clients can follow it meanwhile.
    pub async fn open(plan: Plan, options: BoardOptions) -> Result<StartingBoard, StartError> {
        let exposure = options.exposure.decide(&plan).map_err(StartError::exposure)?;
        if !exposure.reason.is_empty() {
            tracing::info!("exposure: {}", exposure.reason);
        }
        let remembered = options.store.remembered_tools().await?;
        let around = ServerContext {
            store: options.store.clone(),
            memory: options.memory,
            options: ConnectOptions {
                guard: options.guard,
                sign_ins: Some(SignIns::new(Arc::new(StoredTokens::new(options.store.clone())))),
                ..ConnectOptions::default()
            },
            dirty: Arc::new(Notify::new()),
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
            outgoing: Outgoing::new(),
            audience: Audience::Everybody,
        };
        // A start that is given up leaves nothing running either.
        let unless_started = around.stop.clone().drop_guard();
        let servers = start_servers(&plan.servers, &remembered, &around);

        let (versions_sender, versions) = watch::channel(0);
        let published = PublishedSnapshot::default();
        let plan = Arc::new(plan);
        let slots = Arc::new(ConcurrencyTable::new(plan.max_concurrent));
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
            told: HashSet::new(),
        };
        // The configuration is in force before the first tool is: whoever comes early is judged by it.
        reconciler.show(Arc::default());
        let (orders, inbox) = mpsc::channel(1);
        let board = Arc::new(Self {
            published,
            slots,
            recorder: Recorder::start(options.store.clone()),
            store: options.store,
            local_tools: options.local_tools,
            versions,
            first_plan: plan,
            startup: Startup::default(),
            orders,
            warned_names: Mutex::default(),
            applying: Semaphore::new(1),
            around,
            calls: TaskTracker::new(),
            cut: CancellationToken::new(),
        });
        Ok(StartingBoard { board, reconciler, inbox, unless_started })
    }

    /// How far the start has come.
    pub fn startup(&self) -> &Startup {
        &self.startup
    }

    /// The place of the snapshot in force.
    pub fn published(&self) -> &PublishedSnapshot {
        &self.published
    }

    /// Everything that a request decides by. Load it once for each request.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.published.load_full()
    }

    /// What an operator should know about names that hide each other, and about patterns that match nothing once the
    /// start has finished: before that the catalog is not whole.
    pub fn warnings(&self) -> Vec<String> {
        let unmatched = self.startup.is_finished().then(|| self.unmatched_patterns());
        let unmatched = unmatched.into_iter().flatten().map(|it| match &it.nearest {
            Some(near) => format!("{it}; did you mean `{near}`?"),
            None => it.to_string(),
        });
        self.snapshot().warnings().chain(unmatched).collect()
    }

    /// The patterns of toolsets that match no tool. The tools of a server that was never connected are unknown: patterns
    /// that could mean them are left out.
    pub fn unmatched_patterns(&self) -> Vec<UnmatchedPattern> {
        let (snapshot, statuses) = (self.snapshot(), self.servers());
        let is_listed = |name: &ServerName| {
            let status = statuses.iter().map(|(_, status)| status).find(|it| it.name == *name);
            status.is_some_and(|it| it.offered > 0 || it.state == ServerState::Ready)
        };
        unmatched_patterns(snapshot.catalog(), snapshot.plan(), is_listed)
    }

    /// The version of the snapshot that is published now.
    pub fn version(&self) -> u64 {
        self.published.load().version()
    }

    /// Tells every new version of the snapshot.
    pub fn versions(&self) -> watch::Receiver<u64> {
        self.versions.clone()
    }

    /// The catalog as it is now.
    pub fn catalog(&self) -> Arc<Catalog> {
        self.published.load().catalog().clone()
    }

    /// The settings of this plan that take effect with the next start only, because they differ from those of this one.
    pub(crate) fn waiting_for_restart(&self, plan: &Plan) -> Vec<&'static str> {
        let jwt = plan.security.jwt != self.first_plan.security.jwt;
        jwt.then_some("security.jwt").into_iter().collect()
    }

    pub(crate) fn outgoing(&self) -> &Outgoing {
        &self.around.outgoing
    }

    /// The configuration that is in force.
    pub fn plan(&self) -> Arc<Plan> {
        self.published.load().plan().clone()
    }

    /// The store behind it.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Returns when the records of all calls that have ended are written.
    pub async fn flush_records(&self) {
        self.recorder.flush().await;
    }

    /// How each server is doing, in the order of the configuration.
    pub fn servers(&self) -> Vec<(ServerPlan, ServerStatus)> {
        let snapshot = self.published.load();
        let servers = snapshot.plan().servers.iter();
        servers
            .filter_map(|plan| {
                Some((plan.clone(), snapshot.servers.get(&plan.spec.name)?.status()))
            })
            .collect()
    }

    /// Warns, once for each name, that a bare name which is used could mean two tools.
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

    /// Has every server's list read again.
    pub fn refresh(&self) {
        for server in self.published.load().servers.values() {
            server.suspect();
        }
    }

    /// Takes a new configuration, or refuses it whole and keeps the old one. Only servers whose address or
    /// credentials changed are connected anew; the old connection serves until the new one does, and until
    /// its last call has ended.
    pub async fn apply(&self, plan: Plan) -> Result<(), StartError> {
        let Ok(_one_at_a_time) = self.applying.acquire().await else { return Ok(()) };
        let present = self.published.load().servers.clone();
        let (kept, changed): (Vec<_>, Vec<_>) = plan.servers.iter().partition(|server| {
            present.get(&server.spec.name).is_some_and(|running| {
                *running.spec() == server.spec && running.poll() == server.poll_interval
            })
        });
        let remembered = self.remembered_tools(&changed).await;
        let mut fresh = Candidates(start_servers(changed, &remembered, &self.around));
        wait_for_all(&plan, &fresh.0, grace_of_reload(&present, &fresh.0), |_| {}).await;
        // A server that was lost meanwhile is no reason to refuse; one that never came is.
        let failures = failures(&plan, &fresh.0, Vec::new());
        if !failures.is_empty() {
            return Err(StartError { failures });
        }
        warn_of_absent(&plan, &fresh.0);
        let kept = kept.into_iter().filter_map(|server| present.get_key_value(&server.spec.name));
        let kept = kept.map(|(name, server)| (name.clone(), server.clone()));
        let servers = kept.chain(fresh.0.clone()).collect();

        let (reply, answer) = oneshot::channel();
        let commit = Commit { plan: Arc::new(plan), servers, reply };
        // An error, here and below, is a board that is shutting down: there is nothing left to configure.
        let Ok(place) = self.orders.reserve().await else { return Ok(()) };
        place.send(ReconcilerOrder::Commit(commit));
        fresh.0.clear();
        let violations = answer.await.unwrap_or(Ok(())).err();
        violations.map_or(Ok(()), |violations| {
            let failures = violations.into_iter().map(StartFailure::Violation).collect();
            Err(StartError { failures })
        })
    }

    /// What servers had that are about to be started. A store that fails does not hold up a configuration.
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
                "the store cannot say which tools the servers had; going on without"
            );
            HashMap::new()
        })
    }

    /// Lets running calls finish, for at most `drain`, then cancels what is left, closes every connection and
    /// writes every record. Calls that come after this are refused.
    pub async fn shutdown(&self, drain: Duration) {
        self.calls.close();
        if tokio::time::timeout(drain, self.calls.wait()).await.is_err() {
            tracing::warn!(cancelled = self.calls.len(), "calls did not finish in time");
            self.cut.cancel();
            // They end as soon as their callers look at them.
            let _unwatched = tokio::time::timeout(AFTER_THE_CUT, self.calls.wait()).await;
        }
        self.recorder.flush().await;
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

/// Servers that were started for a plan. They end with this, unless the plan was handed over.
struct Candidates(Servers);

impl Drop for Candidates {
    fn drop(&mut self) {
        for server in self.0.values() {
            server.stop();
        }
    }
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
            (name.clone(), Server::start(plan.spec.clone(), None, plan.poll_interval, had, around))
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
        Some(StartFailure::Connect {
            server: plan.spec.name.clone(),
            place: plan.spec.place.clone(),
            required: plan.required_origin.clone(),
            error,
        })
    });
    unreachable.chain(violations.into_iter().map(StartFailure::Violation)).collect()
}

/// What is missing and may be: it is tried again in the background.
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
