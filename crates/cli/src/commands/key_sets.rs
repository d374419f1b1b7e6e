//! The toolsets that the access of a key may name.

use switchboard_model::{LOCAL_SERVER, NO_TOOLSET, Plan};

use crate::args::Globals;
use crate::embedded::config_source;

/// The toolsets of the configuration; `None` if there is none that can be read, or if sources may add servers.
pub(crate) fn known_toolsets(globals: &Globals) -> Option<Vec<String>> {
    let loaded = config_source(globals).load().ok()?;
    let plan = &loaded.plan;
    // The environment may choose a source too.
    let may_grow = !plan.discovery.sources.is_empty()
        || (plan.discovery.auto && std::env::var_os("ENVIRONMENT").is_some());
    let has_any = !plan.servers.is_empty() || !plan.toolsets.is_empty();
    (has_any && !may_grow).then(|| toolset_names(plan))
}

fn toolset_names(plan: &Plan) -> Vec<String> {
    let mut names: Vec<String> = plan.toolsets.iter().map(|set| set.name.clone()).collect();
    for server in &plan.servers {
        let name = server.toolset.clone().unwrap_or_else(|| server.spec.name.to_string());
        if name != NO_TOOLSET && !names.contains(&name) {
            names.push(name);
        }
    }
    if !names.iter().any(|name| name == LOCAL_SERVER) {
        names.push(LOCAL_SERVER.to_owned());
    }
    names
}
