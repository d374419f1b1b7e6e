//! The request for a turn: the user's message and its settings.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use switchboard_chat::{Edit, FaultKind, ModelFault, Source};
use switchboard_model::{Effort, ModelSettings, ProviderKind, ProviderPlan, ToolStrategy};
use switchboard_providers::{ProviderEndpoint, ProviderOrigin, Providers, UnknownProvider};
use switchboard_sessions::Session;
use switchboard_view::ToolGroups;
use utoipa::ToSchema;

use crate::TurnError;
use crate::words::Words;

/// The user's message and the settings of the turn. Omitted settings are those of the session and its provider.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewTurn {
    /// The caller's id for the turn. A request with the id of an existing turn returns that turn and does not begin a
    /// second one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^[A-Za-z0-9_-]{1,48}$", max_length = 48)]
    pub id: Option<String>,
    /// The user's message. Without one, the model answers the last message again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<Words>,
    /// The provider of this turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 512, example = "demo")]
    pub provider: Option<String>,
    /// The model of this turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 512)]
    pub model: Option<String>,
    /// The credential of the provider in this turn, by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 512)]
    pub credential: Option<String>,
    /// How the model uses tools in this turn: by native tool calls, or by the text of its answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, pattern = "^(native|react)$")]
    pub strategy: Option<ToolStrategy>,
    /// The groups of tools that the turn may use; `*` stands for all. Without this field, the tools of the group `default`,
    /// to which all tools without a group belong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_items = 64)]
    pub groups: Option<Vec<String>>,
    /// The state in which the turn begins. Tools may be available in some states only, and a call may change the state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 128)]
    pub state: Option<String>,
    /// The system instructions of the conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    pub max_output_tokens: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0, maximum = 2)]
    pub temperature: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0, maximum = 1)]
    pub top_p: Option<f64>,
    /// The reasoning effort of the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, pattern = "^(minimal|low|medium|high)$")]
    pub effort: Option<Effort>,
    /// Whether the model's thinking is requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub show_thinking: Option<bool>,
    /// Changes to the messages that the model sees, for this turn only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub edits: Vec<Edit>,
    /// Whether the changes are stored in the conversation, too.
    #[serde(default)]
    pub persist: bool,
    /// Maximum number of rounds of tool results that are sent to the model. The default is 25.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 1000)]
    pub max_rounds: Option<u32>,
    /// Maximum number of tokens that all requests of the turn may use together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    pub max_tokens_total: Option<u64>,
}

/// Maximum number of groups of a turn.
const MAX_GROUPS: usize = 64;

/// Whether the name of a group or state has at most 128 characters.
fn is_short(name: &str) -> bool {
    name.chars().count() <= 128
}

impl NewTurn {
    /// The groups and the state of the turn.
    pub(crate) fn tool_groups(&self) -> ToolGroups {
        ToolGroups::new(self.groups.clone(), self.state.clone())
    }

    pub(crate) fn check(&self) -> Result<(), TurnError> {
        let bounds = [
            ("max_output_tokens", self.max_output_tokens.is_none_or(|n| n >= 1), "at least 1"),
            (
                "temperature",
                self.temperature.is_none_or(|n| (0.0..=2.0).contains(&n)),
                "from 0 to 2",
            ),
            ("top_p", self.top_p.is_none_or(|n| (0.0..=1.0).contains(&n)), "from 0 to 1"),
            (
                "max_rounds",
                self.max_rounds.is_none_or(|n| (1..=1000).contains(&n)),
                "from 1 to 1000",
            ),
            (
                "groups",
                self.groups.as_ref().is_none_or(|groups| {
                    groups.len() <= MAX_GROUPS && groups.iter().all(|group| is_short(group))
                }),
                "a list of at most 64 names of at most 128 characters",
            ),
            ("state", self.state.as_deref().is_none_or(is_short), "at most 128 characters long"),
            ("max_tokens_total", self.max_tokens_total.is_none_or(|n| n >= 1), "at least 1"),
        ];
        match bounds.into_iter().find(|(_, holds, _)| !holds) {
            Some((name, _, rule)) => Err(TurnError::OutOfBounds { name, rule }),
            None => Ok(()),
        }
    }
}

/// The default provider: the first one of the configuration, else the free demo model.
pub(crate) fn default_name(providers: &Providers) -> String {
    let mut all = providers.list().into_iter();
    let configured = all.find(|provider| provider.source == ProviderOrigin::Configured);
    configured.map_or_else(|| ProviderKind::Demo.as_str().to_owned(), |provider| provider.name)
}

/// The provider and model that the turn names.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    provider: Option<String>,
    model: Option<String>,
    credential: Option<String>,
    strategy: Option<ToolStrategy>,
    settings: ModelSettings,
    show_thinking: Option<bool>,
}

/// The strategy of a turn, and whether somebody chose it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ChosenStrategy {
    pub(crate) strategy: ToolStrategy,
    /// Whether the turn, the session or the configuration names it. If not, a backend that refuses tools changes it.
    pub(crate) is_explicit: bool,
}

impl ChosenStrategy {
    /// The strategy of a model if neither a turn nor a session names one.
    pub(crate) fn of_provider(endpoint: &ProviderEndpoint, model: &str) -> Self {
        let plan = endpoint.plan();
        let named = plan.named_strategy(Some(model));
        let strategy = named.unwrap_or_else(|| match plan.default_strategy(None) {
            ToolStrategy::Native if endpoint.lacks_tools(model) => ToolStrategy::React,
            strategy => strategy,
        });
        Self { strategy, is_explicit: named.is_some() }
    }
}

impl Wanted {
    pub(crate) fn of(turn: &NewTurn) -> Self {
        Self {
            provider: turn.provider.clone(),
            model: turn.model.clone(),
            credential: turn.credential.clone(),
            strategy: turn.strategy,
            settings: ModelSettings {
                instructions: turn.instructions.clone(),
                max_output_tokens: turn.max_output_tokens,
                temperature: turn.temperature,
                top_p: turn.top_p,
                effort: turn.effort,
                show_thinking: false,
                ..ModelSettings::default()
            },
            show_thinking: turn.show_thinking,
        }
    }

    /// The provider to use now: that of the turn, else that of the session, else the default.
    pub(crate) fn endpoint(
        &self,
        providers: &Providers,
        session: &Session,
    ) -> Result<(Arc<ProviderEndpoint>, Source), Box<ModelFault>> {
        let about = session.now().draft.about;
        let is_of_turn = self.provider.is_some();
        let name = self.provider.clone().or(about.provider);
        let name = name.unwrap_or_else(|| default_name(providers));
        let unknown = |error: UnknownProvider| {
            Box::new(ModelFault::new(FaultKind::NotFound, error.to_string()))
        };
        let endpoint = providers.find(&name).map_err(unknown)?;
        // The session's model and credential belong to the session's provider.
        let (of_session, credential) =
            if is_of_turn { (None, None) } else { (about.model, about.credential) };
        let model = self.model.clone().or(of_session);
        let credential = self.credential.clone().or(credential);
        let source = endpoint.source(model.as_deref(), credential.as_deref()).map_err(Box::new)?;
        Ok((endpoint, source))
    }

    /// The strategy to use now: that of the turn, else that of the session, else that of the provider.
    pub(crate) fn strategy(
        &self,
        session: &Session,
        endpoint: &ProviderEndpoint,
        source: &Source,
    ) -> ChosenStrategy {
        match self.strategy.or(session.now().draft.about.strategy) {
            Some(strategy) => ChosenStrategy { strategy, is_explicit: true },
            None => ChosenStrategy::of_provider(endpoint, &source.model),
        }
    }

    pub(crate) fn settings(&self, plan: &ProviderPlan) -> ModelSettings {
        let (own, base) = (&self.settings, &plan.settings);
        ModelSettings {
            instructions: own.instructions.clone().or_else(|| base.instructions.clone()),
            max_output_tokens: own.max_output_tokens.or(base.max_output_tokens),
            temperature: own.temperature.or(base.temperature),
            top_p: own.top_p.or(base.top_p),
            effort: own.effort.or(base.effort),
            show_thinking: self.show_thinking.unwrap_or(base.show_thinking),
            system_blocks: base.system_blocks.clone(),
            declaration_keys: base.declaration_keys,
        }
    }
}
