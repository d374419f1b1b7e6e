//! The snapshot: the immutable data that every decision of a request is based on.

mod compiled;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arc_swap::ArcSwap;
use http::HeaderMap;
use parking_lot::Mutex;
use switchboard_model::{CanonicalName, Exposure, ExposureMode, Plan, QuarantinedTool, ServerName};
use switchboard_registry::{Catalog, CatalogTool};
use switchboard_view::{Index, Past, Scope, ScopeFault, Selection, ServerToolsets, View, ViewKey};

use crate::attachments::Attached;
use crate::cached_view::{CachedView, ViewCache};
use crate::offers::Offers;
use crate::policy_digest::policy_digest;
use crate::prompts_resources::{ListKind, PromptsResources};
use crate::server::{Server, Servers};

pub(crate) use compiled::CompiledTool;
use compiled::CompiledTools;

/// The configuration in force, the exposure, the catalog admitted under it, the prompts and resources, and the servers
/// behind them.
///
/// The reconciler creates one for each change and publishes it in one step ([`PublishedSnapshot`]). A request that
/// loads it once never combines the policy of one configuration with the tools of another, and a call that found its
/// tool also finds its server.
#[derive(Debug)]
pub struct Snapshot {
    content: Arc<SnapshotContent>,
    /// The configured servers and those that sessions attached.
    pub(crate) servers: Servers,
    pub(crate) attached: Vec<Arc<Attached>>,
}

/// The part that callers can see. Snapshots that differ only in connections share it.
#[derive(Debug)]
struct SnapshotContent {
    version: u64,
    plan: Arc<Plan>,
    /// The digest of the plan, for records.
    policy: Arc<str>,
    exposure: Exposure,
    catalog: Arc<Catalog>,
    index: Arc<Index>,
    /// The names of the servers of which policy permits something, connected or not.
    known_servers: Vec<String>,
    server_toolsets: ServerToolsets,
    offers: Vec<(ServerName, Arc<Offers>)>,
    prompts_resources: PromptsResources,
    compiled: Arc<CompiledTools>,
    /// Tools that are not in the catalog because their declaration contradicts their server.
    quarantined: Arc<[(ServerName, QuarantinedTool)]>,
    /// Indexes of sessions that attached servers.
    attached_indexes: Mutex<HashMap<Arc<str>, Arc<Index>>>,
    views: ViewCache,
}

impl SnapshotContent {
    fn new(
        version: u64,
        (plan, policy): (Arc<Plan>, Arc<str>),
        exposure: Exposure,
        catalog: Arc<Catalog>,
        offers: Vec<(ServerName, Arc<Offers>)>,
        compiled: Arc<CompiledTools>,
        quarantined: Arc<[(ServerName, QuarantinedTool)]>,
    ) -> Self {
        let index = Index::new(&catalog, &plan);
        let server_toolsets = ServerToolsets::new(&plan);
        let known_servers = known_servers(&plan, &index, &server_toolsets);
        let prompts_resources = PromptsResources::new(&offers, &plan);
        Self {
            version,
            plan,
            policy,
            exposure,
            catalog,
            index: Arc::new(index),
            known_servers,
            server_toolsets,
            offers,
            prompts_resources,
            compiled,
            quarantined,
            attached_indexes: Mutex::default(),
            views: ViewCache::default(),
        }
    }
}

impl Default for Snapshot {
    fn default() -> Self {
        Self::of_catalog(Arc::default(), Exposure::default(), Arc::default())
    }
}

impl Snapshot {
    /// A snapshot of tools without servers, for decisions that need no connection.
    pub fn of_catalog(plan: Arc<Plan>, exposure: Exposure, catalog: Arc<Catalog>) -> Self {
        let (compiled, quarantined) = (Arc::default(), Arc::default());
        let policy = policy_digest(&plan);
        let plan = (plan, policy);
        let content =
            SnapshotContent::new(0, plan, exposure, catalog, Vec::new(), compiled, quarantined);
        Self { content: Arc::new(content), servers: Servers::new(), attached: Vec::new() }
    }

    /// The snapshot that follows `older`; compiled schemas of unchanged tools are reused. `servers` are those of the
    /// plan.
    pub(crate) fn after(
        older: &Self,
        plan: Arc<Plan>,
        exposure: Exposure,
        catalog: Arc<Catalog>,
        quarantined: Arc<[(ServerName, QuarantinedTool)]>,
        mut servers: Servers,
        attached: Vec<Arc<Attached>>,
    ) -> Self {
        let names = plan.servers.iter().map(|server| &server.spec.name);
        let offers: Vec<_> =
            names.filter_map(|name| Some((name.clone(), servers.get(name)?.offers()))).collect();
        servers
            .extend(attached.iter().map(|it| (it.server.spec().name.clone(), it.server.clone())));
        let before = &*older.content;
        let has_same_tools = Arc::ptr_eq(&before.catalog, &catalog);
        let is_same_content = Arc::ptr_eq(&before.plan, &plan)
            && has_same_tools
            && before.exposure == exposure
            && before.quarantined == quarantined
            && are_same_offers(&before.offers, &offers);
        if is_same_content {
            return Self { content: older.content.clone(), servers, attached };
        }
        let compiled = if has_same_tools {
            before.compiled.clone()
        } else {
            Arc::new(CompiledTools::after(&before.compiled, &before.catalog, &catalog))
        };
        let version = before.version + 1;
        let policy = if Arc::ptr_eq(&before.plan, &plan) {
            before.policy.clone()
        } else {
            policy_digest(&plan)
        };
        let plan = (plan, policy);
        let content =
            SnapshotContent::new(version, plan, exposure, catalog, offers, compiled, quarantined);
        Self { content: Arc::new(content), servers, attached }
    }

    /// Increases with each change of the plan, the exposure, the catalog, the prompts or the resources. Two snapshots
    /// of one version differ at most in connections, and in attached servers whose tools are not known yet.
    pub fn version(&self) -> u64 {
        self.content.version
    }

    /// The configuration.
    pub fn plan(&self) -> &Arc<Plan> {
        &self.content.plan
    }

    /// The digest of the configuration, as records have it.
    pub fn policy_digest(&self) -> &Arc<str> {
        &self.content.policy
    }

    /// The exposure: which tools and toolsets a client sees at first.
    pub fn exposure(&self) -> &Exposure {
        &self.content.exposure
    }

    /// The tools that were admitted under the configuration.
    pub fn catalog(&self) -> &Arc<Catalog> {
        &self.content.catalog
    }

    /// Tools that are not in the catalog because their declaration contradicts their server, with the reason.
    pub fn quarantined(&self) -> &[(ServerName, QuarantinedTool)] {
        &self.content.quarantined
    }

    /// The tools of the configured servers with their toolsets and what policy permits.
    pub fn index(&self) -> &Index {
        &self.content.index
    }

    /// What each server provides besides tools, in the order of the configuration.
    pub fn offers(&self) -> &[(ServerName, Arc<Offers>)] {
        &self.content.offers
    }

    /// The prompts and resources of all servers.
    pub fn prompts_resources(&self) -> &PromptsResources {
        &self.content.prompts_resources
    }

    /// The names of the servers of which policy permits something. Callers never learn of the others.
    pub fn known_servers(&self) -> &[String] {
        &self.content.known_servers
    }

    /// Whether policy permits something of a server.
    pub fn knows(&self, server: &ServerName) -> bool {
        self.content.known_servers.iter().any(|known| known == server.as_str())
    }

    /// Whether prompts and resources of a server belong to a view: they follow the server's tools, and its toolsets
    /// where it has no tools.
    pub fn serves(&self, view: &View, scope: &Scope, server: &ServerName) -> bool {
        if self.index().has_server(server) {
            return view.has_server(server);
        }
        self.content.server_toolsets.shows(server, view, scope, &self.content.exposure)
    }

    /// Checks that a scope names only existing servers and toolsets.
    pub fn check_scope(&self, scope: &Scope) -> Result<(), ScopeFault> {
        scope.check(self.index(), &self.content.exposure, &self.content.known_servers)
    }

    /// The view for this scope, this selection and the tools declared before; shared by all callers with the same ones.
    pub fn view(
        &self,
        scope: &Arc<Scope>,
        selection: &Arc<Selection>,
        past: &Arc<Past>,
    ) -> Arc<CachedView> {
        let key =
            ViewKey { scope: scope.clone(), selection: selection.clone(), past: past.clone() };
        let content = &self.content;
        content.views.get_or_make(key, |key| {
            let view = View::new(self.index_for(&key.selection), &content.exposure, key);
            CachedView::new(view, content.version)
        })
    }

    /// The view of a request that belongs to no session.
    pub fn view_without_session(&self, scope: &Arc<Scope>) -> Arc<CachedView> {
        // In dynamic exposure such a request starts with the toolsets that its scope names.
        let first = || self.first_selection(scope);
        let make = |selection: &Arc<Selection>, past: &Arc<Past>| self.view(scope, selection, past);
        self.content.views.without_session(scope, first, make)
    }

    /// The toolsets that a new session starts with.
    pub fn first_selection(&self, scope: &Scope) -> Selection {
        let exposure = &self.content.exposure;
        let is_dynamic = scope.mode(exposure) == ExposureMode::Dynamic;
        Selection::of_sets(if is_dynamic { scope.first_sets(exposure) } else { Vec::new() })
    }

    /// Digests of the prompts and of the resources that belong to a view of this snapshot.
    pub fn prompts_resources_digests(&self, scope: &Scope, view: &CachedView) -> (u64, u64) {
        debug_assert_eq!(view.version(), self.version());
        *view.prompts_resources.get_or_init(|| {
            let serves = |server: &ServerName| self.serves(&view.view, scope, server);
            let all = &self.content.prompts_resources;
            let resources = [ListKind::Resources, ListKind::Templates];
            (all.digest(&[ListKind::Prompts], serves), all.digest(&resources, serves))
        })
    }

    /// Warnings for the operator about names that shadow each other.
    pub(crate) fn warnings(&self) -> impl Iterator<Item = String> {
        let hidden = self.content.prompts_resources.warnings(|server| self.knows(server));
        self.content.index.warnings().iter().cloned().chain(hidden)
    }

    fn index_for(&self, selection: &Selection) -> Arc<Index> {
        let content = &*self.content;
        let Some(owner) = &selection.owner else { return content.index.clone() };
        let owned = content.catalog.owned_by(owner);
        if owned.is_empty() {
            return content.index.clone();
        }
        let mut indexes = content.attached_indexes.lock();
        let make = || Arc::new(content.index.with_owned(owned));
        indexes.entry(owner.clone()).or_insert_with(make).clone()
    }

    /// Whether a caller sees the same data and reaches the same servers as with `older`.
    pub(crate) fn is_same(&self, older: &Self) -> bool {
        let has_server = |(name, server): (&ServerName, &Arc<Server>)| {
            older.servers.get(name).is_some_and(|old| Arc::ptr_eq(old, server))
        };
        self.version() == older.version()
            && self.servers.len() == older.servers.len()
            && self.servers.iter().all(has_server)
            && self.attached.len() == older.attached.len()
            && self.attached.iter().zip(&older.attached).all(|(new, old)| Arc::ptr_eq(new, old))
    }

    /// A server of the configuration.
    pub(crate) fn shared_server(&self, name: &ServerName) -> Option<Arc<Server>> {
        self.servers.get(name).filter(|_| !name.is_attached()).cloned()
    }

    /// A server of the configuration, or one that this session attached.
    pub(crate) fn server_for(
        &self,
        session: Option<&str>,
        name: &ServerName,
    ) -> Option<Arc<Server>> {
        let is_own =
            |it: &&Arc<Attached>| session == Some(&*it.owner) && it.server.spec().name == *name;
        let own = || self.attached.iter().find(is_own).map(|it| it.server.clone());
        self.shared_server(name).or_else(own)
    }

    /// The compiled form of a tool of this catalog. Looked up once for each call.
    pub(crate) fn compiled(&self, tool: &CatalogTool) -> Option<&CompiledTool> {
        self.content.compiled.get(tool)
    }

    /// Checks that the headers that repeat arguments agree with the arguments, if the tool's schema requires them.
    pub fn check_mirrors(
        &self,
        tool: &CatalogTool,
        headers: &HeaderMap,
        arguments: &str,
    ) -> Result<(), String> {
        let Some(compiled) = self.compiled(tool).filter(|tool| !tool.mirrors.is_empty()) else {
            return Ok(());
        };
        compiled.mirrors.check(headers, &serde_json::from_str(arguments).unwrap_or_default())
    }
}

/// The snapshot in force. Clones share it; the reconciler alone replaces it.
#[derive(Debug, Clone, Default)]
pub struct PublishedSnapshot(Arc<ArcSwap<Snapshot>>);

impl PublishedSnapshot {
    pub fn new(snapshot: Snapshot) -> Self {
        Self(Arc::new(ArcSwap::from_pointee(snapshot)))
    }

    /// The snapshot that a request decides by. Load it once for each request.
    pub fn load(&self) -> arc_swap::Guard<Arc<Snapshot>> {
        self.0.load()
    }

    /// The current snapshot as an `Arc`, to be kept for longer.
    pub fn load_full(&self) -> Arc<Snapshot> {
        self.0.load_full()
    }

    /// Publishes a snapshot.
    pub(crate) fn store(&self, snapshot: Snapshot) {
        self.0.store(Arc::new(snapshot));
    }

    /// Publishes a snapshot with another catalog, as the reconciler does; for use without a running board.
    pub fn replace_catalog(&self, catalog: Arc<Catalog>) {
        let older = self.load_full();
        let (plan, exposure) = (older.plan().clone(), older.exposure().clone());
        self.store(Snapshot::after(
            &older,
            plan,
            exposure,
            catalog,
            Arc::default(),
            Servers::new(),
            Vec::new(),
        ));
    }
}

/// The names of the servers of which policy permits something.
fn known_servers(plan: &Plan, index: &Index, server_toolsets: &ServerToolsets) -> Vec<String> {
    let entries = index.entries().iter().map(|entry| &entry.tool.name);
    let permitted = entries.filter(|name| index.permits(name.as_str()));
    let with_tools: HashSet<&ServerName> = permitted.map(CanonicalName::server).collect();
    let is_known = |server: &&ServerName| {
        if index.has_server(server) {
            return with_tools.contains(server);
        }
        server_toolsets.may_be_named(server)
    };
    let all = plan.servers.iter().map(|server| &server.spec.name);
    all.filter(is_known).map(ServerName::to_string).collect()
}

fn are_same_offers(
    these: &[(ServerName, Arc<Offers>)],
    those: &[(ServerName, Arc<Offers>)],
) -> bool {
    these.len() == those.len()
        && these
            .iter()
            .zip(those)
            .all(|((name, offers), (other, others))| name == other && Arc::ptr_eq(offers, others))
}
