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
    system: SystemText,
    /// The index of its first message.
    start: usize,
    base: Arc<Rendering>,
    newest: Arc<Rendering>,
    /// Every tool that was declared in it, whether it still exists or not.
    declared: HashMap<Box<str>, Arc<RenderedTool>>,
    changes: Vec<ToolChange>,
}

/// What a model is told before the conversation. Thinking is bound to it, too.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SystemText {
    pub(crate) instructions: Option<String>,
    /// The configured blocks before the instructions.
    pub(crate) blocks: Vec<String>,
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
    system: SystemText,
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
        epoch.source == *source && epoch.system == system && epoch.start <= messages
    });
    let goes_on = begun.and_then(|epoch| epoch.with(&rendering, messages));
    let current = epoch.insert(goes_on.unwrap_or_else(|| ToolEpoch {
        source: source.clone(),
        system,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_system_text_begins_another_epoch() {
        let source = Source {
            kind: ProviderKind::Anthropic,
            provider: "p".into(),
            model: "m".into(),
            credential: None,
        };
        let text = |instructions: Option<&str>, blocks: &[&str]| SystemText {
            instructions: instructions.map(str::to_owned),
            blocks: blocks.iter().map(|block| (*block).to_owned()).collect(),
        };
        let rendering = Arc::new(Rendering::new(Provider::Anthropic, std::iter::empty()));
        let mut epoch = None;
        let mut replay = |system: SystemText, messages: usize| {
            next(&mut epoch, &source, system, rendering.clone(), messages, true).1
        };
        assert_eq!(replay(text(None, &["a"]), 1), 1..1);
        assert_eq!(replay(text(None, &["a"]), 3), 1..3, "it goes on");
        assert_eq!(replay(text(None, &["b"]), 5), 5..5, "another block");
        assert_eq!(replay(text(None, &["b"]), 6), 5..6);
        assert_eq!(replay(text(Some("x"), &["b"]), 7), 7..7, "other instructions");
        assert_eq!(replay(text(Some("x"), &[]), 8), 8..8, "no block");
    }
}
