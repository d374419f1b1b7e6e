//! Builds requests for Gemini.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use switchboard_chat::{FaultKind, ModelFault};
use switchboard_model::{DeclarationKeys, ModelSettings, ProviderKind};

use super::content::{Content, PartData, RawPart};
use super::contents::contents;
use super::model::{self, Thinking};
use crate::call_ids::CallIds;
use crate::model_request::{declared, unwritten, written};
use crate::{ModelRequest, WireRequest, tool_results};

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    contents: Vec<Content<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    system_instruction: Option<Instruction<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "GenerationConfig::is_empty")]
    generation_config: GenerationConfig,
    #[serde(rename = "session_id", skip_serializing_if = "Option::is_none")]
    session: Option<&'a str>,
}

/// The envelope of Code Assist.
#[derive(Debug, Serialize)]
struct Envelope<'a> {
    model: &'a str,
    project: &'a str,
    user_prompt_id: &'a str,
    request: Body<'a>,
}

/// The declarations of a rendering.
#[derive(Debug, Deserialize)]
struct Declared<'a> {
    #[serde(borrow, rename = "functionDeclarations")]
    declarations: &'a RawValue,
}

/// The declarations under both keys.
#[derive(Debug, Serialize)]
struct DeclaredTwice<'a> {
    function_declarations: &'a RawValue,
    #[serde(rename = "functionDeclarations")]
    camel_case: &'a RawValue,
}

#[derive(Debug, Serialize)]
struct Instruction<'a> {
    parts: [RawPart<'a>; 1],
}

#[derive(Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct GenerationConfig {
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_config: Option<ThinkingConfig>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stop_sequences: Option<[&'static str; 1]>,
}

#[derive(Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct ThinkingConfig {
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    include_thoughts: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_budget: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_level: Option<&'static str>,
}

impl GenerationConfig {
    fn new(model: &str, settings: &ModelSettings) -> Self {
        let (thinking_budget, thinking_level) = match model::thinking(model, settings.effort) {
            Thinking::Budget(budget) => (budget, None),
            Thinking::Level(level) => (None, level),
            Thinking::Never => return Self::without_thoughts(settings),
        };
        let include_thoughts = settings.show_thinking;
        let thinking = ThinkingConfig { include_thoughts, thinking_budget, thinking_level };
        let thinking_config = (thinking != ThinkingConfig::default()).then_some(thinking);
        Self { thinking_config, ..Self::without_thoughts(settings) }
    }

    fn without_thoughts(settings: &ModelSettings) -> Self {
        Self {
            temperature: settings.temperature,
            top_p: settings.top_p,
            max_output_tokens: settings.max_output_tokens,
            thinking_config: None,
            stop_sequences: None,
        }
    }

    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Builds the request for a conversation.
pub(crate) fn request(ask: &ModelRequest<'_>) -> Result<WireRequest, ModelFault> {
    let model = bare(&ask.source.model)?;
    let ids = CallIds::new(ask.messages, ask.source);
    let mut tools = ask.tools.base.json();
    if ask.settings.declaration_keys == DeclarationKeys::Both {
        tools = declared_twice(&tools)?;
    }
    let system_instruction = tool_results::instructions(ask)
        .map(|text| Instruction { parts: [PartData::Text(text.into()).into()] });
    let is_code_assist = ask.source.kind == ProviderKind::CodeAssist;
    let generation_config = GenerationConfig {
        stop_sequences: ask.stop.map(|stop| [stop]),
        ..GenerationConfig::new(model, ask.settings)
    };
    let request = Body {
        contents: contents(ask, model, &ids),
        system_instruction,
        tools: declared(&tools)?,
        generation_config,
        session: is_code_assist.then_some(ask.session),
    };
    let (path, body) = if is_code_assist {
        let project = ask.project.filter(|project| !project.is_empty());
        let project = project.ok_or_else(|| no_project(&ask.source.provider))?;
        let envelope = Envelope { model, project, user_prompt_id: ask.turn, request };
        ("/v1internal:streamGenerateContent?alt=sse".into(), written(&envelope)?)
    } else {
        let path = format!("/v1beta/models/{model}:streamGenerateContent?alt=sse");
        (path, written(&request)?)
    };
    Ok(WireRequest { path, headers: Vec::new(), body })
}

/// The rendered tools with their declarations under both keys.
fn declared_twice(tools: &[u8]) -> Result<Bytes, ModelFault> {
    let tools: Vec<Declared<'_>> =
        serde_json::from_slice(tools).map_err(|error| unwritten(&error))?;
    let twice = tools.iter().map(|tool| DeclaredTwice {
        function_declarations: tool.declarations,
        camel_case: tool.declarations,
    });
    written(&twice.collect::<Vec<_>>())
}

/// The model name for the URL path. Characters that could change the path are rejected.
fn bare(model: &str) -> Result<&str, ModelFault> {
    let bare = model.strip_prefix("models/").unwrap_or(model);
    let is_legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    if bare.bytes().all(is_legal) && bare.starts_with(|c: char| c.is_ascii_alphanumeric()) {
        return Ok(bare);
    }
    let text = format!(
        "{model:?} is not a valid Gemini model name: use letters, digits, `-`, `_` and `.`, such as `gemini-2.5-pro`"
    );
    Err(ModelFault::new(FaultKind::NotFound, text))
}

fn no_project(provider: &str) -> ModelFault {
    let text = format!(
        "Code Assist works for a project of the Google account, and provider `{provider}` has none: set its `project` in `providers` of the configuration"
    );
    ModelFault::new(FaultKind::Forbidden, text)
}
