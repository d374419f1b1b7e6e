//! Checks the arguments of a call against the input schema of its tool, before anything is sent.

use serde_json::{Map, Value};
use switchboard_model::{CallError, CallErrorKind};
use switchboard_protocol::read_unique;
use switchboard_registry::CatalogTool;
use switchboard_schema::{Complaint, kind_of};

use crate::call_errors::described;
use crate::snapshot::CompiledTool;

/// Arguments that do not fit the input schema.
#[derive(Debug)]
pub(crate) struct RefusedArguments {
    /// The error for the caller; its message may quote argument values.
    pub(crate) error: CallError,
    /// The reason as a call record keeps it: which argument breaks which rule of the schema. It never holds argument
    /// values, because these may be secrets.
    pub(crate) recorded: String,
}

/// Checks the arguments of a call against the tool's input schema and returns them. For local tools, texts that read as
/// numbers or booleans are converted. An MCP server gets the original text and converts by itself.
pub(crate) fn check_arguments(
    compiled: &CompiledTool,
    tool: &CatalogTool,
    text: &str,
) -> Result<Map<String, Value>, RefusedArguments> {
    // Errors about arguments that are not a JSON object, or not JSON, do not quote them.
    let invalid = |reason: String| {
        let message = format!("the arguments of {} {reason}", described(tool));
        let error = CallError::new(CallErrorKind::InvalidArguments, message);
        Err(RefusedArguments { error, recorded: format!("the arguments {reason}") })
    };
    let arguments = match read_unique(text) {
        Ok(arguments) => arguments,
        Err(error) => return invalid(format!("cannot be read: {error}")),
    };
    let converted =
        if arguments.is_object() { check_object(compiled, tool, &arguments)? } else { None };
    let converted = converted.filter(|_| tool.name.server().is_local());
    match converted.unwrap_or(arguments) {
        Value::Object(arguments) => Ok(arguments),
        other => invalid(format!("must be a JSON object, not {}", kind_of(&other))),
    }
}

fn check_object(
    compiled: &CompiledTool,
    tool: &CatalogTool,
    arguments: &Value,
) -> Result<Option<Value>, RefusedArguments> {
    let checker = match &compiled.checker {
        Ok(checker) => checker,
        // The schema cannot be compiled here. The server validates the arguments anyway.
        Err(fault) => {
            tracing::debug!(tool = %tool.name, %fault, "the input schema cannot be compiled; arguments are not checked");
            return Ok(None);
        }
    };
    // Models write `null` for an omitted argument. Where the schema does not allow null, it counts as absent here; the
    // server still gets the original text.
    let without_nulls = |complaints| {
        let mut kept = arguments.clone();
        let Some(members) = kept.as_object_mut() else { return Err(complaints) };
        let before = members.len();
        members.retain(|_, value| !value.is_null());
        if members.len() == before { Err(complaints) } else { checker.check(&kept) }
    };
    checker.check(arguments).or_else(without_nulls).map_err(|complaints| {
        let masked: Vec<_> = complaints.iter().map(Complaint::masked).collect();
        let recorded = format!("the arguments do not fit: {}", masked.join("; "));
        let complaints: Vec<_> = complaints.iter().map(ToString::to_string).collect();
        let message =
            format!("the arguments of {} do not fit: {}", described(tool), complaints.join("; "));
        let error = CallError::new(CallErrorKind::InvalidArguments, message);
        let error = match tool.owner {
            None => {
                let show = format!("`switchboard tool show {}` shows its schema", tool.name);
                error.with_operator_hint(show)
            }
            Some(_) => error,
        };
        RefusedArguments { error, recorded }
    })
}
