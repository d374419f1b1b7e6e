//! Content that both OpenAI formats represent in the same way.

use std::borrow::Cow;

use switchboard_chat::attachment::File;
use switchboard_chat::{FaultKind, ModelFault, Part, Place, ToolReturn, pieces};

/// Maximum number of characters of a tool result.
const MAX_RESULT_CHARS: usize = 10_485_760;

/// The text of a tool result and its other parts. A failed call is marked in the text, because neither format has a
/// flag for it.
pub(super) fn outcome(result: &ToolReturn) -> (String, Vec<&Part>) {
    let (mut text, media) = pieces(result);
    if result.is_error && text.trim().is_empty() {
        "Error: the tool failed and did not say why".clone_into(&mut text);
    } else if result.is_error && !text.starts_with("Error") {
        text.insert_str(0, "Error: ");
    }
    (fitted(text), media)
}

/// Cuts a text to the maximum length of a tool result, with a note.
pub(super) fn fitted(text: String) -> String {
    cut(text, MAX_RESULT_CHARS)
}

fn cut(text: String, most: usize) -> String {
    // A text never has more characters than bytes.
    if text.len() <= most {
        return text;
    }
    let count = text.chars().count();
    if count <= most {
        return text;
    }
    let notice = format!("\n[cut here: the result has {count} characters; the limit is {most}]");
    let room = most.saturating_sub(notice.chars().count());
    text.chars().take(room).collect::<String>() + &notice
}

/// The URL of a file, or a `data:` URL with its content.
pub(super) fn address<'a>(file: &File<'a>) -> Cow<'a, str> {
    match file.place {
        Place::Data(data) => format!("data:{};base64,{data}", file.media_type).into(),
        Place::Url(url) => Cow::Borrowed(url),
    }
}

/// The error for a request without messages; the providers' own errors for it are hard to understand.
pub(super) fn nothing_to_answer() -> ModelFault {
    let text = "the conversation has no message to answer: send a message first";
    ModelFault::new(FaultKind::BadRequest, text)
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn a_text_that_is_too_long_says_that_it_was_cut() {
        assert_eq!(cut("é".repeat(100), 100).chars().count(), 100);
        let cut = cut("é".repeat(101), 100);
        assert_eq!(cut.chars().count(), 100);
        assert!(cut.ends_with("[cut here: the result has 101 characters; the limit is 100]"));
    }
}
