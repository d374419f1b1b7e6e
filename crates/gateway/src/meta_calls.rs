//! Calls of the meta-tools.

use std::sync::Arc;

use serde_json::{Map, Value};
use switchboard_model::ToolResult;
use switchboard_protocol::{Members, notification};
use switchboard_view::{ListEra, MetaTool, Switched, View};

use crate::asker::Asker;
use crate::call_check::Reached;
use crate::gateway::Gateway;
use crate::legacy::snapshot_of;
use crate::methods::{Incoming, Replying};
use crate::outcome::Outcome;
use crate::relist::Relist;

/// Also for a client that never lists its tools again.
const CALLABLE_AT_ONCE: &str = " They can be called from now on; call_tool runs them at once, also where they are not listed yet.";

impl Gateway {
    pub(crate) async fn call_meta(
        self: &Arc<Self>,
        asker: Asker,
        meta: MetaTool,
        view: &View,
        request: &Incoming<'_>,
    ) -> Replying {
        let era = asker.era();
        let text = request.params.get("arguments").filter(|text| *text != "null").unwrap_or("{}");
        let Ok(arguments) = serde_json::from_str::<Map<String, Value>>(text) else {
            let message = format!("the arguments of {} must be a JSON object", meta.name());
            return Replying::Now(Vec::new(), Outcome::tool_error(era, message));
        };
        let answer = match meta {
            MetaTool::EnableToolset => {
                let enable = |view: &View, arguments: &_| {
                    let mut switched = view.enable(arguments)?;
                    switched.message.push_str(CALLABLE_AT_ONCE);
                    Ok(switched)
                };
                // Who does not see the list change needs the definitions of what is new.
                let definitions = (era == ListEra::Modern).then_some(era);
                return self.switch(&asker, view, &arguments, definitions, enable).await;
            }
            MetaTool::DisableToolset => {
                return self.switch(&asker, view, &arguments, None, View::disable).await;
            }
            MetaTool::CallTool => return self.call_by_name(asker, text, request).await,
            MetaTool::ListToolsets => Ok(view.toolsets_text()),
            MetaTool::DescribeToolset => view.toolset_text(&arguments),
            MetaTool::SearchTools => view.search_text(&arguments),
            MetaTool::DescribeTool => {
                let name = arguments.get("name").and_then(Value::as_str).unwrap_or_default();
                let look = self.look_for_reach(&asker.scope, asker.session.as_ref(), name).await;
                look.view.tool_text(&arguments, era)
            }
        };
        Replying::Now(Vec::new(), structured(era, answer))
    }

    /// Switches toolsets of the asker's session, and names the tools concerned, or gives their definitions in this form.
    async fn switch(
        self: &Arc<Self>,
        asker: &Asker,
        view: &View,
        arguments: &Map<String, Value>,
        definitions: Option<ListEra>,
        decide: impl Fn(&View, &Map<String, Value>) -> Result<Switched, String>,
    ) -> Replying {
        let era = asker.era();
        let Some(session) = &asker.session else {
            let answer = decide(view, arguments).map(|mut switched| {
                switched.message =
                    "Nothing is switched for clients without a session: run these tools with call_tool.".into();
                view.switched_text(&switched, definitions)
            });
            return Replying::Now(Vec::new(), structured(era, answer));
        };
        let history = match &asker.client {
            Some(client) => client.has_stream().then(|| client.relists.clone()),
            None => self.listeners.relists_of(&asker.principal, session),
        };
        let relist = history.as_ref().and_then(Relist::expected);
        let switched =
            self.sessions().switch(session, &asker.scope, |view| decide(view, arguments));
        let answer = switched.await.map_err(|error| error.to_string()).map(|switched| {
            self.session_changed(session);
            view.switched_text(&switched, definitions)
        });
        let mut before = Vec::new();
        if let Some(client) = &asker.client {
            // A client that has no stream of its own hears of the change on this one.
            if asker.can_stream && !client.has_stream() {
                before
                    .extend(client.take_owed().methods().map(|method| notification(method, None)));
            }
            self.sessions.keeper.note_client(snapshot_of(client));
        }
        if let Some(relist) = relist.filter(|_| answer.is_ok()) {
            relist.done().await;
        }
        Replying::Now(before, structured(era, answer))
    }

    async fn call_by_name(
        self: &Arc<Self>,
        asker: Asker,
        text: &str,
        request: &Incoming<'_>,
    ) -> Replying {
        let refuse =
            |message: String| Replying::Now(Vec::new(), Outcome::tool_error(asker.era(), message));
        let members = Members::read(text).unwrap_or_default();
        let Some(name) = members.string("name") else {
            return refuse("say which tool in `name`".into());
        };
        let look = self.look_for_reach(&asker.scope, asker.session.as_ref(), &name).await;
        match look.view.callable(&name) {
            Err(told) => refuse(told),
            Ok(entry) => {
                let arguments = members.get("arguments").filter(|text| *text != "null");
                let arguments = arguments.map(str::to_owned);
                self.call(asker, entry, Reached::ByCallTool, arguments, request).await
            }
        }
    }
}

/// An answer as text and as structure, or the reason why there is none.
fn structured(era: ListEra, answer: Result<String, String>) -> Outcome {
    match answer {
        Ok(json) => {
            let structure = serde_json::from_str(&json).ok();
            Outcome::tool(era, &ToolResult { structured: structure, ..ToolResult::text(json) })
        }
        Err(reason) => Outcome::tool_error(era, reason),
    }
}
