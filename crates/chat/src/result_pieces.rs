//! Splits a tool result into text and media.

use crate::{Part, ToolReturn};

/// The text of a result and its non-text parts. Structured content replaces the text, which servers duplicate for
/// clients without structured content.
pub fn pieces(result: &ToolReturn) -> (String, Vec<&Part>) {
    let media = result.content.iter().filter(|part| !matches!(part, Part::Text { .. }));
    let texts = result.content.iter().filter_map(|part| match part {
        Part::Text { text } => Some(text.as_str()),
        Part::Image(_) | Part::File { .. } => None,
    });
    let structured = result.structured.as_ref().map(ToString::to_string);
    let text = structured.unwrap_or_else(|| texts.collect::<Vec<_>>().join("\n"));
    (text, media.collect())
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use serde_json::{Value, json};

    use super::*;
    use crate::{Media, Place};

    #[track_caller]
    fn check(content: Vec<Part>, structured: Option<Value>, text: &str, media: usize) {
        let (call, name) = ("c".into(), "t".into());
        let result =
            ToolReturn { call, name, content, structured, is_error: false, latency_ms: None };
        let (got, rest) = pieces(&result);
        assert_eq!((got.as_str(), rest.len()), (text, media));
    }

    #[test]
    fn structure_stands_for_the_text_and_media_stay() {
        let image = Part::Image(Media {
            media_type: "image/png".into(),
            place: Place::Data("AA==".into()),
        });
        check(vec![Part::text("a"), image.clone(), Part::text("b")], None, "a\nb", 1);
        check(vec![Part::text("a"), image], Some(json!({"a": 1})), r#"{"a":1}"#, 1);
        check(vec![], None, "", 0);
    }
}
