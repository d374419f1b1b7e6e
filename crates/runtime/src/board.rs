//! The board: everything that runs, behind one handle.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use switchboard_mcp::ConnectOptions;
use switchboard_model::{Plan, ServerName, ServerPlan, ServerState, ToolDescriptor};
use switchboard_registry::{Catalog, Violation};
use switchboard_store::Store;
use tokio::sync::{Notify, Semaphore, mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::conductor::{Commit, Conductor, Servers};
use crate::local::LocalTools;
use crate::records::Recorder;
use crate::slots::SlotTable;
use crate::start_error::{StartError, StartFailure};
use crate::supervisor::{Server, ServerStatus, Surroundings};
use crate::tools::Published;

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
    /// The program that guards stdio children.
    pub guard: Option<PathBuf>,
}

/// What happens while a board starts.
#[derive(Debug)]
pub enum StartEvent {
    /// A server is connected, or could not be.
    Attempted(Box<ServerStatus>),
}

/// A running board. Clones of the `Arc` share it; [`Board::shutdown`] ends it.
#[derive(Debug)]
pub struct Board {
    pub(crate) published: Arc<ArcSwap<Published>>,
    pub(crate) slots: Arc<SlotTable>,
    pub(crate) store: Store,
    pub(crate) recorder: Recorder,
    pub(crate) local_tools: LocalTools,
    plan: watch::Receiver<Arc<Plan>>,
    revision: watch::Receiver<u64>,
    commits: mpsc::Sender<Commit>,
    /// One configuration change at a time.
    applying: Semaphore,
    around: Surroundings,
    /// Calls that are waited for at the end.
    pub(crate) calls: TaskTracker,
    stop: CancellationToken,
}

impl Board {
    /// Connects all servers at the same time and admits their tools. An error lists every reason, and then
    /// nothing is left running.
    pub async fn start(
        plan: Plan,
        options: BoardOptions,
        on_event: impl FnMut(StartEvent),
    ) -> Result<Arc<Self>, StartError> {
        let remembered = options.store.remembered_tools().await?;
        let around = Surroundings {
            store: options.store.clone(),
            options: ConnectOptions { guard: options.guard, known_era: None },
            dirty: Arc::new(Notify::new()),
            tasks: TaskTracker::new(),
        };
        let servers = start_servers(&plan.servers, &remembered, &around);
        wait_for_all(&servers, on_event).await;

        let (plan_sender, plan_receiver) = watch::channel(Arc::new(plan));
        let (revision_sender, revision) = watch::channel(0);
        let published = Arc::new(ArcSwap::from_pointee(Published::default()));
        let plan = plan_receiver.borrow().clone();
        let slots = Arc::new(SlotTable::new(plan.max_concurrent));
        let mut conductor = Conductor {
            store: options.store.clone(),
            memory: options.memory,
            local: options.local_tools.descriptors(),
            slots: slots.clone(),
            published: published.clone(),
            plan: plan_sender,
            revision: revision_sender,
            servers: servers.clone(),
            before: names_of(&remembered),
            told: Vec::new(),
        };
        let weighed = conductor.weigh(&plan, &servers);
        let failures = failures(&plan, &servers, &weighed.admission.violations);
        if !failures.is_empty() {
            stop_servers(&servers, &around.tasks).await;
            return Err(StartError { failures });
        }
        conductor.publish(&plan, weighed).await;

        let stop = CancellationToken::new();
        let (commits, inbox) = mpsc::channel(1);
        around.tasks.spawn(conductor.run(inbox, around.dirty.clone(), stop.clone()));
        let recorder = Recorder::start(options.store.clone(), &around.tasks);
        Ok(Arc::new(Self {
            published,
            slots,
            store: options.store,
            recorder,
            local_tools: options.local_tools,
            plan: plan_receiver,
            revision,
            commits,
            applying: Semaphore::new(1),
            around,
            calls: TaskTracker::new(),
            stop,
        }))
    }

    /// The catalog as it is now.
    pub fn catalog(&self) -> Arc<Catalog> {
        self.published.load().catalog.clone()
    }

    /// Tells every new revision of the catalog.
    pub fn revisions(&self) -> watch::Receiver<u64> {
        self.revision.clone()
    }

    /// The configuration that is in force.
    pub fn plan(&self) -> Arc<Plan> {
        self.plan.borrow().clone()
    }

    /// The store behind it.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// How each server is doing, in the order of the configuration.
    pub fn servers(&self) -> Vec<(ServerPlan, ServerStatus)> {
        let published = self.published.load();
        self.plan()
            .servers
            .iter()
            .filter_map(|plan| {
                Some((plan.clone(), published.servers.get(&plan.spec.name)?.status()))
            })
            .collect()
    }

    /// Has every server's list read again.
    pub fn refresh(&self) {
        self.published.load().servers.values().for_each(|server| server.suspect());
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
        let remembered = self.store.remembered_tools().await?;
        let fresh = start_servers(changed, &remembered, &self.around);
        wait_for_all(&fresh, |_| {}).await;
        let kept = kept.into_iter().filter_map(|server| present.get_key_value(&server.spec.name));
        let servers: Servers = kept
            .map(|(name, server)| (name.clone(), server.clone()))
            .chain(fresh.iter().map(|(name, server)| (name.clone(), server.clone())))
            .collect();
        // A server that was lost meanwhile is no reason to refuse; one that never came is.
        let failures = failures(&plan, &fresh, &[]);
        if !failures.is_empty() {
            fresh.values().for_each(|server| server.stop());
            return Err(StartError { failures });
        }
        self.commit(Arc::new(plan), servers, &present, &fresh).await
    }

    async fn commit(
        &self,
        plan: Arc<Plan>,
        servers: Servers,
        present: &Servers,
        fresh: &Servers,
    ) -> Result<(), StartError> {
        let (reply, answer) = oneshot::channel();
        let stays = |server: &&Arc<Server>| servers.values().any(|kept| Arc::ptr_eq(kept, server));
        let (_, leaving): (Vec<_>, Vec<_>) = present.values().partition(stays);
        let commit = Commit { plan, servers: servers.clone(), reply };
        let answer = match self.commits.send(commit).await {
            Ok(()) => answer.await.unwrap_or(Ok(())),
            // The board is shutting down; there is nothing left to configure.
            Err(_) => Ok(()),
        };
        match answer {
            Ok(()) => {
                for server in leaving {
                    server.clone().retire(&self.around.tasks);
                }
                Ok(())
            }
            Err(violations) => {
                fresh.values().for_each(|server| server.stop());
                let failures = violations.into_iter().map(StartFailure::Violation).collect();
                Err(StartError { failures })
            }
        }
    }

    /// Lets running calls finish, for at most `drain`, then closes every connection and writes every record.
    pub async fn shutdown(&self, drain: Duration) {
        self.calls.close();
        if tokio::time::timeout(drain, self.calls.wait()).await.is_err() {
            tracing::warn!(still_running = self.calls.len(), "calls did not finish in time");
        }
        self.recorder.flush().await;
        self.stop.cancel();
        let published = self.published.load_full();
        published.servers.values().for_each(|server| server.stop());
        self.around.tasks.close();
        // Children get two polite requests before they are killed; nothing can take longer than that.
        let all_ended = async {
            for server in published.servers.values() {
                server.ended().await;
            }
        };
        let _stuck = tokio::time::timeout(Duration::from_secs(8), all_ended).await;
        self.store.close().await;
    }
}

fn start_servers<'a>(
    plans: impl IntoIterator<Item = &'a ServerPlan>,
    remembered: &HashMap<ServerName, Vec<ToolDescriptor>>,
    around: &Surroundings,
) -> Servers {
    plans
        .into_iter()
        .map(|plan| {
            let name = &plan.spec.name;
            let had = remembered.get(name).cloned();
            (name.clone(), Server::start(plan.spec.clone(), plan.poll_interval, had, around))
        })
        .collect()
}

async fn wait_for_all(servers: &Servers, mut on_event: impl FnMut(StartEvent)) {
    let mut attempts: FuturesUnordered<_> = servers
        .values()
        .map(|server| async move {
            server.attempted().await;
            server.status()
        })
        .collect();
    while let Some(status) = attempts.next().await {
        on_event(StartEvent::Attempted(Box::new(status)));
    }
}

async fn stop_servers(servers: &Servers, tasks: &TaskTracker) {
    servers.values().for_each(|server| server.stop());
    tasks.close();
    tasks.wait().await;
}

fn failures(plan: &Plan, servers: &Servers, violations: &[Violation]) -> Vec<StartFailure> {
    let unreachable = plan.servers.iter().filter(|server| server.required).filter_map(|plan| {
        let status = servers.get(&plan.spec.name)?.status();
        let error = status.error.filter(|_| status.state != ServerState::Ready)?;
        Some(StartFailure::Connect {
            server: plan.spec.name.clone(),
            place: plan.spec.endpoint.to_string(),
            error,
        })
    });
    unreachable.chain(violations.iter().cloned().map(StartFailure::Violation)).collect()
}

fn names_of(
    remembered: &HashMap<ServerName, Vec<ToolDescriptor>>,
) -> HashMap<ServerName, HashSet<String>> {
    let names = |tools: &Vec<ToolDescriptor>| tools.iter().map(|tool| tool.name.clone()).collect();
    remembered.iter().map(|(server, tools)| (server.clone(), names(tools))).collect()
}
