//! The endpoint of one server of an agent: it has what the profile leaves of that server, and nothing else exists there.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use switchboard_config::{ConfigInput, SourceFile, load};
use switchboard_mcp_server::Route;
use switchboard_model::Plan;
use switchboard_test_support::{ScriptedServer, Tool};

use crate::support::{PATIENCE, Reading, World};

/// Part of the description of everything that the agent must not see, and of no request.
const MARK: &str = "for nobody";

const BOT: &str = "{name: bot, servers: [crm, mail], tools: {deny: [crm.delete, mail.send]}}";

fn plan(
    servers: &[(&str, &ScriptedServer)],
    gateway: &str,
    toolsets: &str,
    agents: &[&str],
) -> Plan {
    let entry = |(name, server): &(&str, &ScriptedServer)| {
        format!(
            "\n      - {{name: {name}, url: \"{}\", mode: dynamic, required: false, default_tool_config: {{max_instances: 100, timeout: 30s}}}}",
            server.url()
        )
    };
    let servers: String = servers.iter().map(entry).collect();
    let text = format!(
        "switchboard:\n  gateway: {{{gateway}}}\n  toolsets: [{toolsets}]\n  agents: [{}]\n  toolbox:\n    tools: [{{name: sum_numbers}}]\n    mcps:{servers}\n",
        agents.join(", ")
    );
    let file = SourceFile { name: "test.yaml", directory: Path::new("."), text: &text };
    let read_secret = |_: &Path| Err(std::io::ErrorKind::NotFound.into());
    match load(&ConfigInput {
        file: Some(file),
        env: &[],
        read_secret: &read_secret,
        read_keyring: None,
    }) {
        Ok(loaded) => loaded.plan,
        Err(problems) => panic!("{problems}\n{text}"),
    }
}

fn of_agent(agent: &str, server: &str) -> Route {
    Route::Agent { agent: agent.into(), server: server.into() }
}

/// `crm` with a tool for the agent and one that its profile denies, `mail` with tools of its own, and `apart`, which no
/// profile names.
struct Servers {
    crm: ScriptedServer,
    mail: ScriptedServer,
    apart: ScriptedServer,
}

impl Servers {
    async fn start() -> Self {
        let crm = ScriptedServer::builder()
            .tools([Tool::echo("get"), Tool::echo("delete").description(MARK)])
            .prompts(["greet"])
            .resources(["crm:///list"]);
        let mail = ScriptedServer::builder()
            .tools([Tool::echo("read").description(MARK), Tool::echo("send").description(MARK)])
            .prompts(["for nobody but mail"])
            .resources(["mail:///for nobody"]);
        let apart = ScriptedServer::builder()
            .tools([Tool::echo("leak").description(MARK)])
            .prompts([MARK])
            .resources(["apart:///for nobody"]);
        Self { crm: crm.start().await, mail: mail.start().await, apart: apart.start().await }
    }

    fn plan(&self, gateway: &str, agents: &[&str]) -> Plan {
        let servers = [("crm", &self.crm), ("mail", &self.mail), ("apart", &self.apart)];
        let set = "{name: gone, description: for nobody, tools: [apart.leak, crm.delete]}";
        plan(&servers, gateway, set, agents)
    }
}

/// Every request that could show something of the other servers, or the denied tool.
fn requests() -> Vec<(&'static str, Value)> {
    let call = |tool: &str, arguments: Value| {
        ("tools/call", json!({"name": tool, "arguments": arguments}))
    };
    vec![
        ("tools/list", json!({})),
        ("prompts/list", json!({})),
        ("resources/list", json!({})),
        ("resources/templates/list", json!({})),
        ("prompts/get", json!({"name": MARK})),
        ("resources/read", json!({"uri": "mail:///x"})),
        call("crm__delete", json!({})),
        call("mail__send", json!({})),
        call("apart__leak", json!({})),
        call("mail.send", json!({})),
        call("leak", json!({})),
        call("call_tool", json!({"name": "mail__send", "arguments": {}})),
        call("call_tool", json!({"name": "crm.delete", "arguments": {}})),
        call("search_tools", json!({"query": "leak delete send"})),
        call("describe_tool", json!({"name": "crm__delete"})),
        call("describe_toolset", json!({"toolsetName": "gone"})),
        call("enable_toolset", json!({"toolsetName": "gone"})),
        call("enable_toolset", json!({"toolsetName": "apart"})),
        call("list_toolsets", json!({})),
    ]
}

/// The names of the listed tools.
async fn listed(answer: Reading) -> Vec<String> {
    let list = answer.result().await;
    let tools = list["tools"].as_array().unwrap().iter();
    tools.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

async fn check_exact(gateway: &str) {
    let servers = Servers::start().await;
    let world = World::of_plan(servers.plan(gateway, &[BOT])).await;
    let agent = world.with_key("1", "any").at(of_agent("bot", "crm"));
    let session = agent.open(json!({})).await;
    assert_eq!(listed(session.ask("tools/list", json!({})).await).await, ["crm__get"], "{gateway}");
    let modern = agent.modern("tools/list", json!({}), json!({})).await;
    assert_eq!(listed(modern).await, ["crm__get"], "{gateway}");
    for (method, params) in requests() {
        let legacy = session.ask(method, params.clone()).await.text().await;
        let modern = agent.modern(method, params.clone(), json!({})).await.text().await;
        for text in [legacy, modern] {
            let quoted = text.replace("there is no prompt 'for nobody'", "");
            assert!(!quoted.contains(MARK), "{gateway}: {method} {params}: {text}");
        }
    }
    let prompts = session.ask("prompts/list", json!({})).await.text().await;
    assert!(prompts.contains("greet"), "{prompts}");
    let resources = session.ask("resources/list", json!({})).await.text().await;
    assert!(resources.contains("crm:///list"), "{resources}");
    let called = session.call("crm__get").await.result().await;
    assert_ne!(called["isError"], true, "{called}");
    for (server, calls) in [(&servers.crm, 1), (&servers.mail, 0), (&servers.apart, 0)] {
        assert_eq!(server.stats().total_calls(), calls, "{gateway}");
    }
}

#[tokio::test]
async fn an_agent_finds_exactly_the_tools_of_its_profile_at_each_server() {
    for gateway in ["exposure: legacy", "exposure: dynamic"] {
        check_exact(gateway).await;
    }
}

#[tokio::test]
async fn a_path_that_names_no_agent_or_server_is_answered_with_404() {
    let servers = Servers::start().await;
    let world = World::of_plan(servers.plan("", &[BOT])).await;
    let change = switchboard_sessions::Change::default();
    world.sessions.new_session(Some("mine"), "key:2", change, PATIENCE).await.unwrap();
    let world = world.with_key("1", "any");
    for (agent, server, message) in [
        ("bo", "crm", "there is no agent 'bo' here"),
        ("", "crm", "there is no agent '' here"),
        ("a/b", "crm", "there is no agent 'a/b' here"),
        ("b t", "crm", "there is no agent 'b t' here"),
        ("böt", "crm", "there is no agent 'böt' here"),
        ("mine", "crm", "there is no agent 'mine' here"),
        ("bot", "apart", "there is no MCP server 'apart' here"),
        ("bot", "crmm", "there is no MCP server 'crmm' here"),
        ("bot", "", "there is no MCP server '' here"),
    ] {
        let agent = world.at(of_agent(agent, server));
        let opened = agent.knock(json!({})).await;
        assert_eq!(opened.status(), 404, "{message}");
        let modern = agent.modern("tools/list", json!({}), json!({})).await;
        assert_eq!(modern.status, 404, "{message}");
        let text = modern.text().await;
        assert!(text.contains(message), "{text}");
    }
}

#[tokio::test]
async fn a_reload_of_the_profile_holds_for_open_sessions() {
    let servers = Servers::start().await;
    let world = World::of_plan(servers.plan("", &[BOT])).await;
    let agent = world.with_key("1", "any").at(of_agent("bot", "crm"));
    let session = agent.open(json!({})).await;
    session.tell("notifications/initialized").await;
    assert_eq!(listed(session.ask("tools/list", json!({})).await).await, ["crm__get"]);
    let mut news = session.listen().await;
    let apply = async |agents: &[&str]| {
        world.board.apply(servers.plan("", agents)).await.unwrap_or_else(|error| panic!("{error}"));
    };
    for (agents, tools) in [
        (&[][..], &[][..]),
        (&[BOT], &["crm__get"]),
        (&["{name: bot, servers: [crm]}"], &["crm__get", "crm__delete"]),
        (&["{name: bot, servers: [mail]}"], &[]),
        (&[BOT], &["crm__get"]),
    ] {
        apply(agents).await;
        let changed = news.next().await.unwrap();
        assert_eq!(changed["method"], "notifications/tools/list_changed", "{agents:?}");
        while let Some(more) =
            tokio::time::timeout(Duration::from_millis(50), news.piece()).await.ok().flatten()
        {
            assert!(more.contains("list_changed"), "{more}");
        }
        assert_eq!(listed(session.ask("tools/list", json!({})).await).await, tools, "{agents:?}");
        let called = session.call("crm__get").await.result().await;
        assert_eq!(called["isError"] == true, !tools.contains(&"crm__get"), "{called}");
        if agents.is_empty() {
            assert_eq!(agent.knock(json!({})).await.status(), 404, "a new session has no agent");
        }
    }
}

#[tokio::test]
async fn only_the_keys_of_a_profile_reach_it_also_after_a_reload() {
    let servers = Servers::start().await;
    let with_keys = |keys: &str| format!("{{name: bot, servers: [crm], keys: [{keys}]}}");
    let world = World::of_plan(servers.plan("", &[&with_keys("bot-key")])).await;
    let route = of_agent("bot", "crm");
    let own = world.with_key("1", "bot-key").at(route.clone());
    let other = world.with_key("2", "other").at(route);
    assert_eq!(other.knock(json!({})).await.status(), 404);
    let refused = other.modern("tools/list", json!({}), json!({})).await;
    assert_eq!(refused.status, 404);
    let session = own.open(json!({})).await;
    assert_eq!(session.call("crm__get").await.status, 200);
    world.board.apply(servers.plan("", &[&with_keys("other")])).await.unwrap();
    assert_eq!(session.ask("tools/list", json!({})).await.status, 404, "the key was removed");
    assert_eq!(session.call("crm__get").await.status, 404);
    assert_eq!(own.modern("tools/list", json!({}), json!({})).await.status, 404);
    assert_eq!(other.knock(json!({})).await.status(), 200);
    assert_eq!(servers.crm.stats().total_calls(), 1);
}

#[tokio::test]
async fn a_session_is_an_agent_of_its_owner_with_the_servers_that_it_attached() {
    let servers = Servers::start().await;
    let own = ScriptedServer::builder().tools([Tool::echo("jot")]).start().await;
    let mut plan = servers.plan("", &[]);
    plan.security.egress.allow = vec!["127.0.0.0/8".parse().unwrap()];
    let world = World::of_plan(plan).await;
    world.attach("work", &[("pad", own.url())], PATIENCE).await;
    for (server, tools) in
        [("crm", &["crm__get", "crm__delete"][..]), ("pad", &["pad__jot"]), ("local", &[])]
    {
        let agent = world.at(of_agent("work", server));
        let session = agent.open(json!({})).await;
        let seen = listed(session.ask("tools/list", json!({})).await).await;
        if server == "local" {
            assert!(seen.iter().all(|name| name.starts_with("local__")) && !seen.is_empty());
        } else {
            assert_eq!(seen, tools);
        }
        let modern = agent.modern("tools/list", json!({}), json!({})).await;
        assert_eq!(listed(modern).await, seen);
    }
    let nowhere = world.at(of_agent("work", "nowhere"));
    assert_eq!(nowhere.knock(json!({})).await.status(), 404);
    let anothers = world.to_another().at(of_agent("work", "crm"));
    assert_eq!(anothers.knock(json!({})).await.status(), 404);
}

#[tokio::test]
async fn the_built_in_tools_are_a_server_of_the_agent() {
    let servers = Servers::start().await;
    let agents = ["{name: bot, servers: [local]}", "{name: other, servers: [crm]}"];
    let world = World::of_plan(servers.plan("", &agents)).await;
    let session = world.at(of_agent("bot", "local"));
    let tools = listed(session.modern("tools/list", json!({}), json!({})).await).await;
    assert!(tools.contains(&"local__sum_numbers".to_owned()), "{tools:?}");
    assert_eq!(world.at(of_agent("other", "local")).knock(json!({})).await.status(), 404);
}

#[tokio::test]
async fn the_limits_of_a_profile_hold_for_its_calls_only() {
    let crm = ScriptedServer::builder().tools([Tool::echo("slow").sleeps(400)]).start().await;
    let plan = plan(
        &[("crm", &crm)],
        "",
        "",
        &[
            "{name: hasty, servers: [crm], limits: {timeout: 50ms}}",
            "{name: single, servers: [crm], limits: {max_concurrent: 1, queue_timeout: 100ms}}",
            "{name: small, servers: [crm], limits: {max_result_bytes: 1024}}",
        ],
    );
    let world = World::of_plan(plan).await;
    let call = async |agent: &str| {
        let agent = world.at(of_agent(agent, "crm"));
        let arguments = json!({"text": "x".repeat(4096)});
        let call = json!({"name": "crm__slow", "arguments": arguments});
        agent.modern("tools/call", call, json!({})).await.text().await
    };
    let late = call("hasty").await;
    assert!(late.contains("timeout of 50ms"), "{late}");
    let (one, other) = tokio::join!(call("single"), call("single"));
    let waited = [&one, &other].iter().filter(|it| it.contains("queue_timeout")).count();
    assert_eq!(waited, 1, "{one}\n{other}");
    let refused = if one.contains("queue_timeout") { &one } else { &other };
    assert!(refused.contains("all 1 slots of the agent's max_concurrent are in use"), "{refused}");
    let (one, other) = tokio::join!(call("small"), call("small"));
    for said in [one, other] {
        assert!(!said.contains("queue_timeout") && said.len() < 4096, "{said}");
    }
    let open = world.modern("tools/call", json!({"name": "crm__slow"}), json!({})).await;
    assert_ne!(open.result().await["isError"], true, "no profile, no limit");
}
