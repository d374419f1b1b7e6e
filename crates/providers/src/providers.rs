//! The set of all providers.

use std::sync::Arc;

use arc_swap::ArcSwap;
use switchboard_loopback::LoopbackPool;
use switchboard_model::{ProviderKind, ProviderPlan, ToolStrategy, redact_url};
use switchboard_oauth::SignIns;

use crate::ProviderEndpoint;
use crate::built_in::ProviderEnvironment;
use crate::http_client::HttpClients;
use crate::open_sign_ins::OpenSignIns;

/// The configured and the built-in providers. A reload replaces them in one step; an existing [`ProviderEndpoint`]
/// stays usable.
#[derive(Debug)]
pub struct Providers {
    environment: ProviderEnvironment,
    clients: Arc<HttpClients>,
    pub(crate) sign_ins: Option<SignIns>,
    pub(crate) open_sign_ins: OpenSignIns,
    endpoints: ArcSwap<Vec<Arc<ProviderEndpoint>>>,
}

/// Where a provider comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProviderOrigin {
    Configured,
    BuiltIn,
}

impl ProviderOrigin {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Configured => "configuration",
            Self::BuiltIn => "built-in",
        }
    }
}

/// The public description of a provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderInfo {
    pub name: String,
    pub kind: ProviderKind,
    /// The model for sessions that name none.
    pub model: Option<String>,
    /// Without credentials; `None` for the demo model, which has no URL.
    pub base_url: Option<String>,
    /// Whether it has the credentials that it needs.
    pub has_credentials: bool,
    /// The word for the kind of its credential, such as `api_key` or `oauth`; `None` without one.
    pub auth: Option<&'static str>,
    /// The names of its further credentials.
    pub credentials: Vec<String>,
    /// How its models use tools unless a session or a turn says otherwise.
    pub strategy: ToolStrategy,
    pub has_native_tools: bool,
    pub source: ProviderOrigin,
}

/// The error for an unknown provider name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no provider `{name}`; {}", meant(nearest.as_deref(), known))]
pub struct UnknownProvider {
    pub name: String,
    pub nearest: Option<String>,
    pub known: Vec<String>,
}

fn meant(nearest: Option<&str>, known: &[String]) -> String {
    let known = format!("known are {}", known.join(", "));
    match nearest {
        Some(nearest) => format!("did you mean `{nearest}`? ({known})"),
        None => known,
    }
}

/// Minimum similarity of a name that is suggested for an unknown one.
const ALIKE: f64 = 0.75;

impl Providers {
    /// The providers, without a store of sign-ins: those that need one cannot be asked.
    pub fn new(plan: &[ProviderPlan], env: &dyn Fn(&str) -> Option<String>) -> Self {
        Self::with_sign_ins(plan, env, None)
    }

    /// The providers, with the tokens of sign-ins.
    pub fn with_sign_ins(
        plan: &[ProviderPlan],
        env: &dyn Fn(&str) -> Option<String>,
        sign_ins: Option<SignIns>,
    ) -> Self {
        let providers = Self {
            environment: ProviderEnvironment::read(env),
            clients: Arc::default(),
            sign_ins,
            open_sign_ins: OpenSignIns::default(),
            endpoints: ArcSwap::default(),
        };
        providers.set(plan);
        providers
    }

    /// Applies a new configuration. Unchanged providers keep their endpoint and its state.
    pub fn set(&self, plan: &[ProviderPlan]) {
        let configured = plan.iter().cloned().map(|plan| self.environment.complete(plan));
        let configured = configured.map(|completed| (ProviderOrigin::Configured, completed));
        let is_free = |name: &str| plan.iter().all(|plan| plan.name != name);
        let built_in = self.environment.built_in().into_iter();
        let built_in = built_in.filter(|completed| is_free(&completed.plan.name));
        let all = configured.chain(built_in.map(|completed| (ProviderOrigin::BuiltIn, completed)));
        let before = self.endpoints.load();
        let all = all.map(|(origin, completed)| {
            let same = before.iter().find(|endpoint| endpoint.is_made_of(origin, &completed));
            same.cloned().unwrap_or_else(|| {
                let (clients, sign_ins) = (self.clients.clone(), self.sign_ins.clone());
                Arc::new(ProviderEndpoint::new(origin, completed, clients, sign_ins))
            })
        });
        self.endpoints.store(Arc::new(all.collect()));
    }

    /// Closes idle connections periodically; never returns.
    pub async fn tidy(&self) {
        loop {
            tokio::time::sleep(LoopbackPool::TIDY_EVERY).await;
            self.endpoints.load().iter().for_each(|endpoint| endpoint.close_unused());
        }
    }

    /// All providers, in the order of [`Self::list`].
    pub fn endpoints(&self) -> Arc<Vec<Arc<ProviderEndpoint>>> {
        self.endpoints.load_full()
    }

    /// All providers: the configured ones in their order, then the built-in ones.
    pub fn list(&self) -> Vec<ProviderInfo> {
        let info = |endpoint: &Arc<ProviderEndpoint>| {
            let plan = endpoint.plan();
            ProviderInfo {
                name: plan.name.clone(),
                kind: plan.kind,
                model: endpoint.default_model().map(str::to_owned),
                base_url: endpoint.base_url().map(redact_url),
                has_credentials: endpoint.has_credentials(),
                auth: plan.auth.as_str(),
                credentials: plan.credentials.keys().cloned().collect(),
                strategy: plan.default_strategy(endpoint.default_model()),
                has_native_tools: plan.has_native_tools,
                source: endpoint.origin(),
            }
        };
        self.endpoints.load().iter().map(info).collect()
    }

    /// The provider with this name.
    pub fn find(&self, name: &str) -> Result<Arc<ProviderEndpoint>, UnknownProvider> {
        let endpoints = self.endpoints.load();
        let found = endpoints.iter().find(|endpoint| endpoint.plan().name == name);
        found.cloned().ok_or_else(|| {
            let known = endpoints.iter().map(|endpoint| endpoint.plan().name.clone());
            let known: Vec<_> = known.collect();
            UnknownProvider { name: name.to_owned(), nearest: nearest(name, &known), known }
        })
    }
}

fn nearest(name: &str, known: &[String]) -> Option<String> {
    let name = name.to_ascii_lowercase();
    let alike = |known: &&String| strsim::jaro_winkler(&name, &known.to_ascii_lowercase());
    let best = known.iter().max_by(|a, b| alike(a).total_cmp(&alike(b)))?;
    (alike(&best) > ALIKE).then(|| best.clone())
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use switchboard_model::{ProviderAuth, Secret};
    use url::Url;

    use super::*;

    fn with_key(name: &str) -> Option<String> {
        (name == "OPENAI_API_KEY").then(|| "k".to_owned())
    }

    fn mine() -> ProviderPlan {
        ProviderPlan {
            base_url: Url::parse("http://h/v1").ok(),
            auth: ProviderAuth::ApiKey(Secret::new("s3cret")),
            model: Some("m".into()),
            ..ProviderPlan::new("ollama", ProviderKind::OpenAiChat)
        }
    }

    #[test]
    fn the_configuration_stands_before_what_is_built_in_and_for_its_name() {
        let providers = Providers::new(&[mine()], &with_key);
        let shown: Vec<_> = providers
            .list()
            .into_iter()
            .map(|info| {
                let base_url = info.base_url.unwrap_or_default();
                let (key, source) = (info.has_credentials, info.source.as_str());
                format!("{} {} {:?} {base_url} {key} {source}", info.name, info.kind, info.model)
            })
            .collect();
        assert_eq!(
            shown,
            [
                r#"ollama openai-chat Some("m") http://h/v1 true configuration"#,
                r#"demo demo Some("demo")  true built-in"#,
                "openai openai None https://api.openai.com/v1 true built-in",
                "anthropic anthropic None https://api.anthropic.com/ false built-in",
                "gemini gemini None https://generativelanguage.googleapis.com/ false built-in",
            ]
        );
        assert!(!format!("{providers:?}").contains("s3cret"));
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_known_ones() {
        let providers = Providers::new(&[], &|_| None);
        assert_eq!(providers.find("demo").unwrap().plan().kind, ProviderKind::Demo);
        insta::assert_snapshot!(providers.find("antropic").unwrap_err(), @"there is no provider `antropic`; did you mean `anthropic`? (known are demo, openai, anthropic, gemini, ollama)");
        insta::assert_snapshot!(providers.find("x").unwrap_err(), @"there is no provider `x`; known are demo, openai, anthropic, gemini, ollama");
    }

    #[test]
    fn a_reload_replaces_what_changed_and_keeps_the_rest() {
        let providers = Providers::new(&[mine()], &with_key);
        let (demo, old) = (providers.find("demo").unwrap(), providers.find("ollama").unwrap());
        let changed = ProviderPlan { model: Some("n".into()), ..mine() };
        providers.set(&[changed, ProviderPlan::new("more", ProviderKind::Demo)]);
        assert!(Arc::ptr_eq(&demo, &providers.find("demo").unwrap()));
        let new = providers.find("ollama").unwrap();
        assert_eq!(
            (old.plan().model.as_deref(), new.plan().model.as_deref()),
            (Some("m"), Some("n"))
        );
        assert!(providers.find("more").is_ok());
        providers.set(&[]);
        assert!(providers.find("more").is_err(), "what is gone from the file is gone");
        assert_eq!(providers.find("ollama").unwrap().origin(), ProviderOrigin::BuiltIn);
    }
}
