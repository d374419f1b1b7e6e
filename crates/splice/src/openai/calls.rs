//! Calls and their results as both OpenAI formats take them.

use std::borrow::Cow;

use switchboard_chat::{Media, Part, Place, ToolReturn, pieces, read_arguments};

/// The text of a result, and its parts that are not text. A failure is marked in the text, because neither format has a
/// flag for it.
pub(crate) fn result_text(result: &ToolReturn) -> (String, Vec<&Part>) {
    let (mut text, media) = pieces(result);
    if result.is_error && text.trim().is_empty() {
        "Error: the tool failed and did not say why".clone_into(&mut text);
    } else if result.is_error && !text.starts_with("Error") {
        text.insert_str(0, "Error: ");
    }
    (text, media)
}

/// A note in the place of a file that a result cannot hold.
pub(crate) fn not_shown(name: Option<&str>, media: &Media) -> String {
    format!("\n[{} cannot be shown: {}]", name.unwrap_or("a file"), media.media_type)
}

/// The URL of a file, or a `data:` URL with its content.
pub(crate) fn url(media: &Media) -> Cow<'_, str> {
    match &media.place {
        Place::Data(data) => format!("data:{};base64,{data}", media.media_type).into(),
        Place::Url(url) => Cow::Borrowed(url),
    }
}

/// The arguments of a call as they are sent back. Servers that parse them fail for arguments that are no JSON object; the
/// result of such a call says what was wrong.
pub(crate) fn readable_arguments(written: &str) -> &str {
    let is_read = read_arguments(serde_json::Value::from(written)).1.is_none();
    if is_read && !written.trim().is_empty() { written } else { "{}" }
}
