//! Calls of MCP clients that are refused because the client sees no tool of that name, or has switched it off. They are
//! recorded as every other call is.

use switchboard_model::{CallError, CallErrorKind};
use switchboard_runtime::RefusedCall;
use switchboard_view::Entry;

use crate::gateway::Gateway;
use crate::methods::Dispatch;
use crate::outcome::Outcome;
use crate::request_context::RequestContext;

impl Gateway {
    /// Records a call of an MCP client that is refused, and answers it as the official servers do: libraries hand a
    /// result to the model, and raise at an error. `entry` is the tool, where the client may know that there is one.
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
        // Boxed, as everything that is larger than a call: each request has room for the largest.
        Box::pin(self.board.record_refused(refused)).await;
        Dispatch::Now(Vec::new(), Outcome::tool_error(context.era(), error.message))
    }
}
