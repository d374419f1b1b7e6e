//! Checks the arguments of a call against the input schema of its tool, before anything is sent, and adds the arguments
//! that the configuration gives.

use serde_json::{Map, Value};
use switchboard_model::{ArgumentFault, ArgumentSource, ArgumentSpec, CallError, CallErrorKind};
use switchboard_protocol::{push_string, read_unique};
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

/// Checks the arguments of a call against the tool's input schema and returns them with those that the configuration
/// gives, as values and as the text for the server. For local tools, texts that read as numbers or booleans are
/// converted. An MCP server gets the original text and converts by itself.
pub(crate) fn check_arguments(
    compiled: &CompiledTool,
    tool: &CatalogTool,
    text: String,
) -> Result<(Map<String, Value>, String), RefusedArguments> {
    // Errors about arguments that are not a JSON object, or not JSON, do not quote them.
    let invalid = |reason: String| {
        let message = format!("the arguments of {} {reason}", described(tool));
        let fault = ArgumentFault { path: String::new(), message: reason.clone() };
        let error =
            CallError::new(CallErrorKind::InvalidArguments, message).with_faults(vec![fault]);
        Err(RefusedArguments { error, recorded: format!("the arguments {reason}") })
    };
    let arguments = match read_unique(&text) {
        Ok(arguments) => arguments,
        Err(error) => return invalid(format!("cannot be read: {error}")),
    };
    let declared = tool.arguments.as_deref().unwrap_or_default();
    let converted = match &arguments {
        Value::Object(members) => {
            refuse_hidden(tool, declared, members)?;
            if tool.validates_arguments { check_object(compiled, tool, &arguments)? } else { None }
        }
        _ => None,
    };
    let converted = converted.filter(|_| tool.name.server().is_local());
    match converted.unwrap_or(arguments) {
        Value::Object(arguments) => Ok(with_configured(declared, arguments, text)),
        other => invalid(format!("must be a JSON object, not {}", kind_of(&other))),
    }
}

/// Rejects arguments that only the configuration may give.
fn refuse_hidden(
    tool: &CatalogTool,
    declared: &[ArgumentSpec],
    members: &Map<String, Value>,
) -> Result<(), RefusedArguments> {
    let mut hidden = declared.iter().filter(|argument| !argument.is_shown());
    let Some(given) = hidden.find(|argument| members.contains_key(&argument.name)) else {
        return Ok(());
    };
    let reason = format!(
        "argument `{}` is set by the configuration and cannot be given; call the tool without it",
        given.name
    );
    let message = format!("the arguments of {} do not fit: {reason}", described(tool));
    let fault = ArgumentFault::of(&given.name, reason.clone());
    let error = CallError::new(CallErrorKind::InvalidArguments, message).with_faults(vec![fault]);
    Err(RefusedArguments { error, recorded: format!("the arguments do not fit: {reason}") })
}

/// Adds fixed values, and the declared defaults of arguments that the caller did not give. The caller's own text stays
/// as it is, so that the server gets numbers as they were written.
fn with_configured(
    declared: &[ArgumentSpec],
    mut arguments: Map<String, Value>,
    text: String,
) -> (Map<String, Value>, String) {
    let mut added = String::new();
    for argument in declared {
        let value = match &argument.source {
            ArgumentSource::Fixed(value) | ArgumentSource::HiddenDefault(value) => {
                Some(value.expose())
            }
            ArgumentSource::Caller if !arguments.contains_key(&argument.name) => {
                argument.default.as_ref()
            }
            ArgumentSource::Caller | ArgumentSource::Withheld => None,
        };
        let Some(value) = value else { continue };
        push_string(&mut added, &argument.name);
        added.push(':');
        added.push_str(&value.to_string());
        added.push(',');
        arguments.insert(argument.name.clone(), value.clone());
    }
    if added.is_empty() {
        return (arguments, text);
    }
    let own = text.trim_start().strip_prefix('{').unwrap_or("}");
    if own.trim_start().starts_with('}') {
        added.pop();
    }
    (arguments, format!("{{{added}{own}"))
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
        let fault = |complaint: &Complaint| ArgumentFault {
            path: complaint.path().to_owned(),
            message: complaint.to_string(),
        };
        let faults = complaints.iter().map(fault).collect();
        let complaints: Vec<_> = complaints.iter().map(ToString::to_string).collect();
        let message =
            format!("the arguments of {} do not fit: {}", described(tool), complaints.join("; "));
        let error = CallError::new(CallErrorKind::InvalidArguments, message).with_faults(faults);
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

#[cfg(test)]
mod tests {
    use serde_json::json;
    use switchboard_model::FixedValue;

    use super::*;

    fn declared() -> Vec<ArgumentSpec> {
        let fixed = ArgumentSource::Fixed(FixedValue::new(json!("k\"1")));
        vec![
            ArgumentSpec { source: fixed, ..ArgumentSpec::named("key") },
            ArgumentSpec { default: Some(json!([1])), ..ArgumentSpec::named("list") },
            ArgumentSpec { source: ArgumentSource::Withheld, ..ArgumentSpec::named("old") },
        ]
    }

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let arguments = serde_json::from_str(text).unwrap();
        let (arguments, sent) = with_configured(&declared(), arguments, text.to_owned());
        assert_eq!(sent, expected);
        assert_eq!(serde_json::from_str::<Map<String, Value>>(&sent).unwrap(), arguments);
    }

    #[test]
    fn configured_arguments_are_added_and_the_text_of_the_caller_stays() {
        check("{}", r#"{"key":"k\"1","list":[1]}"#);
        check(" { } ", r#"{"key":"k\"1","list":[1] } "#);
        check(r#"{"n": 1.50}"#, r#"{"key":"k\"1","list":[1],"n": 1.50}"#);
        check(r#"{"list":[]}"#, r#"{"key":"k\"1","list":[]}"#);
    }

    #[test]
    fn arguments_without_a_declaration_are_sent_as_they_came() {
        let (_, sent) = with_configured(&[], Map::new(), " {} ".into());
        assert_eq!(sent, " {} ");
    }
}
