//! What the gateway shows just now: one catalog, one configuration, one set of prompts and resources.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use switchboard_model::{CanonicalName, Exposure, Plan, ServerName, ServerState};
use switchboard_runtime::{Board, Snapshot};
use switchboard_sessions::{Look, Stage};
use switchboard_view::{Index, Scope, ScopeFault, UnmatchedPattern, View, unmatched_patterns};

use crate::extras::Extras;
use crate::gaze::Gaze;
use crate::server_sets::ServerSets;

/// Gazes that are kept although nobody needs them just now.
const KEPT_GAZES: usize = 1024;

/// What is derived from one [`Snapshot`] of the board: immutable, and replaced whole with it.
#[derive(Debug)]
pub(crate) struct Front {
    /// The version of the snapshot.
    pub(crate) version: u64,
    pub(crate) stage: Arc<Stage>,
    pub(crate) extras: Extras,
    server_sets: ServerSets,
    /// What people should know about toolsets.
    pub(crate) warnings: Vec<String>,
    /// By the address of what is looked at; each of them keeps that alive.
    gazes: Mutex<HashMap<usize, Arc<Gaze>>>,
}

/// The patterns of toolsets that match no tool of the board.
pub fn unmatched_toolset_patterns(board: &Board) -> Vec<UnmatchedPattern> {
    unmatched(board, &board.snapshot())
}

fn unmatched(board: &Board, snapshot: &Snapshot) -> Vec<UnmatchedPattern> {
    let statuses = board.servers();
    let is_heard = |name: &ServerName| {
        let status = statuses.iter().map(|(_, status)| status).find(|it| it.name == *name);
        status.is_some_and(|it| it.offered > 0 || it.state == ServerState::Ready)
    };
    unmatched_patterns(snapshot.catalog(), snapshot.plan(), is_heard)
}

impl Front {
    pub(crate) fn new(board: &Board, snapshot: &Snapshot, exposure: Exposure) -> Self {
        let (plan, catalog) = (snapshot.plan(), snapshot.catalog().clone());
        let server_sets = ServerSets::new(plan);
        let index = Index::new(&catalog, plan);
        let warnings = unmatched(board, snapshot)
            .iter()
            .map(|it| match &it.nearest {
                Some(near) => format!("{it}; did you mean `{near}`?"),
                None => it.to_string(),
            })
            .collect();
        let servers = known_servers(plan, &index, &server_sets);
        Self {
            version: snapshot.version(),
            stage: Arc::new(Stage::new(catalog, index, exposure, servers)),
            extras: Extras::new(snapshot.offers(), plan),
            server_sets,
            warnings,
            gazes: Mutex::default(),
        }
    }

    pub(crate) fn index(&self) -> &Index {
        &self.stage.index
    }

    /// Whether a scope names only what there is.
    pub(crate) fn check(&self, scope: &Scope) -> Result<(), ScopeFault> {
        scope.check(self.index(), &self.stage.exposure, &self.stage.servers)
    }

    /// What is seen, ready to be compared with what will be; shared with everybody who sees the same.
    pub(crate) fn settled(&self, scope: &Scope, look: &Arc<Look>) -> Arc<Gaze> {
        let address = Arc::as_ptr(look).addr();
        let known = self.gazes().get(&address).cloned();
        if let Some(gaze) = known {
            return gaze;
        }
        let gaze = Arc::new(Gaze::new(self, scope, look.clone()));
        let mut gazes = self.gazes();
        if gazes.len() >= KEPT_GAZES {
            gazes.retain(|_, gaze| Arc::strong_count(gaze) > 1);
        }
        if gazes.len() < KEPT_GAZES {
            gazes.insert(address, gaze.clone());
        }
        gaze
    }

    fn gazes(&self) -> std::sync::MutexGuard<'_, HashMap<usize, Arc<Gaze>>> {
        self.gazes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether policy lets a server be known.
    pub(crate) fn knows(&self, server: &ServerName) -> bool {
        self.stage.servers.iter().any(|known| known == server.as_str())
    }

    /// Whether prompts and resources of a server belong to a view: they follow its tools, and its toolsets where it has
    /// no tools.
    pub(crate) fn serves(&self, view: &View, scope: &Scope, server: &ServerName) -> bool {
        if self.index().has_server(server) {
            return view.has_server(server);
        }
        self.server_sets.shows(server, view, scope, &self.stage.exposure)
    }
}

/// The servers of which policy leaves something. The others are as if they were not configured.
fn known_servers(plan: &Plan, index: &Index, server_sets: &ServerSets) -> Vec<String> {
    let entries = index.entries().iter().map(|entry| &entry.tool.name);
    let permitted = entries.filter(|name| index.permits(name.as_str()));
    let with_tools: HashSet<&ServerName> = permitted.map(CanonicalName::server).collect();
    let is_known = |server: &&ServerName| {
        if index.has_server(server) {
            return with_tools.contains(server);
        }
        server_sets.may_be_named(server)
    };
    let all = plan.servers.iter().map(|server| &server.spec.name);
    all.filter(is_known).map(ServerName::to_string).collect()
}
