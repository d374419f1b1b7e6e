//! `tool call`.

use std::io::Read;
use std::process::ExitCode;

use serde_json::{Map, Value};
use switchboard_api::{CallBody, CallView, SessionCallBody, SessionTool};

use crate::args::{Globals, ToolCallArguments};
use crate::backend::Backend;
use crate::failure::{EXIT_TOOL_ERROR, Failure};
use crate::output::Output;
use crate::session_backend::SessionBackend;

/// Maximum size of the arguments on standard input.
const MAX_STDIN_BYTES: u64 = 4 * 1024 * 1024;

pub(crate) async fn run(
    globals: &Globals,
    wanted: &ToolCallArguments,
    output: Output,
) -> Result<ExitCode, Failure> {
    // Errors on the command line are reported before any server is started.
    let given = given_arguments(wanted)?;
    if let Some(session) = &wanted.session {
        return Box::pin(call_in(globals, session, wanted, given, output)).await;
    }
    let backend = Backend::open_for_tool(globals, output, &wanted.name).await?;
    let called = async {
        let arguments = match given {
            GivenArguments::Whole(arguments) => arguments,
            GivenArguments::Pairs(pairs) => {
                let schema = match backend.tool(&wanted.name).await {
                    Ok(tool) => tool.input_schema,
                    // The call fails in the same way, and leaves a record.
                    Err(failure) if failure.kind() == "unknown_tool" => Value::Null,
                    Err(failure) => return Err(failure),
                };
                typed(pairs, &schema)
            }
        };
        backend.call(&wanted.name, CallBody { arguments, ..CallBody::default() }).await
    };
    // Dropping the future cancels the call at its server; it still leaves a record.
    let called = tokio::select! {
        called = called => Some(called),
        () = super::interrupted() => None,
    };
    backend.close().await;
    finish(called, output)
}

/// Calls the tool in a session.
async fn call_in(
    globals: &Globals,
    session: &str,
    wanted: &ToolCallArguments,
    given: GivenArguments,
    output: Output,
) -> Result<ExitCode, Failure> {
    let backend = SessionBackend::open(globals, output).await?;
    let called = async {
        let arguments = match given {
            GivenArguments::Whole(arguments) => arguments,
            GivenArguments::Pairs(pairs) => {
                let tools = backend.tools(session).await?.tools;
                let is_meant = |tool: &&SessionTool| {
                    [&tool.name, &tool.canonical_name].contains(&&wanted.name)
                };
                let schema = tools.iter().find(is_meant).map(|tool| tool.input_schema.clone());
                typed(pairs, &schema.unwrap_or_default())
            }
        };
        let body = SessionCallBody { arguments, provider: None };
        backend.call(session, &wanted.name, body).await
    };
    let called = tokio::select! {
        called = called => Some(called),
        () = super::interrupted() => None,
    };
    backend.close().await;
    finish(called, output)
}

fn finish(called: Option<Result<CallView, Failure>>, output: Output) -> Result<ExitCode, Failure> {
    let Some(called) = called else { return Ok(ExitCode::from(EXIT_INTERRUPTED)) };
    let call = called?;
    if output.is_json() {
        output.json(&call);
    } else {
        show(&call, output);
    }
    Ok(if call.outcome == "ok" { ExitCode::SUCCESS } else { ExitCode::from(EXIT_TOOL_ERROR) })
}

/// The exit code that shells use for a program that a signal ended.
const EXIT_INTERRUPTED: u8 = 130;

enum GivenArguments {
    Whole(Value),
    Pairs(Vec<(String, String)>),
}

fn given_arguments(wanted: &ToolCallArguments) -> Result<GivenArguments, Failure> {
    let text = match wanted.arguments.as_deref().or(wanted.parameters.as_deref()) {
        None => {
            let pairs = wanted.arg.iter().map(|pair| {
                let (name, value) = pair.split_once('=').ok_or_else(|| {
                    Failure::usage(format!("--arg {pair} is not of the form name=value"))
                })?;
                Ok((name.to_owned(), value.to_owned()))
            });
            return pairs.collect::<Result<_, _>>().map(GivenArguments::Pairs);
        }
        Some("-") => {
            let mut text = String::new();
            std::io::stdin()
                .take(MAX_STDIN_BYTES + 1)
                .read_to_string(&mut text)
                .map_err(|error| Failure::usage(format!("cannot read the arguments: {error}")))?;
            if text.len() as u64 > MAX_STDIN_BYTES {
                let message = format!("the arguments are larger than {MAX_STDIN_BYTES} bytes");
                return Err(Failure::usage(message));
            }
            text
        }
        Some(text) => text.to_owned(),
    };
    serde_json::from_str(&text).map(GivenArguments::Whole).map_err(|error| {
        Failure::usage(format!("the arguments are not JSON: {error}"))
            .with_hint(Some("write them as '{\"a\": 1}', or use --arg a=1".into()))
    })
}

/// Converts `a=1` to a number if the schema wants one, and keeps it as a string if the schema accepts strings.
fn typed(pairs: Vec<(String, String)>, schema: &Value) -> Value {
    let property = |name: &str| schema.get("properties")?.get(name);
    let is_text = |name: &str| property(name).is_some_and(may_be_text);
    let arguments: Map<_, _> = pairs
        .into_iter()
        .map(|(name, text)| {
            let value = match serde_json::from_str(&text) {
                Ok(value) if !is_text(&name) => value,
                _ => Value::String(text),
            };
            (name, value)
        })
        .collect();
    Value::Object(arguments)
}

/// Whether the schema accepts a string, possibly among other types.
fn may_be_text(property: &Value) -> bool {
    let names_text = |kind: &Value| kind == "string";
    let here = match property.get("type") {
        Some(Value::Array(kinds)) => kinds.iter().any(names_text),
        Some(kind) => names_text(kind),
        None => false,
    };
    let choices = ["anyOf", "oneOf"].into_iter().filter_map(|key| property.get(key)?.as_array());
    here || choices.flatten().any(may_be_text)
}

/// Prints text content as it is, and everything else as JSON.
fn show(call: &CallView, output: Output) {
    let content = call.result.get("content").and_then(Value::as_array);
    let mut has_text = false;
    for block in content.into_iter().flatten() {
        match block.get("text").and_then(Value::as_str) {
            Some(text) => {
                has_text = true;
                output.foreign(text);
            }
            None => output.foreign(&block.to_string()),
        }
    }
    if let Some(structured) = call.result.get("structuredContent").filter(|_| !has_text) {
        output.json(structured);
    }
    if call.outcome != "ok" {
        output.note(&format!("the tool {} answered with an error", call.tool));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn pairs_are_typed_by_the_schema() {
        let schema = json!({"properties": {
            "n": {"type": "number"},
            "s": {"type": "string"},
            "m": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "l": {"type": ["string", "null"]},
        }});
        let pairs = [
            ("n", "1"),
            ("s", "1"),
            ("m", "1"),
            ("l", "1"),
            ("o", "{\"a\":true}"),
            ("w", "plain words"),
        ];
        let pairs = pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
        assert_eq!(
            typed(pairs, &schema),
            json!({"n": 1, "s": "1", "m": "1", "l": "1", "o": {"a": true}, "w": "plain words"})
        );
    }
}
