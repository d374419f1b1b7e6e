//! The offered tools and the results in a request of an agent; nothing else is checked.

use serde_json::Value;

use super::backend::Backend;
use super::heard::{elements, text_of};

/// The result of one call, as the agent sends it to its model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolOutcome {
    pub text: String,
    /// Whether the wire format marks it as an error; `OpenAI` has no such mark.
    pub is_error: bool,
    pub images: usize,
}

/// The names of the functions; those in a namespace as `namespace.name`.
pub(crate) fn offered_tools(backend: Backend, body: &Value) -> Vec<String> {
    let named = |tool: &Value| text_of(tool, "name").to_owned();
    let tools = elements(&body["tools"]).map(|(_, tool)| tool);
    match backend {
        Backend::OpenAi | Backend::ChatGpt => tools
            .flat_map(|tool| match text_of(tool, "type") {
                "namespace" => {
                    let space = text_of(tool, "name");
                    let inner = elements(&tool["tools"]);
                    inner.map(|(_, tool)| format!("{space}.{}", text_of(tool, "name"))).collect()
                }
                "function" => vec![named(tool)],
                _ => Vec::new(),
            })
            .collect(),
        Backend::Chat => tools.map(|tool| named(&tool["function"])).collect(),
        Backend::Anthropic => tools.map(named).collect(),
        Backend::Gemini => declared(&body["tools"]),
        Backend::CodeAssist => declared(&body["request"]["tools"]),
    }
}

fn declared(tools: &Value) -> Vec<String> {
    let all = elements(tools).flat_map(|(_, tool)| elements(&tool["functionDeclarations"]));
    all.map(|(_, function)| text_of(function, "name").to_owned()).collect()
}

/// The results after the last message of the model, in order.
pub(crate) fn tool_outcomes(backend: Backend, body: &Value) -> Vec<ToolOutcome> {
    match backend {
        Backend::OpenAi | Backend::ChatGpt => {
            behind_last(&body["input"], |item| item["type"] == "function_call")
                .filter(|item| item["type"] == "function_call_output")
                .map(|item| outcome_of(&item["output"], false))
                .collect()
        }
        Backend::Chat => behind_last(&body["messages"], |item| item["role"] == "assistant")
            .filter(|item| item["role"] == "tool")
            .map(|item| outcome_of(&item["content"], false))
            .collect(),
        Backend::Anthropic => behind_last(&body["messages"], |item| item["role"] == "assistant")
            .flat_map(|message| elements(&message["content"]))
            .map(|(_, block)| block)
            .filter(|block| block["type"] == "tool_result")
            .map(|block| outcome_of(&block["content"], block["is_error"] == true))
            .collect(),
        Backend::Gemini => google_outcomes(&body["contents"]),
        Backend::CodeAssist => google_outcomes(&body["request"]["contents"]),
    }
}

fn google_outcomes(contents: &Value) -> Vec<ToolOutcome> {
    let mut outcomes: Vec<ToolOutcome> = Vec::new();
    let behind = behind_last(contents, |content| content["role"] == "model");
    for (_, part) in behind.flat_map(|content| elements(&content["parts"])) {
        if let Some(response) = part.get("functionResponse") {
            let answer = &response["response"];
            let is_error = answer.get("error").is_some();
            let text = text_of(answer, if is_error { "error" } else { "output" }).to_owned();
            // Newer models accept images within the response, older ones beside it.
            let images = elements(&response["parts"]).filter(|(_, part)| is_image(part)).count();
            outcomes.push(ToolOutcome { text, is_error, images });
        } else if let Some(last) = outcomes.last_mut().filter(|_| is_image(part)) {
            last.images += 1;
        }
    }
    outcomes
}

fn outcome_of(content: &Value, is_error: bool) -> ToolOutcome {
    let parts = || elements(content).map(|(_, part)| part);
    let texts = parts().filter_map(|part| part["text"].as_str());
    let text = content.as_str().map_or_else(|| texts.collect::<Vec<_>>().join("\n"), str::to_owned);
    ToolOutcome { text, is_error, images: parts().filter(|part| is_image(part)).count() }
}

fn is_image(part: &Value) -> bool {
    matches!(text_of(part, "type"), "image" | "input_image" | "image_url")
        || part["inlineData"].is_object()
}

/// The elements after the last one of that kind; empty if there is none.
fn behind_last(list: &Value, is_kind: impl Fn(&Value) -> bool) -> impl Iterator<Item = &Value> {
    let all = list.as_array().map(Vec::as_slice).unwrap_or_default();
    let start = all.iter().rposition(is_kind).map_or(all.len(), |place| place + 1);
    all[start..].iter()
}
