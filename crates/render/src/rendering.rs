//! All tools of a view as the value of a provider's `tools`.

use std::collections::HashSet;
use std::sync::Arc;

use bytes::Bytes;

use crate::{NamedTool, Provider, Quarantine, RenderedTool, render_tool};

/// The `tools` of one provider. Immutable: whoever shows it again copies a pointer.
#[derive(Debug, Clone)]
pub struct Rendering {
    pub provider: Provider,
    /// What is shown, in the order of the view.
    pub tools: Vec<Arc<RenderedTool>>,
    /// What is not shown because the provider would refuse it, and everything with it.
    pub quarantined: Vec<NotShown>,
    /// What is not shown because the provider takes no more.
    pub left_out: Vec<NotShown>,
    json: Bytes,
}

/// A tool that a provider does not see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotShown {
    pub name: Box<str>,
    pub reason: String,
}

impl Rendering {
    /// Renders tools in the order in which they are given.
    pub fn new<'a>(provider: Provider, tools: impl IntoIterator<Item = NamedTool<'a>>) -> Self {
        Self::assemble(
            provider,
            tools.into_iter().map(|tool| (tool.name, render_tool(provider, &tool).map(Arc::new))),
        )
    }

    /// Puts tools together that have been rendered for this provider before. A tool at the end never changes the bytes of
    /// those before it, which is what keeps a provider's prompt cache warm.
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

    /// The value of `tools`, as JSON. A list without tools is `[]`.
    pub fn json(&self) -> Bytes {
        self.json.clone()
    }

    /// A tool that is shown, to turn back the arguments that a model gives it.
    pub fn tool(&self, name: &str) -> Option<&Arc<RenderedTool>> {
        self.tools.iter().find(|tool| &*tool.name == name)
    }
}

fn joined(provider: Provider, tools: &[Arc<RenderedTool>]) -> Bytes {
    if tools.is_empty() {
        // Gemini refuses a list of declarations that is empty.
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
