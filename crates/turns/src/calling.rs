//! Runs the tool calls of a model.

use std::sync::Arc;

use switchboard_chat::{ToolCall, ToolReturn, TurnEvent};
use switchboard_model::{CallErrorKind, Caller};
use switchboard_runtime::{CachedView, CheckedConversation};
use switchboard_sessions::{Session, SessionCall, SessionReply, SessionService};
use switchboard_view::{MetaTool, Scope};
use tokio::sync::mpsc;

/// Capacity of the channel for progress events of a call; more are dropped.
const PROGRESS: usize = 16;

/// The result of a tool call.
#[derive(Debug)]
pub(crate) struct Called {
    pub(crate) result: ToolReturn,
    /// Whether the model changed the selection of its session, so that its next request must show the new tools.
    pub(crate) has_switched: bool,
    /// The state that the turn is in after the call, if the tool names one and succeeded.
    pub(crate) state: Option<String>,
    /// Why the call was not sent, if it was not.
    pub(crate) refusal: Option<CallErrorKind>,
}

/// The tools that a call may use.
#[derive(Debug, Clone)]
pub(crate) struct ShownTools {
    /// The view that the model was shown.
    pub(crate) view: Arc<CachedView>,
    /// The scope of the turn now, which may be narrower.
    pub(crate) scope: Arc<Scope>,
}

/// Runs a call under the current rights of the session and of the caller that began the turn, if the model was shown
/// the tool.
pub(crate) async fn call(
    sessions: Arc<SessionService>,
    session: Arc<Session>,
    caller: Arc<Caller>,
    shown: ShownTools,
    call: ToolCall,
    conversation: Option<Arc<CheckedConversation>>,
    watchers: mpsc::Sender<TurnEvent>,
) -> Called {
    let (progress, mut news) = mpsc::channel(PROGRESS);
    let running = sessions.call_in(
        &session,
        SessionCall {
            tool: call.name.clone(),
            arguments: call.arguments.clone(),
            caller: caller.in_turn(),
            progress: Some(progress),
            seen: Some(shown.view.clone()),
            scope: Some(shown.scope),
            conversation,
        },
    );
    tokio::pin!(running);
    let reply = loop {
        tokio::select! {
            reply = &mut running => break reply,
            Some(news) = news.recv() => {
                let (id, progress) = (call.id.clone(), news.progress);
                let (total, message) = (news.total, news.message);
                // A slow receiver misses progress; the next event is newer.
                let _full = watchers.try_send(TurnEvent::ToolProgress { id, progress, total, message });
            }
        }
    };
    match reply {
        SessionReply::Called(name, report) => {
            let took = u64::try_from((report.wait + report.run).as_millis()).ok();
            let (result, refusal) = match report.result {
                Ok(result) => (ToolReturn::of(&call, result, took), None),
                Err(error) => {
                    let failed = ToolReturn::failed(&call, error.for_caller());
                    (ToolReturn { latency_ms: took, ..failed }, Some(error.kind))
                }
            };
            let entry = shown.view.view.reach(name.as_str()).ok().filter(|_| !result.is_error);
            let state = entry.and_then(|entry| entry.tool.grouping.state.clone());
            Called { result, has_switched: false, state, refusal }
        }
        SessionReply::Meta(meta, result) => {
            let has_switched = !result.is_error
                && matches!(meta, MetaTool::EnableToolset | MetaTool::DisableToolset);
            let result = ToolReturn::of(&call, result, None);
            Called { result, has_switched, state: None, refusal: None }
        }
        SessionReply::Refused(error, _) => {
            let result = ToolReturn::failed(&call, error.for_caller());
            Called { result, has_switched: false, state: None, refusal: Some(error.kind) }
        }
    }
}
