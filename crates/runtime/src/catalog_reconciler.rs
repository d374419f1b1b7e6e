//! The catalog reconciler: computes snapshots from the servers' lists and the plan. It is a single task, so revisions
//! are strictly ordered.
//!
//! It never waits for the store: a configuration is in force once its snapshot is published, however slow the disk is.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use switchboard_model::{
    AttachedServer, Exposure, Plan, QuarantinedTool, ServerName, ToolDescriptor,
};
use switchboard_registry::{
    Admission, AttachedOffer, Catalog, CatalogTool, Level, Notice, Offer, Violation, admit,
    admit_attached,
};
use tokio::sync::{Notify, mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::attach_error::AttachError;
use crate::attachments::Attachments;
use crate::catalog_writer::CatalogWriter;
use crate::declared_arguments::declare_all;
use crate::exposure_rule::ExposureRule;
use crate::max_instances::ConcurrencyTable;
use crate::server::{Listing, Server, Servers};
use crate::snapshot::{PublishedSnapshot, Snapshot};

/// The last known tools of each server, from this run or the previous one.
pub(crate) type Before = HashMap<ServerName, Seen>;

/// The last known tools of one server.
pub(crate) struct Seen {
    names: HashSet<String>,
    tools: Arc<Vec<ToolDescriptor>>,
}

impl Seen {
    pub(crate) fn new(tools: Arc<Vec<ToolDescriptor>>) -> Self {
        Self { names: tools.iter().map(|tool| tool.name.clone()).collect(), tools }
    }
}

/// An order to the reconciler.
pub(crate) enum ReconcilerOrder {
    Commit(Commit),
    Attach(Attach),
    Detach(Detach),
    /// Evaluates what the servers have reported so far, and replies afterwards.
    Reconcile(oneshot::Sender<()>),
}

/// Attaches a server to a session.
pub(crate) struct Attach {
    pub(crate) owner: Arc<str>,
    pub(crate) spec: AttachedServer,
    pub(crate) reply: oneshot::Sender<Result<ServerName, AttachError>>,
}

/// Detaches servers of a session.
pub(crate) struct Detach {
    pub(crate) owner: Arc<str>,
    /// The session's name for the server; `None` means all of its servers.
    pub(crate) name: Option<ServerName>,
    /// Receives the number of detached servers.
    pub(crate) reply: oneshot::Sender<usize>,
}

/// What violations of a new plan do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnViolation {
    /// They reject the plan.
    Refuse,
    /// They are logged, and the tools are left out, as after any change of a server.
    Report,
}

/// A new plan whose servers are already started.
pub(crate) struct Commit {
    pub(crate) plan: Arc<Plan>,
    pub(crate) servers: Servers,
    pub(crate) on_violation: OnViolation,
    /// Receives the violations that reject the plan; nothing has changed then.
    pub(crate) reply: oneshot::Sender<Result<(), Vec<Violation>>>,
}

/// The state of the reconciler task.
pub(crate) struct CatalogReconciler {
    /// `None` for a board that stores nothing.
    pub(crate) writer: Option<Arc<CatalogWriter>>,
    pub(crate) local: Vec<ToolDescriptor>,
    pub(crate) slots: Arc<ConcurrencyTable>,
    pub(crate) published: PublishedSnapshot,
    /// Announces the version of each published snapshot.
    pub(crate) versions: watch::Sender<u64>,
    pub(crate) plan: Arc<Plan>,
    pub(crate) exposure_rule: ExposureRule,
    /// The exposure of the plan.
    pub(crate) exposure: Exposure,
    /// The servers of the plan.
    pub(crate) servers: Servers,
    pub(crate) attachments: Attachments,
    pub(crate) tasks: TaskTracker,
    pub(crate) before: Before,
    /// The discovered servers of the plan.
    pub(crate) discovered: HashSet<ServerName>,
    /// Tools of the current catalog's evaluation whose declaration contradicts their server.
    pub(crate) quarantined: Arc<[(ServerName, QuarantinedTool)]>,
    /// The notices about the current catalog that are already logged.
    pub(crate) told: HashSet<Notice>,
}

impl CatalogReconciler {
    /// Runs until it is stopped.
    pub(crate) async fn run(
        mut self,
        mut orders: mpsc::Receiver<ReconcilerOrder>,
        dirty: Arc<Notify>,
        stop: CancellationToken,
    ) {
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                Some(order) = orders.recv() => match order {
                    ReconcilerOrder::Commit(commit) => self.commit(commit),
                    ReconcilerOrder::Attach(attach) => self.attach(attach),
                    ReconcilerOrder::Detach(detach) => self.detach(detach),
                    ReconcilerOrder::Reconcile(reply) => {
                        self.reconcile();
                        // The receiver may have been dropped.
                        let _gone = reply.send(());
                    }
                },
                () = dirty.notified() => self.reconcile(),
            }
        }
    }

    /// Computes what would be admitted; changes nothing.
    pub(crate) fn evaluate(&self, plan: &Plan, servers: &Servers) -> Evaluation {
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
                quarantined: &listing.quarantined,
            })
            .collect();
        let mut admission = admit(plan, &self.local, &offers);
        for attached in self.attachments.all() {
            let listing = attached.server.listing();
            let offer = AttachedOffer {
                server: &attached.server.spec().name,
                owner: &attached.owner,
                alias: &attached.spec.name,
                tools: listing.tools.as_deref().map(Vec::as_slice).unwrap_or_default(),
                quarantined: &listing.quarantined,
            };
            admit_attached(&offer, &mut admission);
        }
        declare_all(plan, &mut admission);
        Evaluation { admission, listings }
    }

    fn commit(&mut self, commit: Commit) {
        let mut evaluation = self.evaluate(&commit.plan, &commit.servers);
        let violations = match commit.on_violation {
            OnViolation::Refuse => evaluation.violations(),
            OnViolation::Report => {
                evaluation.report_violations();
                Vec::new()
            }
        };
        let answer = if violations.is_empty() {
            let before = std::mem::replace(&mut self.servers, commit.servers);
            let moved = self.attachments.follow(&commit.plan.security.egress);
            self.expose(&commit.plan);
            let older = std::mem::replace(&mut self.plan, commit.plan);
            self.forget_discovered(&older);
            self.publish(evaluation);
            // The snapshot no longer refers to these servers, so no new call reaches them.
            for server in missing_from(&self.servers, before).chain(moved) {
                server.retire(&self.tasks);
            }
            Ok(())
        } else {
            for server in missing_from(&self.servers, commit.servers) {
                server.stop();
            }
            Err(violations)
        };
        // The receiver may have been dropped; the decision stands.
        let _gone = commit.reply.send(answer);
    }

    fn attach(&mut self, Attach { owner, spec, reply }: Attach) {
        let most = self.plan.gateway.max_session_servers;
        let answer = match self.attachments.attach(owner, spec, most) {
            Ok((name, Some(replaced))) => {
                self.reconcile();
                replaced.retire(&self.tasks);
                Ok(name)
            }
            // The tools of a new server are not known yet, so the catalog stays the same.
            Ok((name, None)) => {
                self.show(self.published.load().catalog().clone());
                Ok(name)
            }
            Err(error) => Err(error),
        };
        // The receiver may have been dropped; the server stays attached.
        let _gone = reply.send(answer);
    }

    fn detach(&mut self, Detach { owner, name, reply }: Detach) {
        let gone = self.attachments.detach(&owner, name.as_ref());
        if !gone.is_empty() {
            self.reconcile();
        }
        let count = gone.len();
        for server in gone {
            server.retire(&self.tasks);
        }
        let _gone = reply.send(count);
    }

    fn reconcile(&mut self) {
        let mut evaluation = self.evaluate(&self.plan, &self.servers);
        evaluation.report_violations();
        self.publish(evaluation);
    }

    /// Publishes an evaluation under the current plan and logs its new notices.
    pub(crate) fn publish(&mut self, evaluation: Evaluation) {
        self.publish_as(None, evaluation);
    }

    /// Publishes the first catalog of a run. If the tools are those of the previous run, it keeps that run's revision.
    pub(crate) async fn publish_first(&mut self, evaluation: Evaluation) {
        let revision = self.recall_revision(&evaluation.admission).await;
        self.publish_as(revision, evaluation);
    }

    fn publish_as(&mut self, recalled: Option<u64>, evaluation: Evaluation) {
        let Evaluation { admission, listings } = evaluation;
        self.tell(&admission);
        self.publish_tools(recalled, admission);
        self.remember(&listings);
    }

    /// Publishes the tools of the servers that have connected while the start still waits for others. Notices, stored
    /// lists and start failures are decided at the end of the start.
    pub(crate) async fn publish_early(&mut self) {
        let Evaluation { admission, .. } = self.evaluate(&self.plan, &self.servers);
        let revision = self.recall_revision(&admission).await;
        self.publish_tools(revision, admission);
    }

    async fn recall_revision(&self, admission: &Admission) -> Option<u64> {
        let writer = self.writer.as_ref()?;
        writer.recall_revision(&fingerprint(&admission.tools)).await
    }

    fn publish_tools(&mut self, recalled: Option<u64>, admission: Admission) {
        let tools = admission.tools;
        if *self.quarantined != *admission.quarantined {
            self.quarantined = admission.quarantined.into();
        }
        self.slots.resize(
            self.plan.max_concurrent,
            tools.iter().map(|tool| (&tool.name, (&tool.limits).into())),
        );
        let agents = self.plan.agents.iter();
        let agents = agents.filter_map(|it| Some((it.name.as_str(), it.limits.max_concurrent?)));
        self.slots.resize_agents(agents);
        let older = self.published.load().catalog().clone();
        let is_same =
            older.revision() > 0 && older.of_all_owners().iter().map(Arc::as_ref).eq(tools.iter());
        let catalog = if is_same {
            older
        } else {
            let next = older.revision() + 1;
            let revision = match (recalled, &self.writer) {
                // Revisions only grow, also from an early catalog to the complete one.
                (Some(revision), _) if revision >= next => revision,
                (_, Some(writer)) => writer.note_revision(fingerprint(&tools), next),
                (_, None) => next,
            };
            let tools = tools.into_iter().map(Arc::new).collect();
            Arc::new(Catalog::new(revision, tools).after(&older))
        };
        switchboard_telemetry::catalog_published(catalog.tools().len(), catalog.revision());
        self.show(catalog);
    }

    /// Decides the exposure of a plan that is about to take effect. If the rule rejects it, the current exposure stays.
    fn expose(&mut self, plan: &Plan) {
        match self.exposure_rule.decide(plan) {
            Ok(exposure) => {
                if exposure != self.exposure {
                    tracing::info!("exposure: {}", exposure.reason);
                }
                self.exposure = exposure;
            }
            Err(error) => tracing::error!("{error}; the exposure stays as it was"),
        }
    }

    /// Publishes a snapshot; the only place that does so.
    pub(crate) fn show(&self, catalog: Arc<Catalog>) {
        let older = self.published.load_full();
        let attached = self.attachments.all().cloned().collect();
        let (plan, exposure, servers) =
            (self.plan.clone(), self.exposure.clone(), self.servers.clone());
        let quarantined = self.quarantined.clone();
        let next = Snapshot::after(&older, plan, exposure, catalog, quarantined, servers, attached);
        if next.is_same(&older) {
            return;
        }
        let version = next.version();
        self.published.store(next);
        if version != older.version() {
            self.versions.send_replace(version);
        }
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

    /// Forgets discovered servers that are gone. A source may name others all the time, so nothing of them accumulates: not
    /// here, and not in the store, which never has their tools.
    fn forget_discovered(&mut self, older: &Plan) {
        self.discovered = discovered_servers(&self.plan);
        for server in discovered_servers(older) {
            if !self.servers.contains_key(&server) {
                self.before.remove(&server);
            }
        }
    }

    fn remember(&mut self, listings: &[(ServerName, Listing)]) {
        for (server, listing) in listings {
            let Some(tools) = listing.tools.as_ref().filter(|_| listing.is_fresh) else { continue };
            let seen = Seen::new(tools.clone());
            let before = self.before.insert(server.clone(), seen);
            let is_new = before.is_none_or(|before| before.tools != *tools);
            let is_kept = is_new && !self.discovered.contains(server);
            if let Some(writer) = self.writer.as_ref().filter(|_| is_kept) {
                writer.note_tools(server.clone(), tools.clone());
            }
        }
    }
}

/// The admitted tools, and the lists that the decision is based on.
pub(crate) struct Evaluation {
    pub(crate) admission: Admission,
    pub(crate) listings: Vec<(ServerName, Listing)>,
}

impl Evaluation {
    /// The violations that reject the plan. Tools that are only remembered from the previous run cannot violate it.
    pub(crate) fn violations(&self) -> Vec<Violation> {
        let was_read = |server: &ServerName| {
            self.listings.iter().any(|(name, listing)| name == server && listing.is_fresh)
        };
        let violations = self.admission.violations.iter();
        violations.filter(|violation| violation.server().is_none_or(was_read)).cloned().collect()
    }

    /// Turns the violations into notices.
    fn report_violations(&mut self) {
        let refused = self.violations().into_iter();
        let refused = refused.map(|violation| Notice::Refused { message: violation.to_string() });
        self.admission.notices.extend(refused);
    }
}

/// The names of the plan's discovered servers.
pub(crate) fn discovered_servers(plan: &Plan) -> HashSet<ServerName> {
    let servers = plan.servers.iter().filter(|server| server.discovered.is_some());
    servers.map(|server| server.spec.name.clone()).collect()
}

/// The servers of `these` that are not among `those`.
fn missing_from(those: &Servers, these: Servers) -> impl Iterator<Item = Arc<Server>> {
    let is_there = |server: &Arc<Server>| those.values().any(|other| Arc::ptr_eq(other, server));
    these.into_values().filter(move |server| !is_there(server))
}

/// A hash of the tools and their limits: equal catalogs have equal fingerprints.
fn fingerprint(tools: &[CatalogTool]) -> String {
    let mut hasher = blake3::Hasher::new();
    for tool in tools {
        hasher.update(format!("{tool:?}\n").as_bytes());
    }
    hasher.finalize().to_hex().to_string()
}
