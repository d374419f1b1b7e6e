//! Runs the tool calls of a model.

use std::sync::Arc;

use switchboard_chat::{Block, Reply, ToolCall, ToolReturn, TurnEvent};
use switchboard_model::{Caller, Face, Role};
use switchboard_render::Rendering;
use switchboard_runtime::CachedView;
use switchboard_sessions::{Session, SessionCall, SessionReply, SessionService};
use switchboard_view::MetaTool;
use tokio::sync::mpsc;

/// Capacity of the channel for progress events of a call; more are dropped.
const PROGRESS: usize = 16;

/// The result of a tool call.
#[derive(Debug)]
pub(crate) struct Called {
    pub(crate) result: ToolReturn,
    /// Whether the model changed the selection of its session, so that its next request must show the new tools.
    pub(crate) has_switched: bool,
}

/// Restores the tools' own argument names in a reply's calls, where the model was shown other ones.
pub(crate) fn restore_arguments(reply: &mut Reply, shown: &Rendering) {
    for block in &mut reply.content {
        let Block::ToolCall(call) = block else { continue };
        let tool = shown.tool(&call.name);
        let Some(map) = tool.and_then(|tool| tool.arguments.as_ref()) else { continue };
        let restored = map.restore(call.arguments.clone());
        if restored != call.arguments {
            let written = std::mem::replace(&mut call.arguments, restored);
            call.origin.get_or_insert_default().arguments = Some(written);
        }
    }
}

/// Runs a call under the session's current rights, if the model was shown the tool.
pub(crate) async fn call(
    sessions: Arc<SessionService>,
    session: Arc<Session>,
    seen: Arc<CachedView>,
    call: ToolCall,
    watchers: mpsc::Sender<TurnEvent>,
) -> Called {
    let (progress, mut news) = mpsc::channel(PROGRESS);
    let running = sessions.call_in(
        &session,
        SessionCall {
            tool: call.name.clone(),
            arguments: call.arguments.clone(),
            // A model has the rights of a client.
            caller: Caller::new(session.owner.clone(), Role::Client, Face::Turn),
            progress: Some(progress),
            seen: Some(seen),
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
        SessionReply::Called(_, report) => {
            let took = u64::try_from((report.wait + report.run).as_millis()).ok();
            let result = match report.result {
                Ok(result) => ToolReturn::of(&call, result, took),
                Err(error) => {
                    ToolReturn { latency_ms: took, ..ToolReturn::failed(&call, error.to_string()) }
                }
            };
            Called { result, has_switched: false }
        }
        SessionReply::Meta(meta, result) => {
            let has_switched = !result.is_error
                && matches!(meta, MetaTool::EnableToolset | MetaTool::DisableToolset);
            Called { result: ToolReturn::of(&call, result, None), has_switched }
        }
        SessionReply::Refused(error, _) => {
            Called { result: ToolReturn::failed(&call, error.to_string()), has_switched: false }
        }
    }
}
