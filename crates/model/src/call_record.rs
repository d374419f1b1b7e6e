//! The stored record of a call: who made it, what it was, what admitted it, and how it ended.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use crate::{CallId, CallOutcome, CanonicalName, Face};

/// The stored record of one call. Every call has one, also a call that was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallRecord {
    pub id: CallId,
    /// When it came in, in milliseconds since 1970.
    pub started_at_ms: i64,
    pub face: Face,
    pub caller: RecordedCaller,
    /// The session in which it was made.
    pub session: Option<Arc<str>>,
    /// The tool that it was resolved to.
    pub tool: Option<CanonicalName>,
    /// The name that the caller used.
    pub requested: String,
    /// The revision of the catalog in which the name of the tool was looked up.
    pub revision: u64,
    /// What admitted the tool; none in records of earlier versions.
    pub policy: Option<RecordedPolicy>,
    /// A digest of the arguments.
    pub argument_digest: String,
    pub outcome: CallOutcome,
    /// The error message: why there is no result, or the text of the tool's own error.
    pub message: Option<String>,
    /// How long it waited for its slots.
    pub wait: Duration,
    /// How long it ran.
    pub run: Duration,
    pub result_bytes: u64,
    /// The handle of the stored full result, when it was too large to be returned inline.
    pub result_handle: Option<String>,
    /// The arguments, if the tool's `record.arguments` is set.
    pub arguments: Option<RecordedContent>,
    /// The result, if the tool's `record.results` is set.
    pub result: Option<RecordedContent>,
}

/// Who made a call. Records of earlier versions have only some of this.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecordedCaller {
    /// The principal that made it.
    pub principal: Option<Arc<str>>,
    /// The person behind the principal, whichever program they use.
    pub person: Option<Arc<str>>,
    /// The owner of the session: the principal itself, unless it acted in the session of another one.
    pub owner: Option<Arc<str>>,
    /// The name of the API key.
    pub key: Option<Arc<str>>,
    /// The name that the MCP client gave itself.
    pub client: Option<Arc<str>>,
    /// The version that the MCP client gave itself.
    pub client_version: Option<Arc<str>>,
    /// The agent profile under which it was made.
    pub agent: Option<Arc<str>>,
}

/// What admitted the tool of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedPolicy {
    /// Which part of the configuration set the limits of the tool: `explicit`, `merged` or `default`. None if the call
    /// has no tool.
    pub configured: Option<Cow<'static, str>>,
    /// The admission mode of the tool: `strict` or `dynamic`. None if the call has no tool.
    pub mode: Option<Cow<'static, str>>,
    /// A digest of the configuration that decided. Equal configurations have equal digests.
    pub digest: Arc<str>,
}

/// Arguments or a result as a record keeps them: without secrets, and no longer than a limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedContent {
    /// The JSON text, or its beginning.
    pub text: String,
    /// The length of the whole text in bytes.
    pub bytes: u64,
    /// Whether `text` is only the beginning.
    pub is_cut: bool,
}

impl RecordedContent {
    /// Keeps at most `most` bytes of a text without secrets, and never a part of a character.
    pub fn cut(text: String, most: usize) -> Self {
        let bytes = text.len() as u64;
        if text.len() <= most {
            return Self { text, bytes, is_cut: false };
        }
        let end = (0..=most).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
        let mut text = text;
        text.truncate(end);
        Self { text, bytes, is_cut: true }
    }
}

/// Which contents of a tool's calls are recorded, as configured: a field that is not configured is `None`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct RecordOverlay {
    /// See [`RecordedContents::arguments`].
    pub arguments: Option<bool>,
    /// See [`RecordedContents::results`].
    pub results: Option<bool>,
}

impl RecordOverlay {
    /// Lays `self` over `below`, field by field: a configured field of `self` wins.
    #[must_use]
    pub fn over(self, below: Self) -> Self {
        Self {
            arguments: self.arguments.or(below.arguments),
            results: self.results.or(below.results),
        }
    }

    /// Fills the fields that are not configured: nothing is recorded.
    pub fn resolve(self) -> RecordedContents {
        RecordedContents {
            arguments: self.arguments.unwrap_or_default(),
            results: self.results.unwrap_or_default(),
        }
    }

    /// Whether nothing is configured.
    pub fn is_empty(self) -> bool {
        self == Self::default()
    }
}

/// Which contents of a tool's calls are recorded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct RecordedContents {
    /// Whether the arguments are kept, as the caller gave them.
    pub arguments: bool,
    /// Whether the results are kept.
    pub results: bool,
}

impl RecordedContents {
    /// Whether anything is kept.
    pub fn any(self) -> bool {
        self.arguments || self.results
    }
}

/// Default of `records.max_age`.
pub const DEFAULT_RECORDS_MAX_AGE: Duration = Duration::from_hours(30 * 24);
/// Default of `records.max_count`.
pub const DEFAULT_RECORDS_MAX_COUNT: u64 = 100_000;
/// Default of `records.max_content_bytes`.
pub const DEFAULT_RECORDS_MAX_CONTENT_BYTES: u64 = 256 << 20;

/// The `records` section: how many records of calls are kept, and what is removed from them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordsPlan {
    /// Older records are deleted.
    pub max_age: Duration,
    /// Of the rest, this many of the newest are kept.
    pub max_count: u64,
    /// Recorded arguments and results are kept up to this total size; the oldest are deleted first.
    pub max_content_bytes: u64,
    /// Regular expressions; what they match is replaced in recorded contents and errors.
    pub redact: Vec<String>,
}

impl Default for RecordsPlan {
    fn default() -> Self {
        Self {
            max_age: DEFAULT_RECORDS_MAX_AGE,
            max_count: DEFAULT_RECORDS_MAX_COUNT,
            max_content_bytes: DEFAULT_RECORDS_MAX_CONTENT_BYTES,
            redact: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_is_marked_and_splits_no_character() {
        #[track_caller]
        fn check(text: &str, most: usize, expected: &str, is_cut: bool) {
            let cut = RecordedContent::cut(text.to_owned(), most);
            assert_eq!((cut.text.as_str(), cut.is_cut), (expected, is_cut));
            assert_eq!(cut.bytes, text.len() as u64);
        }
        check("abc", 3, "abc", false);
        check("abc", 2, "ab", true);
        check("aü", 2, "a", true);
        check("ü", 1, "", true);
        check("", 0, "", false);
    }

    #[test]
    fn nothing_is_recorded_unless_a_layer_says_so_and_the_upper_one_wins() {
        let overlay = |arguments, results| RecordOverlay { arguments, results };
        assert_eq!(RecordOverlay::default().resolve(), RecordedContents::default());
        let merged = overlay(Some(false), None).over(overlay(Some(true), Some(true))).resolve();
        assert_eq!((merged.arguments, merged.results), (false, true));
    }
}
