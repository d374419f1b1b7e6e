//! The lists that a client saw last, to notify it of changes of its own lists only.

use std::sync::Arc;

use switchboard_runtime::{CachedView, Snapshot};
use switchboard_view::Scope;

pub(crate) const TOOLS_CHANGED: &str = "notifications/tools/list_changed";

/// Which lists have changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ListChanges {
    pub(crate) tools: bool,
    pub(crate) prompts: bool,
    pub(crate) resources: bool,
}

impl ListChanges {
    pub(crate) fn join(&mut self, other: Self) {
        self.tools |= other.tools;
        self.prompts |= other.prompts;
        self.resources |= other.resources;
    }

    /// The methods of the `list_changed` notifications.
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

/// Identifies the tools, prompts and resources that a client sees at one moment.
#[derive(Debug, Clone)]
pub(crate) struct SeenLists {
    pub(crate) cached: Arc<CachedView>,
    /// Digests of the visible prompts and resources.
    prompts: u64,
    resources: u64,
}

impl SeenLists {
    /// `cached` must be a view of `snapshot`.
    pub(crate) fn new(snapshot: &Snapshot, scope: &Scope, cached: Arc<CachedView>) -> Self {
        let (prompts, resources) = snapshot.prompts_resources_digests(scope, &cached);
        Self { cached, prompts, resources }
    }

    /// Which lists differ from `before`.
    pub(crate) fn since(&self, before: &Self) -> ListChanges {
        let has_same_tools = Arc::ptr_eq(&self.cached, &before.cached)
            || self.cached.since(&before.cached).lists_same;
        ListChanges {
            tools: !has_same_tools,
            prompts: self.prompts != before.prompts,
            resources: self.resources != before.resources,
        }
    }

    /// Identifies all lists by their content; stable over restarts.
    pub(crate) fn fingerprint(&self) -> String {
        let (prompts, resources) = (self.prompts, self.resources);
        format!("{:016x}{prompts:016x}{resources:016x}", self.cached.view.digest())
    }

    /// As [`SeenLists::fingerprint`], with the parts of `unknown` lists empty: the client was not notified of their change.
    pub(crate) fn fingerprint_without(&self, unknown: ListChanges) -> String {
        let whole = self.fingerprint();
        let ListChanges { tools, prompts, resources } = unknown;
        let parts = [tools, prompts, resources].into_iter().enumerate().map(|(at, is_unknown)| {
            let part = whole.get(at * 16..at * 16 + 16).filter(|_| !is_unknown);
            part.unwrap_or("----------------")
        });
        parts.collect()
    }

    /// Which lists differ from a fingerprint, for example of an earlier run.
    pub(crate) fn since_fingerprint(&self, fingerprint: &str) -> ListChanges {
        let now = self.fingerprint();
        let part = |text: &str, at: usize| text.get(at * 16..at * 16 + 16).map(str::to_owned);
        let differs = |at| part(&now, at) != part(fingerprint, at);
        ListChanges { tools: differs(0), prompts: differs(1), resources: differs(2) }
    }
}
