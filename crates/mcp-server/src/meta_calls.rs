//! Calls of the meta-tools by MCP clients.

use std::sync::Arc;

use serde_json::{Map, Value};
use switchboard_model::ToolResult;
use switchboard_protocol::{Members, notification};
use switchboard_runtime::CachedView;
use switchboard_sessions::{MetaCaller, MetaOutcome, Reached};
use switchboard_view::{ListEra, MetaTool};

use crate::gateway::Gateway;
use crate::methods::{Dispatch, Incoming};
use crate::outcome::Outcome;
use crate::relist::Relist;
use crate::request_context::RequestContext;
use crate::stored_client::snapshot_of;

impl Gateway {
    pub(crate) async fn call_meta(
        self: &Arc<Self>,
        context: RequestContext,
        meta: MetaTool,
        view: &Arc<CachedView>,
        request: &Incoming<'_>,
    ) -> Dispatch {
        let era = context.era();
        let text = request.params.get("arguments").filter(|text| *text != "null").unwrap_or("{}");
        let Ok(arguments) = serde_json::from_str::<Map<String, Value>>(text) else {
            let message = format!("the arguments of {} must be a JSON object", meta.name());
            return Dispatch::Now(Vec::new(), Outcome::tool_error(era, message));
        };
        let is_switch = matches!(meta, MetaTool::EnableToolset | MetaTool::DisableToolset);
        let relist = if is_switch { self.expected_relist(&context) } else { None };
        let caller = MetaCaller {
            scope: &context.scope,
            session: context.session.as_ref(),
            view,
            era,
            wants_definitions: era == ListEra::Stateless,
            lists_itself: true,
        };
        let answer = match self.service.call_meta_tool(caller, meta, &arguments).await {
            MetaOutcome::Answer(answer) => answer,
            MetaOutcome::Call { view, name } => {
                return self.call_by_name(context, &view, &name, text, request).await;
            }
        };
        let mut before = Vec::new();
        if is_switch && let Some(client) = &context.client {
            // A client that has no stream of its own is told of the change on the stream of this response.
            if context.can_stream && !client.has_stream() {
                before
                    .extend(client.take_owed().methods().map(|method| notification(method, None)));
            }
            self.sessions().writes.note_client(snapshot_of(client));
        }
        if let Some(relist) = relist.filter(|_| answer.is_ok()) {
            relist.done().await;
        }
        Dispatch::Now(before, structured(era, answer))
    }

    /// The list that the client is expected to fetch after a switch of its toolsets.
    fn expected_relist(&self, context: &RequestContext) -> Option<Relist> {
        let session = context.session.as_ref()?;
        let history = match &context.client {
            Some(client) => client.has_stream().then(|| client.relists.clone()),
            None => self.listeners.relists_of(&context.caller.principal, session),
        };
        history.as_ref().and_then(Relist::expected)
    }

    /// Calls the tool that `call_tool` names, with the arguments as the client wrote them.
    async fn call_by_name(
        self: &Arc<Self>,
        context: RequestContext,
        view: &CachedView,
        name: &str,
        text: &str,
        request: &Incoming<'_>,
    ) -> Dispatch {
        let members = Members::read(text).unwrap_or_default();
        let arguments = members.get("arguments").filter(|text| *text != "null");
        match view.view.callable(name) {
            Err(reason) => {
                let entry = view.view.reach(name).ok();
                self.refuse_call(&context, name, entry, arguments, reason).await
            }
            Ok(entry) => {
                let arguments = arguments.map(str::to_owned);
                self.call(context, entry, name, Reached::ByCallTool, arguments, request).await
            }
        }
    }
}

/// A result as text and as structured content, or the error as a tool error.
fn structured(era: ListEra, answer: Result<String, String>) -> Outcome {
    match answer {
        Ok(json) => {
            let structure = serde_json::from_str(&json).ok();
            Outcome::tool(era, &ToolResult { structured: structure, ..ToolResult::text(json) })
        }
        Err(reason) => Outcome::tool_error(era, reason),
    }
}
