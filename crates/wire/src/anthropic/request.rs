//! Builds requests for Anthropic Messages.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::value::RawValue;
use switchboard_chat::ModelFault;
use switchboard_model::{Effort, ModelSettings};
use switchboard_render::ApplyDelta;

use super::content::{CacheControl, Content, Marked, MessageParam};
use super::model::{self, Sampling, Thinking};
use super::turns::{acts_without_thought, turns};
use crate::call_ids::CallIds;
use crate::model_request::{declared, written};
use crate::{ModelRequest, WireRequest, tool_results};

const VERSION: &str = "2023-06-01";
/// Minimum token budget for thinking.
const MIN_THINKING_TOKENS: u32 = 1024;

#[derive(Debug, Serialize)]
struct Body<'a> {
    model: &'a str,
    max_tokens: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    system: Option<Vec<Marked<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<&'a RawValue>,
    messages: Vec<MessageParam<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<RawThinking>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_config: Option<OutputConfig>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stop_sequences: Option<[&'static str; 1]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<Metadata<'a>>,
    stream: bool,
}

/// Sent with the token of an account.
#[derive(Debug, Serialize)]
struct Metadata<'a> {
    user_id: &'a str,
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum RawThinking {
    Adaptive {
        #[serde(skip_serializing_if = "Option::is_none")]
        display: Option<&'static str>,
    },
    Enabled {
        budget_tokens: u32,
    },
}

#[derive(Debug, Serialize)]
struct OutputConfig {
    effort: &'static str,
}

/// Builds the request for a conversation.
pub(crate) fn request(ask: &ModelRequest<'_>) -> Result<WireRequest, ModelFault> {
    let model = ask.source.model.as_str();
    let settings = ask.settings;
    let ids = CallIds::new(ask.messages, ask.source);
    let tools = ask.tools.base.json();
    let messages = turns(ask, &ids);
    let max_tokens = settings.max_output_tokens.unwrap_or_else(|| model::max_tokens(model));
    let (mut thinking, output_config) = thinking(model, settings, max_tokens);
    if matches!(thinking, Some(RawThinking::Enabled { .. })) && acts_without_thought(&messages) {
        thinking = None;
    }
    let (temperature, top_p) = sampling(model, settings, thinking.is_some());
    let body = written(&Body {
        model,
        max_tokens,
        system: system(ask),
        tools: declared(&tools)?,
        messages,
        thinking,
        output_config,
        temperature,
        top_p,
        stop_sequences: ask.stop.map(|stop| [stop]),
        metadata: ask.is_bearer.then_some(Metadata { user_id: ask.session }),
        stream: true,
    })?;
    let version = ("anthropic-version", VERSION.to_owned());
    let betas = betas(ask).map(|betas| ("anthropic-beta", betas));
    let headers = [version].into_iter().chain(betas).collect();
    let path = if ask.is_bearer { "/v1/messages?beta=true" } else { "/v1/messages" };
    Ok(WireRequest { path: path.into(), headers, body })
}

/// The configured blocks and the instructions. The last block ends what the provider caches.
fn system<'a>(ask: &ModelRequest<'a>) -> Option<Vec<Marked<'a>>> {
    let blocks = ask.settings.system_blocks.iter().map(|text| Cow::Borrowed(text.as_str()));
    let texts = blocks.chain(tool_results::instructions(ask).map(Cow::Owned));
    let mut all: Vec<Marked<'a>> = texts.map(|text| Marked::from(Content::Text { text })).collect();
    all.last_mut()?.cache_control = Some(CacheControl::EPHEMERAL);
    Some(all)
}

fn thinking(
    model: &str,
    settings: &ModelSettings,
    max_tokens: u32,
) -> (Option<RawThinking>, Option<OutputConfig>) {
    if settings.effort.is_none() && !settings.show_thinking {
        return (None, None);
    }
    match model::thinking(model) {
        Thinking::Adaptive => {
            // Some models return their thinking only on request.
            let display = settings.show_thinking.then_some("summarized");
            let effort = settings.effort.map(|effort| OutputConfig { effort: word(effort) });
            (Some(RawThinking::Adaptive { display }), effort)
        }
        Thinking::Budget => {
            let wanted = match settings.effort {
                Some(Effort::Minimal) => MIN_THINKING_TOKENS,
                Some(Effort::Low) => 4 * MIN_THINKING_TOKENS,
                Some(Effort::Medium) | None => 8 * MIN_THINKING_TOKENS,
                Some(Effort::High) => 16 * MIN_THINKING_TOKENS,
            };
            // Leaves tokens for the answer.
            let budget_tokens = wanted.min(max_tokens / 2);
            let enabled = RawThinking::Enabled { budget_tokens };
            ((budget_tokens >= MIN_THINKING_TOKENS).then_some(enabled), None)
        }
        Thinking::Never => (None, None),
    }
}

/// `temperature` and `top_p`, as far as the model accepts them; with thinking it accepts neither.
fn sampling(model: &str, settings: &ModelSettings, thinks: bool) -> (Option<f64>, Option<f64>) {
    let ModelSettings { temperature, top_p, .. } = *settings;
    match model::sampling(model) {
        _ if thinks => (None, None),
        Sampling::Neither => (None, None),
        Sampling::One => (temperature, top_p.filter(|_| temperature.is_none())),
        Sampling::Both => (temperature, top_p),
    }
}

fn word(effort: Effort) -> &'static str {
    match effort {
        Effort::Minimal | Effort::Low => "low",
        Effort::Medium => "medium",
        Effort::High => "high",
    }
}

fn betas(ask: &ModelRequest<'_>) -> Option<String> {
    let mut all: Vec<&str> = Vec::new();
    for change in &ask.tools.changes {
        if let ApplyDelta::Append { betas, .. } = &change.delta.apply {
            all.extend(betas);
        }
    }
    all.sort_unstable();
    all.dedup();
    (!all.is_empty()).then(|| all.join(","))
}
