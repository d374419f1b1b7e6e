//! One tool execution: its result and its failure.

use std::fmt;
use std::time::Duration;

use serde_json::Value;

use crate::ServerName;

/// The id of a call, unique over all runs.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CallId(pub String);

impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The result of a tool, in the shape of an MCP `tools/call` result.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolResult {
    /// Content blocks, as the server sent them.
    pub content: Vec<Value>,
    pub structured: Option<Value>,
    /// Whether the tool reported its own failure (`isError`).
    pub is_error: bool,
    /// Further members of the result (`_meta`, unknown fields), passed on unchanged.
    pub extra: serde_json::Map<String, Value>,
}

impl ToolResult {
    /// A result of one text block.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            content: vec![serde_json::json!({"type": "text", "text": text.into()})],
            structured: None,
            is_error: false,
            extra: serde_json::Map::new(),
        }
    }

    /// A result with `isError` and one text block that says what went wrong.
    pub fn error(text: impl Into<String>) -> Self {
        Self { is_error: true, ..Self::text(text) }
    }

    /// Parses an MCP result; the error says why the text is not one.
    pub fn from_text(json: &str) -> Result<Self, String> {
        let value: Value = serde_json::from_str(json).map_err(|error| error.to_string())?;
        let Value::Object(mut whole) = value else {
            return Err("the result is not an object".into());
        };
        whole.shift_remove("resultType");
        let content = match whole.shift_remove("content") {
            Some(Value::Array(content)) => content,
            None if whole.contains_key("structuredContent") => Vec::new(),
            _ => return Err("the result has no `content` list".into()),
        };
        let structured = whole.shift_remove("structuredContent");
        let is_error = whole.shift_remove("isError").is_some_and(|flag| flag == true);
        Ok(Self { content, structured, is_error, extra: whole })
    }

    /// Serializes the result as MCP does.
    pub fn to_value(&self) -> Value {
        let mut whole = self.extra.clone();
        whole.insert("content".into(), Value::Array(self.content.clone()));
        if let Some(structured) = &self.structured {
            whole.insert("structuredContent".into(), structured.clone());
        }
        whole.insert("isError".into(), Value::Bool(self.is_error));
        Value::Object(whole)
    }
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallOutcome {
    /// The tool returned a result.
    Ok,
    /// The tool returned a result with `isError`.
    ToolError,
    /// The call never ran, or did not finish.
    Failed(CallErrorKind),
}

impl CallOutcome {
    /// Every outcome that a record can hold.
    pub const ALL: [Self; 14] = [
        Self::Ok,
        Self::ToolError,
        Self::Failed(CallErrorKind::UnknownTool),
        Self::Failed(CallErrorKind::InvalidArguments),
        Self::Failed(CallErrorKind::QueueTimeout),
        Self::Failed(CallErrorKind::Timeout),
        Self::Failed(CallErrorKind::InactivityTimeout),
        Self::Failed(CallErrorKind::Cancelled),
        Self::Failed(CallErrorKind::Unavailable),
        Self::Failed(CallErrorKind::Upstream),
        Self::Failed(CallErrorKind::Blocked),
        Self::Failed(CallErrorKind::NeedsSignIn),
        Self::Failed(CallErrorKind::RateLimited),
        Self::Failed(CallErrorKind::Internal),
    ];

    /// Parses the word that [`CallOutcome::as_str`] writes.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|outcome| outcome.as_str() == word)
    }

    /// The word in records and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::ToolError => "tool_error",
            Self::Failed(kind) => kind.as_str(),
        }
    }
}

/// Why a call has no result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallErrorKind {
    /// No tool of that name.
    UnknownTool,
    /// The arguments do not fit the tool's schema; nothing was sent.
    InvalidArguments,
    /// No slot became free in time; nothing was sent.
    QueueTimeout,
    /// The call ran longer than its `timeout`.
    Timeout,
    /// The server sent nothing for the running call for longer than its `inactivity_timeout`.
    InactivityTimeout,
    /// The caller cancelled.
    Cancelled,
    /// The server is not connected.
    Unavailable,
    /// The server returned a protocol error or an invalid response.
    Upstream,
    /// A content check refused the call or its result, or gave no verdict and fails closed.
    Blocked,
    /// The person who calls must sign in at the server first; nothing was sent.
    NeedsSignIn,
    /// The tool, or the caller, has used up its rate; nothing was sent.
    RateLimited,
    /// An error in Switchboard itself.
    Internal,
}

impl CallErrorKind {
    /// The word in records, metrics and JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::UnknownTool => "unknown_tool",
            Self::InvalidArguments => "invalid_arguments",
            Self::QueueTimeout => "queue_timeout",
            Self::Timeout => "timeout",
            Self::InactivityTimeout => "inactivity_timeout",
            Self::Cancelled => "cancelled",
            Self::Unavailable => "unavailable",
            Self::Upstream => "upstream_error",
            Self::Blocked => "blocked",
            Self::NeedsSignIn => "needs_sign_in",
            Self::RateLimited => "rate_limited",
            Self::Internal => "internal_error",
        }
    }

    /// Which party caused the failure.
    pub fn fault(self) -> Fault {
        match self {
            Self::UnknownTool
            | Self::InvalidArguments
            | Self::Cancelled
            | Self::Blocked
            | Self::NeedsSignIn
            | Self::RateLimited => Fault::Caller,
            Self::Timeout | Self::InactivityTimeout | Self::Unavailable | Self::Upstream => {
                Fault::Upstream
            }
            Self::QueueTimeout | Self::Internal => Fault::Us,
        }
    }

    /// Whether a retry may succeed.
    pub fn retry(self) -> Retry {
        match self {
            Self::UnknownTool
            | Self::InvalidArguments
            | Self::Internal
            | Self::Upstream
            | Self::Blocked => Retry::Never,
            Self::Timeout | Self::InactivityTimeout | Self::Cancelled => Retry::IfSafe,
            Self::QueueTimeout | Self::Unavailable | Self::NeedsSignIn | Self::RateLimited => {
                Retry::Later
            }
        }
    }
}

/// Which party caused a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    Caller,
    Upstream,
    Us,
}

/// Whether a retry may succeed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retry {
    /// The same call will fail again.
    Never,
    /// The tool may have run: retry only if running it twice does no harm.
    IfSafe,
    /// The tool did not run: retry after a short wait.
    Later,
}

/// A call without a result. The message names the tool and the cause; the hint says what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct CallError {
    pub kind: CallErrorKind,
    pub message: String,
    /// The ways out, each for those who can take it.
    pub hints: Vec<Hint>,
    /// The errors of single arguments, if the arguments do not fit.
    pub faults: Box<[ArgumentFault]>,
    /// Where the person signs in, if that is what the call needs.
    pub sign_in: Option<Box<SignInPage>>,
    /// The time after which the call may succeed, if it is known.
    pub retry_after: Option<Duration>,
}

/// The page where a person signs in at a server, so that their calls can use their own account there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignInPage {
    pub server: ServerName,
    pub url: String,
    /// What the page asks for, to see that the person who opens it is the one whose call needs it. `None` where the page
    /// asks for nothing.
    pub code: Option<String>,
    /// When the page stops working, in milliseconds since 1970.
    pub expires_at_ms: i64,
}

impl SignInPage {
    /// The page as JSON, for structured results.
    pub fn to_value(&self) -> Value {
        let mut page = serde_json::json!({
            "server": self.server.as_str(),
            "url": self.url,
            "expiresAtMs": self.expires_at_ms,
        });
        if let Some(code) = &self.code {
            page["code"] = Value::from(code.as_str());
        }
        page
    }
}

/// An error in the arguments of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArgumentFault {
    /// The JSON pointer of the argument; empty for the arguments as a whole.
    pub path: String,
    pub message: String,
}

impl ArgumentFault {
    /// An error in the argument of this name.
    pub fn of(argument: &str, message: impl Into<String>) -> Self {
        let path = format!("/{}", argument.replace('~', "~0").replace('/', "~1"));
        Self { path, message: message.into() }
    }
}

/// A way out of a failure, and who can take it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hint {
    pub audience: HintAudience,
    pub text: String,
}

/// Who can do what a hint says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HintAudience {
    /// The person who runs the board: a command, a setting. A model or a client elsewhere can do nothing with it.
    Operator,
    /// Whoever made the call, a model as well: another name, another argument, a later time.
    Caller,
}

impl CallError {
    /// A failure without a hint.
    pub fn new(kind: CallErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            hints: Vec::new(),
            faults: Box::default(),
            sign_in: None,
            retry_after: None,
        }
    }

    /// Adds a hint that says what the caller itself can do about the error.
    #[must_use]
    pub fn with_hint(self, text: impl Into<String>) -> Self {
        self.and_hint(HintAudience::Caller, text.into())
    }

    /// Adds a way out that only the operator of the board can take.
    #[must_use]
    pub fn with_operator_hint(self, text: impl Into<String>) -> Self {
        self.and_hint(HintAudience::Operator, text.into())
    }

    /// Names the time after which the call may succeed.
    #[must_use]
    pub fn with_retry_after(self, wait: Duration) -> Self {
        Self { retry_after: Some(wait), ..self }
    }

    /// Names the single arguments that are wrong.
    #[must_use]
    pub fn with_faults(self, faults: Vec<ArgumentFault>) -> Self {
        Self { faults: faults.into(), ..self }
    }

    /// Names the page where the person signs in, also in words.
    #[must_use]
    pub fn with_sign_in(self, page: SignInPage) -> Self {
        let hint = match &page.code {
            Some(code) => format!(
                "the person must open {} in a browser, enter the code {code} and sign in; then make the call again",
                page.url
            ),
            None => format!(
                "the person must open {} in a browser and sign in; then make the call again",
                page.url
            ),
        };
        Self { sign_in: Some(Box::new(page)), ..self }.with_hint(hint)
    }

    fn and_hint(mut self, audience: HintAudience, text: String) -> Self {
        self.hints.push(Hint { audience, text });
        self
    }

    /// What can be done about the error: all hints as one text, for people. `None` without hints.
    pub fn hint(&self) -> Option<String> {
        all_texts(&self.hints)
    }

    /// The message with the hints for the caller, for a model to act on.
    pub fn for_caller(&self) -> String {
        let hints = self.hints.iter().filter(|hint| hint.audience == HintAudience::Caller);
        let parts: Vec<_> = std::iter::once(self.message.as_str())
            .chain(hints.map(|hint| hint.text.as_str()))
            .collect();
        parts.join("; ")
    }
}

/// Hints as one text; `None` if there are none.
pub(crate) fn all_texts(hints: &[Hint]) -> Option<String> {
    let texts: Vec<_> = hints.iter().map(|hint| hint.text.as_str()).collect();
    (!texts.is_empty()).then(|| texts.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_is_written_as_mcp_does() {
        let mut result = ToolResult::error("no");
        result.structured = Some(serde_json::json!({"a": 1}));
        result.extra.insert("_meta".into(), serde_json::json!({"k": 1}));
        assert_eq!(
            result.to_value(),
            serde_json::json!({
                "_meta": {"k": 1},
                "content": [{"type": "text", "text": "no"}],
                "structuredContent": {"a": 1},
                "isError": true,
            })
        );
    }

    #[test]
    fn every_kind_says_whose_fault_it_is_and_whether_to_try_again() {
        use CallErrorKind as K;
        let rows = [
            (K::UnknownTool, "unknown_tool", Fault::Caller, Retry::Never),
            (K::InvalidArguments, "invalid_arguments", Fault::Caller, Retry::Never),
            (K::QueueTimeout, "queue_timeout", Fault::Us, Retry::Later),
            (K::Timeout, "timeout", Fault::Upstream, Retry::IfSafe),
            (K::InactivityTimeout, "inactivity_timeout", Fault::Upstream, Retry::IfSafe),
            (K::Cancelled, "cancelled", Fault::Caller, Retry::IfSafe),
            (K::Unavailable, "unavailable", Fault::Upstream, Retry::Later),
            (K::Upstream, "upstream_error", Fault::Upstream, Retry::Never),
            (K::Blocked, "blocked", Fault::Caller, Retry::Never),
            (K::NeedsSignIn, "needs_sign_in", Fault::Caller, Retry::Later),
            (K::RateLimited, "rate_limited", Fault::Caller, Retry::Later),
            (K::Internal, "internal_error", Fault::Us, Retry::Never),
        ];
        for (kind, word, fault, retry) in rows {
            assert_eq!((kind.as_str(), kind.fault(), kind.retry()), (word, fault, retry));
            assert_eq!(CallOutcome::Failed(kind).as_str(), word);
        }
        assert_eq!(
            (CallOutcome::Ok.as_str(), CallOutcome::ToolError.as_str()),
            ("ok", "tool_error")
        );
        for outcome in CallOutcome::ALL {
            assert_eq!(CallOutcome::from_word(outcome.as_str()), Some(outcome));
        }
        assert_eq!(CallOutcome::from_word("OK"), None);
    }

    #[track_caller]
    fn check_read(text: &str, expected: Result<ToolResult, &str>) {
        let read = ToolResult::from_text(text);
        match expected {
            Ok(result) => assert_eq!(read, Ok(result), "{text}"),
            Err(reason) => assert!(read.unwrap_err().contains(reason), "{text}"),
        }
    }

    #[test]
    fn a_result_is_read_as_mcp_writes_it() {
        let text = r#"{"content": [{"type": "text", "text": "no"}], "isError": true}"#;
        check_read(text, Ok(ToolResult::error("no")));
        let text = r#"{"resultType": "complete", "content": [{"type": "text", "text": "x"}]}"#;
        check_read(text, Ok(ToolResult::text("x")));
        let structured = ToolResult {
            content: Vec::new(),
            structured: Some(serde_json::json!({"n": 1})),
            ..ToolResult::text("")
        };
        check_read(r#"{"structuredContent": {"n": 1}, "isError": null}"#, Ok(structured));
        let mut extra = ToolResult::text("x");
        extra.extra.insert("_meta".into(), serde_json::json!({"a": 1}));
        check_read(&extra.to_value().to_string(), Ok(extra));
        check_read("[]", Err("the result is not an object"));
        check_read("{", Err("EOF"));
        check_read("{}", Err("the result has no `content` list"));
        check_read(r#"{"content": "x", "structuredContent": {}}"#, Err("no `content` list"));
    }

    #[test]
    fn a_caller_gets_only_the_hints_that_it_can_follow() {
        let error = CallError::new(CallErrorKind::Timeout, "too slow");
        assert_eq!((error.hint(), error.for_caller()), (None, "too slow".into()));
        let error = error.with_operator_hint("raise `timeout`").with_hint("ask for less");
        assert_eq!(error.hint().as_deref(), Some("raise `timeout`; ask for less"));
        assert_eq!(error.for_caller(), "too slow; ask for less");
        assert_eq!(error.to_string(), "too slow");
        assert_eq!(CallId("c1".into()).to_string(), "c1");
    }
}
