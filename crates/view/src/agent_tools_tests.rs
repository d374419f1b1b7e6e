use pretty_assertions::assert_eq;
use switchboard_model::{AgentPlan, Exposure, ExposureMode, ServerName};

use super::*;
use crate::view::tests::{exposure, index, owned, server, unreachable, view_in};
use crate::{Index, Scope, ScopeFault};

const ALL: [&str; 7] = [
    "market.getQuote",
    "market.getCompanyProfile",
    "market.listDividends",
    "market.getSplits",
    "market.placeOrder",
    "notes.readNote",
    "notes.writeNote",
];

fn agent(change: impl FnOnce(&mut AgentPlan)) -> AgentPlan {
    let mut agent = AgentPlan { name: "bot".into(), ..AgentPlan::default() };
    change(&mut agent);
    agent
}

fn servers(names: &[&str]) -> Vec<ServerName> {
    names.iter().map(|name| ServerName::new(*name)).collect()
}

fn of_agent(server: Option<&str>) -> Scope {
    Scope { agent: Some("bot".into()), server: server.map(str::to_owned), ..Scope::default() }
}

fn index_with(agent: AgentPlan) -> Arc<Index> {
    index(|plan| plan.agents = vec![agent])
}

/// The profile has exactly these tools, in every exposure, and no path leads to the others.
#[track_caller]
fn check(agent: &AgentPlan, expected: &[&str]) {
    let index = index_with(agent.clone());
    for mode in [ExposureMode::Legacy, ExposureMode::Dynamic] {
        let view = view_in(&index, &exposure(mode, &[]), of_agent(None), &[]);
        let shown: Vec<_> = view.tools().map(|entry| entry.shown_name().to_string()).collect();
        assert_eq!(shown, expected, "{mode:?} {agent:?}");
        for tool in ALL.iter().filter(|tool| !expected.contains(tool)) {
            unreachable(&view, tool, &tool.replace('.', "__"));
        }
    }
}

#[test]
fn a_profile_has_the_tools_of_its_servers_and_toolsets() {
    check(&agent(|_| {}), &ALL);
    check(&agent(|agent| agent.servers = Some(servers(&["notes"]))), &ALL[5..]);
    check(&agent(|agent| agent.servers = Some(servers(&[]))), &[]);
    check(&agent(|agent| agent.toolsets = Some(owned(&["quotes"]))), &ALL[..1]);
    check(
        &agent(|agent| {
            agent.servers = Some(servers(&["notes"]));
            agent.toolsets = Some(owned(&["quotes"]));
        }),
        &[ALL[0], ALL[5], ALL[6]],
    );
    check(
        &agent(|agent| agent.allow_tools = Some(owned(&["notes.*", "getQuote"]))),
        &[ALL[0], ALL[5], ALL[6]],
    );
    check(&agent(|agent| agent.deny_tools = owned(&["market.*", "writeNote"])), &ALL[5..6]);
    check(
        &agent(|agent| {
            agent.allow_tools = Some(owned(&["*Note"]));
            agent.deny_tools = owned(&["notes.write*"]);
        }),
        &ALL[5..6],
    );
    check(&agent(|agent| agent.servers = Some(servers(&["unknown"]))), &[]);
}

#[test]
fn a_profile_never_widens_what_policy_permits() {
    let index = index(|plan| {
        plan.gateway.deny_toolsets = owned(&["trade"]);
        plan.agents = vec![agent(|agent| agent.toolsets = Some(owned(&["trade", "notes"])))];
    });
    let view = view_in(&index, &Exposure::default(), of_agent(None), &[]);
    unreachable(&view, "market.placeOrder", "market__placeOrder");
    assert!(!index.agent_has_server("bot", &ServerName::new("market")));
    let exposure = exposure(ExposureMode::Static, &["quotes"]);
    let view = view_in(&index_with(agent(|_| {})), &exposure, of_agent(None), &[]);
    assert_eq!(view.tools().count(), 1, "`static` holds for agents too");
}

#[test]
fn without_its_profile_an_agent_sees_nothing() {
    let index = index(|_| {});
    for mode in [ExposureMode::Legacy, ExposureMode::Dynamic] {
        let view = view_in(&index, &exposure(mode, &[]), of_agent(None), &[]);
        assert_eq!(view.tools().count(), 0);
        for tool in ALL {
            unreachable(&view, tool, &tool.replace('.', "__"));
        }
    }
    let fault = of_agent(None).check(&index, &Exposure::default(), &owned(&["market", "notes"]));
    assert_eq!(fault, Err(ScopeFault::UnknownAgent("bot".into())));
}

#[test]
fn a_server_is_named_only_within_the_profile() {
    let index = index(|plan| {
        plan.servers.push(server("down"));
        plan.servers.push(server("apart"));
        plan.agents = vec![agent(|agent| agent.servers = Some(servers(&["notes", "down"])))];
    });
    let known = owned(&["market", "notes", "down", "apart"]);
    for (server, is_known) in
        [("notes", true), ("down", true), ("market", false), ("apart", false), ("gone", false)]
    {
        assert_eq!(index.agent_has_server("bot", &ServerName::new(server)), is_known, "{server}");
        let checked = of_agent(Some(server)).check(&index, &Exposure::default(), &known);
        let expected =
            if is_known { Ok(()) } else { Err(ScopeFault::UnknownServer(server.into())) };
        assert_eq!(checked, expected, "{server}");
    }
}

#[test]
fn a_server_without_known_tools_belongs_to_the_profiles_that_could_have_them() {
    let expects = |change: fn(&mut AgentPlan)| {
        let index = index(|plan| {
            plan.servers.push(server("down"));
            plan.agents = vec![agent(change)];
        });
        index.agent_has_server("bot", &ServerName::new("down"))
    };
    assert!(expects(|_| {}));
    assert!(expects(|agent| agent.servers = Some(servers(&["down"]))));
    assert!(!expects(|agent| agent.servers = Some(servers(&["notes"]))));
    assert!(expects(|agent| agent.allow_tools = Some(owned(&["down.read*"]))));
    assert!(expects(|agent| agent.allow_tools = Some(owned(&["read"]))));
    assert!(!expects(|agent| agent.allow_tools = Some(owned(&["notes.*"]))));
    assert!(!expects(|agent| agent.deny_tools = owned(&["down.*"])));
    assert!(!expects(|agent| agent.toolsets = Some(owned(&["company"]))));
    assert!(expects(|agent| agent.toolsets = Some(owned(&["quotes"]))), "a bare name may match");
}
