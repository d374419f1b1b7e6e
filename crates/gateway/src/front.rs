//! What the gateway shows just now: one catalog, one configuration, one set of prompts and resources.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use switchboard_model::{Exposure, Plan, ServerName};
use switchboard_runtime::Board;
use switchboard_sessions::{Look, Stage};
use switchboard_view::{Index, Scope, ScopeFault, View};

use crate::extras::Extras;
use crate::gaze::Gaze;

/// Gazes that are kept although nobody needs them just now.
const KEPT_GAZES: usize = 1024;

/// An immutable snapshot, replaced whole when anything in it changes.
#[derive(Debug)]
pub(crate) struct Front {
    pub(crate) stage: Arc<Stage>,
    pub(crate) extras: Extras,
    /// By the address of what is looked at; each of them keeps that alive.
    gazes: Mutex<HashMap<usize, Arc<Gaze>>>,
}

impl Front {
    pub(crate) fn new(board: &Board, plan: &Plan, exposure: Exposure) -> Self {
        Self {
            stage: Arc::new(Stage::new(board.catalog(), plan, exposure)),
            extras: Extras::new(&board.offers(), plan),
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

    /// Whether prompts and resources of a server belong to a view: they follow its tools, and those of a server
    /// without any tool are for everybody who is not narrowed to toolsets.
    pub(crate) fn serves(&self, view: &View, scope: &Scope, server: &ServerName) -> bool {
        if self.index().has_server(server) {
            return view.has_server(server);
        }
        let is_narrowed = view.mode() != switchboard_model::ExposureMode::Legacy
            || !scope.tools.is_empty()
            || scope.read_only;
        let bound = view.selection().servers.as_ref();
        !is_narrowed
            && scope.server.as_deref().is_none_or(|only| only == server.as_str())
            && bound.is_none_or(|bound| bound.contains(server.as_str()))
    }
}
