//! Tools of servers that sessions bring.
//!
//! The configuration does not know these servers, so nothing in it is about their tools: an entry of `toolbox.tools`
//! that happens to have the name of one says what another server's tool may do. They are admitted as a dynamic server's
//! are, with the built-in limits, and belong to one owner.

use std::sync::Arc;

use switchboard_model::{
    AdmissionMode, BUILT_IN_LIMITS, CanonicalName, QuarantinedTool, ServerName, ToolDescriptor,
};

use crate::admission::{last_definitions, notice_definitions};
use crate::{Admission, CatalogTool, Configured};

/// What a server of one owner has to offer just now.
#[derive(Debug, Clone, Copy)]
pub struct AttachedOffer<'a> {
    /// The name by which the process knows it.
    pub server: &'a ServerName,
    pub owner: &'a Arc<str>,
    /// What its owner calls it.
    pub alias: &'a ServerName,
    /// Its tools, as far as anybody has seen them.
    pub tools: &'a [ToolDescriptor],
    /// Tools whose definitions cannot be used.
    pub quarantined: &'a [QuarantinedTool],
}

/// Adds the tools of a server that a session brought.
pub fn admit_attached(offer: &AttachedOffer<'_>, admission: &mut Admission) {
    let server = offer.server;
    notice_definitions(server, offer.tools, offer.quarantined, admission);
    for tool in last_definitions(server, offer.tools, admission) {
        admission.tools.push(CatalogTool {
            name: CanonicalName::new(server, &tool.name),
            descriptor: tool.clone(),
            limits: BUILT_IN_LIMITS,
            configured: Configured::Default,
            mode: AdmissionMode::Dynamic,
            toolset: server.to_string(),
            expose_as: None,
            arguments: None,
            owner: Some(offer.owner.clone()),
            alias: Some(offer.alias.clone()),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_is_admitted_once_for_its_owner() {
        let (server, alias) = (ServerName::attached("1"), ServerName::new("mine"));
        let tools = ["a", "b", "a"].map(ToolDescriptor::named);
        let quarantined = [QuarantinedTool { tool: None, reason: "it has no name".into() }];
        let owner: Arc<str> = "session".into();
        let offer = AttachedOffer {
            server: &server,
            owner: &owner,
            alias: &alias,
            tools: &tools,
            quarantined: &quarantined,
        };
        let mut admission = Admission::default();
        admit_attached(&offer, &mut admission);
        let names: Vec<_> = admission.tools.iter().map(|tool| tool.name.as_str()).collect();
        assert_eq!(names, ["@1.a", "@1.b"]);
        for tool in &admission.tools {
            assert_eq!((&tool.owner, &tool.alias), (&Some(owner.clone()), &Some(alias.clone())));
            assert_eq!((tool.limits, tool.mode), (BUILT_IN_LIMITS, AdmissionMode::Dynamic));
        }
        assert_eq!((admission.notices.len(), admission.violations.len()), (2, 0));
    }
}
