//! Everything that a request decides by, published as one immutable value.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Map, Value};
use switchboard_model::{CanonicalName, Plan, ServerName};
use switchboard_protocol::Mirrors;
use switchboard_registry::{Catalog, CatalogTool};
use switchboard_schema::{ArgumentChecker, SchemaFault};
use switchboard_telemetry::ToolMeter;

use crate::attachments::Attached;
use crate::conductor::Servers;
use crate::offers::Offers;
use crate::supervisor::Server;

/// What calls of tools that belong to sessions are counted as: a name that anybody can make up is no label.
const OF_A_SESSION: &str = "@session";

/// The configuration in force, the catalog that was admitted under it, and the servers behind both.
///
/// The conductor makes one for each change and publishes it in one step. A request that loads it once never sees the
/// policy of one configuration with the tools of another, and a call that found its tool also finds its server.
#[derive(Debug, Default)]
pub struct Snapshot {
    version: u64,
    plan: Arc<Plan>,
    catalog: Arc<Catalog>,
    offers: Vec<(ServerName, Arc<Offers>)>,
    /// Those of the configuration and those that sessions attached.
    pub(crate) servers: Servers,
    pub(crate) attached: Vec<Arc<Attached>>,
    checkers: Arc<Checkers>,
}

type Checkers = HashMap<CanonicalName, Arc<LazyChecker>>;

/// A schema that is compiled when the first call wants it. Most tools are never called.
#[derive(Debug, Default)]
struct LazyChecker(OnceLock<Compiled>);

/// What calling a tool takes, once it has been called.
#[derive(Debug)]
pub(crate) struct Compiled {
    pub(crate) checker: Result<ArgumentChecker, SchemaFault>,
    mirrors: Mirrors,
    pub(crate) meter: Arc<ToolMeter>,
}

impl Compiled {
    fn of(tool: &CatalogTool) -> Self {
        let schema = tool.descriptor.input_schema.parse();
        Self {
            checker: ArgumentChecker::compile(&schema),
            // Tools of HTTP servers with unusable annotations were left out of their list.
            mirrors: Mirrors::of_schema(&schema).unwrap_or_default(),
            meter: Arc::new(match tool.owner {
                None => ToolMeter::new(tool.name.server().as_str(), tool.name.tool()),
                Some(_) => ToolMeter::new(OF_A_SESSION, OF_A_SESSION),
            }),
        }
    }

    /// The headers that repeat arguments of this call, where the tool's schema asks for some.
    pub(crate) fn mirrored(
        &self,
        arguments: &Map<String, Value>,
    ) -> Vec<(HeaderName, HeaderValue)> {
        if self.mirrors.is_empty() { Vec::new() } else { self.mirrors.headers(arguments) }
    }
}

impl Snapshot {
    /// The snapshot that follows `older`; compiled schemas of unchanged tools are taken over. `servers` are those of
    /// the plan.
    pub(crate) fn after(
        older: &Self,
        plan: Arc<Plan>,
        catalog: Arc<Catalog>,
        mut servers: Servers,
        attached: Vec<Arc<Attached>>,
    ) -> Self {
        let names = plan.servers.iter().map(|server| &server.spec.name);
        let offers: Vec<_> =
            names.filter_map(|name| Some((name.clone(), servers.get(name)?.offers()))).collect();
        servers
            .extend(attached.iter().map(|it| (it.server.spec().name.clone(), it.server.clone())));
        let checkers = if Arc::ptr_eq(&older.catalog, &catalog) {
            older.checkers.clone()
        } else {
            Arc::new(checkers(&catalog, older))
        };
        let is_same_content = Arc::ptr_eq(&older.plan, &plan)
            && Arc::ptr_eq(&older.catalog, &catalog)
            && are_same_offers(&older.offers, &offers);
        let version = older.version + u64::from(!is_same_content);
        Self { version, plan, catalog, offers, servers, attached, checkers }
    }

    /// Grows with each change of the plan, the catalog or the offers. Two snapshots of one version differ at most in
    /// connections and in attached servers whose tools are not known yet.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The configuration.
    pub fn plan(&self) -> &Arc<Plan> {
        &self.plan
    }

    /// The tools that were admitted under the configuration.
    pub fn catalog(&self) -> &Arc<Catalog> {
        &self.catalog
    }

    /// What each server offers besides tools, in the order of the configuration.
    pub fn offers(&self) -> &[(ServerName, Arc<Offers>)] {
        &self.offers
    }

    /// Whether a caller of `older` would see the same and reach the same servers.
    pub(crate) fn is_same(&self, older: &Self) -> bool {
        let has_server = |(name, server): (&ServerName, &Arc<Server>)| {
            older.servers.get(name).is_some_and(|old| Arc::ptr_eq(old, server))
        };
        self.version == older.version
            && self.servers.len() == older.servers.len()
            && self.servers.iter().all(has_server)
            && self.attached.len() == older.attached.len()
            && self.attached.iter().zip(&older.attached).all(|(new, old)| Arc::ptr_eq(new, old))
    }

    /// A server of the configuration.
    pub(crate) fn shared_server(&self, name: &ServerName) -> Option<Arc<Server>> {
        self.servers.get(name).filter(|_| !name.is_attached()).cloned()
    }

    /// A server of the configuration, or one that this session brought.
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

    /// What calling a tool of this catalog takes. Looked up once for each call.
    pub(crate) fn compiled(&self, tool: &CatalogTool) -> Option<&Compiled> {
        Some(self.checkers.get(&tool.name)?.0.get_or_init(|| Compiled::of(tool)))
    }

    /// Whether headers say what the arguments say, where the tool's schema asks for it.
    pub(crate) fn check_mirrors(
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

    fn has_schema_of(&self, tool: &CatalogTool) -> bool {
        self.catalog
            .exactly_for(tool.owner.as_deref(), &tool.name)
            .is_ok_and(|old| old.descriptor.input_schema == tool.descriptor.input_schema)
    }
}

fn checkers(catalog: &Catalog, older: &Snapshot) -> Checkers {
    let tools = catalog.of_all_owners().iter();
    tools
        .map(|tool| {
            let kept = older.checkers.get(&tool.name).filter(|_| older.has_schema_of(tool));
            (tool.name.clone(), kept.cloned().unwrap_or_default())
        })
        .collect()
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
