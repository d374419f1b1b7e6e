//! Calls that are refused because the caller sees no tool of that name, or has switched it off. They are recorded as
//! every other call is.

use std::sync::Arc;

use serde_json::Value;
use switchboard_model::{CallError, CallErrorKind, CallId, Caller, Face};
use switchboard_runtime::RefusedCall;
use switchboard_sessions::Session;
use switchboard_view::Entry;

use crate::asker::Asker;
use crate::gateway::Gateway;
use crate::methods::Replying;
use crate::outcome::Outcome;
use crate::session_calls::{SessionCall, SessionReply};

impl Gateway {
    /// Records a call of an MCP client that is refused, and answers it as the official servers do: libraries hand a
    /// result to the model, and raise at an error. `entry` is the tool, where the client may know that there is one.
    pub(crate) async fn refuse_call(
        &self,
        asker: &Asker,
        requested: &str,
        entry: Option<&Entry>,
        arguments: Option<&str>,
        message: String,
    ) -> Replying {
        let error = CallError::new(CallErrorKind::UnknownTool, message);
        let refused = RefusedCall {
            requested,
            tool: entry.map(|entry| &*entry.tool),
            arguments: arguments.unwrap_or("{}"),
            face: Face::Mcp,
            caller: Caller {
                principal: Some(asker.principal.clone()),
                client: asker.client_name.clone(),
            },
            session: asker.session.as_ref().map(|session| session.id.clone()),
            error: &error,
        };
        // Boxed, as everything that is larger than a call: each request has room for the largest.
        Box::pin(self.board.record_refused(refused)).await;
        Replying::Now(Vec::new(), Outcome::tool_error(asker.era(), error.message))
    }

    /// Records a call in a session that is refused, and answers it.
    pub(crate) async fn refuse_in(
        &self,
        session: &Arc<Session>,
        call: &SessionCall,
        entry: Option<&Entry>,
        message: String,
    ) -> SessionReply {
        let requested = RequestedIn { name: &call.tool, arguments: &call.arguments };
        let (error, id) = self.record_refused_in(session, call, requested, entry, message).await;
        SessionReply::Refused(error, id)
    }

    /// Records that a tool is not called which the arguments of `call` may name, as those of `call_tool` do.
    pub(crate) async fn record_refused_in(
        &self,
        session: &Arc<Session>,
        call: &SessionCall,
        requested: RequestedIn<'_>,
        entry: Option<&Entry>,
        message: String,
    ) -> (CallError, CallId) {
        let error = CallError::new(CallErrorKind::UnknownTool, message);
        let refused = RefusedCall {
            requested: requested.name,
            tool: entry.map(|entry| &*entry.tool),
            arguments: &requested.arguments.to_string(),
            face: call.face,
            caller: call.caller.clone(),
            session: Some(session.id.clone()),
            error: &error,
        };
        let id = Box::pin(self.board.record_refused(refused)).await;
        (error, id)
    }
}

/// The tool that a call in a session names, and what the tool would be given.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RequestedIn<'a> {
    pub(crate) name: &'a str,
    pub(crate) arguments: &'a Value,
}
