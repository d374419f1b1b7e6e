//! Mutations of valid bytes.

use proptest::prelude::*;
use proptest::sample::Index;

/// Fragments with a meaning in the formats.
const PIECES: [&str; 24] = [
    "\n",
    "\r",
    "\n\n",
    "data: ",
    "event: ",
    ": c\n",
    "\u{feff}",
    "{",
    "}",
    "[",
    "]",
    "\"",
    "\\",
    ",",
    "null",
    "[DONE]",
    "1e999",
    "-1",
    "18446744073709551616",
    "\\ud800",
    "data: {\"type\":\"message_stop\"}\n\n",
    "data: [DONE]\n\n",
    "event: error\n",
    "\u{7f}é世",
];

/// One mutation.
#[derive(Debug, Clone)]
pub(crate) enum Mutation {
    Cut(Index),
    Flip(Index, u8),
    Remove(Index, usize),
    Insert(Index, &'static str),
    /// Repeats a part at another position.
    Repeat {
        from: Index,
        length: usize,
        to: Index,
    },
}

impl Mutation {
    pub(crate) fn any() -> impl Strategy<Value = Self> {
        let place = any::<Index>;
        prop_oneof![
            1 => place().prop_map(Self::Cut),
            2 => (place(), any::<u8>()).prop_map(|(at, byte)| Self::Flip(at, byte)),
            3 => (place(), 1_usize..200).prop_map(|(at, length)| Self::Remove(at, length)),
            3 => (place(), proptest::sample::select(&PIECES[..]))
                .prop_map(|(at, piece)| Self::Insert(at, piece)),
            3 => (place(), 1_usize..400, place())
                .prop_map(|(from, length, to)| Self::Repeat { from, length, to }),
        ]
    }

    pub(crate) fn apply(&self, bytes: &mut Vec<u8>) {
        let size = bytes.len();
        let place = |index: &Index| index.index(size + 1);
        match self {
            Self::Cut(at) => bytes.truncate(place(at)),
            Self::Flip(at, byte) => {
                if let Some(flipped) = bytes.get_mut(place(at)) {
                    *flipped ^= byte;
                }
            }
            Self::Remove(at, length) => {
                let at = place(at);
                bytes.drain(at..(at + length).min(size));
            }
            Self::Insert(at, piece) => {
                let at = place(at);
                bytes.splice(at..at, piece.bytes());
            }
            Self::Repeat { from, length, to } => {
                let (from, to) = (place(from), place(to));
                let part = bytes[from..(from + length).min(size)].to_vec();
                bytes.splice(to..to, part);
            }
        }
    }
}
