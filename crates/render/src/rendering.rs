//! The tools of a view as the value of a provider's `tools`.

use std::collections::HashSet;
use std::sync::Arc;

use bytes::Bytes;

use crate::{NamedTool, Provider, Quarantine, RenderedTool, render_tool};

/// The `tools` of one provider. Immutable: reusing it copies a pointer.
#[derive(Debug, Clone)]
pub struct Rendering {
    pub provider: Provider,
    /// The declared tools, in the order of the view.
    pub tools: Vec<Arc<RenderedTool>>,
    /// Tools that are not declared because the provider would reject the whole list with them.
    pub quarantined: Vec<NotShown>,
    /// Tools that are not declared because the provider's maximum is reached.
    pub left_out: Vec<NotShown>,
    json: Bytes,
}

/// A tool that is not declared, and the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotShown {
    pub name: Box<str>,
    pub reason: String,
}

impl Rendering {
    /// Renders tools in the given order.
    pub fn new<'a>(provider: Provider, tools: impl IntoIterator<Item = NamedTool<'a>>) -> Self {
        Self::assemble(
            provider,
            tools.into_iter().map(|tool| (tool.name, render_tool(provider, &tool).map(Arc::new))),
        )
    }

    /// Assembles tools that are already rendered for this provider. A tool at the end never changes the bytes before
    /// it, which keeps the provider's prompt cache valid.
    pub fn assemble<'a>(
        provider: Provider,
        tools: impl IntoIterator<Item = (&'a str, Result<Arc<RenderedTool>, Quarantine>)>,
    ) -> Self {
        let mut shown: Vec<Arc<RenderedTool>> = Vec::new();
        let (mut quarantined, mut left_out) = (Vec::new(), Vec::new());
        let mut names = HashSet::new();
        for (name, tool) in tools {
            let not_shown = |reason: String| NotShown { name: name.into(), reason };
            let tool = match tool {
                Ok(tool) => tool,
                Err(quarantine) => {
                    quarantined.push(not_shown(quarantine.reason));
                    continue;
                }
            };
            if !names.insert(tool.name.clone()) {
                let reason = format!("another tool before it has the name `{}`", tool.name);
                quarantined.push(not_shown(reason));
                continue;
            }
            match provider.max_tools() {
                Some(most) if shown.len() >= most => {
                    let reason = format!(
                        "{provider} takes {most} tools in one request, and {most} come before it"
                    );
                    left_out.push(not_shown(reason));
                }
                _ => shown.push(tool),
            }
        }
        let json = joined(provider, &shown);
        Self { provider, tools: shown, quarantined, left_out, json }
    }

    /// The value of `tools`, as JSON. Without tools it is `[]`.
    pub fn json(&self) -> Bytes {
        self.json.clone()
    }

    /// A declared tool by name, for mapping the arguments of its calls back.
    pub fn tool(&self, name: &str) -> Option<&Arc<RenderedTool>> {
        self.tools.iter().find(|tool| &*tool.name == name)
    }
}

fn joined(provider: Provider, tools: &[Arc<RenderedTool>]) -> Bytes {
    if tools.is_empty() {
        // Gemini rejects an empty list of declarations.
        return Bytes::from_static(b"[]");
    }
    let (before, after) = provider.frame();
    let length: usize = tools.iter().map(|tool| tool.json.len() + 1).sum();
    let mut json = String::with_capacity(before.len() + length + after.len());
    json.push_str(before);
    for (index, tool) in tools.iter().enumerate() {
        if index > 0 {
            json.push(',');
        }
        json.push_str(&tool.json);
    }
    json.push_str(after);
    json.into()
}
