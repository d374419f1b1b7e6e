//! Admission: decides for each tool whether it is registered, and with which limits.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use switchboard_model::{
    AdmissionMode, CanonicalName, LimitsOverlay, LocalToolChoice, Naming, Plan, QuarantinedTool,
    ServerName, ServerPlan, ToolDescriptor, ToolEntry,
};
use wildmatch::WildMatch;

use crate::entries::{Explicit, addresses, explicit_for, is_general, tool_at};
use crate::{CatalogTool, Configured, Notice, OfferedDefinition, Violation};

/// The current state of a server, as far as admission needs it.
#[derive(Debug, Clone, Copy)]
pub struct Offer<'a> {
    pub plan: &'a ServerPlan,
    /// Its tools: the current list, or the last known one while it is unavailable. `None` if it was never listed.
    pub tools: Option<&'a [ToolDescriptor]>,
    /// Whether the server is connected.
    pub available: bool,
    /// The names of its tools at an earlier listing, in this run or the last one. `None` if it was never listed before.
    pub before: Option<&'a HashSet<String>>,
    /// Tools whose definitions are invalid.
    pub quarantined: &'a [QuarantinedTool],
}

/// The decisions, and the notices about them.
#[derive(Debug, Default)]
pub struct Admission {
    /// The admitted tools in the order of registration: those of discovered servers, built-in ones, then by server in
    /// file order.
    pub tools: Vec<CatalogTool>,
    /// Tools that are refused. At the start, a violation makes the start fail.
    pub violations: Vec<Violation>,
    pub notices: Vec<Notice>,
    /// Admitted tools that are left out all the same, because their declaration contradicts their server.
    pub quarantined: Vec<(ServerName, QuarantinedTool)>,
}

/// Decides for every built-in tool and for every tool of every server.
pub fn admit(plan: &Plan, local: &[ToolDescriptor], offers: &[Offer<'_>]) -> Admission {
    let mut admission = Admission::default();
    // The last registered tool has a bare name that several have: what a source named takes none from the file.
    let (found, configured): (Vec<_>, Vec<_>) =
        offers.iter().partition(|offer| offer.plan.discovered.is_some());
    for offer in found {
        admit_offer(plan, offer, &mut admission);
    }
    admit_local(plan, local, &mut admission);
    for offer in configured {
        admit_offer(plan, offer, &mut admission);
    }
    notice_missing(plan, offers, &mut admission);
    notice_collisions(plan, &mut admission);
    admission
}

fn admit_local(plan: &Plan, built_in: &[ToolDescriptor], admission: &mut Admission) {
    let server = ServerName::local();
    let prompts = prompt_tools(plan);
    // A prompt tool replaces the built-in tool of its name.
    let is_replaced = |tool: &&ToolDescriptor| prompts.iter().any(|it| it.name == tool.name);
    let local: Vec<_> = built_in.iter().filter(|tool| !is_replaced(tool)).collect();
    let chosen: Vec<&ToolDescriptor> = match &plan.local_tools {
        LocalToolChoice::All => local,
        LocalToolChoice::NamedInTools => {
            let is_named =
                |tool: &&ToolDescriptor| explicit_for(plan, &server, &tool.name, false).is_some();
            local.into_iter().filter(is_named).collect()
        }
        LocalToolChoice::Only(names) => {
            let is_unknown =
                |name: &&String| !built_in.iter().chain(&prompts).any(|tool| tool.name == **name);
            for name in names.iter().filter(is_unknown) {
                admission.violations.push(Violation::UnknownLocalTool {
                    root: plan.root,
                    tool: name.clone(),
                    known: built_in.iter().map(|tool| tool.name.clone()).collect(),
                });
            }
            local.into_iter().filter(|tool| names.contains(&tool.name)).collect()
        }
    };
    for tool in chosen.into_iter().chain(&prompts) {
        let Some(explicit) = explicit_for(plan, &server, &tool.name, false) else {
            admission.violations.push(Violation::UnconfiguredLocalTool {
                root: plan.root,
                tool: tool.name.clone(),
                configured: configured_names(plan),
            });
            continue;
        };
        if explicit.enabled {
            let limits = explicit.limits.resolve();
            admission.notices.push(Notice::Explicit { tool: tool.name.clone(), limits });
            let name = CanonicalName::new(&server, &tool.name);
            let toolset = server.to_string();
            admission.tools.push(CatalogTool {
                limits,
                configured: Configured::Explicit,
                ..registered(name, tool, Some(explicit), AdmissionMode::Strict, toolset)
            });
        }
    }
}

/// The tools that entries with `type: prompt` define. Their arguments are declared like those of other tools.
fn prompt_tools(plan: &Plan) -> Vec<ToolDescriptor> {
    let entries = plan.tools.iter().filter(|entry| entry.prompt.is_some());
    let defined = |entry: &ToolEntry| ToolDescriptor {
        description: entry.description.clone(),
        ..ToolDescriptor::without_arguments(&entry.name)
    };
    entries.map(defined).collect()
}

fn admit_offer(plan: &Plan, offer: &Offer<'_>, admission: &mut Admission) {
    let server = &offer.plan.spec.name;
    let Some(listed) = offer.tools else { return };
    notice_definitions(server, listed, offer.quarantined, admission);
    if listed.is_empty() && offer.available {
        let place = offer.plan.spec.place.clone();
        admission.notices.push(Notice::NoTools { server: server.clone(), place });
    }
    notice_unmatched_lists(offer.plan, listed, admission);
    for tool in last_definitions(server, listed, admission) {
        if is_listed(offer.plan, &tool.name) {
            admit_tool(plan, offer, tool, admission);
        }
    }
}

/// Adds notices for tools with invalid definitions and for tools whose listed schema was repaired.
pub(crate) fn notice_definitions(
    server: &ServerName,
    listed: &[ToolDescriptor],
    quarantined: &[QuarantinedTool],
    admission: &mut Admission,
) {
    let quarantined = quarantined.iter().cloned();
    admission
        .notices
        .extend(quarantined.map(|tool| Notice::Quarantined { server: server.clone(), tool }));
    let mut repaired = listed.iter().filter(|tool| !tool.repairs.is_empty());
    if let Some(first) = repaired.next()
        && let Some(repair) = first.repairs.first()
    {
        admission.notices.push(Notice::Repaired {
            server: server.clone(),
            count: 1 + repaired.count(),
            tool: first.name.clone(),
            repair: repair.clone(),
        });
    }
}

/// Removes duplicate names: the last definition is kept, at the position of the first.
pub(crate) fn last_definitions<'a>(
    server: &ServerName,
    listed: &'a [ToolDescriptor],
    admission: &mut Admission,
) -> Vec<&'a ToolDescriptor> {
    let mut at: HashMap<&str, usize> = HashMap::new();
    let mut kept: Vec<&ToolDescriptor> = Vec::with_capacity(listed.len());
    for tool in listed {
        if let Some(slot) = at.get(tool.name.as_str()).and_then(|at| kept.get_mut(*at)) {
            *slot = tool;
            let notice = Notice::DuplicateTool { server: server.clone(), tool: tool.name.clone() };
            if !admission.notices.contains(&notice) {
                admission.notices.push(notice);
            }
        } else {
            at.insert(&tool.name, kept.len());
            kept.push(tool);
        }
    }
    kept
}

fn admit_tool(plan: &Plan, offer: &Offer<'_>, tool: &ToolDescriptor, admission: &mut Admission) {
    let server = &offer.plan.spec.name;
    let explicit = explicit_for(plan, server, &tool.name, offer.plan.is_foreign());
    let mode = explicit.as_ref().and_then(|explicit| explicit.mode).unwrap_or(offer.plan.mode);
    let default = match mode {
        // A strict server may have defaults; they have no effect.
        AdmissionMode::Strict => None,
        AdmissionMode::Dynamic => offer.plan.default_limits,
    };
    let limits = match (&explicit, mode) {
        (Some(explicit), _) if !explicit.enabled => return,
        (Some(explicit), _) => {
            merged(&tool.name, explicit.limits, default, &mut admission.notices).resolve()
        }
        (None, AdmissionMode::Dynamic) => {
            let (server, tool) = (server.clone(), tool.name.clone());
            if offer.before.is_some_and(|before| !before.contains(&tool)) {
                let notice = Notice::NewTool { server: server.clone(), tool: tool.clone() };
                admission.notices.push(notice);
            }
            admission.notices.push(Notice::UsingDefault { server, tool });
            default.unwrap_or_default().resolve()
        }
        (None, AdmissionMode::Strict) if offer.plan.discovered.is_some() => {
            // What a source names is no fault of the configuration, so it costs the tool alone.
            let from = offer.plan.discovered.as_ref().map(|from| from.source.clone());
            let (source, tool) = (from.unwrap_or_default(), tool.name.clone());
            let notice = Notice::NotAdmitted { server: server.clone(), source, tool };
            admission.notices.push(notice);
            return;
        }
        (None, AdmissionMode::Strict) => {
            admission.violations.push(Violation::UnconfiguredTool {
                root: plan.root,
                server: server.clone(),
                tool: tool.name.clone(),
                configured: configured_names(plan),
            });
            return;
        }
    };
    let configured = match (&explicit, default) {
        (None, _) => Configured::Default,
        (Some(_), Some(_)) => Configured::Merged,
        (Some(_), None) => Configured::Explicit,
    };
    let toolset = offer.plan.toolset.clone().unwrap_or_else(|| server.to_string());
    let name = CanonicalName::new(server, &tool.name);
    let validates = explicit.as_ref().and_then(|explicit| explicit.validate_arguments);
    let checks = explicit.as_ref().map(|explicit| explicit.content_check).unwrap_or_default();
    let record = explicit.as_ref().map(|explicit| explicit.record).unwrap_or_default();
    admission.tools.push(CatalogTool {
        limits,
        configured,
        validates_arguments: validates.unwrap_or(offer.plan.validate_arguments),
        content_check: checks.over(offer.plan.content_check).resolve(),
        record: record.over(offer.plan.record).resolve(),
        ..registered(name, tool, explicit, mode, toolset)
    });
}

fn merged(
    tool: &str,
    explicit: LimitsOverlay,
    default: Option<LimitsOverlay>,
    notices: &mut Vec<Notice>,
) -> LimitsOverlay {
    let overlay = explicit.over(default.unwrap_or_default());
    let (tool, limits) = (tool.to_owned(), overlay.resolve());
    notices.push(match default {
        None => Notice::Explicit { tool, limits },
        Some(default) => Notice::Merged { tool, explicit, default, limits },
    });
    overlay
}

fn registered(
    name: CanonicalName,
    tool: &ToolDescriptor,
    explicit: Option<Explicit>,
    mode: AdmissionMode,
    toolset: String,
) -> CatalogTool {
    let mut registered = CatalogTool { mode, toolset, ..CatalogTool::new(name, tool.clone()) };
    if let Some(explicit) = explicit {
        let replaces = explicit.description.is_some() || explicit.arguments.is_some();
        registered.offered = replaces.then(|| OfferedDefinition {
            description: tool.description.clone(),
            input_schema: tool.input_schema.clone(),
        });
        registered.descriptor.description =
            explicit.description.or(registered.descriptor.description);
        registered.expose_as = explicit.expose_as;
        registered.arguments = explicit.arguments;
        registered.validates_arguments = explicit.validate_arguments.unwrap_or(true);
        registered.content_check = explicit.content_check.resolve();
        registered.record = explicit.record.resolve();
        registered.grouping = explicit.grouping;
        registered.prompt = explicit.prompt.map(Arc::new);
    }
    registered
}

/// Whether the allow and deny lists admit a tool; a denied one is treated as if it did not exist.
pub(crate) fn is_listed(plan: &ServerPlan, tool: &str) -> bool {
    let matches = |pattern: &String| WildMatch::new(pattern).matches(tool);
    plan.tool_allowlist.as_ref().is_none_or(|allowed| allowed.iter().any(matches))
        && !plan.tool_denylist.iter().any(matches)
}

fn notice_unmatched_lists(plan: &ServerPlan, listed: &[ToolDescriptor], admission: &mut Admission) {
    let allow = plan.tool_allowlist.iter().flatten().map(|pattern| ("tool_allowlist", pattern));
    let deny = plan.tool_denylist.iter().map(|pattern| ("tool_denylist", pattern));
    for (list, tool) in allow.chain(deny) {
        if !tool.contains(['*', '?']) && listed.iter().all(|offered| offered.name != *tool) {
            admission.notices.push(Notice::ListedToolMissing {
                server: plan.spec.name.clone(),
                list,
                tool: tool.clone(),
            });
        }
    }
}

/// Adds notices for tools that a server no longer offers, and for entries that name a tool that no server offers.
fn notice_missing(plan: &Plan, offers: &[Offer<'_>], admission: &mut Admission) {
    let mut told: HashSet<String> = HashSet::new();
    for offer in offers {
        let (Some(listed), Some(before)) = (offer.tools, offer.before) else { continue };
        let server = &offer.plan.spec.name;
        let listed: HashSet<&str> = listed.iter().map(|tool| tool.name.as_str()).collect();
        let mut gone: Vec<_> =
            before.iter().filter(|name| !listed.contains(name.as_str())).collect();
        gone.sort();
        for tool in gone.into_iter().filter(|tool| is_listed(offer.plan, tool)) {
            told.insert(tool.clone());
            told.insert(CanonicalName::new(server, tool).to_string());
            admission
                .notices
                .push(Notice::NoLongerAvailable { server: server.clone(), tool: tool.clone() });
        }
    }
    for entry in plan.tools.iter().filter(|entry| entry.enabled && !told.contains(&entry.name)) {
        notice_unoffered_entry(plan, entry, offers, admission);
    }
}

fn notice_unoffered_entry(
    plan: &Plan,
    entry: &ToolEntry,
    offers: &[Offer<'_>],
    admission: &mut Admission,
) {
    let is_local = |tool: &CatalogTool| {
        tool.name.server().is_local()
            && (tool.name.tool() == entry.name || tool.name.as_str() == entry.name)
    };
    if admission.tools.iter().any(is_local) {
        return;
    }
    let means = |offer: &Offer<'_>, tool: &str| {
        (is_general(plan, entry, tool) && !offer.plan.is_foreign())
            || addresses(entry, &offer.plan.spec.name, tool)
    };
    let offered = offers
        .iter()
        .any(|offer| offer.tools.into_iter().flatten().any(|tool| means(offer, &tool.name)));
    let addressed = offers
        .iter()
        .find_map(|offer| Some((offer, tool_at(entry, &offer.plan.spec.name)?.to_owned())));
    // A server that was never listed may offer it.
    let is_unheard = |offer: &Offer<'_>| offer.tools.is_none();
    let (server, tool) = match addressed {
        Some((offer, _)) if offered || is_unheard(offer) => return,
        Some((offer, tool)) => (Some(offer.plan.spec.name.clone()), tool),
        None if offered || offers.is_empty() || offers.iter().any(is_unheard) => return,
        None => (None, entry.name.clone()),
    };
    admission.notices.push(Notice::NotOffered { server, tool });
}

fn notice_collisions(plan: &Plan, admission: &mut Admission) {
    let is_used = plan.gateway.naming == Naming::Bare;
    let mut last: HashMap<&str, &CanonicalName> = HashMap::new();
    let mut collisions = Vec::new();
    for tool in &admission.tools {
        if let Some(loser) = last.insert(tool.name.tool(), &tool.name) {
            collisions.push(Notice::Collision {
                bare: tool.name.tool().to_owned(),
                loser: loser.clone(),
                winner: tool.name.clone(),
                is_used,
            });
        }
    }
    admission.notices.extend(collisions);
}

fn configured_names(plan: &Plan) -> Vec<String> {
    plan.tools.iter().map(|entry| entry.name.clone()).collect()
}

#[cfg(test)]
#[path = "admission_tests.rs"]
mod tests;
