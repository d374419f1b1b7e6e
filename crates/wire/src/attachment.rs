//! Parts that are not plain text, sorted by what a model can do with them.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use switchboard_chat::{Media, Part, Place, Said};

/// What a part is to a model.
#[derive(Debug, PartialEq)]
pub(crate) enum Attachment<'a> {
    /// Text, that of a file with its name before it; or a word about what cannot be shown.
    Text(Cow<'a, str>),
    /// A picture of a type that all models know.
    Image(&'a Media),
    Pdf {
        name: Option<&'a str>,
        media: &'a Media,
    },
    /// Anything else. Some models hear and see it.
    Other {
        name: Option<&'a str>,
        media: &'a Media,
    },
}

impl<'a> Attachment<'a> {
    pub(crate) fn of(part: &'a Part) -> Self {
        let (name, media) = match part {
            Part::Text { text } => return Self::Text(Cow::Borrowed(text)),
            Part::Image(media) => (None, media),
            Part::File { name, media } => (name.as_deref(), media),
        };
        match media.media_type.as_str() {
            "image/png" | "image/jpeg" | "image/gif" | "image/webp" => Self::Image(media),
            "application/pdf" => Self::Pdf { name, media },
            other if is_text(other) => match text_of(media) {
                Some(text) => Self::Text(named(name, text).into()),
                None => Self::Other { name, media },
            },
            _ => Self::Other { name, media },
        }
    }
}

/// What stands for something that a model cannot be shown, so that it knows that there was something.
pub(crate) fn not_shown(name: Option<&str>, media: &Media) -> String {
    let name = name.map(|name| format!(" `{name}`")).unwrap_or_default();
    let place = match &media.place {
        Place::Data(_) => String::new(),
        Place::Url(url) => format!(" at {url}"),
    };
    format!("[A file{name} of type {}{place} is not shown]", media.media_type)
}

/// All that was said, as text: for places that take nothing else.
pub(crate) fn as_text(said: &Said) -> String {
    let texts = said.content.iter().map(|part| match Attachment::of(part) {
        Attachment::Text(text) => text,
        Attachment::Image(media) => not_shown(None, media).into(),
        Attachment::Pdf { name, media } | Attachment::Other { name, media } => {
            not_shown(name, media).into()
        }
    });
    let texts: Vec<_> = texts.filter(|text| !text.trim().is_empty()).collect();
    texts.join("\n\n")
}

fn is_text(media_type: &str) -> bool {
    let essence = media_type.split(';').next().unwrap_or_default().trim();
    essence.starts_with("text/")
        || essence.ends_with("+json")
        || essence.ends_with("+xml") && essence != "image/svg+xml"
        || matches!(
            essence,
            "application/json" | "application/xml" | "application/yaml" | "application/javascript"
        )
}

fn text_of(media: &Media) -> Option<String> {
    match &media.place {
        Place::Data(data) => String::from_utf8(STANDARD.decode(data).ok()?).ok(),
        Place::Url(_) => None,
    }
}

fn named(name: Option<&str>, text: String) -> String {
    match name {
        Some(name) => format!("File `{name}`:\n{text}"),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    fn file(media_type: &str, data: &str) -> Part {
        let place = Place::Data(data.into());
        Part::File { name: Some("f".into()), media: Media { media_type: media_type.into(), place } }
    }

    #[test]
    fn texts_are_read_and_the_rest_is_told_apart_by_its_type() {
        let text = file("text/csv; charset=utf-8", "YSxi");
        assert_eq!(Attachment::of(&text), Attachment::Text("File `f`:\na,b".into()));
        let broken = file("application/json", "no base64!");
        assert!(matches!(Attachment::of(&broken), Attachment::Other { .. }));
        assert!(matches!(Attachment::of(&file("application/pdf", "")), Attachment::Pdf { .. }));
        assert!(matches!(Attachment::of(&file("image/png", "")), Attachment::Image(_)));
        assert!(matches!(Attachment::of(&file("image/svg+xml", "")), Attachment::Other { .. }));
    }

    #[test]
    fn what_only_text_can_stand_for_is_mentioned() {
        let said =
            Said { content: vec![Part::text("a"), Part::text(" "), file("audio/wav", "AA==")] };
        assert_eq!(as_text(&said), "a\n\n[A file `f` of type audio/wav is not shown]");
    }
}
