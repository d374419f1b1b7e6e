//! Why a tool that somebody asks for is not in the catalog.

use switchboard_model::{
    LocalToolChoice, Plan, QuarantinedTool, ServerName, ToolDescriptor, ToolEntry,
};

use crate::Offer;
use crate::admission::is_listed;
use crate::entries::{addresses, explicit_for, is_general};

/// Why a tool is not in the catalog. Earlier reasons are stronger: if a name may mean tools of several servers, the
/// strongest reason counts.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Absence {
    /// This entry of `toolbox.tools` says `enabled: false`.
    Disabled { entry: String },
    /// Its definition, or what the configuration declares of it, cannot be used.
    Quarantined { server: ServerName, reason: String },
    /// An allow or deny list of its server leaves it out.
    NotListed { server: ServerName },
    /// Its server is strict, and it has no entry.
    NotAdmitted { server: ServerName },
    /// A built-in tool that the configuration does not choose.
    NotChosen,
    /// The tools of its server are unknown, because the server was never listed.
    ServerUnavailable { server: ServerName },
    /// Its server lists no such tool; without a server, none does.
    NotOffered { server: Option<ServerName> },
}

/// What there is besides the plan.
#[derive(Debug, Clone, Copy)]
pub struct KnownTools<'a> {
    pub built_in: &'a [ToolDescriptor],
    pub offers: &'a [Offer<'a>],
    /// Tools that are left out because their declaration contradicts their server.
    pub quarantined: &'a [(ServerName, QuarantinedTool)],
}

/// Why the catalog has no tool of this canonical or bare name, or no tool that the entry of this name is about. `None` if
/// nothing here has that name.
pub fn absence_of(plan: &Plan, known: KnownTools<'_>, name: &str) -> Option<Absence> {
    let entry = entry_of(plan, name);
    let target = entry.map_or(name, |entry| entry.name.as_str());
    let local = ServerName::local();
    let servers = || known.offers.iter().map(|offer| &offer.plan.spec.name).chain([&local]);
    let addressed = servers().find_map(|server| {
        Some((server, target.strip_prefix(server.as_str())?.strip_prefix('.')?))
    });
    let absence = match addressed {
        Some((server, tool)) => absence_at(plan, known, server, tool),
        None => match servers().map(|server| absence_at(plan, known, server, target)).min()? {
            Absence::NotOffered { .. } => Absence::NotOffered { server: None },
            absence => absence,
        },
    };
    let is_known = match &absence {
        Absence::NotOffered { .. } => entry.is_some(),
        // A bare name may be that of a tool of each server that was never listed.
        Absence::ServerUnavailable { .. } => entry.is_some() || addressed.is_some(),
        Absence::Disabled { .. }
        | Absence::Quarantined { .. }
        | Absence::NotListed { .. }
        | Absence::NotAdmitted { .. }
        | Absence::NotChosen => true,
    };
    is_known.then_some(absence)
}

/// The entry of this name. An entry with `type: mcp-tool` is known by the name that models see.
fn entry_of<'a>(plan: &'a Plan, name: &str) -> Option<&'a ToolEntry> {
    let named = plan.tools.iter().find(|entry| entry.name == name);
    named.or_else(|| plan.tools.iter().find(|entry| entry.expose_as.as_deref() == Some(name)))
}

fn absence_at(plan: &Plan, known: KnownTools<'_>, server: &ServerName, tool: &str) -> Absence {
    if explicit_for(plan, server, tool, false).is_some_and(|explicit| !explicit.enabled) {
        let is_about = |entry: &&ToolEntry| {
            !entry.enabled
                && (addresses(entry, server, tool)
                    || is_general(plan, entry, tool)
                    || entry.name == tool)
        };
        let entry = plan.tools.iter().find(is_about).map(|entry| entry.name.clone());
        return Absence::Disabled { entry: entry.unwrap_or_else(|| tool.to_owned()) };
    }
    let server = server.clone();
    let offer = known.offers.iter().find(|offer| offer.plan.spec.name == server);
    let by_declaration = known.quarantined.iter().filter(|(of, _)| *of == server).map(|(_, it)| it);
    let by_definition = offer.into_iter().flat_map(|offer| offer.quarantined);
    let mut quarantined = by_declaration.chain(by_definition);
    if let Some(it) = quarantined.find(|it| it.tool.as_deref() == Some(tool)) {
        return Absence::Quarantined { server, reason: it.reason.clone() };
    }
    let Some(offer) = offer else {
        let is_built_in = known.built_in.iter().any(|built_in| built_in.name == tool);
        return if is_built_in && plan.local_tools != LocalToolChoice::All {
            Absence::NotChosen
        } else {
            Absence::NotOffered { server: Some(server) }
        };
    };
    match offer.tools {
        None => Absence::ServerUnavailable { server },
        Some(listed) if listed.iter().all(|offered| offered.name != tool) => {
            Absence::NotOffered { server: Some(server) }
        }
        Some(_) if !is_listed(offer.plan, tool) => Absence::NotListed { server },
        Some(_) => Absence::NotAdmitted { server },
    }
}

#[cfg(test)]
#[path = "absence_tests.rs"]
mod tests;
