//! Runs the calls of session tools.

use std::sync::Arc;

use switchboard_chat::{ToolCall, ToolReturn};
use switchboard_model::Caller;
use switchboard_runtime::{CachedView, CheckedConversation};
use switchboard_sessions::{Session, SessionCall, SessionReply, SessionService};
use switchboard_splice::SessionCall as WantedCall;
use switchboard_view::{MetaTool, Scope};

/// What all calls of a turn have in common.
#[derive(Debug, Clone)]
pub(crate) struct CallContext {
    pub(crate) sessions: Arc<SessionService>,
    pub(crate) session: Arc<Session>,
    pub(crate) caller: Arc<Caller>,
    /// The view that the model was shown.
    pub(crate) view: Arc<CachedView>,
    pub(crate) scope: Arc<Scope>,
}

/// A call that has ended.
#[derive(Debug)]
pub(crate) struct EndedCall {
    pub(crate) result: ToolReturn,
    /// Whether the model changed the tools of its session, so that its next request must declare the new ones.
    pub(crate) has_switched: bool,
}

/// The call as its result names it.
pub(crate) fn tool_call(call: &WantedCall) -> ToolCall {
    ToolCall {
        id: call.id.clone(),
        name: call.tool.clone(),
        arguments: call.arguments.clone(),
        unreadable: None,
        origin: None,
        opaque: None,
    }
}

/// Runs a call under the current rights of the session and of the app's credential, if the model was shown the tool.
pub(crate) async fn run(
    context: CallContext,
    wanted: WantedCall,
    conversation: Option<Arc<CheckedConversation>>,
) -> EndedCall {
    let call = tool_call(&wanted);
    let WantedCall { tool, arguments, unreadable, is_over_limit, .. } = wanted;
    let refused =
        |text: String| EndedCall { result: ToolReturn::failed(&call, text), has_switched: false };
    if is_over_limit {
        let text = "The call was not made: the maximum number of tool calls of this request is reached. Answer with what you \
                    have.";
        return refused(text.to_owned());
    }
    if let Some(text) = unreadable {
        return refused(unreadable_text(&tool, &text));
    }
    let CallContext { sessions, session, caller, view, scope } = context;
    let wanted = SessionCall {
        tool,
        arguments,
        caller: caller.in_turn(),
        progress: None,
        seen: Some(view),
        scope: Some(scope),
        conversation,
    };
    match sessions.call_in(&session, wanted).await {
        SessionReply::Called(_, report) => {
            let took = u64::try_from((report.wait + report.run).as_millis()).ok();
            let result = match report.result {
                Ok(result) => ToolReturn::of(&call, result, took),
                Err(error) => ToolReturn::failed(&call, error.for_caller()),
            };
            EndedCall { result, has_switched: false }
        }
        SessionReply::Meta(meta, result) => {
            let has_switched = !result.is_error
                && matches!(meta, MetaTool::EnableToolset | MetaTool::DisableToolset);
            EndedCall { result: ToolReturn::of(&call, result, None), has_switched }
        }
        SessionReply::Refused(error, _) => refused(error.for_caller()),
    }
}

/// The longest beginning of unreadable arguments that the model is shown.
const SHOWN: usize = 200;

fn unreadable_text(tool: &str, text: &str) -> String {
    let shown: String = text.chars().take(SHOWN).collect();
    format!("The call of {tool} was not made: its arguments are not a JSON object: {shown}")
}
