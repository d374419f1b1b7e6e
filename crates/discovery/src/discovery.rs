//! All sources of a board.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use futures::future::join_all;
use parking_lot::Mutex;
use switchboard_agent365::Environment;
use switchboard_model::{DiscoveryPlan, SourceServers};
use switchboard_outbound::HttpPool;
use switchboard_store::Store;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::auto_choice::AutoChoice;
use crate::running_source::RunningSource;
use crate::source_spec::{SourceSpec, source_specs};
use crate::status::SourceStatus;

/// Reads a variable of the environment.
type VariableLookup = dyn Fn(&str) -> Option<String> + Send + Sync;

/// What sources need besides their plan.
#[derive(Clone)]
pub struct DiscoveryContext {
    pub(crate) lookup: Arc<VariableLookup>,
    pub(crate) environment: Environment,
    pub(crate) working_directory: PathBuf,
    pub(crate) config_directory: Option<PathBuf>,
    pub(crate) http: HttpPool,
    pub(crate) store: Option<Store>,
}

impl fmt::Debug for DiscoveryContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DiscoveryContext")
            .field("environment", &self.environment)
            .field("working_directory", &self.working_directory)
            .field("config_directory", &self.config_directory)
            .finish_non_exhaustive()
    }
}

impl DiscoveryContext {
    /// `lookup` reads variables of the environment; a manifest is looked for in the working directory, its parent and the
    /// directory of the configuration file.
    pub fn new(
        lookup: impl Fn(&str) -> Option<String> + Send + Sync + 'static,
        working_directory: PathBuf,
        config_directory: Option<PathBuf>,
    ) -> Self {
        let lookup: Arc<VariableLookup> = Arc::new(lookup);
        let read = lookup.clone();
        let environment = Environment::from_lookup(move |name| read(name));
        let http = HttpPool::default();
        Self { lookup, environment, working_directory, config_directory, http, store: None }
    }

    /// Keeps the last known servers of gateways and registries in this store, for the next run.
    #[must_use]
    pub fn with_store(mut self, store: Store) -> Self {
        self.store = Some(store);
        self
    }
}

/// The running sources. Dropping it stops them.
#[derive(Debug)]
pub struct Discovery {
    context: DiscoveryContext,
    /// In the order of precedence.
    sources: Mutex<Vec<Arc<RunningSource>>>,
    /// The last logged choice of the environment.
    chosen: Mutex<Option<AutoChoice>>,
    changes: watch::Sender<u64>,
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl Discovery {
    /// Starts to fetch the sources of the plan, and returns at once.
    pub fn start(plan: &DiscoveryPlan, context: DiscoveryContext) -> Arc<Self> {
        let discovery = Arc::new(Self {
            context,
            sources: Mutex::default(),
            chosen: Mutex::default(),
            changes: watch::Sender::default(),
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
        });
        discovery.follow(plan);
        discovery
    }

    /// Brings the sources in line with a plan. Those that did not change go on; a changed one keeps its last known servers
    /// until it was fetched.
    pub fn follow(&self, plan: &DiscoveryPlan) {
        let (specs, choice) = source_specs(plan, &self.context);
        self.log_choice(choice);
        let mut sources = self.sources.lock();
        let before = std::mem::take(&mut *sources);
        for spec in specs {
            let same_name = before.iter().find(|source| source.spec.name == spec.name);
            let source = match same_name {
                Some(source) if source.spec == spec => source.clone(),
                predecessor => self.begin(spec, predecessor.map(Arc::as_ref)),
            };
            sources.push(source);
        }
        for source in &before {
            if !sources.iter().any(|kept| Arc::ptr_eq(kept, source)) {
                source.stop();
            }
        }
    }

    fn begin(&self, spec: SourceSpec, predecessor: Option<&RunningSource>) -> Arc<RunningSource> {
        let opened = spec.open(&self.context);
        let store = self.context.store.clone();
        let memory = store.and_then(|store| spec.memory(store, &opened.place()));
        let stop = self.stop.child_token();
        let running = RunningSource::new(spec, opened, predecessor, memory, stop);
        let running = Arc::new(running);
        self.tasks.spawn(running.clone().run(self.changes.clone()));
        running
    }

    fn log_choice(&self, choice: Option<AutoChoice>) {
        let mut chosen = self.chosen.lock();
        if *chosen == choice {
            return;
        }
        match &choice {
            Some(AutoChoice::Manifest { because }) => {
                tracing::info!("discovery reads the tooling manifest because {because}");
            }
            Some(AutoChoice::Gateway { because }) => {
                tracing::info!("discovery asks the tooling gateway because {because}");
            }
            Some(AutoChoice::Nothing { because, is_partly_set: true }) => {
                tracing::info!("discovery chooses no source because {because}");
            }
            Some(AutoChoice::Nothing { because, is_partly_set: false }) => {
                tracing::debug!("discovery chooses no source because {because}");
            }
            None => {}
        }
        *chosen = choice;
    }

    /// Steps when the servers of a source have changed.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// The last known servers of all sources, in the order of precedence.
    pub fn found(&self) -> Vec<SourceServers> {
        self.sources.lock().iter().map(|source| source.found()).collect()
    }

    /// The state of all sources, in the order of precedence.
    pub fn status(&self) -> Vec<SourceStatus> {
        self.sources.lock().iter().map(|source| source.status()).collect()
    }

    /// Fetches all sources now.
    pub fn refresh(&self) {
        for source in self.sources.lock().iter() {
            source.refresh();
        }
    }

    /// Stops all sources.
    pub async fn shutdown(&self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// Fetches the sources of a plan once, all at the same time, for a command that does not keep running. The second
    /// value is what the environment chose.
    pub async fn look(
        plan: &DiscoveryPlan,
        context: &DiscoveryContext,
    ) -> (Vec<SourceStatus>, Option<AutoChoice>) {
        let (specs, choice) = source_specs(plan, context);
        let look = |spec: SourceSpec| async move {
            let opened = spec.open(context);
            let source = RunningSource::new(spec, opened, None, None, CancellationToken::new());
            let outcome = source.fetch().await;
            source.note(outcome);
            source.status()
        };
        (join_all(specs.into_iter().map(look)).await, choice)
    }
}

impl Drop for Discovery {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}
