//! An app's request to Gemini.

use bytes::Bytes;
use serde_json::{Value, json};
use switchboard_chat::ToolReturn;

use super::contents;
use super::part::{member, parsed, remove_member, set_member};
use super::tool_result::result_parts;
use crate::app_request::{RequestFacts, RequestTarget};
use crate::raw_json::{Raw, RawObject, array, elements, raw, to_raw};
use crate::request_format::{ConversationUnit, RequestFormat, RoundBody};
use crate::splicer::PendingCall;
use crate::{Refusal, RefusalKind};

/// The request within a request that counts tokens.
const COUNTED: &str = "generateContentRequest";
const DECLARATIONS: &str = "functionDeclarations";

#[derive(Debug)]
pub(crate) struct GeminiRequest {
    request: RawObject,
    contents: Vec<Raw>,
    facts: RequestFacts,
    /// Whether the provider accepts functions in this request.
    takes_functions: bool,
}

impl GeminiRequest {
    pub(crate) fn read(target: &RequestTarget, text: &str) -> Result<Self, Refusal> {
        let body = RawObject::read(text).map_err(|error| {
            Refusal::new(RefusalKind::Invalid, format!("the body is not a JSON object: {error}"))
        })?;
        let request = parsed::<RawObject>(&body, COUNTED).unwrap_or(body);
        let contents = request.get("contents").and_then(elements).ok_or_else(|| {
            Refusal::of_member("contents", "contents: a list of contents is required")
        })?;
        let config = parsed::<RawObject>(&request, "generationConfig").unwrap_or_default();
        if parsed::<u64>(&config, "candidateCount").is_some_and(|count| count > 1) {
            return Err(Refusal::of_member(
                "generationConfig.candidateCount",
                "generationConfig.candidateCount: only one candidate is supported with the tools of a session",
            ));
        }
        let named = request.parsed::<String>("model");
        let model = target.model.clone().or(named).unwrap_or_default();
        let model = model.strip_prefix("models/").unwrap_or(&model).to_owned();
        let tools = tools(&request);
        let app_tools = tools
            .iter()
            .flat_map(declarations)
            .filter_map(|tool| RawObject::read(tool.get()).ok()?.parsed("name"));
        let facts = RequestFacts {
            is_streamed: target.is_streamed.unwrap_or_default(),
            is_json_array: target.is_json_array,
            app_tools: app_tools.collect(),
            wants_format: wants_format(&config),
            max_output_tokens: parsed(&config, "maxOutputTokens"),
            model,
            ..RequestFacts::default()
        };
        let takes_functions = takes_functions(&request, &tools, &facts.model);
        Ok(Self { contents: contents::merged(contents), request, facts, takes_functions })
    }

    fn nests_media(&self) -> bool {
        self.facts.model.starts_with("gemini-3-")
    }

    /// The tools of the app with ours behind its last declaration: some models take only one list of functions.
    fn tools_with(&self, ours: &[Box<str>]) -> Raw {
        let mut tools = tools(&self.request);
        let ours = ours.iter().map(|tool| &**tool);
        let last = tools.iter().rposition(|tool| !declarations(tool).is_empty());
        match last.and_then(|at| Some((at, RawObject::read(tools[at].get()).ok()?))) {
            Some((at, mut tool)) => {
                let known = declarations(&tools[at]);
                let all = array(known.iter().map(|known| known.get()).chain(ours));
                set_member(&mut tool, DECLARATIONS, all);
                tools[at] = tool.to_raw();
            }
            None => {
                tools.push(raw(format!(r#"{{"{DECLARATIONS}":{}}}"#, array(ours).get())));
            }
        }
        array(tools.iter().map(|tool| tool.get()))
    }

    fn request_with(&self, round: &RoundBody<'_>) -> RawObject {
        let mut body = self.request.clone();
        if self.takes_functions && !round.tools.is_empty() {
            set_member(&mut body, "tools", self.tools_with(round.tools));
        }
        limit_calling(&mut body, round.is_first);
        if let Some(left) = round.output_left.filter(|_| !round.is_first) {
            let mut config = parsed::<RawObject>(&body, "generationConfig").unwrap_or_default();
            set_member(&mut config, "maxOutputTokens", to_raw(&left));
            set_member(&mut body, "generationConfig", config.to_raw());
        }
        let contents = self.contents.iter().chain(round.appended);
        body.set("contents", array(contents.map(|content| content.get())));
        body
    }
}

impl RequestFormat for GeminiRequest {
    fn facts(&self) -> &RequestFacts {
        &self.facts
    }

    fn conversation(&self) -> &[Raw] {
        &self.contents
    }

    fn set_conversation(&mut self, conversation: Vec<Raw>) {
        self.contents = contents::with_known_ids(conversation);
    }

    fn units(&self) -> Vec<ConversationUnit> {
        contents::units(&self.contents)
    }

    fn handles(&self, unit: &[Raw]) -> Vec<String> {
        unit.iter().flat_map(contents::call_ids).collect()
    }

    fn has_calls(&self, real: &[Raw], ids: &[String]) -> bool {
        let mut known = real.iter().flat_map(contents::call_ids).peekable();
        // Some clients give calls an id of their own where the provider gives none.
        known.peek().is_none() || {
            let known: Vec<_> = known.collect();
            ids.iter().all(|id| known.contains(id))
        }
    }

    fn without_claims(&self, unit: &[Raw]) -> Vec<Raw> {
        // Calls that the app was shown are removed where the request is read.
        unit.to_vec()
    }

    fn put_results(&self, conversation: &mut Vec<Raw>, after: usize, results: &[Raw]) {
        contents::put_results(conversation, after, results);
    }

    fn drop_thinking(&mut self, refusal: &Refusal) -> bool {
        let text = refusal.body.as_deref().unwrap_or(&refusal.message).to_ascii_lowercase();
        let is_about_thinking = ["thought_signature", "thoughtsignature", "thought signature"]
            .iter()
            .any(|word| text.contains(word));
        if refusal.status() != 400 || !is_about_thinking {
            return false;
        }
        let kept: Vec<Raw> = self.contents.iter().map(contents::without_signatures).collect();
        let is_same = |(kept, known): (&Raw, &Raw)| kept.get() == known.get();
        let is_changed = !kept.iter().zip(&self.contents).all(is_same);
        self.contents = kept;
        is_changed
    }

    fn results(&self, results: &[(PendingCall, ToolReturn)]) -> Vec<Raw> {
        let parts = results
            .iter()
            .flat_map(|(call, result)| result_parts(call, result, self.nests_media()));
        parts.map(|part| to_raw(&part)).collect()
    }

    fn results_as_elements(&self, results: Vec<Raw>) -> Vec<Raw> {
        if results.is_empty() {
            return Vec::new();
        }
        let parts = array(results.iter().map(|part| part.get()));
        vec![raw(format!(r#"{{"role":"user","parts":{}}}"#, parts.get()))]
    }

    fn body(&self, round: &RoundBody<'_>) -> Bytes {
        self.request_with(round).to_json().into()
    }

    fn count_body(&self, round: &RoundBody<'_>) -> Bytes {
        let mut request = self.request_with(round);
        // Only this form counts tools.
        request.set("model", to_raw(&format!("models/{}", self.facts.model)));
        format!(r#"{{"{COUNTED}":{}}}"#, request.to_json()).into()
    }

    fn renamed(&self, declaration: &str, name: &str) -> Option<Box<str>> {
        let mut tool = RawObject::read(declaration).ok()?;
        tool.set("name", to_raw(&name));
        Some(tool.to_json().into())
    }
}

fn tools(request: &RawObject) -> Vec<Raw> {
    request.get("tools").and_then(elements).unwrap_or_default()
}

fn declarations(tool: &Raw) -> Vec<Raw> {
    let tool = RawObject::read(tool.get()).ok();
    tool.and_then(|tool| member(&tool, DECLARATIONS).and_then(elements)).unwrap_or_default()
}

/// Whether functions can be added. A cached prompt has its own tools, and models before Gemini 3 take either functions or
/// tools of the provider.
fn takes_functions(request: &RawObject, tools: &[Raw], model: &str) -> bool {
    let has_functions = tools.iter().any(|tool| !declarations(tool).is_empty());
    let is_older = ["gemini-1", "gemini-2"].iter().any(|start| model.starts_with(start));
    let has_others = tools.iter().any(|tool| tool.get() != "{}") && !has_functions;
    member(request, "cachedContent").is_none() && !(is_older && has_others)
}

/// Output of a format is parsed by the app as a whole.
fn wants_format(config: &RawObject) -> bool {
    ["responseSchema", "responseJsonSchema", "responseFormat"]
        .iter()
        .any(|name| member(config, name).is_some())
        || parsed::<String>(config, "responseMimeType")
            .is_some_and(|kind| kind == "application/json" || kind == "text/x.enum")
}

/// A forced call holds for the first round. Arguments of calls have to come whole.
fn limit_calling(body: &mut RawObject, is_first: bool) {
    let Some(mut config) = parsed::<RawObject>(body, "toolConfig") else { return };
    let Some(mut calling) = parsed::<RawObject>(&config, "functionCallingConfig") else { return };
    let is_forced =
        calling.parsed::<String>("mode").is_some_and(|mode| mode.eq_ignore_ascii_case("any"));
    let streams_arguments = member(&calling, "streamFunctionCallArguments").is_some();
    if streams_arguments {
        remove_member(&mut calling, "streamFunctionCallArguments");
    }
    if is_forced && !is_first {
        calling.set("mode", to_raw(&"AUTO"));
        remove_member(&mut calling, "allowedFunctionNames");
    } else if !streams_arguments {
        return;
    }
    set_member(&mut config, "functionCallingConfig", calling.to_raw());
    set_member(body, "toolConfig", config.to_raw());
}

/// A response part for a call that the app was shown.
pub(super) fn shown_response(id: &str, name: &str, result: &ToolReturn) -> Value {
    let (text, _) = switchboard_chat::pieces(result);
    let response = super::tool_result::response(result, text, &[]);
    json!({"toolResponse": {"id": id, "toolType": name, "response": response}})
}
