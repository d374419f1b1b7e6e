//! Classifies non-text parts by what models can read.
//!
//! One part that a provider cannot read makes it reject the whole conversation, in all later requests too. So parts
//! that are known to be rejected are replaced by a text that names them.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::{Media, Part, Place};

/// Maximum length of a URL in such a text.
const MAX_URL_LENGTH: usize = 2048;

/// The kind of a part.
#[derive(Debug, PartialEq)]
pub enum Attachment<'a> {
    /// Text: the part's own, that of a text file after its name, or a note about a part that cannot be sent.
    Text(Cow<'a, str>),
    /// An image of a type that nearly all models accept.
    Image(File<'a>),
    Pdf(File<'a>),
    /// Any other type. Some models accept audio and video.
    Other(File<'a>),
}

/// A file with valid inline data, or with a URL that a provider can fetch.
#[derive(Debug, PartialEq)]
pub struct File<'a> {
    pub name: Option<&'a str>,
    /// Lower-case and without parameters.
    pub media_type: Cow<'a, str>,
    pub place: &'a Place,
}

impl<'a> Attachment<'a> {
    pub fn of(part: &'a Part) -> Self {
        let (name, media) = match part {
            Part::Text { text } => return Self::Text(Cow::Borrowed(text)),
            Part::Image(media) => (None, media),
            Part::File { name, media } => (name.as_deref(), media),
        };
        let media_type = essence(&media.media_type);
        if is_text(&media_type)
            && let Some(text) = text_of(media)
        {
            return Self::Text(named(name, text).into());
        }
        let can_be_read = is_media_type(&media_type) && is_readable(&media.place);
        let file = File { name, media_type, place: &media.place };
        match &*file.media_type {
            _ if !can_be_read => Self::Text(file.not_shown().into()),
            "image/png" | "image/jpeg" | "image/gif" | "image/webp" => Self::Image(file),
            "application/pdf" => Self::Pdf(file),
            _ => Self::Other(file),
        }
    }
}

impl File<'_> {
    /// The text that replaces a part that cannot be sent, so that the model knows of it.
    pub fn not_shown(&self) -> String {
        let name = self.name.map(|name| format!(" `{name}`")).unwrap_or_default();
        let place = match &self.place {
            Place::Url(url) if url.len() <= MAX_URL_LENGTH => format!(" at {url}"),
            Place::Url(_) | Place::Data(_) => String::new(),
        };
        format!("[A file{name} of type {}{place} is not shown]", self.media_type)
    }
}

/// All parts as text, for places that accept nothing else.
pub fn as_text<'a>(parts: impl IntoIterator<Item = &'a Part>) -> String {
    let texts = parts.into_iter().map(|part| match Attachment::of(part) {
        Attachment::Text(text) => text,
        Attachment::Image(file) | Attachment::Pdf(file) | Attachment::Other(file) => {
            file.not_shown().into()
        }
    });
    let texts: Vec<_> = texts.filter(|text| !text.trim().is_empty()).collect();
    texts.join("\n\n")
}

/// Normalises a media type.
fn essence(media_type: &str) -> Cow<'_, str> {
    let essence = media_type.split(';').next().unwrap_or_default().trim();
    if essence.eq_ignore_ascii_case("image/jpg") {
        return "image/jpeg".into();
    }
    if essence.bytes().any(|byte| byte.is_ascii_uppercase()) {
        return essence.to_ascii_lowercase().into();
    }
    essence.into()
}

fn is_media_type(essence: &str) -> bool {
    let is_word = |word: &str| {
        let is_legal = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&byte);
        !word.is_empty() && word.bytes().all(is_legal)
    };
    essence.split_once('/').is_some_and(|(kind, subtype)| is_word(kind) && is_word(subtype))
}

/// Whether the data or the URL is usable. The media type is not verified.
fn is_readable(place: &Place) -> bool {
    match place {
        Place::Data(data) => is_base64(data),
        Place::Url(url) => {
            let scheme = url.split_once("://").map(|(scheme, _)| scheme).unwrap_or_default();
            ["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known))
        }
    }
}

/// Whether data is non-empty base64. It is not decoded, because it may be large.
fn is_base64(data: &str) -> bool {
    let digits = data.strip_suffix("==").or_else(|| data.strip_suffix('=')).unwrap_or(data);
    let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    !digits.is_empty() && data.len().is_multiple_of(4) && digits.bytes().all(is_digit)
}

fn is_text(essence: &str) -> bool {
    const APPLICATIONS: [&str; 7] = ["json", "xml", "yaml", "toml", "javascript", "x-sh", "sql"];
    essence.starts_with("text/")
        || essence.ends_with("+json")
        || essence.ends_with("+xml") && !essence.starts_with("image/")
        || essence.strip_prefix("application/").is_some_and(|kind| APPLICATIONS.contains(&kind))
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

    #[track_caller]
    fn check(media_type: &str, place: Place, expected: &str) {
        let media = Media { media_type: media_type.into(), place };
        let part = Part::File { name: Some("f".into()), media };
        let found = match Attachment::of(&part) {
            Attachment::Text(text) => format!("text {text}"),
            Attachment::Image(file) => format!("image {}", file.media_type),
            Attachment::Pdf(file) => format!("pdf {}", file.media_type),
            Attachment::Other(file) => format!("other {}", file.media_type),
        };
        assert_eq!(found, expected);
    }

    fn data(data: &str) -> Place {
        Place::Data(data.into())
    }

    fn url(url: &str) -> Place {
        Place::Url(url.into())
    }

    #[test]
    fn texts_are_read_and_the_rest_is_told_apart_by_its_type() {
        check("text/csv; charset=utf-8", data("YSxi"), "text File `f`:\na,b");
        check("application/JSON", data("e30="), "text File `f`:\n{}");
        check("text/plain", data(""), "text File `f`:\n");
        check("text/plain", data("/w=="), "other text/plain");
        check("application/pdf", data("AA=="), "pdf application/pdf");
        check("image/PNG", data("AAA="), "image image/png");
        check("image/jpg", url("https://a/b"), "image image/jpeg");
        check("image/svg+xml", data("AAAA"), "other image/svg+xml");
    }

    #[test]
    fn what_a_provider_could_not_read_is_only_mentioned() {
        for broken in ["", "=", "====", "AA=", "A===", "AAAAA", "no base64!", "AA==AA==", "AA\nA"] {
            check("image/png", data(broken), "text [A file `f` of type image/png is not shown]");
        }
        check(
            "application/json",
            data("no base64!"),
            "text [A file `f` of type application/json is not shown]",
        );
        for elsewhere in ["file:///a", "mem://a", "ftp://a/b", "data:image/png;base64,AA==", ""] {
            let expected =
                format!("text [A file `f` of type image/png at {elsewhere} is not shown]");
            check("image/png", url(elsewhere), &expected);
        }
        let long = format!("mem://{}", "a".repeat(MAX_URL_LENGTH));
        check("image/png", url(&long), "text [A file `f` of type image/png is not shown]");
        check(
            "HTTP://a",
            url("HTTP://a"),
            "text [A file `f` of type http://a at HTTP://a is not shown]",
        );
        check("image/webp", url("HTTP://a"), "image image/webp");
    }

    #[test]
    fn what_only_text_can_stand_for_is_mentioned() {
        let wav = Media { media_type: "audio/wav".into(), place: data("AA==") };
        let wav = Part::File { name: Some("f".into()), media: wav };
        let parts = [Part::text("a"), Part::text(" "), wav];
        assert_eq!(as_text(&parts), "a\n\n[A file `f` of type audio/wav is not shown]");
    }
}
