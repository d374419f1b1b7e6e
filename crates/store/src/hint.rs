//! What boards of one database tell each other, and what the sender and the receiver of a process share.

use std::sync::atomic::AtomicBool;

/// What a hint is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum HintTopic {
    /// A session; the key is its id, the version that of its row.
    Session,
    /// A running turn: its events, or a request to it. The key is its id.
    Turn,
    /// An answer or a request for the board that holds a question or a task. The key is its id.
    Question,
    /// The configuration that boards share.
    Config,
    /// API keys and what they grant.
    Keys,
    /// Sign-ins.
    Grants,
    /// What a server listed; the key is its name.
    ServerList,
    /// The slots of a tool; the key is its name.
    Slots,
}

impl HintTopic {
    const ALL: [Self; 8] = [
        Self::Session,
        Self::Turn,
        Self::Question,
        Self::Config,
        Self::Keys,
        Self::Grants,
        Self::ServerList,
        Self::Slots,
    ];

    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::Turn => "turn",
            Self::Question => "question",
            Self::Config => "config",
            Self::Keys => "keys",
            Self::Grants => "grants",
            Self::ServerList => "list",
            Self::Slots => "slots",
        }
    }

    pub(crate) fn of(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|topic| topic.word() == word)
    }
}

/// One change at another board.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeHint {
    pub topic: HintTopic,
    /// Which one; without line breaks.
    pub key: String,
    /// The version after the change, where the thing has versions; else 0.
    pub version: i64,
}

/// What a follower of hints is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HintNotice {
    Hint(ChangeHint),
    /// Hints may have been lost, or cannot be received at all: compare the versions of everything that is held.
    PollAll,
}

/// What the publisher and the listener of a process share.
#[derive(Debug)]
pub(crate) struct HintState {
    /// The sender of a hint; a board ignores its own.
    pub(crate) origin: String,
    /// Whether notifications arrive within the time of a ping.
    pub(crate) is_prompt: AtomicBool,
    /// Whether hints were dropped because too many waited.
    pub(crate) has_dropped: AtomicBool,
}
