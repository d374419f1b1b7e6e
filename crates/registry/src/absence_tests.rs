//! Each reason for which the catalog has no tool of a name.

use pretty_assertions::assert_eq;
use switchboard_model::{AdmissionMode, PromptToolPlan, ServerPlan};

use super::*;
use crate::test_plans::server;

fn entry(name: &str) -> ToolEntry {
    ToolEntry::named(name)
}

fn off(name: &str) -> ToolEntry {
    ToolEntry { enabled: false, ..entry(name) }
}

/// One dynamic server `crm` with the tools `find` and `delete`, the latter denied; a server `down` that was never listed.
fn check(tools: Vec<ToolEntry>, name: &str, expected: impl Into<Option<Absence>>) {
    let crm = ServerPlan {
        tool_denylist: vec!["delete".into()],
        ..server("crm", AdmissionMode::Dynamic)
    };
    let down = server("down", AdmissionMode::Dynamic);
    let plan = Plan {
        tools,
        servers: vec![crm, down],
        local_tools: LocalToolChoice::NamedInTools,
        ..Plan::default()
    };
    let listed = ["find", "delete"].map(ToolDescriptor::named);
    let odd = [QuarantinedTool { tool: Some("odd".into()), reason: "no schema".into() }];
    let offer = |at: usize, tools| Offer {
        plan: &plan.servers[at],
        tools,
        available: true,
        before: None,
        quarantined: if at == 0 { &odd } else { &[] },
    };
    let offers = [offer(0, Some(&listed[..])), offer(1, None)];
    let quarantined = [(
        ServerName::new("crm"),
        QuarantinedTool { tool: Some("find".into()), reason: "its entry is wrong".into() },
    )];
    let known = KnownTools {
        built_in: &[ToolDescriptor::named("sum_numbers")],
        offers: &offers,
        quarantined: if name.ends_with("find") { &quarantined } else { &[] },
    };
    assert_eq!(absence_of(&plan, known, name), expected.into(), "{name}");
}

#[test]
fn every_reason_is_found() {
    let crm = || ServerName::new("crm");
    let disabled = |entry: &str| Some(Absence::Disabled { entry: entry.into() });
    check(vec![off("crm.find")], "crm.find", disabled("crm.find"));
    check(vec![off("find")], "crm.find", disabled("find"));
    check(vec![off("crm.find")], "find", disabled("crm.find"));
    check(vec![off("down.x")], "down.x", disabled("down.x"));
    check(vec![off("sum_numbers")], "local.sum_numbers", disabled("sum_numbers"));
    let prompt = PromptToolPlan {
        template: "x".into(),
        provider: None,
        model: None,
        instructions: None,
        tools: Vec::new(),
        max_depth: 1,
    };
    let prompt = ToolEntry { prompt: Some(prompt), ..off("ask") };
    check(vec![prompt.clone()], "ask", disabled("ask"));
    check(vec![prompt], "local.ask", disabled("ask"));
    let quarantined =
        |reason: &str| Some(Absence::Quarantined { server: crm(), reason: reason.into() });
    check(vec![entry("crm.find")], "crm.find", quarantined("its entry is wrong"));
    check(vec![], "odd", quarantined("no schema"));
    check(vec![], "crm.delete", Some(Absence::NotListed { server: crm() }));
    check(vec![], "local.sum_numbers", Some(Absence::NotChosen));
    let unavailable = Some(Absence::ServerUnavailable { server: ServerName::new("down") });
    check(vec![entry("x")], "x", unavailable.clone());
    check(vec![], "down.x", unavailable);
    check(vec![entry("crm.x")], "crm.x", Some(Absence::NotOffered { server: Some(crm()) }));
}

#[test]
fn an_entry_is_found_by_the_name_that_models_see() {
    let typed = ToolEntry { expose_as: Some("balance".into()), ..entry("crm.x") };
    let server = Some(ServerName::new("crm"));
    check(vec![typed], "balance", Some(Absence::NotOffered { server }));
}

#[test]
fn a_name_that_means_nothing_has_no_reason() {
    for name in ["nothing", "crm.nothing", "other.find_it", "", "local.nothing"] {
        check(vec![entry("something")], name, None::<Absence>);
    }
}
