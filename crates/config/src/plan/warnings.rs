//! Warnings about settings that are valid but probably a mistake.

use switchboard_model::{
    AdmissionMode, Endpoint, LOCAL_SERVER, ServerPlan, ToolEntry, UpstreamAuth, is_on_this_machine,
};

use super::{At, Planner, shown_name};
use crate::place::ValueOrigin;
use crate::problem::ConfigProblem;

impl Planner<'_> {
    pub(super) fn warn(&mut self, tools: &[(ToolEntry, At<'_>)], servers: &[(ServerPlan, At<'_>)]) {
        for (server, at) in servers {
            self.warn_ignored_defaults(server, at, tools);
            self.warn_plain_text_secrets(server, at);
        }
        for (tool, at) in tools {
            self.warn_unknown_server(tool, at, servers);
        }
    }

    fn warn_ignored_defaults(
        &mut self,
        server: &ServerPlan,
        at: &At<'_>,
        tools: &[(ToolEntry, At<'_>)],
    ) {
        let name = server.spec.name.as_str();
        let may_be_used = |tool: &ToolEntry| {
            let addressed = tool.name.split_once('.').is_none_or(|(server, _)| server == name);
            tool.mode == Some(AdmissionMode::Dynamic) && addressed
        };
        let is_used = server.mode == AdmissionMode::Dynamic
            || tools.iter().any(|(tool, _)| may_be_used(tool));
        if at.has("default_tool_config") && !is_used {
            let shown = shown_name(at, name);
            let message =
                format!("`default_tool_config` of server '{shown}' is ignored in strict mode");
            let problem = ConfigProblem::error(message)
                .about(&at.path.key("default_tool_config"))
                .help("remove it, or use `mode: dynamic`");
            self.warn_at(at.key_origin("default_tool_config"), problem);
        }
    }

    fn warn_plain_text_secrets(&mut self, server: &ServerPlan, at: &At<'_>) {
        let (Endpoint::StreamableHttp { url, headers, auth }
        | Endpoint::Sse { url, headers, auth }) = &server.spec.endpoint
        else {
            return;
        };
        if url.scheme() == "http"
            && !is_on_this_machine(url)
            && (*auth != UpstreamAuth::None || !headers.is_empty())
        {
            let shown = shown_name(at, server.spec.name.as_str());
            let message = format!("the credentials for server '{shown}' are sent over plain http");
            let help = "use https, unless the network in between is trusted";
            self.warn_at(
                at.key_origin("url"),
                ConfigProblem::error(message).about(&at.path.key("url")).help(help),
            );
        }
    }

    /// Not an error, because names of MCP tools may contain dots.
    fn warn_unknown_server(
        &mut self,
        tool: &ToolEntry,
        at: &At<'_>,
        servers: &[(ServerPlan, At<'_>)],
    ) {
        let Some((server, _)) = tool.name.split_once('.') else { return };
        let known = || servers.iter().map(|(known, _)| known.spec.name.as_str());
        if server == LOCAL_SERVER || known().any(|known| known == server) {
            return;
        }
        let shown = shown_name(at, &tool.name);
        let problem = ConfigProblem::error(format!(
            "the tool entry `{shown}` names a server that is not configured"
        ))
        .about(&at.path.key("name"));
        let problem = match crate::schema::nearest(server, known()) {
            Some(near) if shown != "***" => {
                problem.help(format!("did you mean the server `{near}`?"))
            }
            Some(_) | None => problem,
        };
        self.warn_at(at.value_origin("name"), problem);
    }

    pub(super) fn warn_at(&mut self, origin: &ValueOrigin, problem: ConfigProblem) {
        self.warnings.push(self.source.locate(origin, problem.into_warning()));
    }
}
