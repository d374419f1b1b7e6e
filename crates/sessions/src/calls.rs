//! Calls of tools that a session sees, by people and in turns.

use std::sync::Arc;

use serde_json::{Map, Value};
use switchboard_model::{CallError, CallId, Caller, CanonicalName, ToolResult};
use switchboard_runtime::{CachedView, CallReport, CallRequest, Progress, ToolChoice};
use switchboard_view::{Entry, Found, ListEra, MetaTool, View, not_enabled, unknown_tool};
use tokio::sync::mpsc;

use crate::call_check::Reached;
use crate::meta_tools::{MetaCaller, MetaOutcome};
use crate::refused_calls::RequestedIn;
use crate::service::SessionService;
use crate::session::Session;
use crate::unknown_tools::is_listed;

/// A call of a tool that a session sees.
#[derive(Debug)]
pub struct SessionCall {
    /// The exposed name, also one of an earlier revision, or the canonical one.
    pub tool: String,
    /// A JSON object; `null` counts as an empty one.
    pub arguments: Value,
    /// Who calls; the session is added.
    pub caller: Caller,
    pub progress: Option<mpsc::Sender<Progress>>,
    /// What the caller saw when it chose the tool, where that may be something else than what is there now.
    pub seen: Option<Arc<CachedView>>,
}

/// What came of it.
#[derive(Debug)]
pub enum SessionReply {
    /// A tool of the catalog was called, which people call so.
    Called(CanonicalName, CallReport),
    /// A tool about tools has answered.
    Meta(MetaTool, ToolResult),
    /// Nothing was called; the refusal is recorded under this id.
    Refused(CallError, CallId),
}

impl SessionService {
    /// Calls a tool as the session sees it.
    pub async fn call_in(
        self: &Arc<Self>,
        session: &Arc<Session>,
        call: SessionCall,
    ) -> SessionReply {
        let cached = if call.seen.is_some() {
            // A model calls what it was shown; what came since is not meant.
            self.sessions.view_of(session)
        } else {
            let is_known = |view: &View| {
                is_listed(view, &call.tool) || written_by_people(view, &call.tool).is_some()
            };
            self.view_with(&session.scope, Some(session), &call.tool, is_known).await
        };
        let view = &cached.view;
        if let Some(seen) = &call.seen {
            match (seen.view.find(&call.tool), view.find(&call.tool)) {
                (Found::Tool(seen), Found::Tool(now)) if seen.tool.name == now.tool.name => {}
                (Found::Meta(seen), Found::Meta(now)) if seen == now => {}
                (shown @ (Found::Tool(_) | Found::Meta(_)), _) => {
                    let entry = if let Found::Tool(entry) = shown { Some(entry) } else { None };
                    let text = format!(
                        "`{}` was taken away from this session after you were shown it; it was not called. Go on without it.",
                        call.tool
                    );
                    return self.refuse_in(session, &call, entry, text).await;
                }
                (Found::Disabled { entry, sets }, _) => {
                    let text = not_enabled(&seen.view, entry, &sets, true);
                    return self.refuse_in(session, &call, Some(entry), text).await;
                }
                (Found::Unknown { nearest }, _) => {
                    let text = unknown_tool(&call.tool, &nearest);
                    return self.refuse_in(session, &call, None, text).await;
                }
            }
        }
        let found = match view.find(&call.tool) {
            // What is switched off stays so.
            Found::Unknown { nearest } => {
                let meant = written_by_people(view, &call.tool);
                let name = meant.and_then(|entry| entry.name.as_deref());
                name.map_or(Found::Unknown { nearest }, |name| view.find(name))
            }
            found => found,
        };
        match found {
            Found::Tool(entry) => {
                let requested = call.tool.as_str().into();
                self.call_entry(session, entry, requested, Reached::Listed, call).await
            }
            Found::Meta(meta) => self.meta_in(session, &cached, meta, call).await,
            Found::Disabled { entry, sets } => {
                let text = not_enabled(view, entry, &sets, true);
                self.refuse_in(session, &call, Some(entry), text).await
            }
            Found::Unknown { nearest } => {
                let text = unknown_tool(&call.tool, &nearest);
                self.refuse_in(session, &call, None, text).await
            }
        }
    }

    async fn call_entry(
        self: &Arc<Self>,
        session: &Arc<Session>,
        entry: &Entry,
        requested: Arc<str>,
        reached: Reached,
        call: SessionCall,
    ) -> SessionReply {
        let request = CallRequest {
            tool: ToolChoice::from(&*entry.tool),
            arguments: call.arguments,
            caller: Arc::new(call.caller.in_session(session.id.clone(), session.owner.clone())),
            requested: Some(requested),
            progress: call.progress,
            check: Some(self.check_for(&session.scope, Some(session), reached)),
        };
        SessionReply::Called(entry.shown_name(), self.board.call(request).await)
    }

    async fn meta_in(
        self: &Arc<Self>,
        session: &Arc<Session>,
        view: &Arc<CachedView>,
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
        let caller = MetaCaller {
            scope: &session.scope,
            session: Some(session),
            view,
            era: ListEra::Stateless,
            wants_definitions: true,
            lists_itself: false,
        };
        let answer = match self.call_meta_tool(caller, meta, &arguments).await {
            MetaOutcome::Answer(answer) => answer,
            MetaOutcome::Call { view, name } => {
                let given = arguments.get("arguments").cloned().unwrap_or_default();
                match view.view.callable(&name) {
                    Ok(entry) => {
                        let call = SessionCall { arguments: given, ..call };
                        let (requested, reached) = (name.as_str().into(), Reached::ByCallTool);
                        return self.call_entry(session, entry, requested, reached, call).await;
                    }
                    Err(reason) => {
                        let requested = RequestedIn { name: &name, arguments: &given };
                        let entry = view.view.reach(&name).ok();
                        let refused =
                            self.record_refused_in(session, &call, requested, entry, reason);
                        Err(refused.await.0.message)
                    }
                }
            }
        };
        SessionReply::Meta(meta, answer.map_or_else(ToolResult::error, structured))
    }
}

/// The tool that people mean who write `server.tool`, or `tool` where there is one.
fn written_by_people<'a>(view: &'a View, name: &str) -> Option<&'a Entry> {
    view.reach(name).ok().or_else(|| view.only_one_called(name))
}

/// An answer as text and as structure.
fn structured(json: String) -> ToolResult {
    ToolResult { structured: serde_json::from_str(&json).ok(), ..ToolResult::text(json) }
}
