//! Compiled schemas of tools. A schema is compiled by the first call that needs it.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use http::{HeaderName, HeaderValue};
use serde_json::{Map, Value};
use switchboard_model::CanonicalName;
use switchboard_protocol::Mirrors;
use switchboard_registry::{Catalog, CatalogTool};
use switchboard_schema::{ArgumentChecker, SchemaFault};
use switchboard_telemetry::ToolMeter;

/// The metric label of all tools of attached servers: callers choose their names, so the names must not become labels.
const OF_A_SESSION: &str = "@session";

/// The precomputed data that a call of a tool needs.
#[derive(Debug)]
pub(crate) struct CompiledTool {
    pub(crate) checker: Result<ArgumentChecker, SchemaFault>,
    pub(super) mirrors: Mirrors,
    pub(crate) meter: Arc<ToolMeter>,
}

impl CompiledTool {
    fn of(tool: &CatalogTool) -> Self {
        let schema = tool.descriptor.input_schema.parse();
        Self {
            checker: ArgumentChecker::compile(&schema),
            // Tools of HTTP servers with invalid header annotations were already removed from their list. The server's
            // own schema decides: the header of a fixed argument is sent, too.
            mirrors: Mirrors::of_schema(&tool.server_schema().parse()).unwrap_or_default(),
            meter: Arc::new(match tool.owner {
                None => ToolMeter::new(tool.name.server().as_str(), tool.name.tool()),
                Some(_) => ToolMeter::new(OF_A_SESSION, OF_A_SESSION),
            }),
        }
    }

    /// The HTTP headers that repeat arguments of this call, if the tool's schema requires some.
    pub(crate) fn mirrored(
        &self,
        arguments: &Map<String, Value>,
    ) -> Vec<(HeaderName, HeaderValue)> {
        if self.mirrors.is_empty() { Vec::new() } else { self.mirrors.headers(arguments) }
    }
}

/// The compiled tools of one catalog. Most tools are never called and never compiled.
#[derive(Debug, Default)]
pub(super) struct CompiledTools(HashMap<CanonicalName, Arc<OnceLock<CompiledTool>>>);

impl CompiledTools {
    /// The compiled tools of `catalog`. Tools with the same schema as in `older_catalog` reuse the result in `older`.
    pub(super) fn after(older: &Self, older_catalog: &Catalog, catalog: &Catalog) -> Self {
        let has_same_schema = |tool: &CatalogTool| {
            older_catalog.exactly_for(tool.owner.as_deref(), &tool.name).is_ok_and(|old| {
                old.descriptor.input_schema == tool.descriptor.input_schema
                    && old.server_schema() == tool.server_schema()
            })
        };
        let tools = catalog.of_all_owners().iter();
        let compiled = tools.map(|tool| {
            let kept = older.0.get(&tool.name).filter(|_| has_same_schema(tool));
            (tool.name.clone(), kept.cloned().unwrap_or_default())
        });
        Self(compiled.collect())
    }

    pub(super) fn get(&self, tool: &CatalogTool) -> Option<&CompiledTool> {
        Some(self.0.get(&tool.name)?.get_or_init(|| CompiledTool::of(tool)))
    }
}
