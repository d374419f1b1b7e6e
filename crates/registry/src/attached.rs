//! Admission of the tools of attached servers.
//!
//! Attached servers are not in the configuration, so its entries do not apply to them: an entry of `toolbox.tools` with
//! the same tool name is about the tool of a configured server. Their tools are admitted as those of a dynamic server,
//! with the built-in limits, and are visible to one owner only.

use std::sync::Arc;

use switchboard_model::{CanonicalName, QuarantinedTool, ServerName, ToolDescriptor};

use crate::admission::{last_definitions, notice_definitions};
use crate::{Admission, CatalogTool};

/// The current state of an attached server.
#[derive(Debug, Clone, Copy)]
pub struct AttachedOffer<'a> {
    /// The internal name of the server.
    pub server: &'a ServerName,
    pub owner: &'a Arc<str>,
    /// The name that the owner gave it.
    pub alias: &'a ServerName,
    /// Its tools, as last listed.
    pub tools: &'a [ToolDescriptor],
    /// Tools whose definitions are invalid.
    pub quarantined: &'a [QuarantinedTool],
}

/// Admits the tools of an attached server.
pub fn admit_attached(offer: &AttachedOffer<'_>, admission: &mut Admission) {
    let server = offer.server;
    notice_definitions(server, offer.tools, offer.quarantined, admission);
    for tool in last_definitions(server, offer.tools, admission) {
        admission.tools.push(CatalogTool {
            owner: Some(offer.owner.clone()),
            alias: Some(offer.alias.clone()),
            ..CatalogTool::new(CanonicalName::new(server, &tool.name), tool.clone())
        });
    }
}

#[cfg(test)]
mod tests {
    use switchboard_model::{AdmissionMode, BUILT_IN_LIMITS};

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
