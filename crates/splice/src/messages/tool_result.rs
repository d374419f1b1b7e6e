//! Results of session tools as content blocks.

use serde_json::{Value, json};
use switchboard_chat::attachment::{self, Attachment, File};
use switchboard_chat::{Part, Place, ToolReturn, pieces};

/// The content of an error without text. The API requires some.
const NO_OUTPUT: &str = "(no output)";

/// A `tool_result` block, as the provider takes it.
pub(super) fn tool_result(id: &str, result: &ToolReturn) -> Value {
    let mut block = json!({"type": "tool_result", "tool_use_id": id});
    let (text, media) = pieces(result);
    if result.is_error {
        block["content"] = all_text(text, media).into();
        block["is_error"] = true.into();
    } else if !media.is_empty() {
        let text = (!text.trim().is_empty()).then(|| text_block(&text));
        let media = media.into_iter().filter_map(media_block);
        block["content"] = text.into_iter().chain(media).collect();
    } else if !text.trim().is_empty() {
        block["content"] = text.into();
    }
    block
}

/// An `mcp_tool_result` block, which shows the app a result. It holds nothing but text.
pub(super) fn shown_result(id: &str, result: &ToolReturn) -> Value {
    let (text, media) = pieces(result);
    let text = all_text(text, media);
    json!({
        "type": "mcp_tool_result",
        "tool_use_id": id,
        "is_error": result.is_error,
        "content": [{"type": "text", "text": text}],
    })
}

fn all_text(text: String, media: Vec<&Part>) -> String {
    let texts = [text, attachment::as_text(media)];
    let texts: Vec<_> = texts.into_iter().filter(|text| !text.trim().is_empty()).collect();
    if texts.is_empty() { NO_OUTPUT.to_owned() } else { texts.join("\n") }
}

fn text_block(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn media_block(part: &Part) -> Option<Value> {
    match Attachment::of(part) {
        Attachment::Text(text) => (!text.trim().is_empty()).then(|| text_block(&text)),
        Attachment::Image(file) => Some(json!({"type": "image", "source": source(&file)})),
        Attachment::Pdf(file) => {
            let mut block = json!({"type": "document", "source": source(&file)});
            if let Some(name) = file.name {
                block["title"] = name.into();
            }
            Some(block)
        }
        Attachment::Other(file) => Some(text_block(&file.not_shown())),
    }
}

fn source(file: &File<'_>) -> Value {
    match file.place {
        Place::Data(data) => {
            json!({"type": "base64", "media_type": file.media_type, "data": data})
        }
        Place::Url(url) => json!({"type": "url", "url": url}),
    }
}
