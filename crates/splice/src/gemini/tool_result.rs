//! Results of session tools as parts.

use serde_json::{Map, Value, json};
use switchboard_chat::attachment::{Attachment, File};
use switchboard_chat::{Part, Place, ToolReturn, pieces};

use super::part::OWN_ID;
use crate::splicer::PendingCall;

/// The parts of a result: the function response, and media beside it where the model takes none within.
pub(super) fn result_parts(
    call: &PendingCall,
    result: &ToolReturn,
    nests_media: bool,
) -> Vec<Value> {
    let (text, media) = pieces(result);
    let mut words = Vec::new();
    let (mut nested, mut beside) = (Vec::new(), Vec::new());
    for part in media {
        match media_part(part) {
            Ok((part, nests)) if nests && nests_media => nested.push(part),
            Ok((part, _)) => beside.push(part),
            Err(text) => words.push(text),
        }
    }
    let mut response = json!({"name": call.name, "response": response(result, text, &words)});
    if !call.id.starts_with(OWN_ID) {
        response["id"] = call.id.as_str().into();
    }
    if !nested.is_empty() {
        response["parts"] = nested.into();
    }
    std::iter::once(json!({"functionResponse": response})).chain(beside).collect()
}

/// The response object with `output` or `error`. Structured content stays an object.
pub(super) fn response(result: &ToolReturn, text: String, words: &[String]) -> Map<String, Value> {
    let mut response = Map::new();
    match &result.structured {
        Some(structured) if !result.is_error => {
            response.insert("output".into(), structured.clone());
            if !words.is_empty() {
                response.insert("files".into(), words.join("\n").into());
            }
        }
        Some(_) | None => {
            let texts = std::iter::once(text).chain(words.iter().cloned());
            let texts: Vec<_> = texts.filter(|text| !text.is_empty()).collect();
            let text = match texts.join("\n") {
                text if text.trim().is_empty() && result.is_error => "(no output)".to_owned(),
                text => text,
            };
            let key = if result.is_error { "error" } else { "output" };
            response.insert(key.into(), text.into());
        }
    }
    response
}

/// A media part, and whether it may be within a function response. A type that the API refuses becomes text.
fn media_part(part: &Part) -> Result<(Value, bool), String> {
    let file: File<'_> = match Attachment::of(part) {
        Attachment::Text(text) => return Err(text.into_owned()),
        Attachment::Image(file) | Attachment::Pdf(file) | Attachment::Other(file) => file,
    };
    let nests = match &*file.media_type {
        "image/png" | "image/jpeg" | "image/webp" | "image/heic" | "image/heif"
        | "application/pdf" => true,
        other if other.starts_with("audio/") || other.starts_with("video/") => false,
        _ => return Err(file.not_shown()),
    };
    let part = match file.place {
        Place::Data(data) => json!({"inlineData": {"mimeType": file.media_type, "data": data}}),
        Place::Url(url) => json!({"fileData": {"mimeType": file.media_type, "fileUri": url}}),
    };
    Ok((part, nests))
}
