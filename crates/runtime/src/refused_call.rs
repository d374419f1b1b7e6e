//! Calls that a face rejects because the name does not resolve to a tool that the caller may call.

use std::sync::Arc;

use switchboard_model::{CallError, CallId, Caller};
use switchboard_registry::CatalogTool;

use crate::board::Board;
use crate::call_accounting::CallAccounting;

/// A call that a face refused before it gave the call to the board, for the record of calls.
#[derive(Debug)]
pub struct RefusedCall<'a> {
    /// The name that the caller used.
    pub requested: &'a str,
    /// The tool of that name, if the caller may know that it exists.
    pub tool: Option<&'a CatalogTool>,
    /// The text of a JSON object; `null` counts as an empty one. Kept as a digest, and as it is where the tool's `record.arguments` is set.
    pub arguments: &'a str,
    pub caller: Arc<Caller>,
    /// The error for the caller.
    pub error: &'a CallError,
}

impl Board {
    /// Records a rejected call, in the same way as a call with invalid arguments. The requested name never becomes a
    /// metric label: only a tool of the catalog is counted.
    pub async fn record_refused(&self, refused: RefusedCall<'_>) -> CallId {
        let published = self.published.load_full();
        let RefusedCall { requested, tool, arguments, caller, error } = refused;
        let arguments = if arguments == "null" { "{}" } else { arguments };
        let mut accounting = CallAccounting::open(self, requested, arguments, caller, &published);
        if let Some(tool) = tool {
            accounting.resolved(tool, arguments);
        }
        // The caller may have seen an earlier version of the tool, whose schema must not be compiled.
        let now = |tool: &CatalogTool| {
            published.catalog().exactly_for(tool.owner.as_deref(), &tool.name).ok()
        };
        let compiled = tool.and_then(now).and_then(|tool| published.compiled(tool));
        accounting.meter = compiled.map(|compiled| compiled.meter.clone());
        accounting.close(Err(error.clone().into())).await.id
    }
}
