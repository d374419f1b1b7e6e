//! Who asks, and for what.

use std::sync::Arc;

use switchboard_model::{Caller, CanonicalName, ServerName};
use switchboard_protocol::Capabilities;
use switchboard_sessions::{Reached, Session};
use switchboard_view::{ListEra, Scope};

use crate::client::Client;
use crate::log_level::LogLevel;

/// Who asks, and what it can be asked.
#[derive(Debug, Clone)]
pub(crate) struct RequestContext {
    pub(crate) caller: Arc<Caller>,
    /// The legacy client; `None` in the modern era.
    pub(crate) client: Option<Arc<Client>>,
    /// Whose toolsets it sees, if anybody's.
    pub(crate) session: Option<Arc<Session>>,
    pub(crate) scope: Arc<Scope>,
    pub(crate) capabilities: Capabilities,
    pub(crate) capabilities_text: Option<Arc<str>>,
    pub(crate) log_level: Option<LogLevel>,
    /// Whether anything but the answer can be sent.
    pub(crate) can_stream: bool,
}

impl RequestContext {
    pub(crate) fn era(&self) -> ListEra {
        if self.client.is_some() { ListEra::Session } else { ListEra::Stateless }
    }

    pub(crate) fn hears(&self, level: Option<LogLevel>) -> bool {
        match (self.log_level, self.era()) {
            (Some(least), _) => level.is_none_or(|level| level >= least),
            // Older servers choose until they are told; modern clients say when they want to hear.
            (None, ListEra::Session) => true,
            (None, ListEra::Stateless) => false,
        }
    }
}

/// What is to be done.
#[derive(Debug, Clone)]
pub(crate) enum UpstreamOperation {
    Call {
        tool: CanonicalName,
        /// The name that the caller used.
        requested: Arc<str>,
        arguments: Option<String>,
        reached: Reached,
    },
    Pass {
        server: ServerName,
        method: &'static str,
        name: Option<String>,
        params: String,
    },
    /// Something about a task that a call has left at its server.
    Task {
        method: &'static str,
        task: Task,
    },
}

impl UpstreamOperation {
    /// Whether the modern era lets its answer be `input_required`, so that the client comes back with more.
    pub(crate) fn can_be_asked_again(&self) -> bool {
        match self {
            Self::Call { .. } => true,
            Self::Pass { method, .. } => matches!(*method, "prompts/get" | "resources/read"),
            Self::Task { .. } => false,
        }
    }

    /// Who does it.
    pub(crate) fn server(&self) -> &ServerName {
        match self {
            Self::Call { tool, .. } => tool.server(),
            Self::Pass { server, .. } => server,
            Self::Task { task, .. } => task.tool.server(),
        }
    }
}

/// Work that a server goes on with after it has answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Task {
    /// The tool whose call it is.
    pub(crate) tool: CanonicalName,
    /// As the server calls it.
    pub(crate) id: String,
}

/// What a request says beside its operation.
#[derive(Debug, Clone, Default)]
pub(crate) struct ForwardedParams {
    /// As text.
    pub(crate) progress_token: Option<String>,
    /// Foreign members of `_meta`, as text.
    pub(crate) meta: String,
    /// Further members of `params`: `inputResponses`, `requestState`, whatever is unknown to us.
    pub(crate) extra: String,
}
