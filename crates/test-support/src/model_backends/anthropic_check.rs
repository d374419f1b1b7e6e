//! The rules of Anthropic Messages: the order of calls and results, empty blocks, changed tools, and thinking that
//! belongs to another conversation.

use std::collections::BTreeSet;

use blake3::Hasher;
use serde_json::{Value, json};

use super::anthropic_model::ClaudeModel;
use super::findings::Findings;
use super::heard::{EventReceiver, elements, is_plain_name, plain_text, text_of};
use super::seal::{self, SEAL};

const LONGEST_NAME: usize = 128;
const MOST_BREAKPOINTS: usize = 4;
const TOOL_CHANGES: &str = "mid-conversation-tool-changes-2026-07-01";
const INLINE_TOOLS: &str = "inline-tools-2026-09-15";
const BINDING_CONTROLS: &str = "thinking-binding-controls-2026-08-01";

/// Members with user data, which are not searched.
const DATA: [&str; 2] = ["input", "input_schema"];

pub(crate) fn check(body: &Value, betas: &str, findings: &mut Findings) -> EventReceiver {
    let model = text_of(body, "model");
    let kind = ClaudeModel::named(model);
    check_head(body, &kind, findings);
    let mut tools = Tools::default();
    tools.check_declared(&body["tools"], findings);
    tools.check_choice(&body["tool_choice"], findings);
    let betas: BTreeSet<&str> = betas.split(',').map(str::trim).collect();
    let drops_blocks = drops_blocks(body, &betas, findings);
    let mut messages = Messages {
        model,
        kind,
        betas,
        drops_blocks,
        tools,
        prefix: prefix_of(body),
        previous: "",
        open: Vec::new(),
        seen: BTreeSet::new(),
        text: String::new(),
        results: Vec::new(),
        dropped_blocks: Vec::new(),
    };
    messages.check_all(&body["messages"], findings);
    if breakpoints(body) > MOST_BREAKPOINTS {
        let found = breakpoints(body);
        let words = format!(
            "A maximum of {MOST_BREAKPOINTS} blocks with cache_control may be provided. Found {found}."
        );
        findings.add("cache_control", words);
    }
    EventReceiver {
        model: model.to_owned(),
        tools: messages.tools.offered.into_iter().collect(),
        text: messages.text,
        results: messages.results,
        streams: body["stream"] == true,
        prefix: seal::digest(&messages.prefix),
        dropped_blocks: messages.dropped_blocks,
        ..EventReceiver::default()
    }
}

fn check_head(body: &Value, kind: &ClaudeModel, findings: &mut Findings) {
    if text_of(body, "model").is_empty() {
        findings.add("model", "model: Field required");
    }
    let max_tokens = body["max_tokens"].as_u64();
    if max_tokens.is_none_or(|count| count == 0) {
        findings.add("max_tokens", "max_tokens: Field required");
    }
    if kind.refuses_sampling() {
        for parameter in ["temperature", "top_p", "top_k"] {
            if !body[parameter].is_null() {
                let words = format!("`{parameter}` is not supported for this model.");
                findings.add("sampling", words);
            }
        }
    }
    if body["thinking"]["type"] == "enabled" {
        let budget = body["thinking"]["budget_tokens"].as_u64().unwrap_or(0);
        if kind.refuses_sampling() {
            findings.add(
                "thinking_budget",
                "thinking.type: `enabled` is not supported for this model. Use `adaptive` instead.",
            );
        } else if max_tokens.is_some_and(|most| most <= budget) {
            findings.add(
                "thinking_budget",
                "`max_tokens` must be greater than `thinking.budget_tokens`.",
            );
        }
    }
    let system = &body["system"];
    if !system.is_null() && !system.is_string() && !system.is_array() {
        findings.add("system", "system: Input should be a valid list");
    }
    for (number, block) in elements(system) {
        check_text(&format!("system.{number}"), block, "system", findings);
    }
}

fn drops_blocks(body: &Value, betas: &BTreeSet<&str>, findings: &mut Findings) -> bool {
    let binding = &body["thinking"]["block_binding"];
    if binding.is_null() {
        return false;
    }
    if !betas.contains(BINDING_CONTROLS) {
        findings.add("beta", "thinking.adaptive.block_binding: Extra inputs are not permitted");
    }
    binding["prefix_mismatch_behavior"] == "drop_block"
}

fn check_text(place: &str, block: &Value, list: &str, findings: &mut Findings) {
    let text = text_of(block, "text");
    if text.is_empty() {
        findings
            .add("empty_text", format!("{list}: text content blocks must be non-empty ({place})"));
    } else if text.trim().is_empty() {
        let words =
            format!("{list}: text content blocks must contain non-whitespace text ({place})");
        findings.add("empty_text", words);
    }
}

/// The number of `cache_control` members.
fn breakpoints(value: &Value) -> usize {
    match value {
        Value::Object(members) => {
            let inner = members.iter().filter(|(name, _)| !DATA.contains(&name.as_str()));
            let own = usize::from(members.get("cache_control").is_some_and(Value::is_object));
            own + inner.map(|(_, member)| breakpoints(member)).sum::<usize>()
        }
        Value::Array(values) => values.iter().map(breakpoints).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

/// All tools, and those that are offered at a point of the conversation.
#[derive(Debug, Default)]
struct Tools {
    known: BTreeSet<String>,
    offered: BTreeSet<String>,
}

impl Tools {
    fn check_declared(&mut self, tools: &Value, findings: &mut Findings) {
        let mut has_immediate = false;
        for (number, tool) in elements(tools) {
            let is_deferred = tool["defer_loading"] == true;
            has_immediate |= !is_deferred;
            self.check_entry(&format!("tools.{number}"), tool, findings);
            if !is_deferred {
                self.offered.insert(text_of(tool, "name").to_owned());
            }
        }
        if elements(tools).next().is_some() && !has_immediate {
            let words = "At least one tool must have defer_loading=false.";
            findings.add("all_deferred", words);
        }
    }

    fn check_entry(&mut self, place: &str, tool: &Value, findings: &mut Findings) {
        let name = text_of(tool, "name");
        if !is_plain_name(name, LONGEST_NAME) {
            let words = format!(
                "{place}.custom.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'"
            );
            findings.add("tool_name", words);
        }
        if !self.known.insert(name.to_owned()) {
            findings.add("duplicate_tool", "tools: Tool names must be unique.");
        }
        let is_custom = matches!(text_of(tool, "type"), "" | "custom");
        if is_custom {
            check_schema(place, &tool["input_schema"], findings);
        }
    }

    fn check_choice(&self, choice: &Value, findings: &mut Findings) {
        let name = text_of(choice, "name");
        if choice["type"] == "tool" && !self.known.contains(name) {
            findings.add("tool_choice", format!("Tool '{name}' not found in provided tools"));
        }
        if matches!(text_of(choice, "type"), "any" | "tool") && self.known.is_empty() {
            let words = "tool_choice may only be specified while providing tools.";
            findings.add("tool_choice", words);
        }
    }

    /// Applies a `tool_addition` or `tool_removal`.
    fn change(
        &mut self,
        place: &str,
        block: &Value,
        betas: &BTreeSet<&str>,
        findings: &mut Findings,
    ) {
        if !betas.contains(TOOL_CHANGES) {
            let words = format!(
                "{place}: Input tag '{}' found using 'type' does not match any of the expected tags: 'text'",
                text_of(block, "type")
            );
            findings.add("beta", words);
        }
        let tool = &block["tool"];
        if block["type"] == "tool_addition" && tool["type"] == "tool_definition" {
            if !betas.contains(INLINE_TOOLS) {
                let words = format!(
                    "{place}.tool: Input tag 'tool_definition' found using 'type' does not match any of the expected tags: 'tool_reference'"
                );
                findings.add("beta", words);
            }
            let definition = &tool["definition"];
            self.check_entry(&format!("{place}.tool.definition"), definition, findings);
            self.offered.insert(text_of(definition, "name").to_owned());
            return;
        }
        let name = text_of(tool, "name");
        if tool["type"] != "tool_reference" || !self.known.contains(name) {
            let words =
                format!("{place}.tool: tool reference '{name}' not found in available tools");
            findings.add("unknown_tool", words);
            return;
        }
        let had_effect = if block["type"] == "tool_addition" {
            self.offered.insert(name.to_owned())
        } else {
            self.offered.remove(name)
        };
        if !had_effect {
            let words = format!("{place}: the tool '{name}' is already in that state");
            findings.add("tool_change", words);
        }
    }
}

fn check_schema(place: &str, schema: &Value, findings: &mut Findings) {
    let place = format!("{place}.custom.input_schema");
    if schema["type"].is_null() {
        findings.add("input_schema", format!("{place}.type: Field required"));
    } else if schema["type"] != "object" {
        findings.add("input_schema", format!("{place}.type: Input should be 'object'"));
    }
    if ["oneOf", "allOf", "anyOf"].iter().any(|key| schema.get(key).is_some()) {
        let words = format!(
            "{place}: input_schema does not support oneOf, allOf, or anyOf at the top level"
        );
        findings.add("input_schema", words);
    }
    for key in schema["properties"].as_object().into_iter().flatten().map(|(key, _)| key) {
        if !is_plain_name(&key.replace('.', "_"), 64) {
            let words = format!(
                "{place}.properties: Property keys should match pattern '^[a-zA-Z0-9_.-]{{1,64}}$'"
            );
            findings.add("property_key", words);
        }
    }
}

struct Messages<'a> {
    model: &'a str,
    kind: ClaudeModel,
    betas: BTreeSet<&'a str>,
    drops_blocks: bool,
    tools: Tools,
    /// Hash of everything before the current message.
    prefix: Hasher,
    previous: &'a str,
    /// Calls of the previous message, which this one must answer.
    open: Vec<String>,
    seen: BTreeSet<String>,
    text: String,
    results: Vec<String>,
    dropped_blocks: Vec<String>,
}

impl<'a> Messages<'a> {
    fn check_all(&mut self, messages: &'a Value, findings: &mut Findings) {
        let all = messages.as_array().map(Vec::as_slice).unwrap_or_default();
        if all.is_empty() {
            findings.add("messages", "messages: at least one message is required");
        }
        for (number, message) in all.iter().enumerate() {
            let role = text_of(message, "role");
            let blocks = blocks_of(&message["content"]);
            if blocks.is_empty() && !(role == "assistant" && number + 1 == all.len()) {
                let words = format!(
                    "messages.{number}: all messages must have non-empty content except for the optional final assistant message"
                );
                findings.add("empty_content", words);
            }
            if number == 0 && role != "user" {
                let words = "messages: first message must use the \"user\" role";
                findings.add("first_role", words);
            }
            self.check_answers(number, role, &blocks, findings);
            match role {
                "user" => self.check_user(number, &blocks, findings),
                "assistant" => self.check_assistant(number, &blocks, findings),
                "system" => {
                    let next = all.get(number + 1).map(|next| text_of(next, "role"));
                    self.check_system(number, next, &blocks, findings);
                }
                other => {
                    let words = format!(
                        "messages.{number}.role: Input should be 'user' or 'assistant', not '{other}'"
                    );
                    findings.add("role", words);
                }
            }
            seal::feed(&mut self.prefix, seal::canonical(&stripped(message)).as_bytes());
            self.previous = role;
        }
        let last = all.len().saturating_sub(1);
        self.check_answers(last + 1, "end", &[], findings);
    }

    /// Checks that the calls of the previous message are answered first in this one.
    fn check_answers(
        &mut self,
        number: usize,
        role: &str,
        blocks: &[Value],
        findings: &mut Findings,
    ) {
        let leading = blocks.iter().take_while(|block| block["type"] == "tool_result");
        let given: BTreeSet<&str> = leading.map(|block| text_of(block, "tool_use_id")).collect();
        let is_answered = |id: &&String| role == "user" && given.contains(id.as_str());
        let missing: Vec<&str> =
            self.open.iter().filter(|id| !is_answered(id)).map(String::as_str).collect();
        if !missing.is_empty() {
            let words = format!(
                "messages.{}: `tool_use` ids were found without `tool_result` blocks immediately after: {}. Each `tool_use` block must have a corresponding `tool_result` block in the next message.",
                number.saturating_sub(1),
                missing.join(", ")
            );
            findings.add("call_without_result", words);
        }
        let open: BTreeSet<&str> = self.open.iter().map(String::as_str).collect();
        let mut answered = BTreeSet::new();
        for (place, block) in blocks.iter().enumerate() {
            if block["type"] != "tool_result" {
                continue;
            }
            let id = text_of(block, "tool_use_id");
            if !open.contains(id) {
                let words = format!(
                    "messages.{number}.content.{place}: unexpected `tool_use_id` found in `tool_result` blocks: {id}. Each `tool_result` block must have a corresponding `tool_use` block in the previous message."
                );
                findings.add("result_without_call", words);
            } else if !answered.insert(id) {
                let words = format!(
                    "messages.{number}.content.{place}: each tool_use must have a single result. Found multiple `tool_result` blocks with id: {id}"
                );
                findings.add("duplicate_result", words);
            }
        }
        self.open.clear();
    }

    fn check_user(&mut self, number: usize, blocks: &[Value], findings: &mut Findings) {
        self.results.clear();
        let mut texts = Vec::new();
        for (place, block) in blocks.iter().enumerate() {
            let place = format!("messages.{number}.content.{place}");
            match text_of(block, "type") {
                "text" => {
                    check_text(&place, block, "messages", findings);
                    texts.push(text_of(block, "text"));
                }
                "tool_result" => self.check_result(&place, block, findings),
                "image" | "document" | "search_result" | "container_upload" => {}
                other => unexpected_block(&place, other, findings),
            }
        }
        if !texts.is_empty() {
            self.text = texts.join("\n");
        }
    }

    fn check_result(&mut self, place: &str, block: &Value, findings: &mut Findings) {
        let content = &block["content"];
        if content.is_object() || content.is_number() || content.is_boolean() {
            findings.add(
                "result_content",
                format!("{place}.tool_result.content: Input should be a valid list"),
            );
        }
        for (number, part) in elements(content) {
            let place = format!("{place}.tool_result.content.{number}");
            match text_of(part, "type") {
                "text" => check_text(&place, part, "messages", findings),
                "tool_reference" => {
                    let name = text_of(part, "tool_name");
                    if !self.tools.known.contains(name) {
                        let words = format!("Tool reference '{name}' not found in available tools");
                        findings.add("unknown_tool", words);
                    }
                    self.tools.offered.insert(name.to_owned());
                }
                "image" | "document" | "search_result" => {}
                other => unexpected_block(&place, other, findings),
            }
        }
        self.results.push(plain_text(content));
    }

    fn check_assistant(&mut self, number: usize, blocks: &[Value], findings: &mut Findings) {
        self.results.clear();
        for (place, block) in blocks.iter().enumerate() {
            let place = format!("messages.{number}.content.{place}");
            match text_of(block, "type") {
                "text" => check_text(&place, block, "messages", findings),
                "tool_use" => self.check_call(&place, block, findings),
                "thinking" | "redacted_thinking" => self.check_thinking(place, block, findings),
                "server_tool_use" => {}
                other if other.ends_with("_tool_result") => {}
                other => unexpected_block(&place, other, findings),
            }
        }
    }

    fn check_call(&mut self, place: &str, block: &Value, findings: &mut Findings) {
        let id = text_of(block, "id");
        if !is_plain_name(id, usize::MAX) {
            let words =
                format!("{place}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'");
            findings.add("call_id", words);
        }
        if !self.seen.insert(id.to_owned()) {
            findings.add("duplicate_call", "messages: `tool_use` ids must be unique");
        }
        if !is_plain_name(text_of(block, "name"), LONGEST_NAME) {
            let words = format!(
                "{place}.tool_use.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'"
            );
            findings.add("tool_name", words);
        }
        if !block["input"].is_object() {
            let words = format!("{place}.tool_use.input: Input should be a valid dictionary");
            findings.add("call_input", words);
        }
        self.open.push(id.to_owned());
    }

    /// Checks that a block was issued for this model, and, for models that bind thinking, after the same prefix.
    fn check_thinking(&mut self, place: String, block: &Value, findings: &mut Findings) {
        let now = seal::digest(&self.prefix);
        let (sealed, expected) = if block["type"] == "thinking" {
            let text = text_of(block, "thinking");
            (text_of(block, "signature"), seal_thinking(self.model, text, &now))
        } else {
            (text_of(block, "data"), seal_redacted(self.model, &now))
        };
        if sealed == expected {
            return;
        }
        let given = seal::decode(sealed).unwrap_or_default();
        let wanted = seal::decode(&expected).unwrap_or_default();
        let is_own = given.len() == 2 * SEAL && given.get(..SEAL) == wanted.get(..SEAL);
        if !is_own {
            let words = format!("{place}: Invalid `signature` in `thinking` block");
            findings.add("signature", words);
        } else if self.kind.binds_thinking() {
            if self.drops_blocks {
                self.dropped_blocks.push(place);
            } else {
                let words = format!(
                    "{place}: Invalid signature in thinking block: the block is bound to a different conversation"
                );
                findings.add("binding", words);
            }
        }
    }

    fn check_system(
        &mut self,
        number: usize,
        next: Option<&str>,
        blocks: &[Value],
        findings: &mut Findings,
    ) {
        let place = format!("messages.{number}");
        if !self.kind.takes_system_messages() {
            let words = format!("{place}.role: role 'system' is not supported on this model");
            findings.add("system_role", words);
        }
        if self.previous != "user" {
            let words = format!("{place}: a system message must follow a user message");
            findings.add("system_place", words);
        }
        if next.is_some_and(|next| next != "assistant") {
            let words = format!(
                "{place}: a system message must be last or be followed by an assistant message"
            );
            findings.add("system_place", words);
        }
        for (part, block) in blocks.iter().enumerate() {
            let place = format!("{place}.content.{part}");
            match text_of(block, "type") {
                "text" => check_text(&place, block, "messages", findings),
                "tool_addition" | "tool_removal" => {
                    self.tools.change(&place, block, &self.betas, findings);
                }
                other => unexpected_block(&place, other, findings),
            }
        }
    }
}

fn unexpected_block(place: &str, kind: &str, findings: &mut Findings) {
    let words = format!(
        "{place}: Input tag '{kind}' found using 'type' does not match any of the expected tags"
    );
    findings.add("block_type", words);
}

/// The signature of a thinking block: covers its text, the model, and the prefix.
pub(crate) fn seal_thinking(model: &str, text: &str, prefix: &[u8]) -> String {
    seal::encode(&[seal::seal("thinking", &[model, text]).as_slice(), prefix].concat())
}

pub(crate) fn seal_redacted(model: &str, prefix: &[u8]) -> String {
    seal::encode(&[seal::seal("redacted", &[model]).as_slice(), prefix].concat())
}

/// The hash of everything before the messages, without deferred tools, which may be added later.
fn prefix_of(body: &Value) -> Hasher {
    let mut hasher = seal::hasher("prefix");
    let tools = elements(&body["tools"]).filter(|(_, tool)| tool["defer_loading"] != true);
    let tools: Vec<Value> = tools.map(|(_, tool)| stripped(tool)).collect();
    let system: Vec<Value> = blocks_of(&body["system"]).iter().map(stripped).collect();
    for part in [json!(body["model"]), json!(tools), json!(system)] {
        seal::feed(&mut hasher, seal::canonical(&part).as_bytes());
    }
    hasher
}

fn blocks_of(content: &Value) -> Vec<Value> {
    match content {
        Value::String(text) => vec![json!({"type": "text", "text": text})],
        Value::Array(blocks) => blocks.clone(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => Vec::new(),
    }
}

/// Removes `cache_control` and writes strings as blocks; neither changes the meaning of a conversation.
fn stripped(value: &Value) -> Value {
    match value {
        Value::Object(members) => members
            .iter()
            .filter(|(name, _)| *name != "cache_control")
            .map(|(name, member)| {
                let member = match name.as_str() {
                    data if DATA.contains(&data) => member.clone(),
                    "content" => blocks_of(member).iter().map(stripped).collect(),
                    _ => stripped(member),
                };
                (name.clone(), member)
            })
            .collect(),
        Value::Array(values) => values.iter().map(stripped).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}
