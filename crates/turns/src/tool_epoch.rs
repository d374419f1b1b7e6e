//! Tool epochs: which tools a model request declares, and how the model learns of changes.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use switchboard_chat::Source;
use switchboard_model::ProviderKind;
use switchboard_providers::ProviderEndpoint;
use switchboard_render::{ApplyDelta, Delta, Provider, RenderedTool, Rendering};
use switchboard_wire::{ToolChange, Tools, takes_tool_changes};

/// A part of a conversation with one model, in which tools only change by appending. Claude models bind their thinking to
/// everything before it, tools included: as long as changes of tools are only appended, the thinking stays valid.
/// Thinking from before the epoch belongs to other tools and is not sent back.
#[derive(Debug, Clone)]
pub(crate) struct ToolEpoch {
    source: Source,
    instructions: Option<String>,
    /// The index of its first message.
    start: usize,
    base: Arc<Rendering>,
    newest: Arc<Rendering>,
    /// Every tool that was declared in it, whether it still exists or not.
    declared: HashMap<Box<str>, Arc<RenderedTool>>,
    changes: Vec<ToolChange>,
}

/// The format in which a provider takes tools.
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

/// The tools of the next request, and the range of messages whose signed thinking may be sent with it. `messages` is
/// the number of messages; `is_plain` says that they are exactly the stored ones.
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
        // Thinking about edited messages is not valid for the stored ones.
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
    /// The epoch with the current tools, if appending a change can express them.
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
