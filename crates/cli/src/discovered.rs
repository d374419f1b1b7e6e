//! Discovered servers for a single command: the sources are fetched once, before its board starts.

use std::path::{Path, PathBuf};

use switchboard_config::{Loaded, MergedServers, merge_discovered};
use switchboard_discovery::{AutoChoice, Discovery, DiscoveryContext, SourceStatus};
use switchboard_model::{LeftOutServer, Plan, SourceServers};

use crate::args::Globals;
use crate::embedded::config_source;
use crate::output::Output;

/// What the sources of a configuration name.
#[derive(Debug)]
pub(crate) struct DiscoveredOnce {
    /// The plan with the discovered servers.
    pub(crate) plan: Plan,
    pub(crate) sources: Vec<SourceStatus>,
    pub(crate) left_out: Vec<LeftOutServer>,
    /// What the environment chose.
    pub(crate) choice: Option<AutoChoice>,
}

/// What sources need from this process.
pub(crate) fn discovery_context(globals: &Globals) -> DiscoveryContext {
    let working_directory = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("."));
    let file = config_source(globals).path().map(|path| working_directory.join(path));
    let config_directory = file.as_deref().and_then(Path::parent).map(Path::to_owned);
    let lookup = |name: &str| std::env::var(name).ok();
    DiscoveryContext::new(lookup, working_directory, config_directory)
}

/// Fetches the sources once and adds what they name to the plan.
pub(crate) async fn discover(globals: &Globals, loaded: &Loaded) -> DiscoveredOnce {
    let context = discovery_context(globals);
    let (sources, choice) = Discovery::look(&loaded.plan.discovery, &context).await;
    let found: Vec<_> = sources
        .iter()
        .map(|source| SourceServers {
            source: source.name.clone(),
            is_file: source.is_file,
            servers: source.servers.clone(),
        })
        .collect();
    let MergedServers { plan, left_out } = merge_discovered(&loaded.plan, &found);
    DiscoveredOnce { plan, sources, left_out, choice }
}

/// The plan with the discovered servers, for a command that goes on without the sources that fail.
pub(crate) async fn plan_with_discovered(
    globals: &Globals,
    loaded: &Loaded,
    output: Output,
) -> Plan {
    let discovered = discover(globals, loaded).await;
    for source in &discovered.sources {
        if let Some(failure) = &source.failure {
            output.warn(&format!("source {}: {}", source.name, failure.message));
        }
    }
    discovered.plan
}
