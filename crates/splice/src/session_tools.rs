//! The session's tools, as they are declared beside the tools of an app.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde_json::Value;
use switchboard_render::{RenderedTool, Rendering};

use crate::AppRequest;
use crate::splicer::ToolOwner;

/// The session's tools that are added to a request.
#[derive(Debug, Default)]
pub struct SessionTools {
    declarations: Vec<Box<str>>,
    /// Declared name to tool.
    by_name: HashMap<Box<str>, Arc<RenderedTool>>,
    left_out: Vec<LeftOut>,
    has_app_tools: bool,
}

/// A session tool that is not added to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    pub name: Box<str>,
    pub reason: String,
}

/// Prefixes under which clients declare the tools of an MCP server, before the name of the server.
const CLIENT_PREFIXES: [&str; 2] = ["mcp__", "mcp_"];

impl SessionTools {
    /// The tools to add to a request, in the order of the rendering. The app's tools keep their names; a session tool with
    /// the same name is declared under another one. A tool that the app already has from this board, under a client's prefix
    /// for MCP tools, is not declared twice.
    pub fn new(request: &AppRequest, rendering: &Rendering) -> Self {
        let app_tools = &request.facts().app_tools;
        let taken: HashSet<&str> = app_tools.iter().map(String::as_str).collect();
        let most = rendering.provider.max_tools().unwrap_or(usize::MAX);
        let mut tools = Self { has_app_tools: !app_tools.is_empty(), ..Self::default() };
        let not_shown = rendering.quarantined.iter().chain(&rendering.left_out);
        tools.left_out.extend(
            not_shown.map(|tool| LeftOut { name: tool.name.clone(), reason: tool.reason.clone() }),
        );
        for tool in &rendering.tools {
            if let Some(double) = app_tools.iter().find(|name| is_double(name, &tool.name)) {
                tools.leave_out(tool, format!("the app declares it as `{double}`"));
            } else if app_tools.len() + tools.declarations.len() >= most {
                let provider = rendering.provider;
                tools.leave_out(
                    tool,
                    format!("{provider} takes {most} tools in one request, with those of the app"),
                );
            } else if taken.contains(&*tool.name) {
                tools.rename(request, tool, &taken);
            } else {
                tools.add(tool.name.clone(), tool.json.clone(), tool);
            }
        }
        tools
    }

    fn add(&mut self, name: Box<str>, declaration: Box<str>, tool: &Arc<RenderedTool>) {
        self.declarations.push(declaration);
        self.by_name.insert(name, tool.clone());
    }

    fn rename(&mut self, request: &AppRequest, tool: &Arc<RenderedTool>, taken: &HashSet<&str>) {
        let name = (1..100).map(|number| suffixed(&tool.name, number)).find(|name| {
            !taken.contains(name.as_str()) && !self.by_name.contains_key(name.as_str())
        });
        let declared = name.and_then(|name| {
            let declaration = request.format.renamed(&tool.json, &name)?;
            Some((name, declaration))
        });
        match declared {
            Some((name, declaration)) => self.add(name.into(), declaration, tool),
            None => self.leave_out(tool, "the app has a tool of the same name".to_owned()),
        }
    }

    fn leave_out(&mut self, tool: &RenderedTool, reason: String) {
        self.left_out.push(LeftOut { name: tool.name.clone(), reason });
    }

    /// The tools that are not declared, with the reasons.
    pub fn left_out(&self) -> &[LeftOut] {
        &self.left_out
    }

    pub fn len(&self) -> usize {
        self.declarations.len()
    }

    pub fn is_empty(&self) -> bool {
        self.declarations.is_empty()
    }

    pub(crate) fn declarations(&self) -> &[Box<str>] {
        &self.declarations
    }

    /// Whose tool a name is. A name that nobody declared is answered to the model here, unless the app has tools: then the
    /// app decides.
    pub(crate) fn owner(&self, name: &str) -> ToolOwner {
        if self.by_name.contains_key(name) || !self.has_app_tools {
            ToolOwner::Session
        } else {
            ToolOwner::App
        }
    }

    /// The exposed name of a declared tool, and its arguments with the tool's own names.
    pub(crate) fn resolve(&self, name: &str, arguments: Value) -> (String, Value) {
        match self.by_name.get(name) {
            Some(tool) => {
                let map = tool.arguments.as_ref();
                let arguments = match map {
                    Some(map) => map.restore(arguments),
                    None => arguments,
                };
                (tool.name.to_string(), arguments)
            }
            None => (name.to_owned(), arguments),
        }
    }
}

/// `name_2`, `name_3`, within 64 characters.
fn suffixed(name: &str, number: u32) -> String {
    let suffix = format!("_{}", number + 1);
    let kept: String = name.chars().take(64 - suffix.len()).collect();
    kept + &suffix
}

/// Whether a client declares this tool of the board under its own prefix: `mcp__board__tool` or `mcp_board_tool`.
fn is_double(declared: &str, name: &str) -> bool {
    CLIENT_PREFIXES.iter().any(|prefix| {
        let rest = declared.strip_prefix(prefix).and_then(|rest| rest.strip_suffix(name));
        rest.is_some_and(|server| server.len() > 1 && server.ends_with('_'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_under_a_clients_prefix_is_a_double() {
        for (declared, name, expected) in [
            ("mcp__board__files__read", "files__read", true),
            ("mcp_board_read", "read", true),
            ("mcp__board__read", "rea", false),
            ("mcp__read", "read", false),
            ("read", "read", false),
            ("bread", "read", false),
        ] {
            assert_eq!(is_double(declared, name), expected, "{declared} {name}");
        }
    }

    #[test]
    fn another_name_has_at_most_64_characters() {
        assert_eq!(suffixed("read", 1), "read_2");
        assert_eq!(suffixed(&"x".repeat(64), 12).len(), 64);
    }
}
