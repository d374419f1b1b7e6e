//! Levels of MCP log messages.

/// A level of MCP log messages, ordered from `debug` to `emergency`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LogLevel(u8);

const WORDS: [&str; 8] =
    ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

impl LogLevel {
    pub(crate) fn read(word: &str) -> Option<Self> {
        let at = WORDS.iter().position(|known| *known == word)?;
        u8::try_from(at).ok().map(Self)
    }

    pub(crate) fn as_str(self) -> &'static str {
        WORDS.get(usize::from(self.0)).copied().unwrap_or("emergency")
    }

    pub(crate) fn of_rank(rank: u8) -> Option<Self> {
        (usize::from(rank) < WORDS.len()).then_some(Self(rank))
    }

    pub(crate) fn rank(self) -> u8 {
        self.0
    }

    pub(crate) fn words() -> String {
        WORDS.join(", ")
    }
}
