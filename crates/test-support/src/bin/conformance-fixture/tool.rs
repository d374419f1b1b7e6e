//! The behaviour of each tool and prompt of the suite, one round at a time.

use std::collections::BTreeMap;

use rmcp::model::ClientCapabilities;
use serde_json::{Map, Value, json};

use crate::listing::{AUDIO, IMAGE};

/// The input of one round of a call.
#[derive(Debug)]
pub(crate) struct Round<'a> {
    pub(crate) name: &'a str,
    pub(crate) arguments: &'a Map<String, Value>,
    /// Answers to the requests of an earlier round.
    pub(crate) answers: &'a BTreeMap<String, Value>,
    /// State that an earlier round returned.
    pub(crate) state: Option<Value>,
    pub(crate) capabilities: &'a ClientCapabilities,
}

#[derive(Debug)]
pub(crate) enum Step {
    /// The result in its wire format.
    Done(Value),
    /// Requests by key that the client must answer first.
    UpstreamRequest {
        requests: Value,
        state: Option<Value>,
    },
    Unknown,
}

pub(crate) fn step(round: &Round<'_>) -> Step {
    match fixed(round.name) {
        Some(result) => Step::Done(result),
        None => asking(round),
    }
}

/// Tools with a fixed result.
fn fixed(name: &str) -> Option<Value> {
    let image = json!({"type": "image", "data": IMAGE, "mimeType": "image/png"});
    let content = match name {
        "test_simple_text" => text("This is a simple text response for testing."),
        "test_image_content" => image,
        "test_audio_content" => json!({"type": "audio", "data": AUDIO, "mimeType": "audio/wav"}),
        "test_embedded_resource" => embedded(
            "test://embedded-resource",
            "text/plain",
            "This is an embedded resource content.",
        ),
        "test_multiple_content_types" => {
            let data = r#"{"test":"data","value":123}"#;
            let resource = embedded("test://mixed-content-resource", "application/json", data);
            return Some(
                json!({"content": [text("Multiple content types test:"), image, resource]}),
            );
        }
        "test_error_handling" => {
            let message = text("This tool intentionally returns an error for testing");
            return Some(json!({"isError": true, "content": [message]}));
        }
        "test_tool_with_logging" | "test_logging_tool" => text("Logged."),
        "test_tool_with_progress" => text("Progressed."),
        "test_reconnection" => text("Still here."),
        "test_trigger_tool_change" | "test_trigger_prompt_change" => text("The list changed."),
        "test_trigger_resource_update" => text("The watched resource was updated."),
        "json_schema_2020_12_tool" | "test_custom_header" => text("Accepted."),
        "test_impatient_question" => text("It did not matter."),
        "test_dynamic_tool" => text("I come and go."),
        _ => return None,
    };
    Some(json!({"content": [content]}))
}

/// Tools that need input from the client.
fn asking(round: &Round<'_>) -> Step {
    let argument = |key: &str| round.arguments.get(key).and_then(Value::as_str).unwrap_or_default();
    match round.name {
        "greet" => said(format!("Hello, {}!", argument("name"))),
        "test_sampling" => one(round, "completion", &sampling(argument("prompt"), 100)),
        "test_missing_capability" => one(round, "completion", &sampling("Anything", 10)),
        "test_input_required_result_sampling" => {
            one(round, "capital_question", &sampling("What is the capital of France?", 100))
        }
        "test_elicitation" => one(round, "user", &form(argument("message"), &user_schema())),
        "test_url_elicitation" | "test_withdrawn_question" => one(round, "page", &page("e-1")),
        "test_elicitation_sep1034_defaults" => {
            one(round, "profile", &form("Please check your profile", &default_schema()))
        }
        "test_elicitation_sep1330_enums" => {
            one(round, "choices", &form("Please choose", &enum_schema()))
        }
        "test_streaming_elicitation"
        | "test_input_required_result_elicitation"
        | "test_tool_with_task" => {
            one(round, "user_name", &form("What is your name?", &string_schema("name")))
        }
        "test_input_required_result_prompt" => {
            let question = form("What context should the prompt use?", &string_schema("context"));
            one(round, "user_context", &question)
        }
        "test_input_required_result_list_roots" => one(round, "client_roots", &roots()),
        "test_input_required_result_request_state"
        | "test_input_required_result_tampered_state" => confirmed(round),
        "test_input_required_result_multiple_inputs" => all_kinds(round),
        "test_input_required_result_multi_round" => two_questions(round),
        "test_input_required_result_capabilities" => what_is_possible(round),
        _ => Step::Unknown,
    }
}

/// Sends one request and returns its answer as text.
fn one(round: &Round<'_>, key: &str, request: &Value) -> Step {
    match round.answers.get(key).filter(|answer| answer.is_object()) {
        Some(answer) => said(format!("The client answered: {answer}")),
        None => Step::UpstreamRequest { requests: json!({ key: request }), state: None },
    }
}

/// Accepts the answer only together with the state that was returned with the request.
fn confirmed(round: &Round<'_>) -> Step {
    let expected = json!({"waits_for": "confirm"});
    if round.answers.contains_key("confirm") && round.state.as_ref() == Some(&expected) {
        return said("state-ok");
    }
    Step::UpstreamRequest {
        requests: json!({"confirm": confirmation("Please confirm")}),
        state: Some(expected),
    }
}

/// A yes-or-no question.
pub(crate) fn confirmation(message: &str) -> Value {
    form(message, &object(&json!({"ok": {"type": "boolean"}}), &["ok"]))
}

fn all_kinds(round: &Round<'_>) -> Step {
    let requests = json!({
        "user_name": form("What is your name?", &string_schema("name")),
        "greeting": sampling("Generate a greeting", 50),
        "client_roots": roots(),
    });
    let answered = ["user_name", "greeting", "client_roots"].map(|key| round.answers.get(key));
    match answered {
        [Some(name), Some(greeting), Some(roots)] => said(format!("{greeting} {name} {roots}")),
        _ => Step::UpstreamRequest { requests, state: Some(json!({"waits_for": "all"})) },
    }
}

fn two_questions(round: &Round<'_>) -> Step {
    let first = round.state.as_ref().and_then(|state| state.get("name")).cloned();
    match (first, round.answers.get("step1"), round.answers.get("step2")) {
        (Some(name), _, Some(color)) => said(format!("{name} likes {color}")),
        (None, Some(name), _) => {
            let question = form("Step 2: What is your favorite color?", &string_schema("color"));
            Step::UpstreamRequest {
                requests: json!({"step2": question}),
                state: Some(json!({"name": name})),
            }
        }
        _ => {
            let question = form("Step 1: What is your name?", &string_schema("name"));
            Step::UpstreamRequest {
                requests: json!({"step1": question}),
                state: Some(json!({"round": 1})),
            }
        }
    }
}

/// Sends only requests that the client's capabilities allow.
fn what_is_possible(round: &Round<'_>) -> Step {
    if round.capabilities.sampling.is_some() {
        one(round, "draft", &sampling("Write a draft", 50))
    } else if round.capabilities.elicitation.is_some() {
        one(round, "name", &form("What is your name?", &string_schema("name")))
    } else {
        said("There is nothing that this client could answer.")
    }
}

fn said(message: impl Into<String>) -> Step {
    Step::Done(json!({"content": [text(message)]}))
}

pub(crate) fn text(message: impl Into<String>) -> Value {
    json!({"type": "text", "text": message.into()})
}

fn embedded(uri: &str, mime_type: &str, content: &str) -> Value {
    json!({"type": "resource", "resource": {"uri": uri, "mimeType": mime_type, "text": content}})
}

fn form(message: &str, schema: &Value) -> Value {
    let params = json!({"mode": "form", "message": message, "requestedSchema": schema});
    json!({"method": "elicitation/create", "params": params})
}

pub(crate) fn page(id: &str) -> Value {
    let url = "https://example.com/sign-in";
    let params =
        json!({"mode": "url", "message": "Please sign in", "url": url, "elicitationId": id});
    json!({"method": "elicitation/create", "params": params})
}

fn sampling(prompt: &str, max_tokens: u32) -> Value {
    let messages = json!([{"role": "user", "content": text(prompt)}]);
    let params = json!({"messages": messages, "maxTokens": max_tokens});
    json!({"method": "sampling/createMessage", "params": params})
}

fn roots() -> Value {
    json!({"method": "roots/list", "params": {}})
}

fn object(properties: &Value, required: &[&str]) -> Value {
    json!({"type": "object", "properties": properties, "required": required})
}

fn string_schema(name: &str) -> Value {
    object(&json!({ name: {"type": "string"} }), &[name])
}

fn user_schema() -> Value {
    let properties = json!({
        "username": {"type": "string", "description": "User's response"},
        "email": {"type": "string", "description": "User's email address"},
    });
    object(&properties, &["username", "email"])
}

/// A schema with a default for each primitive type.
fn default_schema() -> Value {
    let status = ["active", "inactive", "pending"];
    let properties = json!({
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": status, "default": "active"},
        "verified": {"type": "boolean", "default": true},
    });
    object(&properties, &[])
}

/// A schema with all five notations of a choice.
fn enum_schema() -> Value {
    let options = ["option1", "option2", "option3"];
    let titled = |kind: &str| {
        json!([
            {"const": "value1", "title": format!("First {kind}")},
            {"const": "value2", "title": format!("Second {kind}")},
            {"const": "value3", "title": format!("Third {kind}")},
        ])
    };
    let names = ["Option One", "Option Two", "Option Three"];
    let properties = json!({
        "untitledSingle": {"type": "string", "enum": options},
        "titledSingle": {"type": "string", "oneOf": titled("Option")},
        "legacyEnum": {"type": "string", "enum": ["opt1", "opt2", "opt3"], "enumNames": names},
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": options}},
        "titledMulti": {"type": "array", "items": {"anyOf": titled("Choice")}},
    });
    object(&properties, &[])
}
