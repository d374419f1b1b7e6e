//! What the gateway shows just now: one catalog, one configuration, one set of prompts and resources.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use switchboard_model::{Exposure, Plan, ServerName};
use switchboard_runtime::Board;
use switchboard_view::{Index, Scope, ScopeFault, View, ViewKey};

use crate::extras::Extras;
use crate::gaze::Gaze;

/// Views that are kept although nobody looks at them just now.
const KEPT_VIEWS: usize = 1024;

/// An immutable snapshot, replaced whole when anything in it changes.
#[derive(Debug)]
pub(crate) struct Front {
    pub(crate) index: Arc<Index>,
    pub(crate) exposure: Exposure,
    pub(crate) extras: Extras,
    /// Names of all servers, connected or not.
    pub(crate) servers: Vec<String>,
    gazes: Mutex<HashMap<ViewKey, Arc<Gaze>>>,
}

impl Front {
    pub(crate) fn new(board: &Board, plan: &Plan, exposure: Exposure) -> Self {
        let index = Arc::new(Index::new(&board.catalog(), plan));
        let servers = plan.servers.iter().map(|server| server.spec.name.to_string()).collect();
        let extras = Extras::new(&board.offers(), plan);
        Self { index, exposure, extras, servers, gazes: Mutex::default() }
    }

    /// Whether a scope names only what there is.
    pub(crate) fn check(&self, scope: &Scope) -> Result<(), ScopeFault> {
        scope.check(&self.index, &self.exposure, &self.servers)
    }

    /// What this scope and these enabled sets see; shared with everybody who sees the same.
    pub(crate) fn gaze(&self, scope: &Arc<Scope>, enabled: &Arc<BTreeSet<String>>) -> Arc<Gaze> {
        let key = ViewKey { scope: scope.clone(), enabled: enabled.clone() };
        let mut gazes = self.gazes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(gaze) = gazes.get(&key) {
            return gaze.clone();
        }
        if gazes.len() >= KEPT_VIEWS {
            gazes.retain(|_, gaze| Arc::strong_count(gaze) > 1);
        }
        let gaze = Arc::new(Gaze::new(View::new(self.index.clone(), &self.exposure, &key)));
        if gazes.len() < KEPT_VIEWS {
            gazes.insert(key, gaze.clone());
        }
        gaze
    }

    pub(crate) fn view(&self, scope: &Arc<Scope>, enabled: &Arc<BTreeSet<String>>) -> Arc<View> {
        self.gaze(scope, enabled).view.clone()
    }

    /// What is seen now, ready to be compared with what will be.
    pub(crate) fn settled(&self, scope: &Arc<Scope>, enabled: &Arc<BTreeSet<String>>) -> Arc<Gaze> {
        let gaze = self.gaze(scope, enabled);
        gaze.settle(self, scope);
        gaze
    }

    /// Whether prompts and resources of a server belong to a view: they follow its tools, and those of a server
    /// without any tool are for everybody who is not narrowed to toolsets.
    pub(crate) fn serves(&self, view: &View, scope: &Scope, server: &ServerName) -> bool {
        if self.index.has_server(server) {
            return view.has_server(server);
        }
        let is_narrowed = view.mode() != switchboard_model::ExposureMode::Legacy
            || scope.tools.is_some()
            || scope.read_only;
        !is_narrowed && scope.server.as_deref().is_none_or(|only| only == server.as_str())
    }
}
