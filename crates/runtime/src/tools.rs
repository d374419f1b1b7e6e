//! The published catalog, and what calling its tools takes.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use switchboard_model::{CanonicalName, ServerName};
use switchboard_registry::{Catalog, CatalogTool};
use switchboard_schema::{ArgumentChecker, SchemaFault};

use crate::supervisor::Server;

/// One catalog and the servers behind it, swapped as one: a call that found its tool also finds its server,
/// whatever a reload does meanwhile.
#[derive(Debug, Default)]
pub(crate) struct Published {
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) servers: HashMap<ServerName, Arc<Server>>,
    checkers: HashMap<CanonicalName, Arc<LazyChecker>>,
}

/// A schema that is compiled when the first call wants it. Most tools are never called.
#[derive(Debug, Default)]
struct LazyChecker(OnceLock<Result<ArgumentChecker, SchemaFault>>);

impl Published {
    /// Joins a catalog with its servers; compiled schemas of unchanged tools are taken over from `older`.
    pub(crate) fn new(
        catalog: Arc<Catalog>,
        servers: HashMap<ServerName, Arc<Server>>,
        older: &Self,
    ) -> Self {
        let checkers = catalog
            .tools()
            .iter()
            .map(|tool| {
                let kept = older.checkers.get(&tool.name).filter(|_| older.has_schema_of(tool));
                (tool.name.clone(), kept.cloned().unwrap_or_default())
            })
            .collect();
        Self { catalog, servers, checkers }
    }

    /// The compiled schema of a tool, or why it cannot be used.
    pub(crate) fn checker(&self, tool: &CatalogTool) -> Result<&ArgumentChecker, SchemaFault> {
        let Some(lazy) = self.checkers.get(&tool.name) else {
            return Err(SchemaFault::Invalid("the tool is not in this catalog".into()));
        };
        lazy.0
            .get_or_init(|| ArgumentChecker::compile(&tool.descriptor.input_schema.parse()))
            .as_ref()
            .map_err(Clone::clone)
    }

    fn has_schema_of(&self, tool: &CatalogTool) -> bool {
        self.catalog
            .resolve(tool.name.as_str())
            .is_ok_and(|old| old.descriptor.input_schema == tool.descriptor.input_schema)
    }
}
