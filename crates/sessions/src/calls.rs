//! Tool calls in a session, made through the HTTP API or by a model in a turn.

use std::sync::Arc;

use serde_json::{Map, Value};
use switchboard_model::{CallError, CallId, Caller, CanonicalName, ToolResult};
use switchboard_runtime::{
    CachedView, CallReport, CallRequest, CheckedConversation, Progress, ToolChoice,
};
use switchboard_view::{Entry, Found, ListEra, MetaTool, Scope, View, not_enabled, unknown_tool};
use tokio::sync::mpsc;

use crate::call_check::Reached;
use crate::meta_tools::{MetaCaller, MetaOutcome};
use crate::refused_calls::RequestedIn;
use crate::service::SessionService;
use crate::session::Session;
use crate::unknown_tools::is_listed;

/// A call of a tool in a session.
#[derive(Debug)]
pub struct SessionCall {
    /// The exposed name of the tool, now or at an earlier revision, or its canonical name.
    pub tool: String,
    /// The arguments, a JSON object; `null` counts as an empty one.
    pub arguments: Value,
    /// Who makes the call. `call_in` fills in the session.
    pub caller: Caller,
    pub progress: Option<mpsc::Sender<Progress>>,
    /// The view from which a model chose the tool, if it may differ from the current one. A tool that is not in both views
    /// is not called.
    pub seen: Option<Arc<CachedView>>,
    /// A scope that is narrower than the session's own, such as that of a turn.
    pub scope: Option<Arc<Scope>>,
    /// The conversation in which a model makes the call, for content checks.
    pub conversation: Option<Arc<CheckedConversation>>,
}

/// The result of a call in a session.
#[derive(Debug)]
pub enum SessionReply {
    /// A tool of the catalog was called; the name is its canonical one.
    Called(CanonicalName, CallReport),
    /// A meta-tool has responded.
    Meta(MetaTool, ToolResult),
    /// No tool was called; the refusal is recorded under this id.
    Refused(CallError, CallId),
}

impl SessionService {
    /// Calls a tool that the session sees. A call that is refused is recorded too.
    pub async fn call_in(
        self: &Arc<Self>,
        session: &Arc<Session>,
        call: SessionCall,
    ) -> SessionReply {
        let scope = call.scope.as_ref().unwrap_or(&session.own_scope);
        let scope = self.scope_for(scope, Some(session), &call.caller.access);
        let cached = if call.seen.is_some() {
            // The model chose from `seen`: servers need not list their tools again.
            let cached = self.view_of(&scope, Some(session));
            if matches!(cached.view.find(&call.tool), Found::Tool(_)) {
                cached
            } else {
                // A session that has ended refuses by what it saw last.
                let _ended = self.newest(session).await;
                self.view_of(&scope, Some(session))
            }
        } else {
            let is_known = |view: &View| {
                is_listed(view, &call.tool) || written_by_people(view, &call.tool).is_some()
            };
            self.view_with(&scope, Some(session), &call.tool, is_known).await
        };
        let view = &cached.view;
        if let Some(seen) = &call.seen {
            match (seen.view.find(&call.tool), view.find(&call.tool)) {
                (Found::Tool(seen), Found::Tool(now)) if seen.tool.name == now.tool.name => {}
                (Found::Meta(seen), Found::Meta(now)) if seen == now => {}
                (shown @ (Found::Tool(_) | Found::Meta(_)), _) => {
                    let entry = if let Found::Tool(entry) = shown { Some(entry) } else { None };
                    let text = format!(
                        "`{}` was removed from this session after its tools were listed, so it was not called. Continue without it.",
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
            // A disabled tool stays disabled under its other names.
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
        let scope = call.scope.as_ref().unwrap_or(&session.own_scope);
        let check = self.check_for(scope, Some(session), reached, &call.caller.access);
        let request = CallRequest {
            tool: ToolChoice::from(&*entry.tool),
            arguments: call.arguments,
            caller: Arc::new(call.caller.in_session(session.id.clone(), session.owner.clone())),
            requested: Some(requested),
            progress: call.progress,
            conversation: call.conversation,
            check: Some(check),
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
        let scope = call.scope.as_ref().unwrap_or(&session.own_scope);
        let scope = self.scope_for(scope, Some(session), &call.caller.access);
        let caller = MetaCaller {
            scope: &scope,
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

/// The tool of a name as people write it: `server.tool`, or `tool` if only one server has it.
fn written_by_people<'a>(view: &'a View, name: &str) -> Option<&'a Entry> {
    view.reach(name).ok().or_else(|| view.only_one_called(name))
}

/// A JSON text as a result with text and structured content.
fn structured(json: String) -> ToolResult {
    ToolResult { structured: serde_json::from_str(&json).ok(), ..ToolResult::text(json) }
}
