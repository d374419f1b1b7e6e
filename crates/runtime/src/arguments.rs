//! The arguments of a call against the schema of its tool, before anything is sent.

use serde_json::{Map, Value};
use switchboard_model::{CallError, CallErrorKind};
use switchboard_protocol::read_unique;
use switchboard_registry::CatalogTool;
use switchboard_schema::{Complaint, kind_of};

use crate::call_errors::described;
use crate::snapshot::CompiledTool;

/// Arguments that are refused.
#[derive(Debug)]
pub(crate) struct RefusedArguments {
    /// What the caller is told; may quote arguments.
    pub(crate) error: CallError,
    /// What a record, which has the tool, keeps of it: which argument, and which rule of the schema. Values of arguments
    /// may be secrets.
    pub(crate) recorded: String,
}

/// The arguments of a call that fits: as they were written, and for local tools with texts that read as numbers or
/// booleans converted. A server gets what was written, and converts by itself.
pub(crate) fn check_arguments(
    compiled: &CompiledTool,
    tool: &CatalogTool,
    text: &str,
) -> Result<Map<String, Value>, RefusedArguments> {
    // Nothing that is said of arguments which are no object, or no JSON, quotes them.
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
        // The server has the last word anyway; what cannot be checked here is checked there.
        Err(fault) => {
            tracing::debug!(tool = %tool.name, %fault, "arguments go unchecked");
            return Ok(None);
        }
    };
    // Models write `null` for what they leave out, where the schema has no null: it counts as absent. The server gets
    // what was written.
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
