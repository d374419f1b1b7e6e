//! Parts of messages: text, images and files.

use serde_json::Value;
use switchboard_chat::{Media, Part, Place};

/// Reads the content of a message: a text, or a list of parts. The error is what cannot be read.
pub(crate) fn read(content: &Value) -> Result<Vec<Part>, String> {
    match content {
        Value::Null => Ok(Vec::new()),
        Value::String(text) => Ok(vec![Part::text(text)]),
        Value::Array(parts) => parts.iter().map(part).collect(),
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => {
            Err("content that is neither a text nor a list of parts".to_owned())
        }
    }
}

fn part(part: &Value) -> Result<Part, String> {
    let kind = part["type"].as_str().unwrap_or_default();
    let text = |name: &str| part[name].as_str();
    let read = match kind {
        "text" | "input_text" | "output_text" => text("text").map(Part::text),
        "refusal" => text("refusal").map(Part::text),
        "image_url" => {
            let url = part["image_url"]["url"].as_str().or(text("image_url"));
            url.map(|url| Part::Image(media(url, "image/jpeg")))
        }
        "input_image" => text("image_url").map(|url| Part::Image(media(url, "image/jpeg"))),
        "file" | "input_file" => {
            let file = if kind == "file" { &part["file"] } else { part };
            let place = file["file_data"].as_str().or(file["file_url"].as_str());
            place.map(|place| Part::File {
                name: file["filename"].as_str().map(str::to_owned),
                media: media(place, "application/pdf"),
            })
        }
        _ => None,
    };
    read.ok_or_else(|| format!("a part of the type `{kind}`"))
}

/// The content of a `data:` URL, or what is at another URL. `likely` is its type where the URL does not say it.
fn media(url: &str, likely: &str) -> Media {
    let inline = url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,"));
    match inline {
        Some((media_type, data)) => {
            Media { media_type: media_type.to_owned(), place: Place::Data(data.to_owned()) }
        }
        None => Media { media_type: likely.to_owned(), place: Place::Url(url.to_owned()) },
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use serde_json::json;

    use super::*;

    #[test]
    fn parts_of_both_apis_are_read() {
        let parts = json!([
            {"type": "text", "text": "a"},
            {"type": "input_image", "image_url": "data:image/png;base64,AA=="},
            {"type": "image_url", "image_url": {"url": "https://x.example/a"}},
            {"type": "file", "file": {"filename": "f.pdf", "file_data": "data:application/pdf;base64,AA=="}},
        ]);
        let place = |media_type: &str, place: Place| Media { media_type: media_type.into(), place };
        let data = || Place::Data("AA==".into());
        let expected = vec![
            Part::text("a"),
            Part::Image(place("image/png", data())),
            Part::Image(place("image/jpeg", Place::Url("https://x.example/a".into()))),
            Part::File { name: Some("f.pdf".into()), media: place("application/pdf", data()) },
        ];
        assert_eq!(read(&parts), Ok(expected));
        let audio = json!([{"type": "input_audio", "input_audio": {}}]);
        assert_eq!(read(&audio), Err("a part of the type `input_audio`".to_owned()));
    }
}
