//! The published catalog, and what calling its tools takes.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Map, Value};
use switchboard_model::{CanonicalName, ServerName};
use switchboard_protocol::Mirrors;
use switchboard_registry::{Catalog, CatalogTool};
use switchboard_schema::{ArgumentChecker, SchemaFault};
use switchboard_telemetry::ToolMeter;

use crate::attachments::Attached;
use crate::supervisor::Server;

/// What calls of tools that belong to sessions are counted as: a name that anybody can make up is no label.
const OF_A_SESSION: &str = "@session";

/// One catalog and the servers behind it, swapped as one: a call that found its tool also finds its server,
/// whatever a reload does meanwhile.
#[derive(Debug, Default)]
pub(crate) struct Published {
    pub(crate) catalog: Arc<Catalog>,
    /// Those of the configuration and those that sessions brought.
    pub(crate) servers: HashMap<ServerName, Arc<Server>>,
    pub(crate) attached: Vec<Arc<Attached>>,
    checkers: HashMap<CanonicalName, Arc<LazyChecker>>,
}

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

impl Published {
    /// Joins a catalog with its servers; compiled schemas of unchanged tools are taken over from `older`.
    pub(crate) fn new(
        catalog: Arc<Catalog>,
        mut servers: HashMap<ServerName, Arc<Server>>,
        attached: Vec<Arc<Attached>>,
        older: &Self,
    ) -> Self {
        servers
            .extend(attached.iter().map(|it| (it.server.spec().name.clone(), it.server.clone())));
        let checkers = catalog
            .of_all_owners()
            .iter()
            .map(|tool| {
                let kept = older.checkers.get(&tool.name).filter(|_| older.has_schema_of(tool));
                (tool.name.clone(), kept.cloned().unwrap_or_default())
            })
            .collect();
        Self { catalog, servers, attached, checkers }
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
