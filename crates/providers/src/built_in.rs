//! Providers that need no configuration, and the environment variables of all providers.

use std::collections::HashMap;

use switchboard_model::{ProviderAuth, ProviderKind, ProviderPlan, Secret};
use url::Url;

/// The environment variables that are read.
const VARIABLES: [&str; 14] = [
    "OPENAI_API_KEY",
    "OPENAI_BASE_URL",
    "OPENAI_MODEL",
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_BASE_URL",
    "ANTHROPIC_MODEL",
    "GEMINI_API_KEY",
    "GOOGLE_API_KEY",
    "GOOGLE_GEMINI_BASE_URL",
    "GEMINI_MODEL",
    "OLLAMA_HOST",
    "OLLAMA_MODEL",
    "GOOGLE_CLOUD_PROJECT",
    "CODE_ASSIST_ENDPOINT",
];

const OLLAMA_PORT: u16 = 11434;

/// The environment at the start. An empty variable counts as unset.
#[derive(Debug)]
pub(crate) struct ProviderEnvironment(HashMap<&'static str, Secret>);

/// A provider, with what prevents its use.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Completed {
    pub(crate) plan: ProviderPlan,
    /// The variable that would hold its missing credentials.
    pub(crate) missing: Option<&'static str>,
    /// A variable with an invalid URL.
    pub(crate) unreadable: Option<&'static str>,
}

/// The variables of a kind of provider.
struct Variables {
    keys: &'static [&'static str],
    base_url: Option<&'static str>,
    model: Option<&'static str>,
}

fn variables(kind: ProviderKind) -> Variables {
    let (keys, base_url, model): (&[_], _, _) = match kind {
        ProviderKind::OpenAi => {
            (&["OPENAI_API_KEY"], Some("OPENAI_BASE_URL"), Some("OPENAI_MODEL"))
        }
        ProviderKind::Anthropic => {
            (&["ANTHROPIC_API_KEY"], Some("ANTHROPIC_BASE_URL"), Some("ANTHROPIC_MODEL"))
        }
        ProviderKind::Gemini => {
            let keys = &["GEMINI_API_KEY", "GOOGLE_API_KEY"];
            (keys, Some("GOOGLE_GEMINI_BASE_URL"), Some("GEMINI_MODEL"))
        }
        ProviderKind::CodeAssist => (&[], Some("CODE_ASSIST_ENDPOINT"), Some("GEMINI_MODEL")),
        ProviderKind::ChatGpt | ProviderKind::OpenAiChat | ProviderKind::Demo => (&[], None, None),
    };
    Variables { keys, base_url, model }
}

impl ProviderEnvironment {
    pub(crate) fn read(env: &dyn Fn(&str) -> Option<String>) -> Self {
        let read = VARIABLES.into_iter().filter_map(|name| {
            let value = env(name)?.trim().to_owned();
            (!value.is_empty()).then(|| (name, Secret::new(value)))
        });
        Self(read.collect())
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(Secret::expose)
    }

    /// The providers that exist without a configuration.
    pub(crate) fn built_in(&self) -> Vec<Completed> {
        let named = [
            ("demo", ProviderKind::Demo),
            ("openai", ProviderKind::OpenAi),
            ("anthropic", ProviderKind::Anthropic),
            ("gemini", ProviderKind::Gemini),
        ];
        let plans = named.into_iter().map(|(name, kind)| ProviderPlan::new(name, kind));
        let mut all: Vec<_> = plans.map(|plan| self.complete(plan)).collect();
        all.push(self.ollama());
        all
    }

    /// Completes an entry from the environment. Keys from the environment belong to the provider's own URL and are
    /// never sent to one that the configuration names.
    pub(crate) fn complete(&self, mut plan: ProviderPlan) -> Completed {
        let variables = variables(plan.kind);
        let completed = |plan: ProviderPlan, missing, unreadable| {
            let project = self.get("GOOGLE_CLOUD_PROJECT").map(str::to_owned);
            let is_google = plan.kind == ProviderKind::CodeAssist;
            let project = plan.project.clone().or(project.filter(|_| is_google));
            Completed { plan: ProviderPlan { project, ..plan }, missing, unreadable }
        };
        if plan.model.is_none() {
            plan.model = variables.model.and_then(|name| self.get(name)).map(str::to_owned);
        }
        if plan.base_url.is_some() {
            return completed(plan, None, None);
        }
        let written = variables.base_url.and_then(|name| Some((name, self.get(name)?)));
        let mut unreadable = None;
        if let Some((name, text)) = written {
            plan.base_url = address(text);
            unreadable = plan.base_url.is_none().then_some(name);
        }
        if !crate::request_headers::are_given(&plan) {
            let key = variables.keys.iter().find_map(|name| self.get(name));
            if let Some(key) = key {
                plan.auth = ProviderAuth::ApiKey(Secret::new(key));
            }
        }
        let is_own = plan.base_url.is_none();
        let needs = is_own && !crate::request_headers::are_given(&plan);
        let missing = variables.keys.first().copied().filter(|_| needs);
        completed(plan, missing, unreadable)
    }

    fn ollama(&self) -> Completed {
        let mut plan = ProviderPlan::new("ollama", ProviderKind::OpenAiChat);
        plan.model = self.get("OLLAMA_MODEL").map(str::to_owned);
        let host = self.get("OLLAMA_HOST").unwrap_or("127.0.0.1");
        plan.base_url = ollama_address(host);
        let unreadable = plan.base_url.is_none().then_some("OLLAMA_HOST");
        Completed { plan, missing: None, unreadable }
    }
}

/// A URL to which paths can be appended.
fn address(text: &str) -> Option<Url> {
    let url = Url::parse(text).ok()?;
    let is_plain = url.query().is_none() && url.username().is_empty() && url.password().is_none();
    let is_http = matches!(url.scheme(), "http" | "https");
    (is_plain && is_http && url.host_str().is_some_and(|host| !host.is_empty())).then_some(url)
}

/// The URL of Ollama. The variable has several forms: `host`, `host:port`, `:port`, or a URL.
fn ollama_address(text: &str) -> Option<Url> {
    let has_scheme = text.contains("://");
    let text = if text.starts_with(':') { format!("127.0.0.1{text}") } else { text.to_owned() };
    let mut url = address(&if has_scheme { text } else { format!("http://{text}") })?;
    if !has_scheme && url.port().is_none() {
        url.set_port(Some(OLLAMA_PORT)).ok()?;
    }
    // A server that listens on all interfaces is reachable on this machine.
    if matches!(url.host_str(), Some("0.0.0.0" | "[::]")) {
        url.set_host(Some("127.0.0.1")).ok()?;
    }
    if url.path() == "/" {
        url.set_path("/v1");
    }
    Some(url)
}

/// The default URL of a provider, if it has one.
pub(crate) fn own_address(kind: ProviderKind) -> Option<&'static str> {
    match kind {
        ProviderKind::OpenAi => Some("https://api.openai.com/v1"),
        ProviderKind::ChatGpt => Some("https://chatgpt.com/backend-api/codex"),
        ProviderKind::Anthropic => Some("https://api.anthropic.com"),
        ProviderKind::Gemini => Some("https://generativelanguage.googleapis.com"),
        ProviderKind::CodeAssist => Some("https://cloudcode-pa.googleapis.com"),
        ProviderKind::OpenAiChat | ProviderKind::Demo => None,
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    fn environment(pairs: &[(&str, &str)]) -> ProviderEnvironment {
        let find = |name: &str| pairs.iter().find(|(key, _)| *key == name).map(|(_, v)| *v);
        ProviderEnvironment::read(&|name| find(name).map(str::to_owned))
    }

    fn shown(completed: &Completed) -> String {
        let Completed { plan, missing, unreadable } = completed;
        let key = match &plan.auth {
            ProviderAuth::None | ProviderAuth::OAuth(_) | ProviderAuth::TokenFile(_) => "",
            ProviderAuth::ApiKey(key) | ProviderAuth::Bearer(key) => key.expose(),
        };
        let url = plan.base_url.as_ref().map_or("-", Url::as_str);
        format!("{} {url} {key} {:?} {missing:?} {unreadable:?}", plan.name, plan.model)
    }

    #[test]
    fn an_empty_environment_gives_the_demo_model_and_says_what_the_others_miss() {
        let all: Vec<_> = environment(&[]).built_in().iter().map(shown).collect();
        assert_eq!(
            all,
            [
                "demo -  None None None",
                r#"openai -  None Some("OPENAI_API_KEY") None"#,
                r#"anthropic -  None Some("ANTHROPIC_API_KEY") None"#,
                r#"gemini -  None Some("GEMINI_API_KEY") None"#,
                "ollama http://127.0.0.1:11434/v1  None None None",
            ]
        );
    }

    #[test]
    fn variables_give_keys_addresses_and_models() {
        let environment = environment(&[
            ("OPENAI_API_KEY", " k1 "),
            ("OPENAI_BASE_URL", "http://proxy/v1"),
            ("OPENAI_MODEL", "gpt-5"),
            ("ANTHROPIC_API_KEY", ""),
            ("ANTHROPIC_BASE_URL", "nowhere"),
            ("GOOGLE_API_KEY", "k2"),
            ("OLLAMA_HOST", "gpu:1234"),
        ]);
        let all: Vec<_> = environment.built_in().iter().skip(1).map(shown).collect();
        assert_eq!(
            all,
            [
                r#"openai http://proxy/v1 k1 Some("gpt-5") None None"#,
                r#"anthropic -  None Some("ANTHROPIC_API_KEY") Some("ANTHROPIC_BASE_URL")"#,
                "gemini - k2 None None None",
                "ollama http://gpu:1234/v1  None None None",
            ]
        );
    }

    #[test]
    fn a_key_of_the_environment_is_not_sent_to_an_address_of_the_configuration() {
        let environment = environment(&[("OPENAI_API_KEY", "k1"), ("GOOGLE_CLOUD_PROJECT", "gp")]);
        let plain = ProviderPlan::new("mine", ProviderKind::OpenAi);
        assert_eq!(shown(&environment.complete(plain.clone())), "mine - k1 None None None");
        let elsewhere = ProviderPlan { base_url: Url::parse("http://h/v1").ok(), ..plain.clone() };
        assert_eq!(shown(&environment.complete(elsewhere)), "mine http://h/v1  None None None");
        let own = ProviderPlan { auth: ProviderAuth::Bearer(Secret::new("t")), ..plain };
        assert_eq!(shown(&environment.complete(own)), "mine - t None None None");
        let google = environment.complete(ProviderPlan::new("g", ProviderKind::CodeAssist));
        assert_eq!(google.plan.project.as_deref(), Some("gp"));
    }

    #[test]
    fn the_built_in_providers_have_the_names_that_configurations_may_use() {
        let built_in = environment(&[]).built_in();
        let names: Vec<_> = built_in.iter().map(|it| it.plan.name.as_str()).collect();
        assert_eq!(names, switchboard_model::BUILT_IN_PROVIDERS);
    }

    #[test]
    fn ollama_is_found_in_all_forms_of_its_variable() {
        let rows = [
            ("127.0.0.1", Some("http://127.0.0.1:11434/v1")),
            ("0.0.0.0:8080", Some("http://127.0.0.1:8080/v1")),
            (":9999", Some("http://127.0.0.1:9999/v1")),
            ("https://ollama.example", Some("https://ollama.example/v1")),
            ("http://h:1/api/v1", Some("http://h:1/api/v1")),
            ("http://", None),
            ("a b", None),
            ("ftp://h", None),
        ];
        for (text, expected) in rows {
            assert_eq!(ollama_address(text).as_ref().map(Url::as_str), expected, "{text}");
        }
    }
}
