//! What a client saw last, so that it is told of changes and of nothing else.

use std::sync::{Arc, OnceLock};

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

/// What somebody sees; shared by all who see the same.
#[derive(Debug)]
pub(crate) struct Gaze {
    pub(crate) view: Arc<View>,
    /// Digests of prompts and of resources, for who will compare them later.
    extras: OnceLock<(u64, u64)>,
}

impl Gaze {
    pub(crate) fn new(view: View) -> Self {
        Self { view: Arc::new(view), extras: OnceLock::new() }
    }

    /// Makes it comparable with what is seen later; `front` is the one that it came from.
    pub(crate) fn settle(&self, front: &Front, scope: &Scope) {
        self.extras.get_or_init(|| {
            let serves = |server: &_| front.serves(&self.view, scope, server);
            (
                front.extras.digest(&[Kind::Prompts], serves),
                front.extras.digest(&[Kind::Resources, Kind::Templates], serves),
            )
        });
    }

    fn extras(&self) -> (u64, u64) {
        self.extras.get().copied().unwrap_or_default()
    }

    /// What is different from what was seen before.
    pub(crate) fn since(&self, before: &Self) -> Changes {
        let (prompts, resources) = self.extras();
        let (older_prompts, older_resources) = before.extras();
        Changes {
            tools: !Arc::ptr_eq(&self.view, &before.view) && !self.view.lists_same(&before.view),
            prompts: prompts != older_prompts,
            resources: resources != older_resources,
        }
    }

    /// One text for all of it, to compare over restarts.
    pub(crate) fn fingerprint(&self) -> String {
        let (prompts, resources) = self.extras();
        format!("{:016x}{prompts:016x}{resources:016x}", self.view.digest())
    }

    /// What differs from a fingerprint of another run.
    pub(crate) fn since_fingerprint(&self, fingerprint: &str) -> Changes {
        let now = self.fingerprint();
        let part = |text: &str, at: usize| text.get(at * 16..at * 16 + 16).map(str::to_owned);
        let differs = |at| part(&now, at) != part(fingerprint, at);
        Changes { tools: differs(0), prompts: differs(1), resources: differs(2) }
    }
}
