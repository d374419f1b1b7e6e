//! What a client saw last, so that it is told of changes and of nothing else.

use std::sync::Arc;

use switchboard_view::{Scope, View};

use crate::extras::Kind;
use crate::front::Front;

/// What has changed for somebody.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Changes {
    pub(crate) tools: bool,
    pub(crate) prompts: bool,
    pub(crate) resources: bool,
}

impl Changes {
    pub(crate) fn join(&mut self, other: Self) {
        self.tools |= other.tools;
        self.prompts |= other.prompts;
        self.resources |= other.resources;
    }

    /// The notifications that tell of them.
    pub(crate) fn methods(self) -> impl Iterator<Item = &'static str> {
        [
            (self.tools, "notifications/tools/list_changed"),
            (self.prompts, "notifications/prompts/list_changed"),
            (self.resources, "notifications/resources/list_changed"),
        ]
        .into_iter()
        .filter_map(|(is_set, method)| is_set.then_some(method))
    }
}

/// What somebody saw last.
#[derive(Debug, Clone)]
pub(crate) struct Gaze {
    pub(crate) view: Arc<View>,
    prompts: u64,
    resources: u64,
}

impl Gaze {
    pub(crate) fn new(front: &Front, scope: &Scope, view: Arc<View>) -> Self {
        let serves = |server: &_| front.serves(&view, scope, server);
        Self {
            prompts: front.extras.digest(&[Kind::Prompts], serves),
            resources: front.extras.digest(&[Kind::Resources, Kind::Templates], serves),
            view,
        }
    }

    /// Looks again; says what is different.
    pub(crate) fn look(&mut self, front: &Front, scope: &Scope, view: Arc<View>) -> Changes {
        let now = Self::new(front, scope, view);
        let changes = Changes {
            tools: !Arc::ptr_eq(&self.view, &now.view) && !self.view.lists_same(&now.view),
            prompts: self.prompts != now.prompts,
            resources: self.resources != now.resources,
        };
        *self = now;
        changes
    }

    /// One number for all of it, to compare over restarts.
    pub(crate) fn fingerprint(&self) -> String {
        format!("{:016x}{:016x}{:016x}", self.view.digest(), self.prompts, self.resources)
    }

    /// What differs from a fingerprint of another run.
    pub(crate) fn since(&self, fingerprint: &str) -> Changes {
        let now = self.fingerprint();
        let part = |text: &str, at: usize| text.get(at * 16..at * 16 + 16).map(str::to_owned);
        let differs = |at| part(&now, at) != part(fingerprint, at);
        Changes { tools: differs(0), prompts: differs(1), resources: differs(2) }
    }
}
