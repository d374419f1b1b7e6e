//! Observations of ReACT turns: the events of its steps, and what a model is told about a call that was not made.

use serde_json::Value;
use switchboard_chat::{Part, TurnEvent};
use switchboard_model::CallErrorKind;
use switchboard_render::Rendering;

use crate::calling::Called;

/// Maximum number of tools that an observation names.
const MAX_NAMED: usize = 40;

/// The step that an event stands for in a ReACT turn.
pub(crate) fn step_of(event: &TurnEvent) -> Option<TurnEvent> {
    match event {
        TurnEvent::ToolCall { id, name, arguments } => Some(TurnEvent::Action {
            id: id.clone(),
            name: name.clone(),
            arguments: arguments.clone(),
        }),
        TurnEvent::ToolResult { id, is_error, content, structured, .. } => {
            let texts = content.iter().filter_map(|part| match part {
                Part::Text { text } => Some(text.as_str()),
                Part::Image(_) | Part::File { .. } => None,
            });
            let text = match structured {
                Some(structured) => structured.to_string(),
                None => texts.collect::<Vec<_>>().join("\n"),
            };
            Some(TurnEvent::Observation { id: Some(id.clone()), is_error: *is_error, text })
        }
        _ => None,
    }
}

/// Adds to the result of a call that was not made how to make it: the tools that there are, or the arguments that the
/// tool takes. A model without native tool calls has no schema that it could look at.
pub(crate) fn add_way_out(called: &mut Called, listed: &Rendering) {
    let Some(refusal) = called.refusal else { return };
    let way_out = match refusal {
        CallErrorKind::UnknownTool if listed.tool(&called.result.name).is_none() => {
            available(listed)
        }
        CallErrorKind::InvalidArguments => usage(listed, &called.result.name),
        _ => None,
    };
    if let Some(way_out) = way_out {
        called.result.content.push(Part::text(way_out));
    }
}

fn available(listed: &Rendering) -> Option<String> {
    let names: Vec<_> = listed.tools.iter().map(|tool| &*tool.name).take(MAX_NAMED).collect();
    let more = listed.tools.len().saturating_sub(MAX_NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    (!names.is_empty()).then(|| {
        format!(
            "Use one of these, by its exact name: {}{more}. Nothing was called.",
            names.join(", ")
        )
    })
}

fn usage(listed: &Rendering, name: &str) -> Option<String> {
    let entry: Value = serde_json::from_str(&listed.tool(name)?.json).ok()?;
    let argument = |argument: &Value| {
        let text = |key: &str| argument[key].as_str().unwrap_or_default().to_owned();
        let need = if argument["required"] == true { "required" } else { "optional" };
        format!("{} ({}, {need})", text("name"), text("type"))
    };
    let arguments: Vec<_> = entry["arguments"].as_array()?.iter().map(argument).collect();
    Some(if arguments.is_empty() {
        format!("{name} takes no arguments: write `Args: {{}}`. Nothing was called.")
    } else {
        format!(
            "The arguments of {name} are: {}. Correct `Args:` and try again. Nothing was called.",
            arguments.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use serde_json::json;
    use switchboard_chat::{ToolCall, ToolReturn};
    use switchboard_model::{JsonText, ToolDescriptor};
    use switchboard_render::{NamedTool, Provider};

    use super::*;

    fn listed(names: &[String]) -> Rendering {
        let schema = json!({"type": "object", "required": ["a"], "properties": {"a": {"type": "number"}, "b": {"type": "string"}}});
        let tool = |name: &String| ToolDescriptor {
            input_schema: JsonText::from(&schema),
            ..ToolDescriptor::named(name)
        };
        let mut tools: Vec<_> = names.iter().map(tool).collect();
        tools.push(ToolDescriptor::named("bare"));
        let tools = tools.iter().map(|descriptor| NamedTool { name: &descriptor.name, descriptor });
        Rendering::new(Provider::React, tools)
    }

    #[track_caller]
    fn check(name: &str, refusal: Option<CallErrorKind>, tools: usize, expected: &str) {
        let call = ToolCall {
            id: "c".into(),
            name: name.into(),
            arguments: json!({}),
            unreadable: None,
            origin: None,
            opaque: None,
        };
        let result = ToolReturn::failed(&call, "no");
        let mut called = Called { result, has_switched: false, state: None, refusal };
        let names: Vec<_> = (0..tools).map(|at| format!("tool_{at}")).collect();
        add_way_out(&mut called, &listed(&names));
        let text = called.result.content.into_iter().skip(1).map(|part| match part {
            Part::Text { text } => text,
            part => format!("{part:?}"),
        });
        assert_eq!(text.collect::<String>(), expected);
    }

    #[test]
    fn a_call_that_was_not_made_is_answered_with_the_way_to_make_it() {
        let unknown = Some(CallErrorKind::UnknownTool);
        check(
            "nope",
            unknown,
            1,
            "Use one of these, by its exact name: tool_0, bare. Nothing was called.",
        );
        let invalid = Some(CallErrorKind::InvalidArguments);
        check(
            "tool_0",
            invalid,
            1,
            "The arguments of tool_0 are: a (number, required), b (string, optional). Correct `Args:` and try again. Nothing was called.",
        );
        check("bare", invalid, 1, "bare takes no arguments: write `Args: {}`. Nothing was called.");
        check("tool_0", None, 1, "");
        check("tool_0", Some(CallErrorKind::Timeout), 1, "");
    }

    #[test]
    fn the_names_of_many_tools_are_cut() {
        let names: Vec<_> = (0..99).map(|at| format!("t{at}")).collect();
        let text = available(&listed(&names)).unwrap();
        assert!(text.ends_with("t39 and 60 more. Nothing was called."), "{text}");
    }
}
