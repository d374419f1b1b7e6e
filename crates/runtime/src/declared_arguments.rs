//! The arguments that the configuration declares: applied to the servers' schemas, and checked against them.

use switchboard_model::{JsonText, Plan, QuarantinedTool, ServerName};
use switchboard_registry::{Admission, CatalogTool, Notice, declaring_entry};
use switchboard_schema::{DeclarationFault, check_declaration, declare_arguments};

use crate::board::Board;

/// A declared argument that the server of its tool would refuse. Such a tool cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contradiction {
    /// The index of the entry in `toolbox.tools`.
    pub entry: usize,
    /// The JSON pointer of the wrong value, from the entry.
    pub pointer: String,
    /// What is wrong, without the place. It never quotes a value that callers do not see.
    pub message: String,
}

impl Contradiction {
    fn new(entry: usize, server: &ServerName, tool: &str, fault: &DeclarationFault) -> Self {
        Self {
            entry,
            pointer: format!("/arguments/{}/{}", fault.index, fault.key),
            message: format!("{fault} (tool '{tool}' of MCP server '{server}')"),
        }
    }

    /// The path of the wrong value in the configuration, without the root.
    pub fn path(&self) -> String {
        let mut parts = self.pointer.trim_start_matches('/').splitn(3, '/');
        let mut part = || parts.next().unwrap_or_default();
        format!("toolbox.tools[{}].{}[{}].{}", self.entry, part(), part(), part())
    }
}

impl Board {
    /// What of the plan contradicts the tools that the servers have listed. Servers that are not connected count with
    /// their last list.
    pub fn contradictions(&self, plan: &Plan) -> Vec<Contradiction> {
        let snapshot = self.snapshot();
        let mut found = Vec::new();
        for server in &plan.servers {
            let name = &server.spec.name;
            let listing = snapshot.servers.get(name).map(|server| server.listing());
            for tool in listing.and_then(|listing| listing.tools).iter().flat_map(|it| it.iter()) {
                let Some(at) = declaring_entry(plan, name, &tool.name) else { continue };
                let Some(entry) = plan.tools.get(at).filter(|entry| entry.enabled) else {
                    continue;
                };
                let declared = entry.arguments.as_deref().unwrap_or_default();
                let faults = check_declaration(&tool.shown_schema().parse(), declared);
                let contradiction = |fault| Contradiction::new(at, name, &tool.name, fault);
                found.extend(faults.iter().map(contradiction));
            }
        }
        found
    }
}

/// Applies the arguments that the configuration declares to the servers' schemas, so that all views show the same ones.
/// A tool whose declaration contradicts its server is left out and quarantined.
pub(crate) fn declare_all(plan: &Plan, admission: &mut Admission) {
    for tool in std::mem::take(&mut admission.tools) {
        match declare(plan, tool) {
            Ok(tool) => admission.tools.push(tool),
            Err((server, tool)) => {
                admission.quarantined.push((server.clone(), tool.clone()));
                admission.notices.push(Notice::Quarantined { server, tool });
            }
        }
    }
}

fn declare(
    plan: &Plan,
    mut tool: CatalogTool,
) -> Result<CatalogTool, (ServerName, QuarantinedTool)> {
    let Some(arguments) = tool.arguments.as_ref().filter(|arguments| !arguments.is_empty()) else {
        return Ok(tool);
    };
    // The listed form of the schema is used: it is equivalent to the original.
    let schema = tool.descriptor.shown_schema().parse();
    // The arguments of a prompt tool are its own: no server says anything else about them.
    let faults = match tool.prompt {
        Some(_) => Vec::new(),
        None => check_declaration(&schema, arguments),
    };
    if !faults.is_empty() {
        let (server, name) = (tool.name.server(), tool.name.tool());
        let entry = declaring_entry(plan, server, name).unwrap_or_default();
        let told = |fault: &DeclarationFault| {
            format!("{}: {fault}", Contradiction::new(entry, server, name, fault).path())
        };
        let faults: Vec<_> = faults.iter().map(told).collect();
        let reason = format!("its entry in the configuration is wrong: {}", faults.join("; "));
        let quarantined = QuarantinedTool { tool: Some(name.to_owned()), reason };
        return Err((server.clone(), quarantined));
    }
    tool.descriptor.input_schema = JsonText::from(&declare_arguments(&schema, arguments));
    tool.descriptor.listed_schema = None;
    Ok(tool)
}
