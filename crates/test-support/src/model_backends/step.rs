//! One scripted response of a backend.

use std::collections::BTreeSet;
use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;

/// The response to one request. Parts are sent in the order in which they are added.
#[derive(Debug, Clone, Default)]
pub struct Step {
    pub(crate) parts: Vec<Part>,
    pub(crate) stop: Stop,
    pub(crate) usage: UsageReport,
    pub(crate) instead: Option<Instead>,
    pub(crate) error_event: Option<ErrorEvent>,
    pub(crate) quirks: BTreeSet<Quirk>,
    pub(crate) wire: Wire,
}

#[derive(Debug, Clone)]
pub(crate) enum Part {
    Thinking(String),
    /// Redacted thinking; Anthropic only.
    Redacted,
    Text(String),
    Repeat {
        count: usize,
        text: String,
    },
    Call {
        name: String,
        arguments: String,
        id: Option<String>,
    },
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Stop {
    #[default]
    Natural,
    /// The token limit was reached. The last call is truncated in its arguments.
    Length,
    Refusal,
}

#[derive(Debug, Clone, Copy, Default)]
pub(crate) enum UsageReport {
    #[default]
    Standard,
    Given(Usage),
    Missing,
}

/// Token counts; `input` includes cached tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    pub input: u64,
    /// The part of `input` that came from a cache.
    pub cached: u64,
    /// The part of `input` that was written to a cache.
    pub cache_written: u64,
    /// All output tokens, including reasoning.
    pub output: u64,
    /// How much of `output` is reasoning.
    pub reasoning: u64,
}

impl Default for Usage {
    fn default() -> Self {
        Self { input: 100, cached: 0, cache_written: 0, output: 20, reasoning: 0 }
    }
}

/// A response that is not from a model.
#[derive(Debug, Clone)]
pub(crate) enum Instead {
    Status { code: u16, headers: Vec<(String, String)>, body: Bytes },
    Raw(Bytes),
}

#[derive(Debug, Clone)]
pub(crate) struct ErrorEvent {
    pub(crate) kind: String,
    pub(crate) message: String,
}

/// Deviations of servers that implement a format imperfectly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Quirk {
    /// Chat: fragments of calls have no `index`.
    NoIndex,
    /// Chat: every fragment of a call repeats its name.
    RepeatedName,
    /// Chat: calls have no `id`.
    NoId,
    /// Chat: the id of calls is `null`.
    NullId,
    /// Chat: calls have no `type`.
    NoType,
    /// Chat: the finish reason is `stop` although there are calls.
    StopWithCalls,
    /// Chat: all arguments in one fragment.
    WholeArguments,
    /// `OpenAI` Responses: an error comes as `response.failed` and not as `error`.
    FailedResponse,
    /// Gemini: calls have an id, which the public API often leaves out.
    WithIds,
    /// The last event, which marks the response as complete, is missing.
    NoEnd,
}

/// How the bytes are sent.
#[derive(Debug, Clone, Default)]
#[expect(clippy::struct_excessive_bools, reason = "switches of a script, each by its name")]
pub(crate) struct Wire {
    pub(crate) delay: Duration,
    pub(crate) pace: Duration,
    pub(crate) split: Option<usize>,
    pub(crate) crlf: bool,
    pub(crate) comments: bool,
    pub(crate) unknown_events: bool,
    pub(crate) stamped: bool,
    pub(crate) ending: Ending,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Ending {
    #[default]
    Whole,
    /// The connection breaks after that many bytes.
    Cut(usize),
    /// The body ends regularly after that many bytes.
    Ended(usize),
    /// The parts are sent, and then nothing more.
    Hang,
    /// Not even the response head is sent.
    Silent,
}

impl Step {
    pub fn new() -> Self {
        Self::default()
    }

    /// An answer that begins with this text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::new().say(text)
    }

    #[must_use]
    pub fn say(mut self, text: impl Into<String>) -> Self {
        self.parts.push(Part::Text(text.into()));
        self
    }

    #[must_use]
    pub fn thinking(mut self, text: impl Into<String>) -> Self {
        self.parts.push(Part::Thinking(text.into()));
        self
    }

    /// A `redacted_thinking` block; ignored by other providers than Anthropic.
    #[must_use]
    pub fn redacted_thinking(mut self) -> Self {
        self.parts.push(Part::Redacted);
        self
    }

    /// Calls a tool. Several calls in one step are parallel.
    #[must_use]
    #[expect(clippy::needless_pass_by_value, reason = "tests write JSON literals")]
    pub fn call(self, name: impl Into<String>, arguments: Value) -> Self {
        self.call_raw(name, arguments.to_string())
    }

    /// Calls a tool with arguments that need not be JSON.
    #[must_use]
    pub fn call_raw(mut self, name: impl Into<String>, arguments: impl Into<String>) -> Self {
        self.parts.push(Part::Call { name: name.into(), arguments: arguments.into(), id: None });
        self
    }

    /// Calls a tool under an id that the test chooses.
    #[must_use]
    #[expect(clippy::needless_pass_by_value, reason = "tests write JSON literals")]
    pub fn call_as(mut self, id: impl Into<String>, name: impl Into<String>, args: Value) -> Self {
        let id = Some(id.into());
        self.parts.push(Part::Call { name: name.into(), arguments: args.to_string(), id });
        self
    }

    /// The same piece of text repeatedly, generated while it is sent.
    #[must_use]
    pub fn repeat_delta(mut self, count: usize, text: impl Into<String>) -> Self {
        self.parts.push(Part::Repeat { count, text: text.into() });
        self
    }

    /// Stops at the token limit; a call at the end is truncated.
    #[must_use]
    pub fn truncated(mut self) -> Self {
        self.stop = Stop::Length;
        self
    }

    /// Stops because the provider refuses to answer.
    #[must_use]
    pub fn refused(mut self) -> Self {
        self.stop = Stop::Refusal;
        self
    }

    #[must_use]
    pub fn usage(mut self, usage: Usage) -> Self {
        self.usage = UsageReport::Given(usage);
        self
    }

    #[must_use]
    pub fn without_usage(mut self) -> Self {
        self.usage = UsageReport::Missing;
        self
    }

    /// A status in place of a response. The body is sent as JSON, unless a header says otherwise.
    #[must_use]
    pub fn status(mut self, code: u16, headers: &[(&str, &str)], body: impl Into<Bytes>) -> Self {
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let headers = headers.iter().map(own).collect();
        self.instead = Some(Instead::Status { code, headers, body: body.into() });
        self
    }

    /// An HTML page of a proxy or a login in place of a response.
    #[must_use]
    pub fn html(self, code: u16, page: impl Into<Bytes>) -> Self {
        self.status(code, &[("content-type", "text/html; charset=utf-8")], page)
    }

    /// An error in the stream, after 200 and after the parts.
    #[must_use]
    pub fn error_event(mut self, kind: impl Into<String>, message: impl Into<String>) -> Self {
        self.error_event = Some(ErrorEvent { kind: kind.into(), message: message.into() });
        self
    }

    /// These raw bytes as the stream. Split, pace and endings still apply.
    #[must_use]
    pub fn raw(mut self, bytes: impl Into<Bytes>) -> Self {
        self.instead = Some(Instead::Raw(bytes.into()));
        self
    }

    /// Breaks the connection after that many bytes of the body.
    #[must_use]
    pub fn cut_after(mut self, bytes: usize) -> Self {
        self.wire.ending = Ending::Cut(bytes);
        self
    }

    /// Ends the body regularly after that many bytes.
    #[must_use]
    pub fn end_after(mut self, bytes: usize) -> Self {
        self.wire.ending = Ending::Ended(bytes);
        self
    }

    /// Sends the parts and then nothing more, until the client disconnects.
    #[must_use]
    pub fn hang(mut self) -> Self {
        self.wire.ending = Ending::Hang;
        self
    }

    /// Takes the request and never answers.
    #[must_use]
    pub fn silent(mut self) -> Self {
        self.wire.ending = Ending::Silent;
        self
    }

    /// Waits before the response begins.
    #[must_use]
    pub fn delay(mut self, delay: Duration) -> Self {
        self.wire.delay = delay;
        self
    }

    /// Waits before each chunk of the body.
    #[must_use]
    pub fn pace(mut self, pace: Duration) -> Self {
        self.wire.pace = pace;
        self
    }

    /// Sends the body in chunks of that many bytes, which may split a character.
    #[must_use]
    pub fn split(mut self, bytes: usize) -> Self {
        self.wire.split = Some(bytes.max(1));
        self
    }

    /// Ends lines with CR LF. Gemini always does.
    #[must_use]
    pub fn crlf(mut self) -> Self {
        self.wire.crlf = true;
        self
    }

    /// Puts a comment before every event.
    #[must_use]
    pub fn comments(mut self) -> Self {
        self.wire.comments = true;
        self
    }

    /// Inserts events that no client knows.
    #[must_use]
    pub fn unknown_events(mut self) -> Self {
        self.wire.unknown_events = true;
        self
    }

    /// Replaces [`STAMP`](super::STAMP) with the time of sending.
    #[must_use]
    pub fn stamped(mut self) -> Self {
        self.wire.stamped = true;
        self
    }

    #[must_use]
    pub fn quirk(mut self, quirk: Quirk) -> Self {
        self.quirks.insert(quirk);
        self
    }

    pub(crate) fn has(&self, quirk: Quirk) -> bool {
        self.quirks.contains(&quirk)
    }

    pub(crate) fn calls(&self) -> impl Iterator<Item = (&str, &str)> {
        self.parts.iter().filter_map(|part| match part {
            Part::Call { name, arguments, .. } => Some((name.as_str(), arguments.as_str())),
            Part::Thinking(_) | Part::Redacted | Part::Text(_) | Part::Repeat { .. } => None,
        })
    }

    /// Whether the part at this position is a truncated call.
    pub(crate) fn is_cut(&self, place: usize) -> bool {
        self.stop == Stop::Length && place + 1 == self.parts.len()
    }

    pub(crate) fn ends(&self) -> bool {
        self.wire.ending != Ending::Hang && !self.has(Quirk::NoEnd) && self.error_event.is_none()
    }

    pub(crate) fn counted(&self) -> Option<Usage> {
        match self.usage {
            UsageReport::Standard => Some(Usage::default()),
            UsageReport::Given(usage) => Some(usage),
            UsageReport::Missing => None,
        }
    }
}

/// The arguments as sent: only the first half if the call is truncated.
pub(crate) fn sent_arguments(arguments: &str, is_cut: bool) -> String {
    let length = arguments.chars().count();
    arguments.chars().take(if is_cut { length.div_ceil(2) } else { length }).collect()
}

/// The pieces in which a text is streamed.
pub(crate) fn pieces(text: &str) -> Vec<String> {
    const PIECE: usize = 7;
    let letters: Vec<char> = text.chars().collect();
    letters.chunks(PIECE).map(|piece| piece.iter().collect()).collect()
}
