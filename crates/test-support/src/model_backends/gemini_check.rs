//! The rules of Gemini: roles, the order of calls and responses, and missing signatures.

use std::collections::BTreeSet;

use serde_json::Value;

use super::findings::Findings;
use super::gemini_schema::fault_of;
use super::heard::{EventReceiver, elements, text_of};
use super::seal;

/// The documented signature for calls that Gemini did not make.
const BYPASS: &str = "skip_thought_signature_validator";
const LONGEST_NAME: usize = 64;
const MOST_DECLARATIONS: usize = 512;

const REQUEST: &[&str] = &[
    "contents",
    "systemInstruction",
    "tools",
    "toolConfig",
    "generationConfig",
    "safetySettings",
    "cachedContent",
    "sessionId",
    "labels",
];
const DECLARATION: &[&str] = &[
    "name",
    "description",
    "parameters",
    "parametersJsonSchema",
    "response",
    "responseJsonSchema",
    "behavior",
];
const PART: &[&str] = &[
    "text",
    "thought",
    "thoughtSignature",
    "inlineData",
    "fileData",
    "functionCall",
    "functionResponse",
    "executableCode",
    "codeExecutionResult",
    "videoMetadata",
    "mediaResolution",
];

pub(crate) fn check(model: &str, body: &Value, findings: &mut Findings) -> EventReceiver {
    check_keys("", body, REQUEST, findings);
    let declared = check_tools(body, findings);
    let contents = field(body, "contents");
    let all = contents.as_array().map(Vec::as_slice).unwrap_or_default();
    if all.is_empty() {
        findings.add("contents", "* GenerateContentRequest.contents: contents is not specified\n");
    }
    let mut turns = Turns { model, calls: None, previous: "", results: Vec::new() };
    for (number, content) in all.iter().enumerate() {
        turns.check(number, content, findings);
    }
    if turns.calls.is_some() {
        findings.add("response_count", COUNT);
    }
    if model.starts_with("gemini-3") {
        check_signatures(model, all, findings);
    }
    let said = all.iter().rev().find(|content| begins_turn(content));
    EventReceiver {
        model: model.to_owned(),
        tools: declared.into_iter().collect(),
        text: said.map(text_in).unwrap_or_default(),
        results: turns.results,
        ..EventReceiver::default()
    }
}

const COUNT: &str = "Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.";

/// A member in camel or snake case.
fn field<'a>(value: &'a Value, camel: &str) -> &'a Value {
    value.get(camel).or_else(|| value.get(snake(camel))).unwrap_or(&Value::Null)
}

fn snake(camel: &str) -> String {
    let mut spelled = String::new();
    for letter in camel.chars() {
        if letter.is_ascii_uppercase() {
            spelled.push('_');
        }
        spelled.push(letter.to_ascii_lowercase());
    }
    spelled
}

/// Reports unknown members, and members in both spellings.
fn check_keys(place: &str, value: &Value, known: &[&str], findings: &mut Findings) {
    let Some(members) = value.as_object() else { return };
    for key in members.keys() {
        let is_camel = known.contains(&key.as_str());
        let is_snake = known.iter().any(|camel| snake(camel) == *key);
        if !is_camel && !is_snake {
            let words = format!(
                "Invalid JSON payload received. Unknown name \"{key}\" at '{place}': Cannot find field."
            );
            findings.add("unknown_field", words);
        }
        if is_camel && snake(key) != *key && members.contains_key(&snake(key)) {
            let words =
                format!("Invalid JSON payload received. Duplicate field \"{key}\" at '{place}'.");
            findings.add("both_spellings", words);
        }
    }
}

fn check_tools(body: &Value, findings: &mut Findings) -> BTreeSet<String> {
    let mut declared = BTreeSet::new();
    let mut count = 0;
    for (number, tool) in elements(field(body, "tools")) {
        if tool.get("functionDeclarations").is_some() && tool.get("function_declarations").is_some()
        {
            let words = format!(
                "Invalid JSON payload received. Duplicate field \"functionDeclarations\" at 'tools[{number}]'."
            );
            findings.add("both_spellings", words);
        }
        for (inner, declaration) in elements(field(tool, "functionDeclarations")) {
            let place = format!("tools[{number}].function_declarations[{inner}]");
            count += 1;
            check_declaration(&place, declaration, findings);
            let name = text_of(declaration, "name").to_owned();
            if declared.contains(&name) {
                findings
                    .add("duplicate_tool", format!("Duplicate function declaration found: {name}"));
            }
            declared.insert(name);
        }
    }
    if count > MOST_DECLARATIONS {
        let words = format!(
            "Too many function declarations: {count}. At most {MOST_DECLARATIONS} are allowed."
        );
        findings.add("too_many_tools", words);
    }
    let config = field(field(body, "toolConfig"), "functionCallingConfig");
    if !config.is_null() && declared.is_empty() {
        let words = "Function calling config is set without function_declarations.";
        findings.add("config_without_tools", words);
    }
    for (_, allowed) in elements(field(config, "allowedFunctionNames")) {
        if !declared.contains(allowed.as_str().unwrap_or_default()) {
            let words = format!("Allowed function name {allowed} is not declared.");
            findings.add("unknown_tool", words);
        }
    }
    declared
}

fn check_declaration(place: &str, declaration: &Value, findings: &mut Findings) {
    check_keys(place, declaration, DECLARATION, findings);
    if !is_function_name(text_of(declaration, "name")) {
        let words = format!(
            "* GenerateContentRequest.{place}.name: Invalid function name. Must start with a letter or an underscore. Must be alphanumeric (a-z, A-Z, 0-9), underscores (_), dots (.), colons (:), or dashes (-), with a maximum length of 64.\n"
        );
        findings.add("tool_name", words);
    }
    let parameters = field(declaration, "parameters");
    let json_schema = field(declaration, "parametersJsonSchema");
    if !parameters.is_null() && !json_schema.is_null() {
        let words =
            format!("{place}: parameters and parameters_json_schema are mutually exclusive.");
        findings.add("both_schemas", words);
    }
    if !parameters.is_null()
        && let Some(fault) = fault_of(parameters, &format!("{place}.parameters"))
    {
        findings.add("parameters", fault);
    }
    let root = if parameters.is_null() { json_schema } else { parameters };
    let is_object = text_of(root, "type").eq_ignore_ascii_case("object");
    if !root.is_null() && !is_object {
        let words = format!(
            "* GenerateContentRequest.{place}.parameters.type: schema should be of type OBJECT.\n"
        );
        findings.add("parameters", words);
    }
}

fn is_function_name(name: &str) -> bool {
    let starts = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_.:-".contains(&byte);
    starts && name.len() <= LONGEST_NAME && name.bytes().all(is_allowed)
}

/// A call with its name and, where there is one, its id.
type Call = (String, Option<String>);

struct Turns<'a> {
    model: &'a str,
    /// The calls that the next content must answer.
    calls: Option<Vec<Call>>,
    previous: &'a str,
    results: Vec<String>,
}

impl<'a> Turns<'a> {
    fn check(&mut self, number: usize, content: &'a Value, findings: &mut Findings) {
        let place = format!("contents[{number}]");
        check_keys(&place, content, &["role", "parts"], findings);
        let role = text_of(content, "role");
        let parts = content["parts"].as_array().map(Vec::as_slice).unwrap_or_default();
        if !["user", "model"].contains(&role) {
            findings.add("role", "Please use a valid role: user, model.");
        }
        if parts.is_empty() {
            let words = format!(
                "* GenerateContentRequest.{place}.parts: contents.parts must not be empty.\n"
            );
            findings.add("empty_parts", words);
        }
        for (part, value) in parts.iter().enumerate() {
            check_part(&format!("{place}.parts[{part}]"), role, value, findings);
        }
        let responses: Vec<&Value> =
            parts.iter().map(response_in).filter(|it| !it.is_null()).collect();
        self.check_responses(role, parts, &responses, findings);
        self.results = responses.iter().map(|response| result_text(response)).collect();
        let calls: Vec<Call> =
            parts.iter().map(call_in).filter(|call| !call.is_null()).map(identity).collect();
        if !calls.is_empty() {
            if self.previous != "user" {
                findings.add("call_order", "Please ensure that function call turn comes immediately after a user turn or after a function response turn.");
            }
            self.calls = Some(calls);
        }
        self.previous = role;
    }

    /// Checks that there are as many responses as calls, with the same names, and nothing before them.
    fn check_responses(
        &mut self,
        role: &str,
        parts: &[Value],
        responses: &[&Value],
        findings: &mut Findings,
    ) {
        let Some(calls) = self.calls.take() else {
            if !responses.is_empty() {
                findings.add("response_order", "Please ensure that function response turn comes immediately after a function call turn.");
            }
            return;
        };
        if role != "user" || responses.len() != calls.len() {
            findings.add("response_count", COUNT);
            return;
        }
        if parts.first().is_some_and(|first| response_in(first).is_null()) {
            findings.add("response_first", "Please ensure that function response parts come first in the function response turn.");
        }
        let mut open = calls;
        for (name, id) in responses.iter().map(|response| identity(response)) {
            let fits =
                |call: &Call| call.0 == name && (id.is_none() || call.1.is_none() || call.1 == id);
            if let Some(found) = open.iter().position(fits) {
                open.remove(found);
            } else {
                let words = format!(
                    "Please ensure that the function response name matches a function call of the function call turn: {name} ({}).",
                    self.model
                );
                findings.add("response_name", words);
            }
        }
    }
}

fn call_in(part: &Value) -> &Value {
    field(part, "functionCall")
}

fn response_in(part: &Value) -> &Value {
    field(part, "functionResponse")
}

fn identity(value: &Value) -> Call {
    (text_of(value, "name").to_owned(), value["id"].as_str().map(str::to_owned))
}

fn check_part(place: &str, role: &str, part: &Value, findings: &mut Findings) {
    check_keys(place, part, PART, findings);
    let data = [
        "text",
        "inlineData",
        "fileData",
        "functionCall",
        "functionResponse",
        "executableCode",
        "codeExecutionResult",
    ];
    let count = data.iter().filter(|name| !field(part, name).is_null()).count();
    if count != 1 {
        let words = format!(
            "* GenerateContentRequest.{place}.data: required oneof field 'data' must have one initialized field\n"
        );
        findings.add("part_data", words);
    }
    let call = call_in(part);
    if !call.is_null() {
        check_keys(&format!("{place}.function_call"), call, &["name", "args", "id"], findings);
        if role != "model" || !is_function_name(text_of(call, "name")) {
            findings.add("call_part", format!("Invalid function call at '{place}'."));
        }
        if !call["args"].is_null() && !call["args"].is_object() {
            let words = format!(
                "Invalid value at '{place}.function_call.args' (type.googleapis.com/google.protobuf.Struct), {}",
                call["args"]
            );
            findings.add("call_args", words);
        }
    }
    let response = response_in(part);
    if !response.is_null() {
        let known = &["name", "id", "response", "parts", "willContinue", "scheduling"];
        check_keys(&format!("{place}.function_response"), response, known, findings);
        if text_of(response, "name").is_empty() {
            let words = format!(
                "* GenerateContentRequest.{place}.function_response.name: Name cannot be empty.\n"
            );
            findings.add("response_name", words);
        }
        if !response["response"].is_object() {
            let words = format!(
                "Invalid value at '{place}.function_response.response' (type.googleapis.com/google.protobuf.Struct), {}",
                response["response"]
            );
            findings.add("response_object", words);
        }
    }
}

/// Checks that the first call of every step since the last user text has its signature, and that every signature is on
/// the part that it was issued with.
fn check_signatures(model: &str, contents: &[Value], findings: &mut Findings) {
    let current = contents.iter().rposition(begins_turn).unwrap_or(0);
    for (number, content) in contents.iter().enumerate() {
        let mut is_first = true;
        for (place, part) in elements(&content["parts"]) {
            let signature = field(part, "thoughtSignature").as_str();
            let call = call_in(part);
            if let Some(signature) = signature
                && !is_genuine(model, part, signature)
            {
                findings.add("signature", "Thought signature is not valid.");
            }
            if !call.is_null() {
                if is_first && number > current && signature.is_none() {
                    let name = text_of(call, "name");
                    let words = format!(
                        "Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, and missing thought_signature may lead to degraded model performance. Additional data, function call `default_api:{name}` , position {place}."
                    );
                    findings.add("missing_signature", words);
                }
                is_first = false;
            }
        }
    }
}

fn is_genuine(model: &str, part: &Value, signature: &str) -> bool {
    let given = seal::decode(signature);
    let call = call_in(part);
    let expected = if call.is_null() {
        sign_text(model)
    } else {
        sign_call(model, text_of(call, "name"), &call["args"])
    };
    // Libraries that hold signatures as bytes send the bypass value in base64.
    given == seal::decode(&expected)
        || signature == BYPASS
        || given.is_some_and(|given| given == BYPASS.as_bytes())
}

pub(crate) fn sign_call(model: &str, name: &str, arguments: &Value) -> String {
    let arguments = if arguments.is_null() { "{}".to_owned() } else { seal::canonical(arguments) };
    seal::encode(&seal::seal("call", &[model, name, &arguments]))
}

pub(crate) fn sign_text(model: &str) -> String {
    seal::encode(&seal::seal("text", &[model]))
}

/// Whether the content holds user text and not only tool results.
fn begins_turn(content: &Value) -> bool {
    let has_response = elements(&content["parts"]).any(|(_, part)| !response_in(part).is_null());
    content["role"] == "user" && !has_response
}

fn text_in(content: &Value) -> String {
    let parts = elements(&content["parts"]).filter_map(|(_, part)| part["text"].as_str());
    parts.collect::<Vec<_>>().join("\n")
}

fn result_text(response: &Value) -> String {
    let result = &response["response"];
    let value = ["output", "error", "result"].iter().find_map(|key| result.get(key));
    match value.unwrap_or(result) {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
