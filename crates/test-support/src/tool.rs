//! One tool of the scripted server: what it looks like in the list, and how it behaves.

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
    pub progress_every: Option<Duration>,
    pub asks: Option<Asks>,
    pub floods: Option<Flood>,
    pub reply: Reply,
    pub ignores_cancel: bool,
    /// The entry in the list, where it is not made of the members above.
    pub whole_entry: Option<Value>,
}

/// What a server sends as fast as it is read, during the whole wait of a call.
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

/// What a legacy server asks its caller during the wait. It goes on without the answer.
#[derive(Debug, Clone, Copy)]
pub enum Asks {
    Once,
    /// Something of that many bytes, again and again. Each is withdrawn at once.
    Withdrawn {
        every: Duration,
        bytes: usize,
    },
}

/// What a call gets back after the wait.
#[derive(Debug, Clone)]
pub enum Reply {
    /// The arguments, as text and as structured content.
    Echo,
    Text(String),
    /// This whole result, as it stands.
    Result(Value),
    /// A result with `isError`.
    ToolError(String),
    /// A JSON-RPC error.
    RpcError {
        code: i64,
        message: String,
    },
    /// This whole JSON-RPC error, as it stands.
    Error(Value),
    /// A text of that many bytes.
    Huge(usize),
    /// No answer, ever.
    Hang,
    /// Half of an answer, then the connection closes.
    CloseMidBody,
    /// An answer to a request nobody made.
    WrongId,
    /// The same answer two times, on one stream.
    Twice,
    /// A content block of a type that no specification knows.
    UnknownContent,
}

impl Tool {
    /// A tool that echoes its arguments until told otherwise.
    pub fn new(name: impl Into<String>) -> Self {
        let name = name.into();
        Self {
            description: format!("Scripted tool {name}."),
            name,
            input_schema: json!({"type": "object", "properties": {}}),
            members: Map::new(),
            delay: Duration::ZERO,
            progress_every: None,
            asks: None,
            floods: None,
            reply: Reply::Echo,
            ignores_cancel: false,
            whole_entry: None,
        }
    }

    /// The same as [`Tool::new`], for tests that want to say what they rely on.
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

    /// Adds a member to the entry in the list, such as `annotations`.
    #[must_use]
    pub fn member(mut self, name: impl Into<String>, value: Value) -> Self {
        self.members.insert(name.into(), value);
        self
    }

    /// Waits before it answers. An argument `sleep_ms` in a call takes precedence.
    #[must_use]
    pub fn sleeps(mut self, milliseconds: u64) -> Self {
        self.delay = Duration::from_millis(milliseconds);
        self
    }

    /// Reports progress in that interval during the wait, to callers that gave a token.
    #[must_use]
    pub fn progress_every(mut self, milliseconds: u64) -> Self {
        self.progress_every = Some(Duration::from_millis(milliseconds.max(1)));
        self
    }

    /// Sends this during the wait, as fast as it is read.
    #[must_use]
    pub fn floods(mut self, flood: Flood) -> Self {
        self.floods = Some(flood);
        self
    }

    /// Asks the caller something before the wait. Only for legacy servers, and the answer is only recorded.
    #[must_use]
    pub fn asks(mut self) -> Self {
        self.asks = Some(Asks::Once);
        self
    }

    /// Asks something of that many bytes in that interval during the wait, and withdraws it each time.
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

    /// Runs to its end, and answers, although the call was cancelled.
    #[must_use]
    pub fn ignores_cancel(mut self) -> Self {
        self.ignores_cancel = true;
        self
    }

    /// A tool that is listed with exactly this entry, whatever is in it.
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
