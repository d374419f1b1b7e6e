//! Views of one snapshot, with the data derived from each view, shared between sessions.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock, Weak};

use parking_lot::Mutex;
use switchboard_model::AccessRules;
use switchboard_render::{NamedTool, Provider, Rendering};
use switchboard_view::{Difference, ListEra, Past, Scope, Selection, View, ViewKey};

/// The most views that are cached. Beyond it, all that no session holds are dropped.
const MAX_CACHED_VIEWS: usize = 2048;
/// From this number on, views that no session holds are dropped if they have lists or renderings: those of a thousand tools
/// take a megabyte. Without them a view takes some kilobytes, and calls of many callers with different access need it.
const EVICT_UNUSED_FROM: usize = 64;

/// The views of one snapshot, each computed once.
#[derive(Debug, Default)]
pub(crate) struct ViewCache {
    views: Mutex<HashMap<ViewKey, Arc<CachedView>>>,
    /// The view of requests without a session whose scope restricts nothing, which most stateless requests need.
    unscoped: OnceLock<Arc<CachedView>>,
    /// The views of requests without a session that only the access of their callers restricts. `views` keeps them alive.
    narrowed: Mutex<HashMap<Arc<AccessRules>, Weak<CachedView>>>,
    /// The selection of such requests: the same for every access.
    first_selection: OnceLock<Arc<Selection>>,
    no_past: Arc<Past>,
}

impl ViewCache {
    /// The view for this key; computed by `make` where it is not cached.
    pub(crate) fn get_or_make(
        &self,
        key: ViewKey,
        make: impl FnOnce(&ViewKey) -> CachedView,
    ) -> Arc<CachedView> {
        let mut views = self.views.lock();
        if let Some(view) = views.get(&key) {
            return view.clone();
        }
        if views.len() >= MAX_CACHED_VIEWS {
            views.retain(|_, view| Arc::strong_count(view) > 1);
        } else if views.len() >= EVICT_UNUSED_FROM {
            views.retain(|_, view| Arc::strong_count(view) > 1 || view.is_light());
        }
        let view = Arc::new(make(&key));
        if views.len() < MAX_CACHED_VIEWS {
            views.insert(key, view.clone());
        }
        view
    }

    /// The view of requests without a session; computed by `make` from their selection and past where it is not cached.
    pub(crate) fn without_session(
        &self,
        scope: &Scope,
        first_selection: impl FnOnce() -> Selection,
        make: impl FnOnce(&Arc<Selection>, &Arc<Past>) -> Arc<CachedView>,
    ) -> Arc<CachedView> {
        if !scope.is_access_alone() {
            return make(&Arc::new(first_selection()), &self.no_past);
        }
        let make = || {
            let selection = self.first_selection.get_or_init(|| Arc::new(first_selection()));
            make(selection, &self.no_past)
        };
        match scope.access.as_slice() {
            [] => self.unscoped.get_or_init(make).clone(),
            [rules] => self.narrowed(rules, make),
            _ => make(),
        }
    }

    fn narrowed(
        &self,
        rules: &Arc<AccessRules>,
        make: impl FnOnce() -> Arc<CachedView>,
    ) -> Arc<CachedView> {
        if let Some(view) = self.narrowed.lock().get(rules).and_then(Weak::upgrade) {
            return view;
        }
        let view = make();
        let mut narrowed = self.narrowed.lock();
        if narrowed.len() >= MAX_CACHED_VIEWS {
            narrowed.retain(|_, view| view.strong_count() > 0);
        }
        if narrowed.len() < MAX_CACHED_VIEWS {
            narrowed.insert(rules.clone(), Arc::downgrade(&view));
        }
        view
    }
}

/// A [`View`] with derived data: its renderings for providers, its digests, and its difference to an earlier view.
/// Immutable; shared by all sessions that see the same tools.
#[derive(Debug)]
pub struct CachedView {
    pub view: View,
    version: u64,
    digest: OnceLock<String>,
    /// Digests of the prompts and of the resources that belong to the view.
    pub(crate) prompts_resources: OnceLock<(u64, u64)>,
    /// Indexed in the order of [`Provider::ALL`].
    renderings: [OnceLock<Arc<Rendering>>; Provider::ALL.len()],
    /// The last comparison: after a change, many sessions move from the same earlier view to this one.
    comparison: Mutex<Option<(Weak<CachedView>, Arc<Comparison>)>>,
}

/// The difference between a view and an earlier one.
#[derive(Debug)]
pub struct Comparison {
    /// Whether both have the same tool list, so that clients need not fetch it again.
    pub lists_same: bool,
    pub difference: Arc<Difference>,
}

impl CachedView {
    pub(crate) fn new(view: View, version: u64) -> Self {
        Self {
            view,
            version,
            digest: OnceLock::new(),
            prompts_resources: OnceLock::new(),
            renderings: Default::default(),
            comparison: Mutex::default(),
        }
    }

    /// Whether neither its lists nor its renderings were needed yet.
    fn is_light(&self) -> bool {
        !self.view.has_lists() && self.renderings.iter().all(|cell| cell.get().is_none())
    }

    /// The version of the snapshot that the view was computed from.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Compares this view with an earlier one. The last result is cached.
    pub fn since(&self, before: &Arc<Self>) -> Arc<Comparison> {
        let mut last = self.comparison.lock();
        // Weak: a comparison must not keep all earlier views alive. The address is not used again while the weak
        // pointer exists.
        if let Some((known, compared)) = last.as_ref()
            && Weak::as_ptr(known) == Arc::as_ptr(before)
        {
            return compared.clone();
        }
        let compared = Arc::new(Comparison {
            lists_same: self.view.lists_same(&before.view),
            difference: Arc::new(self.view.since(&before.view)),
        });
        *last = Some((Arc::downgrade(before), compared.clone()));
        compared
    }

    /// The tools in the format of a provider; computed once.
    pub fn rendering(&self, provider: Provider) -> Arc<Rendering> {
        let place = Provider::ALL.iter().position(|known| *known == provider);
        match place.and_then(|place| self.renderings.get(place)) {
            Some(cell) => cell.get_or_init(|| Arc::new(self.render(provider))).clone(),
            None => Arc::new(self.render(provider)),
        }
    }

    fn render(&self, provider: Provider) -> Rendering {
        let meta = self.view.meta_tools();
        let selection = self.view.selection();
        let tools = self.view.tools().filter_map(|entry| {
            let (name, tool) = (entry.name.as_deref()?, &entry.tool);
            let shown = entry.shown_name();
            let names = [name, shown.as_str(), tool.name.tool()];
            let is_allowed = selection.allows(provider.as_str(), &names);
            is_allowed.then_some(NamedTool { name, descriptor: &tool.descriptor })
        });
        let about = meta.iter().map(|tool| NamedTool { name: &tool.name, descriptor: tool });
        Rendering::new(provider, about.chain(tools))
    }

    /// A digest of the tool list, stable across restarts.
    pub fn digest(&self) -> &str {
        self.digest.get_or_init(|| {
            let mut hasher = blake3::Hasher::new();
            hasher.update(self.view.list(ListEra::Session));
            for entry in self.view.tools() {
                hasher.update(entry.tool.name.as_str().as_bytes());
                hasher.update(&[0]);
            }
            hasher.finalize().to_hex().chars().take(32).collect()
        })
    }
}
