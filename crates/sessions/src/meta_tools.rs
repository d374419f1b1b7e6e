//! The meta-tools: list, search, describe, enable and disable toolsets, and call a tool by its name.

use std::sync::Arc;

use serde_json::{Map, Value};
use switchboard_runtime::CachedView;
use switchboard_view::{ListEra, MetaTool, Scope, Switched, View};

use crate::error::SessionError;
use crate::service::SessionService;
use crate::session::Session;

/// Added to the result of `enable_toolset` for MCP clients, because some never list their tools again.
const CALLABLE_AT_ONCE: &str = " They can be called from now on; call_tool runs them at once, also where they are not listed yet.";

/// Tells a client without a session why no toolset was enabled or disabled.
const NO_SESSION: &str =
    "Toolsets cannot be enabled or disabled without a session: run these tools with call_tool.";

/// The caller of a meta-tool.
#[derive(Debug, Clone, Copy)]
pub struct MetaCaller<'a> {
    pub scope: &'a Arc<Scope>,
    /// The caller's session. Without one, no toolset can be enabled or disabled.
    pub session: Option<&'a Arc<Session>>,
    /// The caller's view.
    pub view: &'a Arc<CachedView>,
    /// The era in whose format tool definitions are written.
    pub era: ListEra,
    /// Whether the result includes the definitions of the tools, for callers that do not fetch a list.
    pub wants_definitions: bool,
    /// Whether the caller fetches its list of tools itself, so that new tools may be missing in it for a while.
    pub lists_itself: bool,
}

/// The outcome of a meta-tool.
#[derive(Debug)]
pub enum MetaOutcome {
    /// The result as JSON text, or an error for the model.
    Answer(Result<String, String>),
    /// `call_tool`: the caller must call the tool of this name in this view with the inner `arguments`, or refuse the call
    /// if the view does not permit it.
    Call { view: Arc<CachedView>, name: String },
}

impl SessionService {
    /// Runs a meta-tool. A change of toolsets is stored and in effect when this returns.
    pub async fn call_meta_tool(
        &self,
        caller: MetaCaller<'_>,
        meta: MetaTool,
        arguments: &Map<String, Value>,
    ) -> MetaOutcome {
        let view = &caller.view.view;
        let name = arguments.get("name").and_then(Value::as_str);
        MetaOutcome::Answer(match meta {
            MetaTool::EnableToolset => {
                let enable = |view: &View, arguments: &_| {
                    let mut switched = view.enable(arguments)?;
                    if caller.lists_itself {
                        switched.message.push_str(CALLABLE_AT_ONCE);
                    }
                    Ok(switched)
                };
                self.switch(caller, arguments, enable).await
            }
            // Definitions of disabled tools are of no use: names are enough.
            MetaTool::DisableToolset => {
                let caller = MetaCaller { wants_definitions: false, ..caller };
                self.switch(caller, arguments, View::disable).await
            }
            MetaTool::ListToolsets => Ok(view.toolsets_text()),
            MetaTool::DescribeToolset => view.toolset_text(arguments),
            MetaTool::SearchTools => view.search_text(arguments),
            MetaTool::DescribeTool => {
                let cached = self.view_that_reaches(caller, name.unwrap_or_default()).await;
                cached.view.tool_text(arguments, caller.era)
            }
            MetaTool::CallTool => match name.filter(|name| !name.is_empty()) {
                None => Err("say which tool in `name`".into()),
                Some(name) => {
                    let view = self.view_that_reaches(caller, name).await;
                    return MetaOutcome::Call { view, name: name.to_owned() };
                }
            },
        })
    }

    /// The caller's view for a tool that the arguments name; see [`SessionService::view_with`].
    async fn view_that_reaches(&self, caller: MetaCaller<'_>, name: &str) -> Arc<CachedView> {
        let is_known = |view: &View| view.reach(name).is_ok();
        self.view_with(caller.scope, caller.session, name, is_known).await
    }

    /// Enables or disables toolsets of the caller's session. A caller without a session gets the definitions only.
    async fn switch(
        &self,
        caller: MetaCaller<'_>,
        arguments: &Map<String, Value>,
        decide: impl Fn(&View, &Map<String, Value>) -> Result<Switched, String>,
    ) -> Result<String, String> {
        let view = &caller.view.view;
        let definitions = caller.wants_definitions.then_some(caller.era);
        let Some(session) = caller.session else {
            let mut switched = decide(view, arguments)?;
            switched.message = NO_SESSION.into();
            return Ok(view.switched_text(&switched, definitions));
        };
        let decide = |view: &View| decide(view, arguments);
        let described = |error: SessionError| error.to_string();
        self.newest(session).await.map_err(described)?;
        let mut attempts = 0;
        let switched = loop {
            match self.sessions.switch(session, caller.scope, decide).await {
                Err(SessionError::Contended)
                    if self.may_try_again(session, &mut attempts).await.map_err(described)? => {}
                done => break done.map_err(described)?,
            }
        };
        self.session_changed(session);
        Ok(view.switched_text(&switched, definitions))
    }
}
