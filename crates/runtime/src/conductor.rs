//! Turns what the servers offer into catalogs. One task, so that revisions follow each other.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arc_swap::ArcSwap;
use switchboard_model::{JsonText, Plan, ServerName, ToolDescriptor};
use switchboard_registry::{
    Admission, Catalog, CatalogTool, Level, Notice, Offer, Violation, admit,
};
use switchboard_schema::declare_arguments;
use switchboard_store::{Store, StoreError};
use tokio::sync::{Notify, mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::board::Memory;
use crate::slots::SlotTable;
use crate::supervisor::{Listing, Server};
use crate::tools::Published;

/// The servers of a plan, by name.
pub(crate) type Servers = HashMap<ServerName, Arc<Server>>;

/// What each server had when it was last seen, in this run or the last.
pub(crate) type Before = HashMap<ServerName, Seen>;

/// What one server had.
pub(crate) struct Seen {
    names: HashSet<String>,
    tools: Arc<Vec<ToolDescriptor>>,
}

impl Seen {
    pub(crate) fn new(tools: Arc<Vec<ToolDescriptor>>) -> Self {
        Self { names: tools.iter().map(|tool| tool.name.clone()).collect(), tools }
    }
}

/// A new plan with its servers already started.
pub(crate) struct Commit {
    pub(crate) plan: Arc<Plan>,
    pub(crate) servers: Servers,
    /// Answers with what keeps the plan from being taken; then nothing has changed.
    pub(crate) reply: oneshot::Sender<Result<(), Vec<Violation>>>,
}

/// The task's own state.
pub(crate) struct Conductor {
    pub(crate) store: Store,
    pub(crate) memory: Memory,
    pub(crate) local: Vec<ToolDescriptor>,
    pub(crate) slots: Arc<SlotTable>,
    pub(crate) published: Arc<ArcSwap<Published>>,
    pub(crate) plan: watch::Sender<Arc<Plan>>,
    pub(crate) revision: watch::Sender<u64>,
    pub(crate) servers: Servers,
    pub(crate) tasks: TaskTracker,
    pub(crate) before: Before,
    /// What people have already been told about the present catalog.
    pub(crate) told: HashSet<Notice>,
}

impl Conductor {
    /// Works until it is stopped.
    pub(crate) async fn run(
        mut self,
        mut commits: mpsc::Receiver<Commit>,
        dirty: Arc<Notify>,
        stop: CancellationToken,
    ) {
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                Some(commit) = commits.recv() => self.commit(commit).await,
                () = dirty.notified() => self.reconcile().await,
            }
        }
    }

    /// What would be admitted, with nothing changed yet.
    pub(crate) fn weigh(&self, plan: &Plan, servers: &Servers) -> Weighed {
        let listings: Vec<(ServerName, Listing)> = plan
            .servers
            .iter()
            .filter_map(|server| {
                let name = &server.spec.name;
                Some((name.clone(), servers.get(name)?.listing()))
            })
            .collect();
        let offers: Vec<_> = plan
            .servers
            .iter()
            .zip(&listings)
            .map(|(plan, (name, listing))| Offer {
                plan,
                tools: listing.tools.as_deref().map(Vec::as_slice),
                available: listing.is_ready,
                before: self.before.get(name).map(|seen| &seen.names),
                dropped: &listing.dropped,
            })
            .collect();
        Weighed { admission: admit(plan, &self.local, &offers), listings }
    }

    async fn commit(&mut self, commit: Commit) {
        let weighed = self.weigh(&commit.plan, &commit.servers);
        let violations = weighed.violations();
        let answer = if violations.is_empty() {
            let before = std::mem::replace(&mut self.servers, commit.servers);
            self.plan.send_replace(commit.plan.clone());
            self.publish(&commit.plan, weighed).await;
            // Only now nobody is sent to them any more.
            for server in missing_from(&self.servers, before) {
                server.retire(&self.tasks);
            }
            Ok(())
        } else {
            for server in missing_from(&self.servers, commit.servers) {
                server.stop();
            }
            Err(violations)
        };
        // Whoever asked may have stopped waiting; the decision stands.
        let _gone = commit.reply.send(answer);
    }

    async fn reconcile(&mut self) {
        let plan = self.plan.borrow().clone();
        let mut weighed = self.weigh(&plan, &self.servers);
        let refused = weighed.violations().into_iter();
        let refused = refused.map(|violation| Notice::Refused { message: violation.to_string() });
        weighed.admission.notices.extend(refused);
        self.publish(&plan, weighed).await;
    }

    /// Publishes what was weighed, when it differs, and tells people the news.
    pub(crate) async fn publish(&mut self, plan: &Plan, weighed: Weighed) {
        let Weighed { admission, listings } = weighed;
        self.tell(&admission);
        self.slots.resize(
            plan.max_concurrent,
            admission.tools.iter().map(|tool| (&tool.name, tool.limits.max_instances)),
        );
        let tools: Vec<_> = admission.tools.into_iter().map(with_declared_arguments).collect();
        let older = self.published.load_full();
        let is_same = older.catalog.revision() > 0
            && older.catalog.tools().iter().map(Arc::as_ref).eq(tools.iter());
        let catalog = if is_same {
            older.catalog.clone()
        } else {
            let revision = self.next_revision(&tools, older.catalog.revision()).await;
            Arc::new(Catalog::new(revision, tools.into_iter().map(Arc::new).collect()))
        };
        switchboard_telemetry::catalog_published(catalog.tools().len(), catalog.revision());
        let revision = catalog.revision();
        self.published.store(Arc::new(Published::new(catalog, self.servers.clone(), &older)));
        if !is_same {
            self.revision.send_replace(revision);
        }
        self.remember(&listings).await;
    }

    fn tell(&mut self, admission: &Admission) {
        for notice in admission.notices.iter().filter(|notice| !self.told.contains(notice)) {
            match notice.level() {
                Level::Debug => tracing::debug!("{notice}"),
                Level::Info => tracing::info!("{notice}"),
                Level::Warning => tracing::warn!("{notice}"),
                Level::Error => tracing::error!("{notice}"),
            }
        }
        self.told = admission.notices.iter().cloned().collect();
    }

    async fn next_revision(&self, tools: &[CatalogTool], current: u64) -> u64 {
        match self.memory {
            Memory::Keep => match self.store.revision_for(&fingerprint(tools)).await {
                // Another process on the same store may have moved on; ours never goes back.
                Ok(revision) => revision.max(current + 1),
                Err(error) => {
                    tracing::error!(%error, "the catalog revision could not be written");
                    current + 1
                }
            },
            Memory::ReadOnly => current + 1,
        }
    }

    async fn remember(&mut self, listings: &[(ServerName, Listing)]) {
        for (server, listing) in listings {
            let Some(tools) = listing.tools.as_ref().filter(|_| listing.is_fresh) else { continue };
            let seen = Seen::new(tools.clone());
            let before = self.before.insert(server.clone(), seen);
            let is_new = before.is_none_or(|before| before.tools != *tools);
            if is_new && self.memory == Memory::Keep {
                let now = jiff::Timestamp::now().as_millisecond();
                let kept: Result<(), StoreError> =
                    self.store.remember_tools(server, tools, now).await;
                if let Err(error) = kept {
                    tracing::error!(%server, %error, "the server's tools could not be remembered");
                }
            }
        }
    }
}

/// What was admitted, and the lists that it was decided on.
pub(crate) struct Weighed {
    pub(crate) admission: Admission,
    pub(crate) listings: Vec<(ServerName, Listing)>,
}

impl Weighed {
    /// What keeps the plan from being taken. A list that is only remembered from the last run proves nothing.
    pub(crate) fn violations(&self) -> Vec<Violation> {
        let was_read = |server: &ServerName| {
            self.listings.iter().any(|(name, listing)| name == server && listing.is_fresh)
        };
        let violations = self.admission.violations.iter();
        violations.filter(|violation| violation.server().is_none_or(was_read)).cloned().collect()
    }
}

/// The servers of `these` that are not among `those`.
fn missing_from(those: &Servers, these: Servers) -> impl Iterator<Item = Arc<Server>> {
    let is_there = |server: &Arc<Server>| those.values().any(|other| Arc::ptr_eq(other, server));
    these.into_values().filter(move |server| !is_there(server))
}

/// Lays declared arguments over the server's schema, so that everybody sees the same one.
fn with_declared_arguments(mut tool: CatalogTool) -> CatalogTool {
    if let Some(arguments) = &tool.arguments {
        let schema = declare_arguments(&tool.descriptor.input_schema.parse(), arguments);
        tool.descriptor.input_schema = JsonText::from(&schema);
    }
    tool
}

/// Two catalogs of one fingerprint have the same tools under the same limits.
fn fingerprint(tools: &[CatalogTool]) -> String {
    let mut hasher = blake3::Hasher::new();
    for tool in tools {
        hasher.update(format!("{tool:?}\n").as_bytes());
    }
    hasher.finalize().to_hex().to_string()
}
