//! Faults of the server as a whole. Faults of one tool are its [`crate::Reply`].

use std::time::Duration;

/// The kind of request that a fault applies to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Every request.
    Any,
    Initialize,
    Discover,
    List,
    Prompts,
    Subscribe,
    SetLevel,
    Call,
}

/// A fault. A server has at most one at a time; see [`crate::ScriptedServer::set_fault`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// The port is closed, and open connections are closed too.
    Refuse,
    /// Connections are accepted, and nothing is ever read from them.
    HangAtConnect,
    /// The request is read and never answered.
    Hang(Stage),
    /// An HTTP status with a short text; 401 comes with `WWW-Authenticate: Bearer`.
    Status(Stage, u16),
    /// Status 401 with a body that repeats the credentials of the request.
    Reflect(Stage),
    /// Status 429 with `Retry-After` in seconds.
    RateLimited(Stage, u64),
    /// Status 200 with an HTML page that asks for a password.
    LoginPage(Stage),
    /// Status 200 with the content type of JSON and an invalid body.
    NotJson(Stage),
    /// Status 307 to this address.
    Redirect(Stage, String),
    /// Half of a response, then the connection closes.
    CloseMidBody(Stage),
    /// Every page of the list names another one.
    EndlessPages,
    /// Every page of the list names the same next page.
    CursorLoop,
    /// The first page is good and the second is an error.
    SecondPageFails,
    /// One tool has a schema nested that many levels deep.
    DeepSchema(usize),
    /// The list has that many bytes.
    HugeList(usize),
    /// The next request in a session gets 404, once.
    DropSession,
    /// The first request of a connection is answered after a delay.
    DelayInitialize(Duration),
    /// Sends `list_changed` before the first list: on each notification stream as it opens, and, with a session, before
    /// the list itself.
    ListChangedBeforeList,
}

impl Fault {
    /// Whether the fault replaces or delays the response to a request of this stage, before the request is parsed.
    pub(crate) fn strikes_first(&self, stage: Stage) -> bool {
        match self {
            Self::HangAtConnect => true,
            Self::Hang(at)
            | Self::Status(at, _)
            | Self::Reflect(at)
            | Self::RateLimited(at, _)
            | Self::LoginPage(at)
            | Self::NotJson(at)
            | Self::Redirect(at, _)
            | Self::CloseMidBody(at) => *at == Stage::Any || *at == stage,
            Self::DelayInitialize(_) => matches!(stage, Stage::Initialize | Stage::Discover),
            Self::Refuse
            | Self::EndlessPages
            | Self::CursorLoop
            | Self::SecondPageFails
            | Self::DeepSchema(_)
            | Self::HugeList(_)
            | Self::DropSession
            | Self::ListChangedBeforeList => false,
        }
    }

    pub(crate) fn shapes_list(&self) -> bool {
        matches!(
            self,
            Self::EndlessPages
                | Self::CursorLoop
                | Self::SecondPageFails
                | Self::DeepSchema(_)
                | Self::HugeList(_)
        )
    }
}
