//! Builds requests for OpenAI Responses.
//!
//! Nothing is stored at the provider, so every request contains the whole conversation, including encrypted reasoning,
//! which is sent to its source only. The backend of ChatGPT accounts accepts less than the public API: it requires
//! instructions and rejects token limits.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;
use switchboard_chat::attachment::{Attachment, File};
use switchboard_chat::{Block, Message, ModelFault, Part, Place, Reply, ToolCall, ToolReturn};
use switchboard_model::ProviderKind;
use switchboard_render::ApplyDelta;

use super::content::{address, fitted, nothing_to_answer, outcome};
use crate::call_ids::CallIds;
use crate::model_request::{ModelRequest, WireRequest, declared, written};
use crate::{name, tool_results};

/// Default instructions, because the ChatGPT backend requires some.
const PLAIN_INSTRUCTIONS: &str = "Answer the user. Use the tools where they help.";
/// Maximum length of an item id.
const MAX_ITEM_ID: usize = 64;
/// Maximum length of a prompt cache key.
const MAX_CACHE_KEY: usize = 64;

/// Builds the request for either backend.
pub(crate) fn responses_request(ask: &ModelRequest<'_>) -> Result<WireRequest, ModelFault> {
    let is_account = ask.source.kind == ProviderKind::ChatGpt;
    let ids = CallIds::new(ask.messages, ask.source);
    let conversation = Conversation { ask, ids: &ids };
    let input = conversation.items();
    if input.is_empty() {
        return Err(nothing_to_answer());
    }
    let plain = || is_account.then(|| PLAIN_INSTRUCTIONS.to_owned());
    let instructions = tool_results::instructions(ask).or_else(plain);
    let tools = ask.tools.base.json();
    let tools = declared(&tools)?;
    let has_tools = tools.is_some() || input.iter().any(|item| matches!(item, Item::Change(_)));
    let is_follow_up = matches!(ask.messages.last(), Some(Message::Tool(_)));
    let settings = ask.settings;
    let limited = (!is_account).then_some(settings);
    let body = Body {
        model: &ask.source.model,
        instructions,
        input,
        tools,
        tool_choice: has_tools.then_some("auto"),
        parallel_tool_calls: has_tools.then_some(!(is_account && is_follow_up)),
        reasoning: reasoning(ask),
        max_output_tokens: limited.and_then(|settings| settings.max_output_tokens),
        temperature: limited.and_then(|settings| settings.temperature),
        top_p: limited.and_then(|settings| settings.top_p),
        store: false,
        stream: true,
        include: if thinks(&ask.source.model) { &["reasoning.encrypted_content"] } else { &[] },
        prompt_cache_key: ask.session.chars().take(MAX_CACHE_KEY).collect(),
    };
    let body = written(&body)?;
    Ok(WireRequest { path: "/responses".into(), headers: headers(ask, is_account), body })
}

/// Whether a model supports reasoning. Older models reject requests with reasoning settings.
fn thinks(model: &str) -> bool {
    let model = model.strip_prefix("ft:").unwrap_or(model);
    !["gpt-3", "gpt-4", "chatgpt-4o"].iter().any(|older| model.starts_with(older))
}

/// Headers for the ChatGPT backend: ids that relate the requests of a conversation, which it then answers faster.
fn headers(ask: &ModelRequest<'_>, is_account: bool) -> Vec<(&'static str, String)> {
    let is_sendable = !ask.session.is_empty() && ask.session.bytes().all(|b| b.is_ascii_graphic());
    let names = ["session-id", "thread-id"].into_iter().filter(|_| is_account && is_sendable);
    names.map(|name| (name, ask.session.to_owned())).collect()
}

fn reasoning(ask: &ModelRequest<'_>) -> Option<Reasoning> {
    if !thinks(&ask.source.model) {
        return None;
    }
    let effort = ask.settings.effort.map(switchboard_model::Effort::as_str);
    let summary = ask.settings.show_thinking.then_some("auto");
    (effort.is_some() || summary.is_some()).then_some(Reasoning { effort, summary })
}

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<String>,
    input: Vec<Item<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parallel_tool_calls: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<Reasoning>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f64>,
    store: bool,
    stream: bool,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    include: &'static [&'static str],
    prompt_cache_key: String,
}

#[derive(Serialize)]
struct Reasoning {
    #[serde(skip_serializing_if = "Option::is_none")]
    effort: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<&'static str>,
}

/// An item of `input`.
#[derive(Serialize)]
#[serde(untagged)]
enum Item<'a> {
    Said {
        r#type: &'static str,
        role: &'static str,
        content: Given<'a>,
    },
    /// An answer of another model, or of this one without its item id.
    Answer {
        r#type: &'static str,
        role: &'static str,
        content: &'a str,
    },
    /// An answer of this model with its item id.
    OwnAnswer {
        r#type: &'static str,
        id: &'a str,
        role: &'static str,
        status: &'static str,
        content: [OutputText<'a>; 1],
        #[serde(skip_serializing_if = "Option::is_none")]
        phase: Option<&'a str>,
    },
    Call {
        r#type: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<&'a str>,
        call_id: &'a str,
        name: Cow<'a, str>,
        arguments: Cow<'a, str>,
    },
    Outcome {
        r#type: &'static str,
        call_id: &'a str,
        output: Given<'a>,
    },
    /// A reasoning item as received.
    Thought(&'a Value),
    /// Tools that were added later.
    Change(&'a RawValue),
}

#[derive(Serialize)]
#[serde(tag = "type")]
enum Content<'a> {
    #[serde(rename = "input_text")]
    Text { text: Cow<'a, str> },
    #[serde(rename = "input_image")]
    Image { image_url: Cow<'a, str>, detail: &'static str },
    #[serde(rename = "input_file")]
    File {
        #[serde(skip_serializing_if = "Option::is_none")]
        filename: Option<Cow<'a, str>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        file_data: Option<Cow<'a, str>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        file_url: Option<Cow<'a, str>>,
    },
}

#[derive(Serialize)]
struct OutputText<'a> {
    r#type: &'static str,
    text: &'a str,
    annotations: [(); 0],
    logprobs: [(); 0],
}

/// The content of a message or a tool result: one string if it is only text.
#[derive(Serialize)]
#[serde(untagged)]
enum Given<'a> {
    Text(String),
    Pieces(Vec<Content<'a>>),
}

impl<'a> From<&'a Part> for Content<'a> {
    fn from(part: &'a Part) -> Self {
        match Attachment::of(part) {
            Attachment::Text(text) => Self::Text { text },
            Attachment::Image(file) => Self::Image { image_url: address(&file), detail: "auto" },
            Attachment::Pdf(file) | Attachment::Other(file) => {
                match document_extension(&file.media_type) {
                    Some(extension) => Self::file(&file, extension),
                    None => Self::Text { text: file.not_shown().into() },
                }
            }
        }
    }
}

impl<'a> Content<'a> {
    fn file(file: &File<'a>, extension: &str) -> Self {
        let address = Some(address(file));
        match file.place {
            // The API rejects a file name beside a URL.
            Place::Url(_) => Self::File { filename: None, file_data: None, file_url: address },
            Place::Data(_) => {
                let name = file_name(file.name, extension);
                Self::File { filename: Some(name), file_data: address, file_url: None }
            }
        }
    }
}

/// The file extension of a document type that OpenAI accepts. A file of another type makes it reject this request and
/// all later ones of the conversation.
fn document_extension(media_type: &str) -> Option<&'static str> {
    const OPEN_XML: &str = "application/vnd.openxmlformats-officedocument.";
    if let Some(kind) = media_type.strip_prefix(OPEN_XML) {
        return match kind {
            "wordprocessingml.document" => Some("docx"),
            "presentationml.presentation" => Some("pptx"),
            "spreadsheetml.sheet" => Some("xlsx"),
            _ => None,
        };
    }
    match media_type {
        "application/pdf" => Some("pdf"),
        "application/msword" => Some("doc"),
        "application/rtf" => Some("rtf"),
        "application/vnd.oasis.opendocument.text" => Some("odt"),
        "application/vnd.ms-powerpoint" => Some("ppt"),
        "application/vnd.ms-excel" => Some("xls"),
        _ => None,
    }
}

/// A file needs a name with the extension of its type.
fn file_name<'a>(name: Option<&'a str>, extension: &str) -> Cow<'a, str> {
    let has_extension = |name: &str| {
        name.rsplit_once('.')
            .is_some_and(|(stem, end)| !stem.is_empty() && end.eq_ignore_ascii_case(extension))
    };
    match name.filter(|name| !name.trim().is_empty()) {
        Some(name) if has_extension(name) => Cow::Borrowed(name),
        Some(name) => Cow::Owned(format!("{name}.{extension}")),
        None => Cow::Owned(format!("file.{extension}")),
    }
}

struct Conversation<'a> {
    ask: &'a ModelRequest<'a>,
    ids: &'a CallIds<'a>,
}

impl<'a> Conversation<'a> {
    /// The items of all messages except the leading system messages, with the changes of tools at their positions.
    fn items(&self) -> Vec<Item<'a>> {
        let leading = tool_results::leading(self.ask.messages);
        let mut items = Vec::with_capacity(self.ask.messages.len());
        let mut changes = self.ask.tools.changes.iter().peekable();
        for (index, message) in self.ask.messages.iter().enumerate() {
            while let Some(change) = changes.next_if(|change| change.before <= index) {
                push_change(&change.delta.apply, &mut items);
            }
            match message {
                Message::System(_) if index < leading => {}
                Message::System(said) => push_said("developer", &said.content, &mut items),
                Message::User(said) => push_said("user", &said.content, &mut items),
                Message::Assistant(reply) => self.push_reply(reply, &mut items),
                Message::Tool(result) => items.push(self.outcome(result)),
            }
        }
        for change in changes {
            push_change(&change.delta.apply, &mut items);
        }
        items
    }

    fn push_reply(&self, reply: &'a Reply, items: &mut Vec<Item<'a>>) {
        let is_own = tool_results::is_own(reply, self.ask.source);
        // Item ids are sent only if all reasoning of the reply is sent too: for a known id, the provider requires the
        // reasoning before it.
        let has_ids = is_own && reply.content.iter().all(is_whole);
        // The API rejects reasoning that is followed by nothing.
        let is_shown = |block: &Block| match block {
            Block::Text { text, .. } => !text.is_empty(),
            Block::ToolCall(_) => true,
            Block::Reasoning { .. } => false,
        };
        let last = reply.content.iter().rposition(is_shown);
        for (index, block) in reply.content.iter().enumerate() {
            match block {
                Block::Text { text, .. } if text.is_empty() => {}
                Block::Text { text, opaque } => {
                    items.push(answer(text, opaque.as_ref().filter(|_| has_ids)));
                }
                Block::Reasoning { opaque, .. } => {
                    let thought = opaque.as_ref().filter(|item| is_own && is_sealed(item));
                    let is_followed = last.is_some_and(|last| index < last);
                    items.extend(thought.filter(|_| is_followed).map(Item::Thought));
                }
                Block::ToolCall(call) => items.push(self.call(call, is_own, has_ids)),
            }
        }
    }

    fn call(&self, call: &'a ToolCall, is_own: bool, has_ids: bool) -> Item<'a> {
        let item = call.origin.as_ref().and_then(|origin| origin.item.as_deref());
        let arguments = match &call.unreadable {
            Some(text) if is_own => Cow::Borrowed(text.as_str()),
            _ => Cow::Owned(tool_results::arguments(call, is_own, self.ask.tools).to_string()),
        };
        Item::Call {
            r#type: "function_call",
            id: item.filter(|id| has_ids && is_item_id(id, "fc_")),
            call_id: self.ids.of(&call.id),
            name: name::legal(&call.name),
            arguments,
        }
    }

    fn outcome(&self, result: &'a ToolReturn) -> Item<'a> {
        let (text, media) = outcome(result);
        let output = if media.is_empty() {
            Given::Text(text)
        } else {
            let text = (!text.is_empty()).then_some(Content::Text { text: text.into() });
            let media = media.into_iter().map(|part| match Content::from(part) {
                Content::Text { text } => Content::Text { text: fitted(text.into_owned()).into() },
                other => other,
            });
            Given::Pieces(text.into_iter().chain(media).collect())
        };
        let call_id = self.ids.of(&result.call);
        Item::Outcome { r#type: "function_call_output", call_id, output }
    }
}

fn answer<'a>(text: &'a str, item: Option<&'a Value>) -> Item<'a> {
    let member = |key: &str| item.and_then(|item| item.get(key)).and_then(Value::as_str);
    match member("id").filter(|id| is_item_id(id, "msg_")) {
        Some(id) => Item::OwnAnswer {
            r#type: "message",
            id,
            role: "assistant",
            status: "completed",
            content: [OutputText { r#type: "output_text", text, annotations: [], logprobs: [] }],
            phase: member("phase"),
        },
        None => Item::Answer { r#type: "message", role: "assistant", content: text },
    }
}

fn push_said<'a>(role: &'static str, content: &'a [Part], items: &mut Vec<Item<'a>>) {
    let content: Vec<Content<'a>> = content.iter().map(Content::from).collect();
    let are_texts = content.iter().map(|piece| match piece {
        Content::Text { text } => Some(text.as_ref()),
        Content::Image { .. } | Content::File { .. } => None,
    });
    let content = match are_texts.collect::<Option<Vec<_>>>() {
        Some(none) if none.is_empty() => return,
        Some(texts) => Given::Text(texts.join("\n\n")),
        None => Given::Pieces(content),
    };
    items.push(Item::Said { r#type: "message", role, content });
}

fn push_change<'a>(apply: &'a ApplyDelta, items: &mut Vec<Item<'a>>) {
    match apply {
        ApplyDelta::Append { items: appended, .. } => {
            items.extend(appended.iter().map(|item| Item::Change(item)));
        }
        ApplyDelta::Nothing | ApplyDelta::Resend { .. } => {}
    }
}

/// Whether a block can be sent back completely.
fn is_whole(block: &Block) -> bool {
    match block {
        Block::Reasoning { opaque, .. } => opaque.as_ref().is_some_and(is_sealed),
        Block::Text { .. } | Block::ToolCall(_) => true,
    }
}

/// Whether a reasoning item has its content. The provider stores nothing, so an id alone is not enough.
fn is_sealed(item: &Value) -> bool {
    let is_filled = |key: &str| match item.get(key) {
        Some(Value::String(text)) => !text.is_empty(),
        Some(Value::Array(list)) => !list.is_empty(),
        _ => false,
    };
    item.is_object() && (is_filled("encrypted_content") || is_filled("content"))
}

/// Whether an item id is valid for OpenAI; ids of compatible servers may not be.
fn is_item_id(id: &str, prefix: &str) -> bool {
    id.starts_with(prefix) && id.len() <= MAX_ITEM_ID
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use serde_json::json;
    use switchboard_chat::Media;

    use super::*;

    #[test]
    fn only_documents_that_are_read_are_sent_with_a_name_or_an_address() {
        let check = |name: Option<&str>, media_type: &str, place: Place, expected: Value| {
            let media = Media { media_type: media_type.into(), place };
            let part = Part::File { name: name.map(Into::into), media };
            assert_eq!(json!(Content::from(&part)), expected, "{media_type}");
        };
        let file = |name: &str, kind: &str| json!({"type": "input_file", "filename": name, "file_data": format!("data:{kind};base64,AA==")});
        let data = || Place::Data("AA==".into());
        let pdf = "application/pdf";
        check(None, "application/PDF", data(), file("file.pdf", pdf));
        for (name, sent) in [
            ("a.pdf", "a.pdf"),
            ("A.PDF", "A.PDF"),
            ("a.bin", "a.bin.pdf"),
            ("a", "a.pdf"),
            (" ", "file.pdf"),
        ] {
            check(Some(name), pdf, data(), file(sent, pdf));
        }
        let sheet = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet";
        check(None, sheet, data(), file("file.xlsx", sheet));
        let url = || Place::Url("https://a/b".into());
        check(None, pdf, url(), json!({"type": "input_file", "file_url": "https://a/b"}));
        for kind in [
            "application/octet-stream",
            "application/zip",
            "application/x-unheard-of",
            "application/vnd.openxmlformats-officedocument.other",
            "audio/wav",
            "font/woff2",
            "image/tiff",
        ] {
            let said = |place: &str| {
                let text = format!("[A file `f` of type {kind}{place} is not shown]");
                json!({"type": "input_text", "text": text})
            };
            check(Some("f"), kind, data(), said(""));
            check(Some("f"), kind, url(), said(" at https://a/b"));
        }
    }

    #[test]
    fn older_models_are_not_asked_about_thoughts() {
        for model in ["gpt-5.5", "o4-mini", "codex-mini-latest"] {
            assert!(thinks(model), "{model}");
        }
        for model in
            ["gpt-4.1", "gpt-4o", "ft:gpt-4o-mini:us::1", "chatgpt-4o-latest", "gpt-3.5-turbo"]
        {
            assert!(!thinks(model), "{model} refuses that");
        }
    }
}
