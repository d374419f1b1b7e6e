//! What there is to see just now, and what is made of it for everybody who sees the same.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use switchboard_model::{Exposure, ExposureMode};
use switchboard_registry::Catalog;
use switchboard_render::{Declared, Provider, Rendering};
use switchboard_view::{Difference, Index, ListEra, Past, Scope, Selection, View, ViewKey};

/// Views that are kept.
const KEPT_LOOKS: usize = 1024;
/// From so many on, those go that nobody looks at just now: with a thousand tools each has a megabyte.
const MANY_LOOKS: usize = 64;

static STAGES: AtomicU64 = AtomicU64::new(1);

/// One catalog under one configuration. Immutable; replaced whole when anything in it changes.
#[derive(Debug)]
pub struct Stage {
    serial: u64,
    pub index: Arc<Index>,
    pub exposure: Exposure,
    /// Names of the servers that may be known, connected or not.
    pub servers: Vec<String>,
    catalog: Arc<Catalog>,
    /// Of sessions that brought servers of their own.
    indexes: Mutex<HashMap<Arc<str>, Arc<Index>>>,
    looks: Mutex<HashMap<ViewKey, Arc<Look>>>,
    /// What everybody sees who has no session and narrows nothing: asked for with every such request.
    plain: OnceLock<Arc<Look>>,
}

impl Stage {
    pub fn new(
        catalog: Arc<Catalog>,
        index: Index,
        exposure: Exposure,
        servers: Vec<String>,
    ) -> Self {
        Self {
            serial: STAGES.fetch_add(1, Ordering::Relaxed),
            index: Arc::new(index),
            exposure,
            servers,
            catalog,
            indexes: Mutex::default(),
            looks: Mutex::default(),
            plain: OnceLock::new(),
        }
    }

    /// What a scope alone sees: of who has no session.
    pub fn look_alone(&self, scope: &Arc<Scope>) -> Arc<Look> {
        let look = || self.look(scope, &Arc::new(self.first_selection(scope)), &Arc::default());
        if **scope == Scope::default() {
            return self.plain.get_or_init(look).clone();
        }
        look()
    }

    /// What is chosen where nobody has chosen yet.
    pub(crate) fn first_selection(&self, scope: &Scope) -> Selection {
        let is_dynamic = scope.mode(&self.exposure) == ExposureMode::Dynamic;
        let first = if is_dynamic { scope.first_sets(&self.exposure) } else { Vec::new() };
        Selection::of_sets(first)
    }

    /// The catalog that it shows.
    pub fn catalog(&self) -> &Arc<Catalog> {
        &self.catalog
    }

    fn index_for(&self, selection: &Selection) -> Arc<Index> {
        let Some(owner) = &selection.owner else { return self.index.clone() };
        let owned = self.catalog.owned_by(owner);
        if owned.is_empty() {
            return self.index.clone();
        }
        let mut indexes = self.indexes.lock().unwrap_or_else(PoisonError::into_inner);
        let index =
            indexes.entry(owner.clone()).or_insert_with(|| Arc::new(self.index.with_owned(owned)));
        index.clone()
    }

    /// Tells two stages apart; a later one has a larger number.
    pub fn serial(&self) -> u64 {
        self.serial
    }

    /// What this scope and these choices see; shared with everybody who sees the same.
    pub fn look(
        &self,
        scope: &Arc<Scope>,
        selection: &Arc<Selection>,
        past: &Arc<Past>,
    ) -> Arc<Look> {
        let key =
            ViewKey { scope: scope.clone(), selection: selection.clone(), past: past.clone() };
        let mut looks = self.looks.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(look) = looks.get(&key) {
            return look.clone();
        }
        if looks.len() >= MANY_LOOKS {
            looks.retain(|_, look| Arc::strong_count(look) > 1);
        }
        let view = View::new(self.index_for(selection), &self.exposure, &key);
        let look = Arc::new(Look::new(view, self.serial));
        if looks.len() < KEPT_LOOKS {
            looks.insert(key, look.clone());
        }
        look
    }
}

/// A view, and what is made of it once for all who share it.
#[derive(Debug)]
pub struct Look {
    pub view: View,
    stage: u64,
    digest: OnceLock<String>,
    /// In the order of [`Provider::ALL`].
    renderings: [OnceLock<Arc<Rendering>>; Provider::ALL.len()],
    /// How it differs from the one that was compared last: thousands of sessions go from the same one to this one.
    step: Mutex<Option<(Weak<Look>, Arc<Comparison>)>>,
}

/// Two looks beside each other.
#[derive(Debug)]
pub(crate) struct Comparison {
    /// Whether a client of one need not look again.
    pub(crate) lists_same: bool,
    pub(crate) difference: Arc<Difference>,
}

impl Look {
    fn new(view: View, stage: u64) -> Self {
        let (digest, renderings) = (OnceLock::new(), Default::default());
        Self { view, stage, digest, renderings, step: Mutex::default() }
    }

    /// The serial number of the stage that it was made from.
    pub fn stage(&self) -> u64 {
        self.stage
    }

    /// How it differs from an earlier one.
    pub(crate) fn since(&self, before: &Arc<Self>) -> Arc<Comparison> {
        let mut step = self.step.lock().unwrap_or_else(PoisonError::into_inner);
        // Weak: a look that is compared does not keep all that came before it. Its address is not given away again
        // while the weak pointer is there.
        if let Some((known, compared)) = step.as_ref()
            && Weak::as_ptr(known) == Arc::as_ptr(before)
        {
            return compared.clone();
        }
        let compared = Arc::new(Comparison {
            lists_same: self.view.lists_same(&before.view),
            difference: Arc::new(self.view.since(&before.view)),
        });
        *step = Some((Arc::downgrade(before), compared.clone()));
        compared
    }

    /// The tools as a provider takes them, made once: later it is a copied pointer.
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
            is_allowed.then_some(Declared { name, descriptor: &tool.descriptor })
        });
        let about = meta.iter().map(|tool| Declared { name: &tool.name, descriptor: tool });
        Rendering::new(provider, about.chain(tools))
    }

    /// Tells two lists of tools apart, also over restarts.
    pub fn digest(&self) -> &str {
        self.digest.get_or_init(|| {
            let mut hasher = blake3::Hasher::new();
            hasher.update(self.view.list(ListEra::Legacy));
            for entry in self.view.tools() {
                hasher.update(entry.tool.name.as_str().as_bytes());
                hasher.update(&[0]);
            }
            hasher.finalize().to_hex().chars().take(32).collect()
        })
    }
}
