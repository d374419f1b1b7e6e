//! The user's message in a request for a turn.

use std::fmt;

use serde::de::value::SeqAccessDeserializer;
use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use switchboard_chat::Part;
use utoipa::ToSchema;

/// Text, or a list of parts.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(untagged)]
pub enum Words {
    Text(String),
    Parts(Vec<Part>),
}

impl Words {
    /// The parts without blank text, which providers reject.
    pub(crate) fn parts(self) -> Vec<Part> {
        let mut parts = match self {
            Self::Text(text) => vec![Part::text(text)],
            Self::Parts(parts) => parts,
        };
        parts.retain(|part| !matches!(part, Part::Text { text } if text.trim().is_empty()));
        parts
    }
}

/// Written by hand: a derived implementation tries both forms, and its error says neither which one the message has nor
/// what is wrong with a part.
impl<'de> Deserialize<'de> for Words {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct EitherForm;

        impl<'de> Visitor<'de> for EitherForm {
            type Value = Words;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text or a list of parts such as {\"type\": \"text\", \"text\": ...}")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Words, E> {
                Ok(Words::Text(text.to_owned()))
            }

            fn visit_string<E: Error>(self, text: String) -> Result<Words, E> {
                Ok(Words::Text(text))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, parts: A) -> Result<Words, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(parts)).map(Words::Parts)
            }
        }

        deserializer.deserialize_any(EitherForm)
    }
}
