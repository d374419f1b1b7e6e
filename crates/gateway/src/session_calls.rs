//! Tools of a session, called by people and in turns.

use std::sync::Arc;

use serde_json::{Map, Value};
use switchboard_model::{CallError, CallErrorKind, Caller, CanonicalName, Face, ToolResult};
use switchboard_runtime::{CallReport, CallRequest, Progress, ToolChoice};
use switchboard_sessions::{Look, Session};
use switchboard_view::{Entry, Found, ListEra, MetaTool, View, unknown_tool};
use tokio::sync::mpsc;

use crate::call_check::Reached;
use crate::gateway::Gateway;
use crate::methods::disabled_text;

/// A call of a tool that a session sees.
#[derive(Debug)]
pub struct SessionCall {
    /// The exposed name, also one of an earlier revision, or the canonical one.
    pub tool: String,
    /// A JSON object; `null` counts as an empty one.
    pub arguments: Value,
    pub face: Face,
    pub caller: Caller,
    pub progress: Option<mpsc::Sender<Progress>>,
    /// What the caller saw when it chose the tool, where that may be something else than what is there now.
    pub seen: Option<Arc<Look>>,
}

/// What came of it.
#[derive(Debug)]
pub enum SessionReply {
    /// A tool of the catalog was called, which people call so.
    Called(CanonicalName, CallReport),
    /// A tool about tools has answered.
    Meta(MetaTool, ToolResult),
    /// Nothing was called.
    Refused(CallError),
}

impl Gateway {
    /// Calls a tool as the session sees it.
    pub async fn call_in(
        self: &Arc<Self>,
        session: &Arc<Session>,
        call: SessionCall,
    ) -> SessionReply {
        let look = match call.seen {
            // A model calls what it was shown; what came since is not meant.
            Some(_) => self.sessions().look(session),
            None => self.look_for_call(&session.scope, Some(session), &call.tool).await,
        };
        let view = &look.view;
        if let Some(seen) = &call.seen {
            match (seen.view.find(&call.tool), view.find(&call.tool)) {
                (Found::Tool(seen), Found::Tool(now)) if seen.tool.name == now.tool.name => {}
                (Found::Meta(seen), Found::Meta(now)) if seen == now => {}
                (Found::Tool(_) | Found::Meta(_), _) => {
                    let text = format!(
                        "`{}` was taken away from this session after you were shown it; it was not called. Go on without it.",
                        call.tool
                    );
                    return refused(text);
                }
                (Found::Disabled { entry, sets }, _) => {
                    return refused(disabled_text(&seen.view, entry, &sets, true));
                }
                (Found::Unknown { nearest }, _) => {
                    return refused(unknown_tool(&call.tool, &nearest));
                }
            }
        }
        let found = match view.find(&call.tool) {
            // People write `server.tool`, or `tool` where there is one; what is switched off stays so.
            Found::Unknown { nearest } => {
                let meant =
                    view.reach(&call.tool).ok().or_else(|| view.only_one_called(&call.tool));
                let name = meant.and_then(|entry| entry.name.as_deref());
                name.map_or(Found::Unknown { nearest }, |name| view.find(name))
            }
            found => found,
        };
        match found {
            Found::Tool(entry) => self.call_entry(session, entry, Reached::Listed, call).await,
            Found::Meta(meta) => self.meta_in(session, view, meta, call).await,
            Found::Disabled { entry, sets } => refused(disabled_text(view, entry, &sets, true)),
            Found::Unknown { nearest } => refused(unknown_tool(&call.tool, &nearest)),
        }
    }

    async fn call_entry(
        self: &Arc<Self>,
        session: &Arc<Session>,
        entry: &Entry,
        reached: Reached,
        call: SessionCall,
    ) -> SessionReply {
        let request = CallRequest {
            tool: ToolChoice::from(&*entry.tool),
            arguments: call.arguments,
            face: call.face,
            caller: call.caller,
            session: Some(session.id.clone()),
            progress: call.progress,
            check: Some(self.check_for(&session.scope, Some(session), reached)),
        };
        SessionReply::Called(entry.shown_name(), self.board.call(request).await)
    }

    async fn meta_in(
        self: &Arc<Self>,
        session: &Arc<Session>,
        view: &View,
        meta: MetaTool,
        call: SessionCall,
    ) -> SessionReply {
        let arguments = match &call.arguments {
            Value::Object(arguments) => arguments.clone(),
            Value::Null => Map::new(),
            _ => {
                let text = format!("the arguments of {} must be a JSON object", meta.name());
                return SessionReply::Meta(meta, ToolResult::error(text));
            }
        };
        let switch = async |decide: fn(&View, &Map<String, Value>) -> Result<_, String>| {
            let switched =
                self.sessions().switch(session, &session.scope, |view| decide(view, &arguments));
            let switched = switched.await.map_err(|error| error.to_string())?;
            self.session_changed(session);
            Ok(view.switched_text(&switched, Some(ListEra::Modern)))
        };
        let answer = match meta {
            MetaTool::EnableToolset => switch(View::enable).await,
            MetaTool::DisableToolset => switch(View::disable).await,
            MetaTool::ListToolsets => Ok(view.toolsets_text()),
            MetaTool::DescribeToolset => view.toolset_text(&arguments),
            MetaTool::SearchTools => view.search_text(&arguments),
            MetaTool::DescribeTool => view.tool_text(&arguments, ListEra::Modern),
            MetaTool::CallTool => {
                let name = arguments.get("name").and_then(Value::as_str).unwrap_or_default();
                match view.callable(name) {
                    Err(told) => Err(told),
                    Ok(entry) => {
                        let given = arguments.get("arguments").cloned().unwrap_or_default();
                        let call = SessionCall { arguments: given, ..call };
                        return self.call_entry(session, entry, Reached::ByCallTool, call).await;
                    }
                }
            }
        };
        SessionReply::Meta(meta, answer.map_or_else(ToolResult::error, structured))
    }
}

fn refused(text: String) -> SessionReply {
    SessionReply::Refused(CallError::new(CallErrorKind::UnknownTool, text))
}

/// An answer as text and as structure.
fn structured(json: String) -> ToolResult {
    ToolResult { structured: serde_json::from_str(&json).ok(), ..ToolResult::text(json) }
}
