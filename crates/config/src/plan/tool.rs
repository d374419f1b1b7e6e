//! One entry of `toolbox.tools`.

use std::collections::HashMap;

use switchboard_model::{META_TOOLS, ToolEntry, ToolGrouping};

use super::prompt_tool::PROMPT_KEYS;
use super::records::record;
use super::threat_protection::content_check;
use super::{At, Planner, RawLimits, admission_mode};
use crate::problem::ConfigProblem;
use crate::raw::{RawServer, RawTool, RawToolType};

impl Planner<'_> {
    pub(super) fn tool(
        &mut self,
        at: &At<'_>,
        mut raw: RawTool,
        servers: &[(At<'_>, RawServer)],
    ) -> Option<ToolEntry> {
        self.refuse_keys_of_other_types(at, raw.kind);
        let (name, expose_as) = match raw.kind {
            Some(RawToolType::McpTool) => self.mcp_tool(at, &raw, servers),
            Some(RawToolType::Prompt) | None => (raw.name.take(), raw.expose_as.take()),
        };
        if let Some(alias) = at.get("applicable-states").filter(|_| at.has("applicable_states")) {
            let help = "both are names of one setting: remove one";
            self.refuse(&alias, "sets the same as `applicable_states`", help);
        }
        let mut arguments = raw.arguments.take().map(|arguments| self.arguments(at, arguments));
        let prompt = match raw.kind {
            Some(RawToolType::Prompt) => {
                Some(self.prompt_tool(at, &mut raw, arguments.get_or_insert_default())?)
            }
            Some(RawToolType::McpTool) | None => None,
        };
        let limits = RawLimits {
            max_instances: raw.max_instances,
            timeout: raw.timeout,
            max_timeout: raw.max_timeout,
            queue_timeout: raw.queue_timeout,
            inactivity_timeout: raw.inactivity_timeout,
            max_result_bytes: raw.max_result_bytes,
            rate: raw.rate,
        };
        let limits = self.limits(at, limits);
        Some(ToolEntry {
            name: name?,
            id: raw.id,
            limits,
            mode: raw.mode.map(admission_mode),
            description: raw.description,
            expose_as,
            enabled: raw.enabled.unwrap_or(true),
            arguments,
            validate_arguments: raw.validate_arguments,
            content_check: content_check(raw.content_check),
            record: record(raw.record),
            grouping: ToolGrouping {
                group: raw.group,
                state: raw.state,
                applicable_states: raw.applicable_states.or(raw.applicable_states_alias),
            },
            prompt,
        })
    }

    /// The addressed tool and the exposed name of an entry with `type: mcp-tool`.
    fn mcp_tool(
        &mut self,
        at: &At<'_>,
        raw: &RawTool,
        servers: &[(At<'_>, RawServer)],
    ) -> (Option<String>, Option<String>) {
        let Some(target) = &raw.mcp_tool else {
            let problem = ConfigProblem::error(format!("missing key `mcp-tool` in {}", at.path))
                .about(&at.path.key("mcp-tool"))
                .help("add `mcp-tool:` with the name of the tool, or remove `type: mcp-tool`");
            self.push(at.value_origin("type"), problem);
            return (None, None);
        };
        if let Some(at) = at.get("expose_as") {
            let help = "the exposed name of such an entry is its `name`: remove this key";
            self.refuse(&at, "has no effect beside `type: mcp-tool`", help);
        }
        let exposed = raw.name.clone();
        if let (Some(name), Some(at)) = (&exposed, at.get("name"))
            && !is_exposed_name(name)
        {
            let help = "models see the tool under this name: start with a letter or `_`, go on with letters, digits, `_` \
                        and `-`, 64 characters at most";
            self.refuse(&at, "cannot be the name of a tool", help);
        }
        (Some(only_tool_of(target, servers).unwrap_or_else(|| target.clone())), exposed)
    }

    /// Reports keys that belong to entries of another type.
    fn refuse_keys_of_other_types(&mut self, at: &At<'_>, kind: Option<RawToolType>) {
        if kind != Some(RawToolType::McpTool)
            && let Some(at) = at.get("mcp-tool")
        {
            let help = "add `type: mcp-tool`, or write the tool into `name` and remove this key";
            self.refuse(&at, "is for an entry with `type: mcp-tool`", help);
        }
        if kind.is_none()
            && let Some(at) = at.get("id")
        {
            let help = "add `type: mcp-tool` or `type: prompt`, or remove this key";
            self.refuse(&at, "is for an entry with a `type`", help);
        }
        for key in PROMPT_KEYS {
            if kind != Some(RawToolType::Prompt)
                && let Some(at) = at.get(key)
            {
                let help = "add `type: prompt`, or remove this key";
                self.refuse(&at, "is for an entry with `type: prompt`", help);
            }
        }
    }

    /// Reports entries that name the same tool. Entries of the same `name` have been reported.
    pub(super) fn check_named_tools(&mut self, tools: &[(ToolEntry, At<'_>)]) {
        let mut seen: HashMap<&str, &At<'_>> = HashMap::new();
        for (tool, at) in tools {
            let Some(first) = seen.insert(&tool.name, at) else { continue };
            let written =
                |at: &At<'_>| at.get("name").and_then(|name| name.text().map(str::to_owned));
            if written(first) == written(at) {
                continue;
            }
            let key = if at.has("mcp-tool") { "mcp-tool" } else { "name" };
            let origin = at.value_origin(key);
            let problem = ConfigProblem::error("two tool entries are about the same tool")
                .about(&at.path.key(key))
                .note(format!("the first is at {}", self.source.place(&first.node.origin)))
                .help("a tool has one entry: merge them, or remove one");
            self.push(origin, problem);
        }
    }

    /// Reports entries that TrustGraph's clients would know by the same id.
    pub(super) fn check_tool_ids(&mut self, tools: &[(ToolEntry, At<'_>)]) {
        let mut seen: HashMap<String, &At<'_>> = HashMap::new();
        for (_, at) in tools.iter().filter(|(_, at)| at.has("type")) {
            let key = if at.has("id") { "id" } else { "name" };
            let Some(id) = at.get(key).and_then(|id| id.text().map(str::to_owned)) else {
                continue;
            };
            let Some(first) = seen.insert(id, at) else { continue };
            // Entries of the same `name` have been reported.
            if !at.has("id") && !first.has("id") {
                continue;
            }
            let problem = ConfigProblem::error("two tool entries have the same id")
                .about(&at.path.key(key))
                .note(format!("the first is at {}", self.source.place(&first.node.origin)))
                .help("without `id` the name of an entry is its id: choose another one");
            self.push(at.value_origin(key), problem);
        }
    }

    /// Reports exposed names that collide with each other or with a meta-tool.
    pub(super) fn check_exposed_names(&mut self, tools: &[(ToolEntry, At<'_>)]) {
        let mut seen = HashMap::new();
        for (tool, at) in tools {
            let (Some(name), Some(at)) = (&tool.expose_as, at.get("expose_as")) else { continue };
            if META_TOOLS.contains(&name.as_str()) {
                let help = "it is the name of a tool of the gateway itself; choose another name";
                self.refuse(&at, "is reserved", help);
            }
            if let Some(first) = seen.insert(name.as_str(), &at.node.origin) {
                let shown = if at.node.sensitive { "***" } else { name };
                let problem =
                    ConfigProblem::error(format!("two tool entries are exposed as `{shown}`"))
                        .about(&at.path)
                        .note(format!("the first is at {}", self.source.place(first)))
                        .help("choose another name for one of them");
                self.push(&at.node.origin, problem);
            }
        }
    }
}

/// The tool of the server that is called `target`, if its allow list admits exactly one tool.
fn only_tool_of(target: &str, servers: &[(At<'_>, RawServer)]) -> Option<String> {
    let (_, server) = servers.iter().find(|(_, raw)| raw.name.as_deref() == Some(target))?;
    match server.tool_allowlist.as_deref() {
        Some([tool]) if !tool.contains(['*', '?']) => Some(format!("{target}.{tool}")),
        _ => None,
    }
}

/// Whether every provider accepts the name for a tool.
fn is_exposed_name(name: &str) -> bool {
    let mut bytes = name.bytes();
    let starts = bytes.next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_');
    starts
        && name.len() <= 64
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}
