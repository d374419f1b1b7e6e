//! The caller of a request, and the operation that it requests.

use std::sync::Arc;

use switchboard_model::{Caller, CanonicalName, ServerName};
use switchboard_protocol::Capabilities;
use switchboard_sessions::{Reached, Session};
use switchboard_view::{ListEra, Scope};

use crate::client::Client;
use crate::log_level::LogLevel;

/// The caller of a request, its view and its capabilities.
#[derive(Debug, Clone)]
pub(crate) struct RequestContext {
    pub(crate) caller: Arc<Caller>,
    /// The session-era client; `None` in the stateless era.
    pub(crate) client: Option<Arc<Client>>,
    /// The session whose toolsets the caller sees, if it has one.
    pub(crate) session: Option<Arc<Session>>,
    pub(crate) scope: Arc<Scope>,
    pub(crate) capabilities: Capabilities,
    pub(crate) capabilities_text: Option<Arc<str>>,
    pub(crate) log_level: Option<LogLevel>,
    /// Whether notifications and requests can be sent before the response.
    pub(crate) can_stream: bool,
}

impl RequestContext {
    pub(crate) fn era(&self) -> ListEra {
        if self.client.is_some() { ListEra::Session } else { ListEra::Stateless }
    }

    pub(crate) fn hears(&self, level: Option<LogLevel>) -> bool {
        match (self.log_level, self.era()) {
            (Some(least), _) => level.is_none_or(|level| level >= least),
            // Session-era servers choose their level until they are told one; stateless-era clients opt in for each request.
            (None, ListEra::Session) => true,
            (None, ListEra::Stateless) => false,
        }
    }
}

/// The request that is forwarded to a server.
#[derive(Debug, Clone)]
pub(crate) enum UpstreamOperation {
    Call {
        tool: CanonicalName,
        /// The tool name that the caller used.
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
    /// A `tasks/...` request about a task of an earlier call.
    Task {
        method: &'static str,
        task: Task,
    },
}

impl UpstreamOperation {
    /// Whether the stateless era allows `input_required` as its result, so that the client returns with input.
    pub(crate) fn can_be_asked_again(&self) -> bool {
        match self {
            Self::Call { .. } => true,
            Self::Pass { method, .. } => matches!(*method, "prompts/get" | "resources/read"),
            Self::Task { .. } => false,
        }
    }

    /// The server that the operation is sent to.
    pub(crate) fn server(&self) -> &ServerName {
        match self {
            Self::Call { tool, .. } => tool.server(),
            Self::Pass { server, .. } => server,
            Self::Task { task, .. } => task.tool.server(),
        }
    }
}

/// A task: work that a server continues after it has responded to a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Task {
    /// The tool that was called.
    pub(crate) tool: CanonicalName,
    /// The server's own id of the task.
    pub(crate) id: String,
}

/// The parameters of a request that are forwarded beside its operation, as JSON text.
#[derive(Debug, Clone, Default)]
pub(crate) struct ForwardedParams {
    /// The client's progress token.
    pub(crate) progress_token: Option<String>,
    /// The members of `_meta` that are not Switchboard's own.
    pub(crate) meta: String,
    /// Further members of `params`: `inputResponses`, `requestState` and unknown ones.
    pub(crate) extra: String,
}
