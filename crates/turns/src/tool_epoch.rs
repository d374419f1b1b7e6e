//! What of the tools a provider is shown, and how it learns of changes.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use switchboard_chat::Source;
use switchboard_model::ProviderKind;
use switchboard_providers::ProviderEndpoint;
use switchboard_render::{ApplyDelta, Delta, Provider, RenderedTool, Rendering};
use switchboard_wire::{ToolChange, Tools, takes_tool_changes};

/// An epoch of a conversation with one model whose beginning never changes. Claude models bind their thoughts to all
/// that came before, tools included: as long as changes of tools are only ever added, the thoughts stay valid. What came
/// before the epoch was thought over other tools and is not sent back.
#[derive(Debug, Clone)]
pub(crate) struct ToolEpoch {
    source: Source,
    instructions: Option<String>,
    /// The message at which it begins.
    start: usize,
    base: Arc<Rendering>,
    newest: Arc<Rendering>,
    /// Every tool that was declared in it, whether it is there now or not.
    declared: HashMap<Box<str>, Arc<RenderedTool>>,
    changes: Vec<ToolChange>,
}

/// The form in which a provider takes tools.
pub(crate) fn form_of(endpoint: &ProviderEndpoint, kind: ProviderKind) -> Provider {
    match kind {
        ProviderKind::OpenAi | ProviderKind::ChatGpt | ProviderKind::Demo => Provider::OpenAi,
        ProviderKind::OpenAiChat => Provider::OpenAiChat,
        ProviderKind::Anthropic => Provider::Anthropic,
        ProviderKind::Gemini | ProviderKind::CodeAssist if endpoint.declares_parameters() => {
            Provider::GeminiParameters
        }
        ProviderKind::Gemini | ProviderKind::CodeAssist => Provider::Gemini,
    }
}

/// What the next request shows, and the messages whose sealed thoughts may go with it. `messages` is how many there are;
/// `is_plain` says that they are the stored ones and nothing else.
pub(crate) fn next(
    epoch: &mut Option<ToolEpoch>,
    source: &Source,
    instructions: Option<&str>,
    rendering: Arc<Rendering>,
    messages: usize,
    is_plain: bool,
) -> (Tools, Range<usize>) {
    if source.kind != ProviderKind::Anthropic {
        return (Tools::only(rendering), 0..messages);
    }
    if !is_plain {
        // Thoughts over a conversation that looks otherwise for one request are worth nothing in the next one.
        *epoch = None;
        return (Tools::only(rendering), 0..0);
    }
    let begun = epoch.take().filter(|epoch| {
        epoch.source == *source
            && epoch.instructions.as_deref() == instructions
            && epoch.start <= messages
    });
    let goes_on = begun.and_then(|epoch| epoch.with(&rendering, messages));
    let current = epoch.insert(goes_on.unwrap_or_else(|| ToolEpoch {
        source: source.clone(),
        instructions: instructions.map(str::to_owned),
        start: messages,
        declared: rendering.tools.iter().map(|tool| (tool.name.clone(), tool.clone())).collect(),
        base: rendering.clone(),
        newest: rendering,
        changes: Vec::new(),
    }));
    let tools = Tools {
        base: current.base.clone(),
        changes: current.changes.clone(),
        newest: current.newest.clone(),
    };
    (tools, current.start..messages)
}

impl ToolEpoch {
    /// The epoch with tools as they are now, where that can be said by adding something.
    fn with(mut self, rendering: &Arc<Rendering>, messages: usize) -> Option<Self> {
        if self.newest.json() == rendering.json() {
            return Some(self);
        }
        if !takes_tool_changes(&self.source) {
            return None;
        }
        let delta = Delta::since(&self.newest, rendering, &self.declared);
        match delta.apply {
            ApplyDelta::Nothing => {}
            ApplyDelta::Resend { .. } => return None,
            ApplyDelta::Append { .. } => {
                self.changes.push(ToolChange { before: messages, delta: Arc::new(delta) });
            }
        }
        let all = rendering.tools.iter().map(|tool| (tool.name.clone(), tool.clone()));
        self.declared.extend(all);
        self.newest = rendering.clone();
        Some(self)
    }
}
