//! One tool of the scripted server: its definition and its behaviour.

use std::time::Duration;

use serde_json::{Map, Value, json};

/// A tool and its script. A call waits first ([`Tool::sleeps`]), then gives its [`Reply`].
#[derive(Debug, Clone)]
pub struct Tool {
    pub name: String,
    pub description: String,
    pub input_schema: Value,
    /// Further members of the entry in the list, such as `annotations` or `title`.
    pub members: Map<String, Value>,
    pub delay: Duration,
    pub(crate) waits_for_calls: usize,
    pub progress_every: Option<Duration>,
    pub asks: Option<Asks>,
    pub floods: Option<Flood>,
    pub reply: Reply,
    pub ignores_cancel: bool,
    /// The whole definition, if it is not made from the members above.
    pub whole_entry: Option<Value>,
}

/// Messages that are sent as fast as they are read, during the whole wait of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flood {
    /// Comments of the event stream.
    Comments,
    /// `notifications/message`.
    Logs,
    /// `notifications/progress` that never grows.
    StuckProgress,
    /// `notifications/progress` that grows.
    Progress,
}

/// Requests of a session-era server to its caller during the wait. It continues without the answer.
#[derive(Debug, Clone)]
pub enum Asks {
    Once,
    /// Asks once to open this page, with this message.
    Page {
        url: String,
        message: String,
    },
    /// Requests of that many bytes, repeatedly. Each is cancelled at once.
    Withdrawn {
        every: Duration,
        bytes: usize,
    },
}

/// The reply of a call after the wait.
#[derive(Debug, Clone)]
pub enum Reply {
    /// The arguments, as text and as structured content.
    Echo,
    Text(String),
    /// Exactly this result.
    Result(Value),
    /// A result with `isError`.
    ToolError(String),
    /// A JSON-RPC error.
    RpcError {
        code: i64,
        message: String,
    },
    /// A JSON-RPC error in the session era, and the arguments in the stateless era.
    SessionEraError {
        code: i64,
        message: String,
    },
    /// Exactly this JSON-RPC error.
    Error(Value),
    /// A text of that many bytes.
    Huge(usize),
    /// No reply.
    Hang,
    /// Half of a response, then the connection closes.
    CloseMidBody,
    /// A response with an unknown request id.
    WrongId,
    /// The same response twice, on one stream.
    Twice,
    /// A content block of an undefined type.
    UnknownContent,
}

impl Tool {
    /// A tool that echoes its arguments by default.
    pub fn new(name: impl Into<String>) -> Self {
        let name = name.into();
        Self {
            description: format!("Scripted tool {name}."),
            name,
            input_schema: json!({"type": "object", "properties": {}}),
            members: Map::new(),
            delay: Duration::ZERO,
            waits_for_calls: 0,
            progress_every: None,
            asks: None,
            floods: None,
            reply: Reply::Echo,
            ignores_cancel: false,
            whole_entry: None,
        }
    }

    /// The same as [`Tool::new`], for tests that rely on the echo.
    pub fn echo(name: impl Into<String>) -> Self {
        Self::new(name)
    }

    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = description.into();
        self
    }

    #[must_use]
    pub fn schema(mut self, input_schema: Value) -> Self {
        self.input_schema = input_schema;
        self
    }

    /// Adds a member to the definition, such as `annotations`.
    #[must_use]
    pub fn member(mut self, name: impl Into<String>, value: Value) -> Self {
        self.members.insert(name.into(), value);
        self
    }

    /// Waits before the reply. An argument `sleep_ms` in a call takes precedence.
    #[must_use]
    pub fn sleeps(mut self, milliseconds: u64) -> Self {
        self.delay = Duration::from_millis(milliseconds);
        self
    }

    /// Replies to nobody until that many calls of this tool have run at the same time.
    #[must_use]
    pub fn waits_for_calls(mut self, count: usize) -> Self {
        self.waits_for_calls = count;
        self
    }

    /// Reports progress at this interval during the wait, to callers with a progress token.
    #[must_use]
    pub fn progress_every(mut self, milliseconds: u64) -> Self {
        self.progress_every = Some(Duration::from_millis(milliseconds.max(1)));
        self
    }

    /// Sends these messages during the wait, as fast as they are read.
    #[must_use]
    pub fn floods(mut self, flood: Flood) -> Self {
        self.floods = Some(flood);
        self
    }

    /// Sends a request to the caller before the wait. Only for session-era servers; the answer is only recorded.
    #[must_use]
    pub fn asks(mut self) -> Self {
        self.asks = Some(Asks::Once);
        self
    }

    /// Asks the caller to open a page during the wait.
    #[must_use]
    pub fn asks_to_open(mut self, url: &str, message: &str) -> Self {
        self.asks = Some(Asks::Page { url: url.into(), message: message.into() });
        self
    }

    /// Sends requests of that many bytes at this interval during the wait, and cancels each.
    #[must_use]
    pub fn asks_in_vain(mut self, milliseconds: u64, bytes: usize) -> Self {
        let every = Duration::from_millis(milliseconds.max(1));
        self.asks = Some(Asks::Withdrawn { every, bytes });
        self
    }

    #[must_use]
    pub fn replies(mut self, reply: Reply) -> Self {
        self.reply = reply;
        self
    }

    /// Continues to its end, and replies, although the call was cancelled.
    #[must_use]
    pub fn ignores_cancel(mut self) -> Self {
        self.ignores_cancel = true;
        self
    }

    /// A tool that is listed with exactly this definition.
    pub fn listed_as(name: impl Into<String>, entry: Value) -> Self {
        Self { whole_entry: Some(entry), ..Self::new(name) }
    }

    pub(crate) fn entry(&self) -> Value {
        if let Some(entry) = &self.whole_entry {
            return entry.clone();
        }
        let mut entry = Map::new();
        entry.insert("name".into(), json!(self.name));
        entry.insert("description".into(), json!(self.description));
        entry.insert("inputSchema".into(), self.input_schema.clone());
        entry.extend(self.members.clone());
        Value::Object(entry)
    }
}
