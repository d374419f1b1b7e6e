//! Every violation is detected, and requests of real clients cause none.

use serde_json::{Value, json};

use super::backend::Backend;
use super::findings::Findings;
use super::heard::EventReceiver;
use super::step::{Step, pieces};
use super::{
    anthropic_check, chat_check, code_assist, gemini_check, responses_check, responses_events,
    seal, state::Ids,
};

const ACCOUNT: &str = "account";

/// Changes a valid request: sets the value at a JSON pointer, which may be one past the end of a list.
fn with(mut body: Value, pointer: &str, value: Value) -> Value {
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    match body.pointer_mut(parent).unwrap() {
        Value::Array(values) => {
            let place: usize = key.parse().unwrap();
            if place == values.len() {
                values.push(value);
            } else {
                values[place] = value;
            }
        }
        other => other[key] = value,
    }
    body
}

fn without(mut body: Value, pointer: &str) -> Value {
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    match body.pointer_mut(parent).unwrap() {
        Value::Array(values) => {
            values.remove(key.parse::<usize>().unwrap());
        }
        other => {
            other.as_object_mut().unwrap().shift_remove(key);
        }
    }
    body
}

/// One case: an invalid request, the rule, and a part of the error message.
type Row = (Value, &'static str, &'static str);

fn check_rows(check: impl Fn(&Value, &mut Findings) -> EventReceiver, good: &Value, rows: &[Row]) {
    let found = |body: &Value| {
        let mut findings = Findings::default();
        check(body, &mut findings);
        findings
    };
    let complaint = found(good);
    assert!(complaint.first().is_none(), "the good request: {complaint:?}");
    for (number, (body, rule, words)) in rows.iter().enumerate() {
        let findings = found(body);
        assert!(findings.rules().contains(rule), "row {number} ({rule}): {findings:?}");
        let mut said = findings.violations(Backend::Chat).filter(|found| found.rule == *rule);
        assert!(
            said.any(|found| found.message.contains(words)),
            "row {number} ({words}): {findings:?}"
        );
    }
}

fn object() -> Value {
    json!({"type": "object", "properties": {"q": {"type": "string"}}})
}

fn long(count: usize) -> String {
    "x".repeat(count)
}

fn responses_request() -> Value {
    json!({
        "model": "gpt-5.5", "stream": true, "store": false, "instructions": "be brief",
        "include": ["reasoning.encrypted_content"],
        "tools": [
            {"type": "function", "name": "search", "parameters": object(), "strict": false},
            {"type": "namespace", "name": "ns", "description": "", "tools": [
                {"type": "function", "name": "inner", "parameters": object(), "strict": false},
            ]},
        ],
        "input": [
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]},
            {"type": "function_call", "call_id": "c1", "name": "search", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c1", "output": "fine"},
        ],
    })
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn responses_finds_what_is_wrong() {
    let good = responses_request;
    let call = |id: &str| json!({"type": "function_call", "call_id": id, "name": "search", "arguments": "{}"});
    let output = |id: &str, output: Value| json!({"type": "function_call_output", "call_id": id, "output": output});
    let tool = |name: &str| json!({"type": "function", "name": name, "parameters": object()});
    let schema = |schema: Value| json!({"type": "function", "name": "s", "parameters": schema});
    let many: Vec<Value> = (0..129).map(|number| tool(&format!("t{number}"))).collect();
    let rows = [
        (without(good(), "/model"), "missing_required_parameter", "'model'"),
        (without(good(), "/input"), "missing_required_parameter", "'input'"),
        (with(good(), "/tools/0", tool("a.b")), "invalid_value", "does not match pattern"),
        (with(good(), "/tools/0", tool(&long(65))), "string_above_max_length", "64"),
        (with(good(), "/tools/2", tool("search")), "duplicate_tool", "search"),
        (with(good(), "/tools", json!(many)), "array_above_max_length", "129"),
        (with(good(), "/tools/2", json!({"type": "nonsense"})), "invalid_value", "nonsense"),
        (
            with(good(), "/tools/2", schema(json!({"type": "string"}))),
            "invalid_function_parameters",
            "'type: \"object\"'",
        ),
        (
            with(good(), "/tools/2", schema(json!({"type": "object"}))),
            "invalid_function_parameters",
            "missing properties",
        ),
        (
            with(
                good(),
                "/tools/2",
                schema(json!({"type": "object", "properties": {}, "anyOf": []})),
            ),
            "invalid_function_parameters",
            "top level",
        ),
        (
            with(
                good(),
                "/tools/2",
                schema(json!({"type": "object", "properties": {"a": {"type": "array"}}})),
            ),
            "invalid_function_parameters",
            "missing items",
        ),
        (
            without(good(), "/input/2"),
            "call_without_output",
            "No tool output found for function call c1",
        ),
        (
            without(good(), "/input/1"),
            "output_without_call",
            "No tool call found for function call output with call_id c1",
        ),
        (with(good(), "/input/3", output("c1", json!("again"))), "duplicate_output", "c1"),
        (with(good(), "/input/3", call("c1")), "duplicate_call", "c1"),
        (with(good(), "/input/3", call(&long(65))), "string_above_max_length", "call_id"),
        (with(good(), "/input/3", call("")), "empty_string", "call_id"),
        (
            with(good(), "/input/2", output("c1", json!({"a": 1}))),
            "invalid_type",
            "but got an object",
        ),
        (
            with(good(), "/input/2", output("c1", json!([{"type": "output_text", "text": ""}]))),
            "invalid_value",
            "input_text",
        ),
        (with(good(), "/input/1/arguments", json!({})), "invalid_type", "arguments"),
        (with(good(), "/input/1/id", json!("call_1")), "invalid_value", "begins with 'fc'"),
        (
            with(good(), "/input/0/content/0/type", json!("output_text")),
            "invalid_value",
            "input_text",
        ),
        (with(good(), "/input/0/role", json!("tool")), "invalid_value", "'tool'"),
        (
            with(
                good(),
                "/input/3",
                json!({"type": "message", "role": "assistant", "content": [{"type": "input_text", "text": "a"}]}),
            ),
            "invalid_value",
            "output_text",
        ),
        (
            with(
                good(),
                "/input/3",
                json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "ENC"}),
            ),
            "invalid_encrypted_content",
            "could not be verified",
        ),
        (
            with(good(), "/input/3", json!({"type": "reasoning", "id": "rs_1", "summary": []})),
            "item_not_found",
            "not persisted",
        ),
        (
            with(good(), "/tool_choice", json!({"type": "function", "name": "nope"})),
            "invalid_value",
            "nope",
        ),
    ];
    let check = |body: &Value, findings: &mut Findings| {
        responses_check::check(Backend::OpenAi, body, ACCOUNT, findings)
    };
    check_rows(check, &good(), &rows);
}

#[test]
fn the_chatgpt_backend_takes_less() {
    let good = responses_request;
    let rows = [
        (with(good(), "/store", json!(true)), "store", "Store must be set to false"),
        (without(good(), "/store"), "store", "Store"),
        (with(good(), "/stream", json!(false)), "stream", "Stream"),
        (with(good(), "/instructions", json!("")), "instructions", "Instructions are required"),
        (
            with(good(), "/max_output_tokens", json!(9)),
            "unsupported_parameter",
            "Unsupported parameter: max_output_tokens",
        ),
        (
            with(good(), "/previous_response_id", json!("r")),
            "unsupported_parameter",
            "previous_response_id",
        ),
        (with(good(), "/input", json!("hi")), "input_list", "list"),
    ];
    let check = |body: &Value, findings: &mut Findings| {
        responses_check::check(Backend::ChatGpt, body, ACCOUNT, findings)
    };
    check_rows(check, &good(), &rows);
}

/// The output of the backend itself, to be sent back.
fn responses_history(step: &Step) -> (Vec<Value>, Vec<Value>) {
    let heard = EventReceiver {
        model: "gpt-5.5".to_owned(),
        account: ACCOUNT.to_owned(),
        gives_reasoning: true,
        ..EventReceiver::default()
    };
    let said = responses_events::document(step, &heard, &Ids::default());
    let items = said["output"].as_array().unwrap().clone();
    let calls = items.iter().filter(|item| item["type"] == "function_call");
    let outputs = calls.map(
        |call| json!({"type": "function_call_output", "call_id": call["call_id"], "output": "ok"}),
    );
    (items.clone(), outputs.collect())
}

#[test]
fn reasoning_comes_back_whole_to_the_model_and_account_that_it_is_of() {
    let step =
        Step::new().thinking("hm").call("search", json!({})).call("search", json!({"q": "b"}));
    let (items, outputs) = responses_history(&step);
    let user = responses_request()["input"][0].clone();
    let request = |items: &[Value]| {
        let input: Vec<Value> =
            [user.clone()].iter().chain(items).chain(&outputs).cloned().collect();
        with(responses_request(), "/input", json!(input))
    };
    let check = |body: &Value, findings: &mut Findings| {
        responses_check::check(Backend::OpenAi, body, ACCOUNT, findings)
    };
    let swapped = [items[1].clone(), items[0].clone(), items[2].clone()];
    let mut nameless = items.clone();
    nameless[1].as_object_mut().unwrap().shift_remove("id");
    let rows = [
        (
            with(request(&items), "/model", json!("gpt-5.1")),
            "invalid_encrypted_content",
            "could not be verified",
        ),
        (request(&items[1..]), "item_without_reasoning", "without its required 'reasoning' item"),
        (request(&swapped), "reasoning_without_item", "without its required following item"),
        (
            request(&[items[0].clone(), items[0].clone(), items[1].clone(), items[2].clone()]),
            "duplicate_item",
            "Duplicate item",
        ),
    ];
    check_rows(check, &request(&items), &rows);
    check_rows(check, &request(&nameless), &[]);
    let mut findings = Findings::default();
    responses_check::check(Backend::OpenAi, &request(&items), "another", &mut findings);
    assert_eq!(findings.rules(), ["invalid_encrypted_content"]);
}

fn chat_request() -> Value {
    json!({
        "model": "m", "stream": true, "stream_options": {"include_usage": true},
        "tools": [{"type": "function", "function": {"name": "search", "parameters": object()}}],
        "messages": [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": null, "tool_calls": [
                {"id": "a", "type": "function", "function": {"name": "search", "arguments": "{}"}},
                {"id": "b", "type": "function", "function": {"name": "search", "arguments": "{}"}},
            ]},
            {"role": "tool", "tool_call_id": "b", "content": "two"},
            {"role": "tool", "tool_call_id": "a", "content": [{"type": "text", "text": "one"}]},
            {"role": "user", "content": [{"type": "text", "text": "go on"}]},
        ],
    })
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn chat_finds_what_is_wrong() {
    let good = chat_request;
    let tool = |name: &str| json!({"type": "function", "function": {"name": name, "parameters": object()}});
    let many: Vec<Value> = (0..129).map(|number| tool(&format!("t{number}"))).collect();
    let rows = [
        (without(good(), "/model"), "missing_model", "model"),
        (with(good(), "/messages", json!([])), "empty_array", "messages"),
        (with(good(), "/tools", json!([])), "empty_array", "tools"),
        (
            with(without(good(), "/tools"), "/tool_choice", json!("auto")),
            "invalid_value",
            "'tools' are specified",
        ),
        (with(good(), "/tools", json!(many)), "array_above_max_length", "129"),
        (with(good(), "/tools/1", tool("search")), "duplicate_tool", "search"),
        (with(good(), "/tools/1", tool("a.b")), "invalid_value", "pattern"),
        (with(good(), "/tools/1", tool(&long(65))), "string_above_max_length", "64"),
        (
            without(good(), "/messages/2"),
            "call_without_result",
            "did not have response messages: b",
        ),
        (
            with(good(), "/messages/3", json!({"role": "user", "content": "wait"})),
            "call_without_result",
            ": a",
        ),
        (
            with(
                good(),
                "/messages/4",
                json!({"role": "tool", "tool_call_id": "a", "content": "x"}),
            ),
            "result_without_call",
            "must be a response",
        ),
        (with(good(), "/messages/1/tool_calls/1/id", json!("a")), "duplicate_call", "a"),
        (
            with(good(), "/messages/1/tool_calls/1/id", json!("")),
            "missing_required_parameter",
            ".id",
        ),
        (
            with(good(), "/messages/1/tool_calls/1/id", Value::Null),
            "missing_required_parameter",
            ".id",
        ),
        (with(good(), "/messages/1/tool_calls", json!([])), "empty_array", "tool_calls"),
        (
            with(good(), "/messages/1/tool_calls/0/function/arguments", json!({})),
            "invalid_type",
            "arguments",
        ),
        (with(good(), "/messages/2/content", json!({"a": 1})), "invalid_type", "an object"),
        (
            with(good(), "/messages/2/content", json!([{"type": "image_url"}])),
            "invalid_value",
            "image_url",
        ),
        (with(good(), "/messages/0/content", Value::Null), "invalid_type", "null"),
        (with(good(), "/messages/0/role", json!("model")), "invalid_value", "model"),
        (
            with(
                with(good(), "/messages/3", json!({"role": "user", "content": "wait"})),
                "/messages/4",
                json!({"role": "tool", "tool_call_id": "a", "content": "late"}),
            ),
            "call_without_result",
            ": a",
        ),
        (with(good(), "/stream", json!(false)), "invalid_value", "stream_options"),
    ];
    check_rows(chat_check::check, &good(), &rows);
}

fn gemini_request() -> Value {
    json!({
        "tools": [{"functionDeclarations": [
            {"name": "search", "parametersJsonSchema": object()}, {"name": "fetch.now", "parameters": object()},
        ]}],
        "contents": [
            {"role": "user", "parts": [{"text": "hi"}]},
            {"role": "model", "parts": [
                {"functionCall": {"name": "search", "args": {}}, "thoughtSignature": "skip_thought_signature_validator"},
                {"functionCall": {"name": "fetch.now", "args": {"q": "b"}}},
            ]},
            {"role": "user", "parts": [
                {"functionResponse": {"name": "search", "response": {"output": "one"}}},
                {"inlineData": {"mimeType": "image/png", "data": "AA=="}},
                {"functionResponse": {"name": "fetch.now", "response": {"error": "two"}}},
            ]},
        ],
    })
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn gemini_finds_what_is_wrong() {
    let good = gemini_request;
    let tool = |name: &str| json!({"name": name, "parametersJsonSchema": object()});
    let declared = "/tools/0/functionDeclarations/2";
    let schema = |schema: Value| {
        with(gemini_request(), declared, json!({"name": "s", "parameters": schema}))
    };
    let signature = "/contents/1/parts/0/thoughtSignature";
    let results = good()["contents"][2].clone();
    let said = json!({"role": "user", "parts": [{"text": "wait"}]});
    let many: Vec<Value> = (0..513).map(|number| tool(&format!("t{number}"))).collect();
    let rows = [
        (
            with(with(good(), "/contents/2", said), "/contents/3", results),
            "response_order",
            "immediately after a function call turn",
        ),
        (with(good(), "/tools/0/functionDeclarations", json!(many)), "too_many_tools", "513"),
        (
            with(good(), "/contents/0/parts/1", json!({"functionCall": {"name": "search"}})),
            "call_part",
            "Invalid function call",
        ),
        (with(good(), "/contents", json!([])), "contents", "not specified"),
        (with(good(), "/contents/0/role", json!("system")), "role", "valid role"),
        (with(good(), "/contents/2/role", json!("function")), "role", "valid role"),
        (with(good(), "/contents/0/parts", json!([])), "empty_parts", "must not be empty"),
        (with(good(), "/contents/0/parts/0", json!({})), "part_data", "oneof field 'data'"),
        (
            without(good(), "/contents/2/parts/2"),
            "response_count",
            "number of function response parts",
        ),
        (without(good(), "/contents/2"), "response_count", "number of function response parts"),
        (with(good(), "/contents/2/parts/0", json!({"text": "first"})), "response_count", "number"),
        (
            with(
                good(),
                "/contents/2",
                json!({"role": "user", "parts": [
            {"text": "first"},
            {"functionResponse": {"name": "search", "response": {}}},
            {"functionResponse": {"name": "fetch.now", "response": {}}}]}),
            ),
            "response_first",
            "first",
        ),
        (
            with(good(), "/contents/2/parts/0/functionResponse/name", json!("other")),
            "response_name",
            "other",
        ),
        (
            with(good(), "/contents/2/parts/0/functionResponse/response", json!("text")),
            "response_object",
            "Struct",
        ),
        (
            with(good(), "/contents/1/parts/0/functionCall/args", json!("text")),
            "call_args",
            "Struct",
        ),
        (
            without(good(), "/contents/1"),
            "response_order",
            "immediately after a function call turn",
        ),
        (without(good(), "/contents/0"), "call_order", "immediately after a user turn"),
        (with(good(), declared, tool("1st")), "tool_name", "Must start with a letter"),
        (with(good(), declared, tool("a b")), "tool_name", "alphanumeric"),
        (with(good(), declared, tool(&long(65))), "tool_name", "maximum length of 64"),
        (
            with(good(), declared, tool("search")),
            "duplicate_tool",
            "Duplicate function declaration found: search",
        ),
        (
            with(
                good(),
                declared,
                json!({"name": "b", "parameters": object(), "parametersJsonSchema": object()}),
            ),
            "both_schemas",
            "mutually exclusive",
        ),
        (
            with(good(), declared, json!({"name": "b", "inputSchema": object()})),
            "unknown_field",
            "inputSchema",
        ),
        (
            with(good(), "/tools/0/function_declarations", json!([])),
            "both_spellings",
            "Duplicate field",
        ),
        (
            with(with(good(), "/system_instruction", json!({})), "/systemInstruction", json!({})),
            "both_spellings",
            "systemInstruction",
        ),
        (with(good(), "/nonsense", json!(1)), "unknown_field", "nonsense"),
        (
            schema(json!({"type": "OBJECT", "properties": {"a": {"$ref": "#/x"}}})),
            "parameters",
            "$ref",
        ),
        (
            schema(json!({"type": "OBJECT", "properties": {"a": {"type": ["STRING", "NULL"]}}})),
            "parameters",
            "type",
        ),
        (
            schema(json!({"type": "OBJECT", "properties": {"a": {"type": "ARRAY"}}})),
            "parameters",
            "items: missing field",
        ),
        (schema(json!({"type": "STRING"})), "parameters", "OBJECT"),
        (without(good(), signature), "missing_signature", "missing a thought_signature"),
        (with(good(), signature, json!("VEhPVUdIVFNJRw==")), "signature", "not valid"),
        (
            with(
                without(good(), "/tools"),
                "/toolConfig",
                json!({"functionCallingConfig": {"mode": "AUTO"}}),
            ),
            "config_without_tools",
            "without function_declarations",
        ),
    ];
    let check = |body: &Value, findings: &mut Findings| {
        gemini_check::check("gemini-3.1-pro-preview", body, findings)
    };
    check_rows(check, &good(), &rows);
    // Older models do not require signatures.
    let check = |body: &Value, findings: &mut Findings| {
        gemini_check::check("gemini-2.5-pro", body, findings)
    };
    check_rows(check, &without(good(), signature), &[]);
}

#[test]
fn a_gemini_signature_belongs_to_its_call_and_its_model() {
    let model = "gemini-3.1-pro-preview";
    let genuine = gemini_check::sign_call(model, "search", &json!({}));
    let place = "/contents/1/parts/0/thoughtSignature";
    let good = with(gemini_request(), place, json!(genuine));
    let moved =
        with(without(good.clone(), place), "/contents/1/parts/1/thoughtSignature", json!(genuine));
    let foreign = gemini_check::sign_call("gemini-3-flash", "search", &json!({}));
    let check = |body: &Value, findings: &mut Findings| gemini_check::check(model, body, findings);
    let rows = [
        (moved, "signature", "not valid"),
        (with(good.clone(), place, json!(foreign)), "signature", "not valid"),
        (
            with(good.clone(), "/contents/1/parts/0/functionCall/args", json!({"q": 1})),
            "signature",
            "not valid",
        ),
    ];
    check_rows(check, &good, &rows);
    // A library that holds bytes sends the other alphabet, and the bypass value in base64.
    let urlsafe = genuine.replace('+', "-").replace('/', "_");
    check_rows(check, &with(good.clone(), place, json!(urlsafe)), &[]);
    let bypass = seal::encode(b"skip_thought_signature_validator");
    check_rows(check, &with(good, place, json!(bypass)), &[]);
}

#[test]
fn the_envelope_of_code_assist_is_checked() {
    let good = || json!({"model": "gemini-2.5-pro", "project": "p", "user_prompt_id": "u", "request": gemini_request()});
    let check = |body: &Value, findings: &mut Findings| {
        let (model, request) = code_assist::open_envelope(body, findings);
        gemini_check::check(model, request, findings)
    };
    let rows = [
        (with(good(), "/model", json!("models/gemini-2.5-pro")), "model", "Invalid model"),
        (without(good(), "/project"), "project", "project"),
        (with(good(), "/contents", json!([])), "unknown_field", "contents"),
        (without(good(), "/request"), "contents", "not specified"),
    ];
    check_rows(check, &good(), &rows);
}

#[test]
fn pieces_are_the_whole_text() {
    for text in ["", "a", "grüße, 世界! and more of it"] {
        assert_eq!(pieces(text).concat(), text);
    }
}

mod anthropic;
mod captures;
