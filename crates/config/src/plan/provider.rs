//! Validates the `providers` section.

use std::collections::BTreeMap;

use http::HeaderValue;
use serde_json::Value as Json;
use switchboard_model::{
    DEFAULT_PROVIDER_IDLE_TIMEOUT, DEFAULT_PROVIDER_TOTAL_TIMEOUT, DeclarationKeys, Effort,
    ModelRule, ModelSettings, ProviderAuth, ProviderKind, ProviderPlan, Secret, ToolSchemaForm,
    ToolStrategy, is_on_this_machine,
};
use switchboard_react::PromptTemplate;
use url::Url;

use super::{At, Planner, entries};
use crate::problem::ConfigProblem;
use crate::raw_provider::{
    RawAppCredentials, RawDeclarationKeys, RawEffort, RawModelRule, RawProvider, RawProviderKind,
    RawStrategy, RawToolSchema,
};

const EXAMPLE: &str = "http://127.0.0.1:11434/v1";

impl Planner<'_> {
    pub(super) fn providers(&mut self, config: &At<'_>, sound: &Json) -> Vec<ProviderPlan> {
        let written = entries::<RawProvider>(config, "providers", sound);
        self.refuse_duplicates(&written, "providers", |raw| raw.name.as_deref());
        written.into_iter().filter_map(|(at, raw)| self.provider(&at, raw)).collect()
    }

    fn provider(&mut self, at: &At<'_>, mut raw: RawProvider) -> Option<ProviderPlan> {
        let kind = raw.kind.map(kind);
        if let Some(kind) = kind {
            self.check_keys(at, kind);
        }
        // All checks run before an incomplete entry is dropped.
        let base_url = raw.base_url.take().and_then(|text| self.base_url(at, &text));
        let headers = self.headers(at, raw.headers.take().unwrap_or_default());
        let auth = match raw.auth.take() {
            Some(described) => self.described_auth(at, kind, described).unwrap_or_default(),
            None => self.provider_auth(at, raw.api_key.take(), raw.bearer.take()),
        };
        let credentials = self.credentials(at, kind, raw.credentials.take().unwrap_or_default());
        if let Some(kind) = kind {
            self.check_credentials(at, kind, &auth, &headers);
        }
        self.warn_of_plain_http(at, base_url.as_ref(), &auth);
        let idle_timeout = self.duration(at, "idle_timeout", raw.idle_timeout.take());
        let total_timeout = self.duration(at, "total_timeout", raw.total_timeout.take());
        self.check_strategy(at, &raw);
        let react_template =
            raw.react_template.take().and_then(|text| self.react_template(at, text));
        Some(ProviderPlan {
            name: raw.name?,
            kind: kind?,
            base_url,
            auth,
            credentials,
            model: raw.model,
            headers,
            settings: ModelSettings {
                instructions: raw.instructions,
                max_output_tokens: raw.max_output_tokens,
                temperature: raw.temperature,
                top_p: raw.top_p,
                effort: raw.effort.map(effort),
                show_thinking: raw.show_thinking.unwrap_or(false),
                system_blocks: raw.system_blocks.unwrap_or_default(),
                declaration_keys: raw.declaration_keys.map(declaration_keys).unwrap_or_default(),
            },
            account: raw.account,
            project: raw.project,
            tool_schema: raw.tool_schema.map(tool_schema).unwrap_or_default(),
            strategy: raw.strategy.map(strategy),
            models: raw.models.into_iter().flatten().filter_map(model_rule).collect(),
            has_native_tools: raw.native_tools.unwrap_or(true),
            react_template,
            passes_app_credentials: raw.app_credentials == Some(RawAppCredentials::Pass),
            idle_timeout: idle_timeout.unwrap_or(DEFAULT_PROVIDER_IDLE_TIMEOUT),
            total_timeout: total_timeout.unwrap_or(DEFAULT_PROVIDER_TOTAL_TIMEOUT),
        })
    }

    /// Reports a strategy that the provider says it cannot use.
    fn check_strategy(&mut self, at: &At<'_>, raw: &RawProvider) {
        if raw.strategy == Some(RawStrategy::Native) && raw.native_tools == Some(false) {
            let message = format!("{} has `strategy: native` and `native_tools: false`", at.path);
            let problem = ConfigProblem::error(message).about(&at.path.key("strategy"));
            self.push(at.key_origin("strategy"), problem.help("remove one of the two"));
        }
    }

    /// Checks a template of the prompt by rendering it with example tools.
    fn react_template(&mut self, at: &At<'_>, text: String) -> Option<String> {
        match PromptTemplate::check(&text) {
            Ok(_) => Some(text),
            Err(error) => {
                let message = format!("{}.react_template cannot be used: {error}", at.path);
                let problem = ConfigProblem::error(message).about(&at.path.key("react_template"));
                let help = "it sees `tools`, each with `name`, `description` and `arguments` (each with `name`, `type`, \
                            `required`, `description`), and `tool_names`";
                self.push(at.key_origin("react_template"), problem.help(help));
                None
            }
        }
    }

    /// Checks for keys that a kind requires, and for keys that have no effect for it.
    fn check_keys(&mut self, at: &At<'_>, kind: ProviderKind) {
        let useless: &[&str] = match kind {
            ProviderKind::OpenAi | ProviderKind::OpenAiChat => {
                &["account", "project", "tool_schema", "declaration_keys", "system_blocks"]
            }
            ProviderKind::Anthropic => &["account", "project", "tool_schema", "declaration_keys"],
            ProviderKind::Gemini => &["account", "project", "system_blocks"],
            ProviderKind::ChatGpt => &[
                "api_key",
                "project",
                "tool_schema",
                "declaration_keys",
                "system_blocks",
                "app_credentials",
            ],
            ProviderKind::CodeAssist => &["api_key", "account", "system_blocks", "app_credentials"],
            ProviderKind::Demo => &[
                "app_credentials",
                "base_url",
                "api_key",
                "bearer",
                "headers",
                "account",
                "project",
                "tool_schema",
                "declaration_keys",
                "system_blocks",
            ],
        };
        // A provider with named credentials may leave the choice to its sessions.
        let has_credential = ["auth", "credentials"].iter().any(|key| at.has(key));
        let needed: &[&str] = match kind {
            ProviderKind::OpenAiChat => &["base_url"],
            ProviderKind::ChatGpt | ProviderKind::CodeAssist if !has_credential => &["bearer"],
            ProviderKind::ChatGpt
            | ProviderKind::CodeAssist
            | ProviderKind::OpenAi
            | ProviderKind::Anthropic
            | ProviderKind::Gemini
            | ProviderKind::Demo => &[],
        };
        for key in needed.iter().filter(|key| !at.has(key)) {
            let example = if *key == "base_url" { EXAMPLE } else { "${TOKEN}" };
            let problem = ConfigProblem::error(format!("missing key `{key}` in {}", at.path))
                .about(&at.path.key(key))
                .help(format!(
                    "providers of kind `{kind}` need it: add `{key}: {example}`{}",
                    if *key == "bearer" { ", or `auth`" } else { "" }
                ));
            self.push(&at.node.origin, problem);
        }
        for key in useless.iter().filter(|key| at.has(key)) {
            let message =
                format!("`{key}` has no effect for providers of kind `{kind}` ({})", at.path);
            let problem = ConfigProblem::error(message).about(&at.path.key(key));
            self.push(at.key_origin(key), problem.help("remove it, or change `kind`"));
        }
    }

    /// Parses a base URL: paths can be appended to it, and it has no credentials.
    fn base_url(&mut self, at: &At<'_>, text: &str) -> Option<Url> {
        let url = self.url(at, "base_url", text, EXAMPLE)?;
        let why = if !url.username().is_empty() || url.password().is_some() {
            ("carries credentials", "put them into `api_key`, `bearer` or `headers`")
        } else if url.query().is_some() || url.fragment().is_some() {
            ("has a query or a fragment", "write only what comes before the paths of the API")
        } else {
            return Some(url);
        };
        let at = at.get("base_url")?;
        let problem = ConfigProblem::error(format!("{}: the address {}", at.path, why.0));
        self.push(&at.node.origin, problem.about(&at.path).help(why.1));
        None
    }

    fn provider_auth(
        &mut self,
        at: &At<'_>,
        api_key: Option<String>,
        bearer: Option<String>,
    ) -> ProviderAuth {
        if at.has("api_key") && at.has("bearer") {
            let message = format!("{} has both `api_key` and `bearer`", at.path);
            let problem = ConfigProblem::error(message).about(&at.path.key("bearer"));
            self.push(at.key_origin("bearer"), problem.help("remove one of the two"));
        }
        for (key, value) in [("api_key", &api_key), ("bearer", &bearer)] {
            let Some(value) = value else { continue };
            if value.trim().is_empty() || HeaderValue::from_str(value).is_err() {
                let message = format!(
                    "{}.{key} is empty or holds characters that a header cannot carry",
                    at.path
                );
                let problem = ConfigProblem::error(message).about(&at.path.key(key));
                self.push(at.key_origin(key), problem);
            }
        }
        match (api_key, bearer) {
            (Some(key), _) => ProviderAuth::ApiKey(Secret::new(key)),
            (None, Some(token)) => ProviderAuth::Bearer(Secret::new(token)),
            (None, None) => ProviderAuth::None,
        }
    }

    /// Reports two credentials for the same header: only one of them could be sent.
    fn check_credentials(
        &mut self,
        at: &At<'_>,
        kind: ProviderKind,
        auth: &ProviderAuth,
        headers: &BTreeMap<String, Secret>,
    ) {
        let (key, header) = match (auth, kind) {
            (ProviderAuth::None, _) => return,
            (ProviderAuth::ApiKey(_), ProviderKind::Anthropic) => ("api_key", "x-api-key"),
            (ProviderAuth::ApiKey(_), ProviderKind::Gemini) => ("api_key", "x-goog-api-key"),
            (ProviderAuth::ApiKey(_), _) => ("api_key", "authorization"),
            (ProviderAuth::Bearer(_), _) => ("bearer", "authorization"),
            (ProviderAuth::OAuth(_) | ProviderAuth::TokenFile(_), _) => ("auth", "authorization"),
        };
        if let Some(name) = headers.keys().find(|name| name.eq_ignore_ascii_case(header)) {
            let message = format!("{} has both `{key}` and the header {name}", at.path);
            let problem = ConfigProblem::error(message).about(&at.path.key(key));
            self.push(at.key_origin(key), problem.help("remove one of the two"));
        }
    }

    fn warn_of_plain_http(&mut self, at: &At<'_>, url: Option<&Url>, auth: &ProviderAuth) {
        let Some(url) = url.filter(|url| url.scheme() == "http" && !is_on_this_machine(url)) else {
            return;
        };
        let Some(place) = at.get("base_url") else { return };
        if matches!(auth, ProviderAuth::None) {
            return;
        }
        let host = if place.node.sensitive { "***" } else { url.host_str().unwrap_or_default() };
        let message = format!("{}: the credentials travel unencrypted to {host}", place.path);
        let problem = ConfigProblem::error(message).about(&place.path);
        self.warn_at(&place.node.origin, problem.help("use https where the provider offers it"));
    }
}

fn kind(raw: RawProviderKind) -> ProviderKind {
    match raw {
        RawProviderKind::OpenAi => ProviderKind::OpenAi,
        RawProviderKind::ChatGpt => ProviderKind::ChatGpt,
        RawProviderKind::OpenAiChat => ProviderKind::OpenAiChat,
        RawProviderKind::Anthropic => ProviderKind::Anthropic,
        RawProviderKind::Gemini => ProviderKind::Gemini,
        RawProviderKind::CodeAssist => ProviderKind::CodeAssist,
        RawProviderKind::Demo => ProviderKind::Demo,
    }
}

fn declaration_keys(raw: RawDeclarationKeys) -> DeclarationKeys {
    match raw {
        RawDeclarationKeys::Camel => DeclarationKeys::Camel,
        RawDeclarationKeys::Both => DeclarationKeys::Both,
    }
}

fn tool_schema(raw: RawToolSchema) -> ToolSchemaForm {
    match raw {
        RawToolSchema::Auto => ToolSchemaForm::Auto,
        RawToolSchema::JsonSchema => ToolSchemaForm::JsonSchema,
        RawToolSchema::Parameters => ToolSchemaForm::Parameters,
    }
}

fn model_rule((pattern, rule): (String, RawModelRule)) -> Option<ModelRule> {
    Some(ModelRule { pattern, strategy: strategy(rule.strategy?) })
}

fn strategy(raw: RawStrategy) -> ToolStrategy {
    match raw {
        RawStrategy::Native => ToolStrategy::Native,
        RawStrategy::React => ToolStrategy::React,
    }
}

fn effort(raw: RawEffort) -> Effort {
    match raw {
        RawEffort::Minimal => Effort::Minimal,
        RawEffort::Low => Effort::Low,
        RawEffort::Medium => Effort::Medium,
        RawEffort::High => Effort::High,
    }
}
