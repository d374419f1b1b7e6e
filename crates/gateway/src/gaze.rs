//! What a client saw last, so that it is told of changes and of nothing else.

use std::sync::Arc;

use switchboard_sessions::Look;
use switchboard_view::Scope;

use crate::extras::Kind;
use crate::front::Front;

pub(crate) const TOOLS_CHANGED: &str = "notifications/tools/list_changed";

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
            (self.tools, TOOLS_CHANGED),
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
    pub(crate) look: Arc<Look>,
    /// Digests of prompts and of resources.
    extras: (u64, u64),
}

impl Gaze {
    /// `front` is the one that the look came from.
    pub(crate) fn new(front: &Front, scope: &Scope, look: Arc<Look>) -> Self {
        let serves = |server: &_| front.serves(&look.view, scope, server);
        let prompts = front.extras.digest(&[Kind::Prompts], serves);
        let resources = front.extras.digest(&[Kind::Resources, Kind::Templates], serves);
        Self { look, extras: (prompts, resources) }
    }

    /// What is different from what was seen before.
    pub(crate) fn since(&self, before: &Self) -> Changes {
        let (prompts, resources) = self.extras;
        let (older_prompts, older_resources) = before.extras;
        Changes {
            tools: !Arc::ptr_eq(&self.look, &before.look)
                && !self.look.view.lists_same(&before.look.view),
            prompts: prompts != older_prompts,
            resources: resources != older_resources,
        }
    }

    /// One text for all of it, to compare over restarts.
    pub(crate) fn fingerprint(&self) -> String {
        let (prompts, resources) = self.extras;
        format!("{:016x}{prompts:016x}{resources:016x}", self.look.view.digest())
    }

    /// The same, with nothing in the place of what somebody does not know yet.
    pub(crate) fn fingerprint_without(&self, unknown: Changes) -> String {
        let whole = self.fingerprint();
        let Changes { tools, prompts, resources } = unknown;
        let parts = [tools, prompts, resources].into_iter().enumerate().map(|(at, is_unknown)| {
            let part = whole.get(at * 16..at * 16 + 16).filter(|_| !is_unknown);
            part.unwrap_or("----------------")
        });
        parts.collect()
    }

    /// What differs from a fingerprint of another run.
    pub(crate) fn since_fingerprint(&self, fingerprint: &str) -> Changes {
        let now = self.fingerprint();
        let part = |text: &str, at: usize| text.get(at * 16..at * 16 + 16).map(str::to_owned);
        let differs = |at| part(&now, at) != part(fingerprint, at);
        Changes { tools: differs(0), prompts: differs(1), resources: differs(2) }
    }
}
