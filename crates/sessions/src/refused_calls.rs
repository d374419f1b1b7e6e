//! Calls in a session of tools that the session does not see or has disabled. They are refused, and recorded as all other
//! calls are.

use std::sync::Arc;

use serde_json::Value;
use switchboard_model::{CallError, CallErrorKind, CallId};
use switchboard_runtime::RefusedCall;
use switchboard_view::Entry;

use crate::calls::{SessionCall, SessionReply};
use crate::service::SessionService;
use crate::session::Session;

impl SessionService {
    /// Records a refused call in a session and returns the refusal.
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

    /// Records a refused call. `requested` is the tool of `call`, or the one that the arguments of `call_tool` name.
    pub(crate) async fn record_refused_in(
        &self,
        session: &Arc<Session>,
        call: &SessionCall,
        requested: RequestedIn<'_>,
        entry: Option<&Entry>,
        message: String,
    ) -> (CallError, CallId) {
        let error = CallError::new(CallErrorKind::UnknownTool, message);
        let caller = call.caller.clone();
        let caller = caller.in_session(session.id.clone(), session.owner.clone());
        let refused = RefusedCall {
            requested: requested.name,
            tool: entry.map(|entry| &*entry.tool),
            arguments: &requested.arguments.to_string(),
            caller: Arc::new(caller),
            error: &error,
        };
        let id = Box::pin(self.board.record_refused(refused)).await;
        (error, id)
    }
}

/// The tool that a refused call names, and the arguments for it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RequestedIn<'a> {
    pub(crate) name: &'a str,
    pub(crate) arguments: &'a Value,
}
