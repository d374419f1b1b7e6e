//! The sources of a plan, with what the environment adds to them.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use switchboard_agent365::{Environment, ToolOptions, find_manifest, manifest_locations};
use switchboard_model::{
    AUTO_SOURCE, DEFAULT_FILE_REFRESH, DEFAULT_SOURCE_REFRESH, DiscoveryPlan, GatewaySource,
    RegistryPlace, Secret, SourceKind, SourcePlan,
};
use switchboard_store::Store;
use url::Url;

use crate::auto_choice::{AutoChoice, GatewaySettings, choose_source};
use crate::discovery::DiscoveryContext;
use crate::gateway_source::GatewayList;
use crate::manifest_source::ManifestSource;
use crate::registry_source::{RegistryFile, RegistryUrl};
use crate::source::ServerSource;
use crate::source_memory::SourceMemory;

/// The variables for tooling gateways.
const ENDPOINT_VARIABLE: &str = "MCP_PLATFORM_ENDPOINT";
const AGENT_ID_VARIABLE: &str = "SWITCHBOARD_AGENT_ID";
const TOKEN_VARIABLE: &str = "SWITCHBOARD_AGENT_TOKEN";
/// The first of the variables that name the kind of environment; it wins over the others.
const KIND_VARIABLE: &str = "PYTHON_ENVIRONMENT";

/// One source with everything that it needs. Two equal specs need no restart when a configuration is reloaded.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SourceSpec {
    pub(crate) name: String,
    pub(crate) reads: SourceReads,
    pub(crate) refresh: Duration,
    /// Why the environment chose it.
    pub(crate) chosen_because: Option<String>,
    /// How many servers the policy admits at most.
    pub(crate) most: usize,
}

/// What a source reads, with every setting resolved.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum SourceReads {
    Manifest {
        places: Vec<PathBuf>,
    },
    Gateway {
        base: Option<Url>,
        path: Option<String>,
        agent_id: String,
        token: Secret,
        orchestrator_name: Option<String>,
    },
    Registry(RegistryPlace),
}

impl SourceSpec {
    /// The word of the configuration file.
    pub(crate) fn kind(&self) -> &'static str {
        match self.reads {
            SourceReads::Manifest { .. } => "manifest",
            SourceReads::Gateway { .. } => "gateway",
            SourceReads::Registry(_) => "registry",
        }
    }

    /// Whether it is a file of this machine; see [`SourceKind::is_file`].
    pub(crate) fn is_file(&self) -> bool {
        match &self.reads {
            SourceReads::Manifest { .. } | SourceReads::Registry(RegistryPlace::File(_)) => true,
            SourceReads::Gateway { .. } | SourceReads::Registry(RegistryPlace::Url { .. }) => false,
        }
    }

    /// Where its servers are kept for the next run, if it is not a file, which is there at the next start as well. `place` is
    /// that of the opened source.
    pub(crate) fn memory(&self, store: Store, place: &str) -> Option<SourceMemory> {
        let settings = match &self.reads {
            SourceReads::Manifest { .. } | SourceReads::Registry(RegistryPlace::File(_)) => {
                return None;
            }
            SourceReads::Gateway { path, agent_id, .. } => format!("{path:?} {agent_id:?}"),
            SourceReads::Registry(RegistryPlace::Url { .. }) => String::new(),
        };
        let identity = format!("{} {place:?} {settings}", self.kind());
        let fingerprint = blake3::hash(identity.as_bytes()).to_hex().to_string();
        Some(SourceMemory::new(store, self.name.clone(), fingerprint))
    }

    /// The source itself.
    pub(crate) fn open(&self, context: &DiscoveryContext) -> Arc<dyn ServerSource> {
        match self.reads.clone() {
            SourceReads::Manifest { places } => {
                Arc::new(ManifestSource { places, environment: context.environment.clone() })
            }
            SourceReads::Gateway { base, path, agent_id, token, orchestrator_name } => {
                let environment = context.of_gateway(base.as_ref());
                let (http, path) = (context.http.clone(), path.as_deref());
                let options = ToolOptions { orchestrator_name };
                Arc::new(GatewayList::new(http, environment, path, agent_id, token, options))
            }
            SourceReads::Registry(RegistryPlace::File(path)) => Arc::new(RegistryFile { path }),
            SourceReads::Registry(RegistryPlace::Url { url, token }) => {
                Arc::new(RegistryUrl { http: context.http.clone(), url, token, enough: self.most })
            }
        }
    }
}

/// The sources of a plan in the order of precedence, and what the environment chose, if it may.
pub(crate) fn source_specs(
    plan: &DiscoveryPlan,
    context: &DiscoveryContext,
) -> (Vec<SourceSpec>, Option<AutoChoice>) {
    let mut specs: Vec<_> =
        plan.sources.iter().map(|source| configured(source, plan, context)).collect();
    if !plan.auto {
        return (specs, None);
    }
    let places = context.manifest_places();
    let gateway = resolved(&GatewaySource::default(), plan, context);
    let settings = GatewaySettings {
        has_address: plan.endpoint.is_some() || context.variable(ENDPOINT_VARIABLE).is_some(),
        has_agent_id: agent_id(plan, context).is_some(),
        has_token: token(plan, context).is_some(),
    };
    let choice = choose_source(&context.environment, settings, find_manifest(&places));
    let (reads, refresh, because) = match &choice {
        AutoChoice::Manifest { because } => {
            (SourceReads::Manifest { places }, DEFAULT_FILE_REFRESH, because)
        }
        AutoChoice::Gateway { because } => (gateway, DEFAULT_SOURCE_REFRESH, because),
        AutoChoice::Nothing { .. } => return (specs, Some(choice)),
    };
    specs.push(SourceSpec {
        name: AUTO_SOURCE.into(),
        reads,
        refresh,
        chosen_because: Some(because.clone()),
        most: usize::try_from(plan.policy.max_servers).unwrap_or(usize::MAX),
    });
    (specs, Some(choice))
}

fn configured(source: &SourcePlan, plan: &DiscoveryPlan, context: &DiscoveryContext) -> SourceSpec {
    let reads = match &source.kind {
        SourceKind::Manifest { path: Some(path) } => {
            SourceReads::Manifest { places: vec![path.clone()] }
        }
        SourceKind::Manifest { path: None } => {
            SourceReads::Manifest { places: context.manifest_places() }
        }
        SourceKind::Gateway(gateway) => resolved(gateway, plan, context),
        SourceKind::Registry(place) => SourceReads::Registry(place.clone()),
    };
    SourceSpec {
        name: source.name.clone(),
        reads,
        refresh: source.refresh,
        chosen_because: None,
        most: usize::try_from(source.policy.max_servers).unwrap_or(usize::MAX),
    }
}

/// A gateway with what the section and the environment add. A setting that is missing stays empty: the fetch reports it.
fn resolved(
    gateway: &GatewaySource,
    plan: &DiscoveryPlan,
    context: &DiscoveryContext,
) -> SourceReads {
    let own_id = gateway.agent_id.clone();
    let own_token = gateway.token.clone();
    SourceReads::Gateway {
        base: gateway.url.clone().or_else(|| plan.endpoint.clone()),
        path: gateway.path_template.clone(),
        agent_id: own_id.or_else(|| agent_id(plan, context)).unwrap_or_default(),
        token: own_token.or_else(|| token(plan, context)).unwrap_or_else(|| Secret::new("")),
        orchestrator_name: plan.orchestrator_name.clone(),
    }
}

fn agent_id(plan: &DiscoveryPlan, context: &DiscoveryContext) -> Option<String> {
    plan.agent_id.clone().or_else(|| context.variable(AGENT_ID_VARIABLE))
}

fn token(plan: &DiscoveryPlan, context: &DiscoveryContext) -> Option<Secret> {
    plan.token.clone().or_else(|| context.variable(TOKEN_VARIABLE).map(Secret::new))
}

impl DiscoveryContext {
    fn manifest_places(&self) -> Vec<PathBuf> {
        manifest_locations(&self.working_directory, self.config_directory.as_deref())
    }

    /// A variable that is neither absent nor blank.
    fn variable(&self, name: &str) -> Option<String> {
        (self.lookup)(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
    }

    /// The environment of requests to a gateway: never that of development, and with this address as the platform's, so
    /// that addresses and tokens of servers are decided by it.
    fn of_gateway(&self, base: Option<&Url>) -> Environment {
        let (base, lookup) = (base.map(Url::to_string), self.lookup.clone());
        Environment::from_lookup(move |name| match (name, &base) {
            (KIND_VARIABLE, _) => Some("Production".to_owned()),
            (ENDPOINT_VARIABLE, Some(base)) => Some(base.clone()),
            _ => lookup(name),
        })
    }
}
