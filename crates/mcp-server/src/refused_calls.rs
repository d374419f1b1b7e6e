//! Calls of tools that the client does not see or has disabled. They are refused, and recorded as all other calls are.

use switchboard_model::{CallError, CallErrorKind};
use switchboard_runtime::RefusedCall;
use switchboard_view::Entry;

use crate::gateway::Gateway;
use crate::methods::Dispatch;
use crate::outcome::Outcome;
use crate::request_context::RequestContext;

impl Gateway {
    /// Records a refused call and responds with a tool error: client libraries pass a result to the model, but raise an
    /// exception at a JSON-RPC error. `entry` is the tool, if the client may know that it exists.
    pub(crate) async fn refuse_call(
        &self,
        context: &RequestContext,
        requested: &str,
        entry: Option<&Entry>,
        arguments: Option<&str>,
        message: String,
    ) -> Dispatch {
        let error = CallError::new(CallErrorKind::UnknownTool, message);
        let refused = RefusedCall {
            requested,
            tool: entry.map(|entry| &*entry.tool),
            arguments: arguments.unwrap_or("{}"),
            caller: context.caller.clone(),
            error: &error,
        };
        // Boxed: the future of every request would otherwise have the size of its largest branch.
        Box::pin(self.board.record_refused(refused)).await;
        Dispatch::Now(Vec::new(), Outcome::tool_error(context.era(), error.message))
    }
}
