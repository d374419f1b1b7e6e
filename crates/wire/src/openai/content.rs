//! What people say and what tools give, in the pieces that both formats of OpenAI have words for.
//!
//! One piece that a provider does not take makes it refuse the whole conversation, for good. So what is known to be
//! refused becomes a text that says what was left out.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use switchboard_chat::{Media, Part, Place, ToolReturn};

use crate::outcome;

/// The most characters that the output of a call may have.
const MOST_CHARS: usize = 10_485_760;
const IMAGES: [&str; 5] = ["image/png", "image/jpeg", "image/jpg", "image/webp", "image/gif"];

/// A piece of content.
#[derive(Debug, PartialEq)]
pub(super) enum Piece<'a> {
    Text(Cow<'a, str>),
    /// Its address, which may hold all of it.
    Image(Cow<'a, str>),
    File {
        name: Cow<'a, str>,
        address: Cow<'a, str>,
        /// The address is one that the provider must read.
        is_elsewhere: bool,
    },
}

impl<'a> Piece<'a> {
    pub(super) fn of(part: &'a Part) -> Self {
        match part {
            Part::Text { text } => Self::Text(Cow::Borrowed(text)),
            Part::Image(media) => image(media),
            Part::File { name, media } => file(name.as_deref(), media),
        }
    }
}

/// What a call gave: its text, which says so when it failed, for neither format has a flag for that, and the rest.
pub(super) fn outcome(result: &ToolReturn) -> (String, Vec<Piece<'_>>) {
    let (mut text, media) = outcome::pieces(result);
    if result.is_error && text.trim().is_empty() {
        "Error: the tool failed and did not say why".clone_into(&mut text);
    } else if result.is_error && !text.starts_with("Error") {
        text.insert_str(0, "Error: ");
    }
    let pieces = media.into_iter().map(|part| match Piece::of(part) {
        Piece::Text(text) => Piece::Text(Cow::Owned(fitted(text.into_owned(), MOST_CHARS))),
        other => other,
    });
    (fitted(text, MOST_CHARS), pieces.collect())
}

/// A text that is not too long, and says so where it was.
fn fitted(text: String, most: usize) -> String {
    // There are never more characters than bytes.
    if text.len() <= most {
        return text;
    }
    let count = text.chars().count();
    if count <= most {
        return text;
    }
    let notice = format!("\n[cut here: the result has {count} characters, and {most} are taken]");
    let room = most.saturating_sub(notice.chars().count());
    text.chars().take(room).collect::<String>() + &notice
}

fn image(media: &Media) -> Piece<'_> {
    let is_known = IMAGES.iter().any(|known| known.eq_ignore_ascii_case(&media.media_type));
    match (&media.place, address(media)) {
        (Place::Url(_), Some(address)) => Piece::Image(address),
        (Place::Data(_), Some(address)) if is_known => Piece::Image(address),
        (Place::Data(_) | Place::Url(_), _) => left_out("an image", None, media),
    }
}

fn file<'a>(name: Option<&'a str>, media: &'a Media) -> Piece<'a> {
    if let Some(text) = text_of(media) {
        return Piece::Text(match name {
            Some(name) => format!("File {name}:\n{text}").into(),
            None => text.into(),
        });
    }
    let kind = media.media_type.to_ascii_lowercase();
    let is_heard = kind.starts_with("audio/") || kind.starts_with("video/");
    match address(media) {
        Some(address) if !is_heard => Piece::File {
            name: name.map_or_else(|| made_up_name(&kind), Cow::Borrowed),
            address,
            is_elsewhere: matches!(media.place, Place::Url(_)),
        },
        _ => left_out("a file", name, media),
    }
}

/// Says that something is not shown, and where it is if that is short.
pub(super) fn left_out<'a>(what: &str, name: Option<&str>, media: &Media) -> Piece<'a> {
    let name = name.map(|name| format!(" `{name}`")).unwrap_or_default();
    let place = match &media.place {
        Place::Url(url) if url.len() <= 2048 => format!(" at {url}"),
        Place::Url(_) | Place::Data(_) => String::new(),
    };
    let kind = &media.media_type;
    Piece::Text(
        format!("[{what}{name} of type {kind}{place} cannot be shown to this model]").into(),
    )
}

/// Where a provider finds it.
fn address(media: &Media) -> Option<Cow<'_, str>> {
    match &media.place {
        Place::Data(data) => {
            Some(format!("data:{};base64,{data}", media.media_type.to_ascii_lowercase()).into())
        }
        Place::Url(url) => {
            let is_readable = ["https://", "http://", "data:"].iter().any(|s| url.starts_with(s));
            is_readable.then_some(Cow::Borrowed(url))
        }
    }
}

/// The text of a file that is one: models read it best where it stands.
fn text_of(media: &Media) -> Option<String> {
    let kind = media.media_type.to_ascii_lowercase();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    let is_text = kind.starts_with("text/")
        || ["json", "xml", "yaml", "toml", "javascript", "x-sh", "sql"]
            .iter()
            .any(|word| kind.strip_prefix("application/") == Some(word))
        || kind.ends_with("+json")
        || (kind.ends_with("+xml") && !kind.starts_with("image/"));
    let Place::Data(data) = &media.place else { return None };
    if !is_text {
        return None;
    }
    String::from_utf8(STANDARD.decode(data).ok()?).ok()
}

/// A file must have a name, whose end says what it is.
fn made_up_name<'a>(kind: &str) -> Cow<'a, str> {
    let plain = |c: char| c.is_ascii_alphanumeric();
    let end = kind.rsplit('/').next().filter(|end| end.len() <= 8 && end.chars().all(plain));
    Cow::Owned(format!("file.{}", end.unwrap_or("bin")))
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    fn media(kind: &str, place: Place) -> Media {
        Media { media_type: kind.into(), place }
    }

    fn data(text: &str) -> Place {
        Place::Data(STANDARD.encode(text))
    }

    #[track_caller]
    fn check(part: &Part, expected: &str) {
        let found = match Piece::of(part) {
            Piece::Text(text) => format!("text {text}"),
            Piece::Image(address) => format!("image {address}"),
            Piece::File { name, address, is_elsewhere } => {
                format!("file {name} {address} {is_elsewhere}")
            }
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn what_is_not_taken_becomes_a_text_that_says_so() {
        let url = |url: &str| Place::Url(url.into());
        check(&Part::Image(media("image/PNG", data("a"))), "image data:image/png;base64,YQ==");
        check(&Part::Image(media("image/x", url("https://a/b"))), "image https://a/b");
        check(
            &Part::Image(media("image/svg+xml", data("a"))),
            "text [an image of type image/svg+xml cannot be shown to this model]",
        );
        check(
            &Part::Image(media("image/png", url("mem://a"))),
            "text [an image of type image/png at mem://a cannot be shown to this model]",
        );
        let file = |name: Option<&str>, kind: &str, place| Part::File {
            name: name.map(str::to_owned),
            media: media(kind, place),
        };
        check(&file(Some("a.md"), "text/markdown", data("# é")), "text File a.md:\n# é");
        check(&file(None, "application/json; charset=utf-8", data("{}")), "text {}");
        check(
            &file(None, "application/pdf", data("a")),
            "file file.pdf data:application/pdf;base64,YQ== false",
        );
        check(
            &file(Some("b.pdf"), "application/pdf", url("https://a/b.pdf")),
            "file b.pdf https://a/b.pdf true",
        );
        check(
            &file(Some("b.wav"), "audio/wav", data("a")),
            "text [a file `b.wav` of type audio/wav cannot be shown to this model]",
        );
    }

    #[test]
    fn a_text_that_is_too_long_says_that_it_was_cut() {
        assert_eq!(fitted("é".repeat(100), 100).chars().count(), 100);
        let cut = fitted("é".repeat(101), 100);
        assert_eq!(cut.chars().count(), 100);
        assert!(cut.ends_with("[cut here: the result has 101 characters, and 100 are taken]"));
    }
}
