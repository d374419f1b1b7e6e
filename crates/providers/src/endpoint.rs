//! One provider, and sending one request to it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use http::{HeaderMap, Method};
use parking_lot::Mutex;
use switchboard_chat::{FaultKind, ModelEvent, ModelFault, Source};
use switchboard_loopback::LoopbackPool;
use switchboard_model::{
    DEFAULT_CREDENTIAL, DescribedIssuer, ProviderAuth, ProviderKind, ProviderPlan, ToolSchemaForm,
};
use switchboard_oauth::{RequestAttempt, SignIns};
use switchboard_wire::{Beat, Limits, ModelRequest, Parser, WireRequest, demo, request};
use tokio::time::timeout_at;
use url::Url;

use crate::asked_by::AskedBy;
use crate::built_in::{Completed, own_address};
use crate::code_assist::Project;
use crate::credential::{self, Presented};
use crate::http_answer::{HttpQuestion, ProviderResponse};
use crate::http_client::{HttpClients, place};
use crate::noted_models::NotedModels;
use crate::stream::{Clock, ModelStream, Reads};
use crate::{ProviderOrigin, answer, request_headers};

/// Number of turns for which failures of the demo model are counted.
const FAILED_TURNS: usize = 256;

/// The model of Code Assist where none is named: accounts have it without a choice.
const CODE_ASSIST_MODEL: &str = "gemini-2.5-pro";

/// A provider to which requests can be sent.
#[derive(Debug)]
pub struct ProviderEndpoint {
    origin: ProviderOrigin,
    plan: Arc<ProviderPlan>,
    /// The variable that would hold its missing credentials.
    missing: Option<&'static str>,
    /// A variable with an invalid URL.
    unreadable: Option<&'static str>,
    base_url: Option<Url>,
    /// The loopback connections, if the provider is on this machine.
    pool: Option<Arc<LoopbackPool>>,
    clients: Arc<HttpClients>,
    project: Project,
    /// The store of sign-ins; absent where nothing is asked.
    sign_ins: Option<SignIns>,
    /// Whether the backend rejected `parametersJsonSchema`.
    knows_only_parameters: AtomicBool,
    /// Models of which the backend said that they have no native tool calls.
    without_tools: NotedModels,
    /// Models for which the backend refused a stop sequence.
    without_stop: NotedModels,
    /// The number of failures of the demo model in each of the latest turns.
    failed: Mutex<VecDeque<(String, u32)>>,
}

impl ProviderEndpoint {
    pub(crate) fn new(
        origin: ProviderOrigin,
        completed: Completed,
        clients: Arc<HttpClients>,
        sign_ins: Option<SignIns>,
    ) -> Self {
        let Completed { plan, missing, unreadable } = completed;
        let own = || own_address(plan.kind).and_then(|text| Url::parse(text).ok());
        let base_url = plan.base_url.clone().or_else(own);
        Self {
            origin,
            pool: base_url.as_ref().and_then(LoopbackPool::to),
            base_url,
            plan: Arc::new(plan),
            missing,
            unreadable,
            clients,
            project: Project::default(),
            sign_ins,
            knows_only_parameters: AtomicBool::new(false),
            without_tools: NotedModels::default(),
            without_stop: NotedModels::default(),
            failed: Mutex::default(),
        }
    }

    /// Whether the backend said that this model has no native tool calls.
    pub fn lacks_tools(&self, model: &str) -> bool {
        self.without_tools.contains(model)
    }

    /// Records that the backend refused a request because the model has no native tool calls.
    pub fn note_no_tools(&self, model: &str) {
        if !self.without_tools.insert(model) {
            return;
        }
        tracing::warn!(
            provider = self.plan.name,
            model,
            "the model has no native tool calls; its turns use the strategy react (set `native_tools: false` to do so from \
             the start)"
        );
    }

    /// Whether the backend may be sent a stop sequence for this model: it has not refused one.
    pub fn takes_stop(&self, model: &str) -> bool {
        !self.without_stop.contains(model)
    }

    /// Records that the backend refused a request because it had a stop sequence.
    pub fn note_no_stop(&self, model: &str) {
        if self.without_stop.insert(model) {
            let provider = &self.plan.name;
            tracing::info!(provider, model, "the backend takes no stop sequence for this model");
        }
    }

    /// Whether tools are declared to this Gemini backend with the older field `parameters`.
    pub fn declares_parameters(&self) -> bool {
        match self.plan.tool_schema {
            ToolSchemaForm::Parameters => true,
            ToolSchemaForm::JsonSchema => false,
            ToolSchemaForm::Auto => self.knows_only_parameters.load(Ordering::Relaxed),
        }
    }

    /// Records that the backend rejected the field `parametersJsonSchema`. Returns whether the request may be repeated
    /// with the older field `parameters`.
    pub fn try_parameters(&self) -> bool {
        let may = self.plan.tool_schema == ToolSchemaForm::Auto;
        if may && !self.knows_only_parameters.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                provider = self.plan.name,
                "the backend does not take parametersJsonSchema; tools are declared with the older parameters \
                 (set `tool_schema: parameters` to do so from the start)"
            );
        }
        may
    }

    #[cfg(test)]
    pub(crate) fn by_the_long_way(self) -> Self {
        Self { pool: None, ..self }
    }

    /// The settings from the configuration and the environment.
    pub fn plan(&self) -> &ProviderPlan {
        &self.plan
    }

    pub(crate) fn shared_plan(&self) -> Arc<ProviderPlan> {
        self.plan.clone()
    }

    /// The source of a reply: this provider, with the requested model or else the configured one, and with the
    /// requested credential.
    ///
    /// Only the demo model and the model of Code Assist are defaults: names and prices of models change, and a paid
    /// model must be chosen explicitly.
    pub fn source(
        &self,
        model: Option<&str>,
        credential: Option<&str>,
    ) -> Result<Source, ModelFault> {
        let plan = self.plan();
        credential::find(plan, credential)?;
        let credential = credential.filter(|name| *name != DEFAULT_CREDENTIAL).map(str::to_owned);
        let asked = model.map(str::trim).filter(|model| !model.is_empty());
        let Some(model) = asked.or_else(|| self.default_model()) else {
            let name = &plan.name;
            let text = format!(
                "no model is named for the provider `{name}`: name one with the message, or set `model` in its entry of \
                 `providers`{}",
                model_variable(plan).map(|name| format!(", or {name}")).unwrap_or_default()
            );
            return Err(ModelFault::new(FaultKind::NotFound, text));
        };
        Ok(Source {
            kind: plan.kind,
            provider: plan.name.clone(),
            model: model.to_owned(),
            credential,
        })
    }

    /// Sends one request, once. Dropping the future or the returned stream cancels the request.
    pub async fn ask(&self, ask: &ModelRequest<'_>) -> Result<ModelStream, ModelFault> {
        let plan = self.plan();
        if plan.kind == ProviderKind::Demo {
            return Ok(self.play(ask));
        }
        let credential = ask.source.credential.as_deref();
        let auth = credential::find(plan, credential)?;
        self.refuse_unready(auth)?;
        let project = match (plan.kind, ask.project) {
            (ProviderKind::CodeAssist, None) => Some(self.project(credential).await?),
            _ => None,
        };
        let is_bearer = credential::is_bearer(auth);
        let ask =
            ModelRequest { project: ask.project.or(project.as_deref()), is_bearer, ..ask.clone() };
        let parser = Parser::new(ask.source, Limits::default());
        let conversation = AskedBy { credential, session: ask.session };
        self.open(conversation, request(&ask)?, Box::new(parser)).await
    }

    /// Sends a request in wire format and checks that the response is a stream.
    pub(crate) async fn open(
        &self,
        context: AskedBy<'_>,
        wire: WireRequest,
        reader: Box<dyn Reads>,
    ) -> Result<ModelStream, ModelFault> {
        let mut clock = Clock::start(self.plan());
        let headers =
            |plan: &ProviderPlan| request_headers::headers(plan, &wire.headers, context.session);
        let (answer, presented) = self
            .send_with_credential(context, Method::POST, &wire.path, &headers, wire.body, &clock)
            .await?;
        clock.hear();
        let plan = presented.plan.clone();
        let answer = answer::expect_stream(answer, &plan, &clock).await;
        let answer = answer.map_err(|fault| presented.explained(fault))?;
        Ok(ModelStream::reading(answer, reader, clock, plan))
    }

    /// Sends a request with the current value of its credential, and once more with another value if the provider
    /// refuses the first one.
    pub(crate) async fn send_with_credential(
        &self,
        context: AskedBy<'_>,
        method: Method,
        path: &str,
        headers: &(dyn Fn(&ProviderPlan) -> Result<HeaderMap, ModelFault> + Sync),
        body: Bytes,
        clock: &Clock,
    ) -> Result<(ProviderResponse, Presented), ModelFault> {
        let first = self.present(context.credential).await?;
        let answer =
            self.send(method.clone(), path, headers(&first.plan)?, body.clone(), clock).await?;
        let Some(second) = first.after(&answer, RequestAttempt::First).await? else {
            return Ok((answer, first));
        };
        drop(answer);
        let answer = self.send(method, path, headers(&second.plan)?, body, clock).await?;
        second.after(&answer, RequestAttempt::Second).await?;
        Ok((answer, second))
    }

    /// The current value of a credential.
    pub(crate) async fn present(&self, credential: Option<&str>) -> Result<Presented, ModelFault> {
        let (address, sign_ins) = (self.base_url.as_ref(), self.sign_ins.as_ref());
        credential::present(&self.plan, credential, address, sign_ins).await
    }

    /// Sends a request and waits for the head of its response.
    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        headers: HeaderMap,
        body: Bytes,
        clock: &Clock,
    ) -> Result<ProviderResponse, ModelFault> {
        let url = self.address(path)?;
        let place = place(&url);
        let question = HttpQuestion { method, url, headers, body };
        let sending = question.send(self.pool.as_ref(), &self.clients);
        match timeout_at(clock.next_deadline(), sending).await {
            Ok(answer) => answer.map_err(|fault| self.scrubbed(fault)),
            Err(_) => Err(clock.fault(&place)),
        }
    }

    /// Closes connections that are idle for too long.
    pub(crate) fn close_unused(&self) {
        if let Some(pool) = &self.pool {
            pool.close_unused();
        }
    }

    fn address(&self, path: &str) -> Result<Url, ModelFault> {
        let name = &self.plan().name;
        let Some(base) = &self.base_url else {
            let text = format!("the provider `{name}` has no address: set `base_url` in its entry");
            return Err(ModelFault::new(FaultKind::NotFound, text));
        };
        let base = base.as_str().trim_end_matches('/');
        let joined = format!("{}{path}", without_version(base, path));
        Url::parse(&joined).map_err(|_| {
            let text = format!("no path can be appended to `base_url` of the provider `{name}`");
            ModelFault::new(FaultKind::NotFound, text)
        })
    }

    /// Fails before sending if credentials or the URL are missing.
    pub(crate) fn refuse_unready(&self, auth: &ProviderAuth) -> Result<(), ModelFault> {
        let name = &self.plan().name;
        if let Some(variable) = self.unreadable {
            let text = format!(
                "{variable} is not a valid address for the provider `{name}`: set one such as \
                 `https://proxy.example/v1`"
            );
            return Err(ModelFault::new(FaultKind::NotFound, text));
        }
        if let Some(variable) = self.missing.filter(|_| *auth == ProviderAuth::None) {
            let text = format!(
                "the provider `{name}` has no key: set {variable}, or `api_key` in its entry of `providers`"
            );
            return Err(ModelFault::new(FaultKind::Credentials, text));
        }
        Ok(())
    }

    /// Removes secrets that the provider may have quoted.
    pub(crate) fn scrubbed(&self, fault: ModelFault) -> ModelFault {
        request_headers::scrubbed(self.plan(), fault)
    }

    fn play(&self, ask: &ModelRequest<'_>) -> ModelStream {
        let turn = format!("{} {}", ask.session, ask.turn);
        let mut turns = self.failed.lock();
        let known = turns.iter().position(|(known, _)| *known == turn);
        let known = known.and_then(|index| turns.remove(index));
        let before = known.map_or(0, |(_, times)| times);
        let beats = demo(ask, before);
        let last = beats.as_slice().last();
        if matches!(last, Some(Beat::Event(ModelEvent::Failed(_)))) {
            if turns.len() >= FAILED_TURNS {
                turns.pop_front();
            }
            turns.push_back((turn, before.saturating_add(1)));
        }
        ModelStream::playing(beats, Clock::start(self.plan()), self.plan.clone())
    }

    pub(crate) async fn project(&self, credential: Option<&str>) -> Result<String, ModelFault> {
        self.project.of(self, credential).await
    }

    pub(crate) fn is_made_of(&self, origin: ProviderOrigin, completed: &Completed) -> bool {
        let Completed { plan, missing, unreadable } = completed;
        let is_same = self.missing == *missing && self.unreadable == *unreadable;
        self.origin == origin && is_same && *self.plan == *plan
    }

    /// Where it comes from.
    pub fn origin(&self) -> ProviderOrigin {
        self.origin
    }

    pub(crate) fn base_url(&self) -> Option<&Url> {
        self.base_url.as_ref()
    }

    /// The address that the tokens of a sign-in with this credential are for, and the issuer to sign in at. `None` if the
    /// credential needs no sign-in.
    pub fn described_issuer(&self, credential: &str) -> Option<(&Url, &DescribedIssuer)> {
        match self.plan().credential(Some(credential))? {
            ProviderAuth::OAuth(issuer) => Some((self.base_url.as_ref()?, issuer)),
            ProviderAuth::None
            | ProviderAuth::ApiKey(_)
            | ProviderAuth::Bearer(_)
            | ProviderAuth::TokenFile(_) => None,
        }
    }

    /// Whether it has the credentials that it needs.
    pub fn has_credentials(&self) -> bool {
        self.missing.is_none()
    }

    pub(crate) fn default_model(&self) -> Option<&str> {
        let plan = self.plan();
        let own = match plan.kind {
            ProviderKind::Demo => Some("demo"),
            ProviderKind::CodeAssist => Some(CODE_ASSIST_MODEL),
            ProviderKind::OpenAi
            | ProviderKind::ChatGpt
            | ProviderKind::OpenAiChat
            | ProviderKind::Anthropic
            | ProviderKind::Gemini => None,
        };
        plan.model.as_deref().or(own)
    }
}

/// The base URL without an API version that the path contains, too: `https://.../v1beta`.
fn without_version<'a>(base: &'a str, path: &str) -> &'a str {
    let Some((shorter, version)) = base.rsplit_once('/') else { return base };
    let rest = path.strip_prefix('/').and_then(|path| path.strip_prefix(version));
    if rest.is_some_and(|rest| rest.starts_with(['/', ':'])) { shorter } else { base }
}

fn model_variable(plan: &ProviderPlan) -> Option<&'static str> {
    match plan.kind {
        ProviderKind::OpenAi => Some("OPENAI_MODEL"),
        ProviderKind::Anthropic => Some("ANTHROPIC_MODEL"),
        ProviderKind::Gemini => Some("GEMINI_MODEL"),
        ProviderKind::OpenAiChat if plan.name == "ollama" => Some("OLLAMA_MODEL"),
        ProviderKind::OpenAiChat
        | ProviderKind::ChatGpt
        | ProviderKind::CodeAssist
        | ProviderKind::Demo => None,
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn paths_stand_below_the_address_of_the_provider() {
        let address = |plan: ProviderPlan, path: &str| {
            let completed = Completed { plan, missing: None, unreadable: None };
            let endpoint =
                ProviderEndpoint::new(ProviderOrigin::Configured, completed, Arc::default(), None);
            endpoint.address(path).map(String::from).map_err(|fault| fault.kind)
        };
        let rows = [
            (ProviderKind::OpenAi, "/responses", "https://api.openai.com/v1/responses"),
            (
                ProviderKind::ChatGpt,
                "/responses",
                "https://chatgpt.com/backend-api/codex/responses",
            ),
            (ProviderKind::Anthropic, "/v1/messages", "https://api.anthropic.com/v1/messages"),
            (
                ProviderKind::Gemini,
                "/v1beta/models/m:streamGenerateContent?alt=sse",
                "https://generativelanguage.googleapis.com/v1beta/models/m:streamGenerateContent?alt=sse",
            ),
            (
                ProviderKind::CodeAssist,
                "/v1internal:streamGenerateContent?alt=sse",
                "https://cloudcode-pa.googleapis.com/v1internal:streamGenerateContent?alt=sse",
            ),
        ];
        for (kind, path, expected) in rows {
            assert_eq!(address(ProviderPlan::new("p", kind), path).as_deref(), Ok(expected));
        }
        let plain = ProviderPlan::new("p", ProviderKind::OpenAiChat);
        assert_eq!(address(plain.clone(), "/chat/completions"), Err(FaultKind::NotFound));
        for base in ["https://h/v1beta", "https://h/v1beta/", "https://h"] {
            let plan = ProviderPlan {
                base_url: Url::parse(base).ok(),
                ..ProviderPlan::new("p", ProviderKind::Gemini)
            };
            let expected = "https://h/v1beta/models/m";
            assert_eq!(address(plan, "/v1beta/models/m").as_deref(), Ok(expected), "{base}");
        }
        for base in ["http://h/v1", "http://h/v1/"] {
            let plan = ProviderPlan { base_url: Url::parse(base).ok(), ..plain.clone() };
            let expected = "http://h/v1/chat/completions";
            assert_eq!(address(plan, "/chat/completions").as_deref(), Ok(expected));
        }
    }
}
