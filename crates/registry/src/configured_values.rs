//! Where the values go that the configuration gives: fixed arguments and hidden defaults.
//!
//! Such a value may be a credential, written for the tools that its entry is about. A change of the configuration by
//! somebody who cannot read the file must not send it to another tool or another host.

use switchboard_model::{Endpoint, Plan, PromptToolPlan, ServerName, ServerPlan, ToolEntry};

use crate::admission::is_listed;
use crate::entries::{is_general, tool_at};

/// A value of the earlier configuration that the later one sends to a tool that did not get it before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RedirectedValue {
    /// The index of the entry in `toolbox.tools` of the later configuration.
    pub entry: usize,
    /// The index of the argument in the entry.
    pub index: usize,
    /// The name of the argument.
    pub argument: String,
    /// The name of the entry's tool.
    pub tool: String,
    /// Where the value would go, in words.
    pub destination: String,
}

impl std::fmt::Display for RedirectedValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { argument, tool, destination, .. } = self;
        write!(
            f,
            "the value that the file gives to argument `{argument}` of '{tool}' would go to "
        )?;
        f.write_str(destination)
    }
}

/// The values that `after` keeps from `before` and sends elsewhere. `earlier` says which entry of `before` an entry of
/// `after` was; the values of a new entry are not kept ones. `true` and `false` are no secrets and do not count.
pub fn redirected_values(
    before: &Plan,
    after: &Plan,
    earlier: impl Fn(usize) -> Option<usize>,
) -> Vec<RedirectedValue> {
    let mut found = Vec::new();
    for (index, entry) in after.tools.iter().enumerate() {
        let Some(present) = earlier(index).and_then(|index| before.tools.get(index)) else {
            continue;
        };
        let kept: Vec<_> = kept_values(present, entry).collect();
        if kept.is_empty() {
            continue;
        }
        let known = destinations(before, present);
        let new = destinations(after, entry).into_iter().find(|it| !known.contains(it));
        let Some(new) = new else { continue };
        found.extend(kept.into_iter().map(|(at, argument)| RedirectedValue {
            entry: index,
            index: at,
            argument: argument.to_owned(),
            tool: entry.expose_as.as_ref().unwrap_or(&entry.name).clone(),
            destination: new.to_string(),
        }));
    }
    found
}

/// The indices and names of the arguments of `new` whose values `present` gives, too.
fn kept_values<'a>(
    present: &'a ToolEntry,
    new: &'a ToolEntry,
) -> impl Iterator<Item = (usize, &'a str)> {
    let arguments = |entry: &'a ToolEntry| entry.arguments.iter().flatten();
    arguments(new).enumerate().filter_map(move |(at, argument)| {
        let value = argument.configured_value().filter(|value| !value.is_boolean())?;
        let is_kept = arguments(present).any(|it| it.configured_value() == Some(value));
        is_kept.then_some((at, argument.name.as_str()))
    })
}

/// A tool to which the values of an entry go.
#[derive(Debug, PartialEq)]
enum Destination<'a> {
    Http { server: &'a ServerName, tool: &'a str, origin: String },
    Program { server: &'a ServerName, tool: &'a str, command: &'a str, args: &'a [String] },
    BuiltIn { tool: &'a str },
    Prompt(&'a PromptToolPlan),
}

impl std::fmt::Display for Destination<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Http { server, tool, origin } => write!(f, "'{server}.{tool}' at {origin}"),
            Self::Program { server, tool, .. } => write!(f, "'{server}.{tool}'"),
            Self::BuiltIn { tool } => write!(f, "the local tool '{tool}'"),
            Self::Prompt(_) => f.write_str("a model, by a changed prompt"),
        }
    }
}

/// The tools that an entry can be about, whether or not their servers have them now and whether or not it is enabled.
fn destinations<'a>(plan: &'a Plan, entry: &'a ToolEntry) -> Vec<Destination<'a>> {
    if let Some(prompt) = &entry.prompt {
        return vec![Destination::Prompt(prompt)];
    }
    let is_general = is_general(plan, entry, &entry.name);
    let tool_of = |server: &ServerPlan| match tool_at(entry, &server.spec.name) {
        Some(tool) => Some(tool),
        None if is_general && !server.is_foreign() && is_listed(server, &entry.name) => {
            Some(entry.name.as_str())
        }
        None => None,
    };
    let of_servers = plan.servers.iter().filter_map(|server| {
        let (tool, server, endpoint) = (tool_of(server)?, &server.spec.name, &server.spec.endpoint);
        Some(match endpoint {
            Endpoint::StreamableHttp { url, .. } | Endpoint::Sse { url, .. } => {
                Destination::Http { server, tool, origin: url.origin().ascii_serialization() }
            }
            Endpoint::Stdio { command, args, .. } => {
                Destination::Program { server, tool, command, args }
            }
        })
    });
    // The names of local tools have no dots.
    let is_local = is_general && !entry.name.contains('.');
    let local = tool_at(entry, &ServerName::local()).or(is_local.then_some(&entry.name));
    of_servers.chain(local.map(|tool| Destination::BuiltIn { tool })).collect()
}

#[cfg(test)]
#[path = "configured_values_tests.rs"]
mod tests;
