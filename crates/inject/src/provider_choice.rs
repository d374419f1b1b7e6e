//! Chooses the provider that serves an app's request.
//!
//! The first of these that serves the app's API: the provider before the slash of a model's name, the demo model if the
//! name is `demo`, the provider of the session, the first one of the configuration, the first built-in one with credentials.

use std::sync::Arc;

use switchboard_model::ProviderKind;
use switchboard_providers::{ProviderEndpoint, ProviderOrigin, Providers};
use switchboard_render::Provider;
use switchboard_sessions::Session;
use switchboard_splice::{Api, Refusal, RefusalKind};

use crate::ApiFamily;

/// The name of the model of the demo provider.
const DEMO: &str = "demo";

/// The provider of a request.
#[derive(Debug, Clone)]
pub(crate) struct ChosenProvider {
    pub(crate) endpoint: Arc<ProviderEndpoint>,
    /// The name of the model, if it differs from the one that the app wrote.
    pub(crate) model: Option<String>,
    /// The name of the board's credential; `None` is the default one.
    pub(crate) credential: Option<String>,
    /// Whether the provider does not speak the app's API.
    pub(crate) is_translated: bool,
}

/// What a request needs of a provider.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Needs<'a> {
    pub(crate) family: ApiFamily,
    /// The API; `None` if any of the family will do.
    pub(crate) api: Option<Api>,
    /// The model as the app wrote it; may be empty.
    pub(crate) model: &'a str,
    /// Whether the app sent a credential of its own.
    pub(crate) has_credential: bool,
}

pub(crate) fn choose(
    providers: &Providers,
    session: &Session,
    needs: Needs<'_>,
) -> Result<ChosenProvider, Refusal> {
    let endpoints = providers.endpoints();
    let about = session.now().draft.about;
    let serving = || endpoints.iter().filter(|endpoint| needs.is_served_by(endpoint.plan().kind));
    let of_session = serving().find(|it| Some(&it.plan().name) == about.provider.as_ref());
    let chosen = |endpoint: &Arc<ProviderEndpoint>, model: Option<&str>| {
        // The credential of a session belongs to the provider of the session.
        let is_of_session = of_session.is_some_and(|own| Arc::ptr_eq(own, endpoint));
        ChosenProvider {
            endpoint: endpoint.clone(),
            model: model.map(str::to_owned),
            credential: about.credential.clone().filter(|_| is_of_session),
            is_translated: !needs.is_served_by(endpoint.plan().kind),
        }
    };
    // A provider of another kind answers only if the app names it: it does not know the models of the app's provider.
    let named = |name: &str| {
        let mut all = endpoints.iter().filter(|it| it.plan().name == name);
        all.find(|it| {
            needs.is_served_by(it.plan().kind) || (needs.is_translated() && it.has_credentials())
        })
    };
    let written = needs.model.strip_prefix("models/").unwrap_or(needs.model);
    if let Some((name, model)) = written.split_once('/')
        && let Some(endpoint) = named(name)
        && !model.is_empty()
    {
        return Ok(chosen(endpoint, Some(model)));
    }
    if written == DEMO
        && let Some(endpoint) = serving().find(|it| it.plan().kind == ProviderKind::Demo)
    {
        return Ok(chosen(endpoint, None));
    }
    let is_usable = |endpoint: &&Arc<ProviderEndpoint>| {
        let plan = endpoint.plan();
        plan.kind != ProviderKind::Demo
            && (endpoint.has_credentials() || (plan.passes_app_credentials && needs.has_credential))
    };
    let configured = serving()
        .filter(|endpoint| endpoint.origin() == ProviderOrigin::Configured)
        .find(is_usable);
    let found = of_session.or(configured).or_else(|| serving().find(is_usable));
    found.map(|endpoint| chosen(endpoint, None)).ok_or_else(|| needs.refusal())
}

/// The rendering of the session's tools that a provider takes.
pub(crate) fn rendering_of(api: Api, endpoint: &ProviderEndpoint) -> Provider {
    match api.provider() {
        Provider::Gemini if endpoint.declares_parameters() => Provider::GeminiParameters,
        provider => provider,
    }
}

impl Needs<'_> {
    fn is_served_by(self, kind: ProviderKind) -> bool {
        match (kind, self.family) {
            (ProviderKind::Demo, _)
            | (ProviderKind::OpenAi, ApiFamily::OpenAi)
            | (ProviderKind::Anthropic, ApiFamily::Anthropic)
            | (ProviderKind::Gemini, ApiFamily::Gemini) => true,
            // Services with Chat Completions rarely have Responses.
            (ProviderKind::OpenAiChat, ApiFamily::OpenAi) => self.api != Some(Api::Responses),
            _ => false,
        }
    }

    /// Whether requests are carried over to providers of other kinds.
    fn is_translated(self) -> bool {
        matches!(self.api, Some(Api::Chat | Api::Responses))
    }

    fn refusal(self) -> Refusal {
        let (api, kinds, variable) = match (self.family, self.api) {
            (ApiFamily::OpenAi, Some(Api::Responses)) => {
                ("OpenAI Responses", "`openai`", "OPENAI_API_KEY")
            }
            (ApiFamily::OpenAi, _) => {
                ("OpenAI Chat Completions", "`openai-chat` or `openai`", "OPENAI_API_KEY")
            }
            (ApiFamily::Anthropic, _) => ("Anthropic Messages", "`anthropic`", "ANTHROPIC_API_KEY"),
            (ApiFamily::Gemini, _) => ("Gemini", "`gemini`", "GEMINI_API_KEY"),
        };
        let other = if self.is_translated() {
            "; to have a provider of another kind answer, name it with its model: `anthropic/claude-...`"
        } else {
            ""
        };
        let text = format!(
            "no provider with a key serves the API {api}: start Switchboard with {variable}, or add a provider of the kind {kinds} \
             to `providers` of its configuration; the model `{DEMO}` answers without a key{other}"
        );
        Refusal::new(RefusalKind::NotFound, text)
    }
}
