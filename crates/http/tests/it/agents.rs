//! Agents: the tooling gateway of Microsoft's SDK, and the same servers in the API and as frameworks take them.

use pretty_assertions::assert_eq;
use reqwest::Method;
use serde_json::{Value, json};
use switchboard_auth::Role;
use switchboard_http::McpRoute;
use switchboard_test_support::{ScriptedServer, Tool};

use crate::api_server::{Answer, Api, ApiServer, scripted, yaml};

/// A board with the servers `crm` and `mail`, a server that cannot be reached, and three profiles.
struct Agents {
    server: ApiServer,
    _servers: [ScriptedServer; 2],
    text: String,
}

impl Agents {
    async fn start(gateway: &str) -> Self {
        let crm = scripted([Tool::echo("get"), Tool::echo("delete")]).await;
        let mail = scripted([Tool::echo("send")]).await;
        let text = yaml(&[], &[("crm", &crm), ("mail", &mail)]);
        let down = ", {name: down, url: \"http://127.0.0.1:1/mcp\", mode: dynamic, required: false, default_tool_config: {max_instances: 1, timeout: 1s}}]\n";
        let text = format!(
            "{}{down}  gateway: {{{gateway}}}\n  agents:\n    \
             - {{name: sales, description: Sells, servers: [crm, down], tools: {{deny: [delete]}}, limits: {{max_concurrent: 2, timeout: 5s}}}}\n    \
             - {{name: writer, servers: [mail], keys: [writer-key]}}\n    \
             - {{name: idle, servers: []}}\n",
            text.trim_end().trim_end_matches(']')
        );
        let server = ApiServer::start(&text).await;
        Self { server, _servers: [crm, mail], text }
    }
}

fn entry(base: &str, agent: &str, server: &str) -> Value {
    json!({
        "mcpServerName": server,
        "mcpServerUniqueName": server,
        "url": format!("{base}/mcp/agents/{agent}/servers/{server}"),
        "connectivityStatus": "Ready",
    })
}

#[tokio::test]
async fn an_agent_that_asks_while_the_board_starts_waits_for_it() {
    let server = ApiServer::without_board().await;
    let api = server.api();
    let starting = async {
        // The agent has asked by now.
        api.get("/api/v1/agents").await.problem(503, "starting");
        let agents = "  agents: [{name: idle, servers: []}]\n";
        server.start_board(&format!("{}{agents}", yaml(&[], &[]))).await;
    };
    let (answer, ()) = tokio::join!(api.get("/agents/v2/idle/mcpServers"), starting);
    let answer = answer.good();
    assert_eq!(answer, json!({"mcpServers": [], "connectivityStatus": "Ready"}));
}

#[tokio::test]
async fn an_agent_gets_the_servers_of_its_profile() {
    let agents = Agents::start("").await;
    let api = agents.server.api();
    let base = api.url.clone();
    let expected = json!({
        "mcpServers": [entry(&base, "sales", "crm"), entry(&base, "sales", "down")],
        "connectivityStatus": "Ready",
    });
    let answer = api.get("/agents/v2/sales/mcpServers").await;
    assert_eq!(answer.headers["content-type"], "application/json");
    assert_eq!(answer.good(), expected);
    // Older clients read the address from the unique name.
    let mut older = expected;
    for entry in older["mcpServers"].as_array_mut().unwrap() {
        entry["mcpServerUniqueName"] = entry["url"].clone();
    }
    assert_eq!(api.get("/agents/sales/mcpServers").await.good(), older);
    assert_eq!(api.get("/mcp/servers?agentId=sales").await.good(), older);
    let nothing = json!({"mcpServers": [], "connectivityStatus": "Ready"});
    assert_eq!(api.get("/agents/v2/idle/mcpServers").await.good(), nothing);
    let twice = api
        .request(Method::GET, "/agents/v2/sales/mcpServers")
        .header("user-agent", "Agent365SDK/2.0.0 (Linux; Python 3.11.7; LangChain)")
        .header("x-ms-agentid", "x");
    assert_eq!(Answer::of(twice).await.status, 200);
}

#[tokio::test]
async fn the_public_address_is_configured_or_that_of_the_request() {
    let agents = Agents::start("public_url: \"https://tools.example.com/board/\"").await;
    let api = agents.server.api();
    let answer = api.get("/agents/v2/sales/mcpServers").await.good();
    let expected = "https://tools.example.com/board/mcp/agents/sales/servers/crm";
    assert_eq!(answer["mcpServers"][0]["url"], expected);
    let view = api.get("/api/v1/agents/sales").await.good();
    assert_eq!(view["platform_endpoint"], "https://tools.example.com/board");
    let agents = Agents::start("").await;
    let port = agents.server.address.port();
    let request = format!(
        "GET /agents/v2/sales/mcpServers HTTP/1.1\r\nHost: localhost:{port}\r\nConnection: close\r\n\r\n"
    );
    let (status, body) = agents.server.send_raw(&request).await;
    assert_eq!(status, 200);
    assert!(body.contains(&format!("http://localhost:{port}/mcp/agents/sales/servers/crm")));
}

#[tokio::test]
async fn an_agent_that_does_not_exist_is_a_problem() {
    let agents = Agents::start("").await;
    let api = agents.server.api();
    for path in ["/agents/v2/{}/mcpServers", "/agents/{}/mcpServers", "/mcp/servers?agentId={}"] {
        for (written, name) in [
            ("sale", "sale"),
            ("b%20t", "b t"),
            ("b%C3%B6t", "böt"),
            ("a%2Fb", "a/b"),
            ("..%2F..", "../.."),
            ("%00", "\0"),
        ] {
            let said = api.get(&path.replace("{}", written)).await.problem(404, "unknown_agent");
            assert_eq!(said, format!("there is no agent '{name}'"), "{path}");
        }
    }
    for path in [
        "/mcp/servers",
        "/mcp/servers?agentId=",
        "/mcp/servers?agentId=%20",
        "/agents/v2/%20/mcpServers",
        "/agents/v2//mcpServers",
    ] {
        let said = api.get(path).await.problem(400, "bad_request");
        assert!(said.contains("the agent id is blank"), "{path}: {said}");
    }
    api.get("/agents/v2/a/b/mcpServers").await.problem(404, "not_found");
    api.post("/agents/v2/sales/mcpServers", json!({})).await.problem(405, "method_not_allowed");
    for path in ["/api/v1/agents/sale", "/api/v1/agents/sale/frameworks/openai"] {
        api.get(path).await.problem(404, "unknown_agent");
    }
    let said = api
        .get("/api/v1/agents/sales/frameworks/langchain")
        .await
        .problem(404, "unknown_framework");
    assert!(said.contains("openai, semantic-kernel, agent-framework, azure-ai-foundry"), "{said}");
}

#[tokio::test]
async fn a_profile_with_keys_exists_for_those_keys_only() {
    let agents = Agents::start("").await;
    let writer = agents.server.api_of("writer-key", Role::Client).await;
    let other = agents.server.api_of("other", Role::Client).await;
    let operator = agents.server.api_of("operator", Role::Operator).await;
    let nobody = agents.server.api();
    let names = async |api: &Api| {
        let list = api.get("/api/v1/agents").await.good();
        let agents = list["agents"].as_array().unwrap().iter();
        agents.map(|agent| agent["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(&writer).await, ["sales", "writer", "idle"]);
    assert_eq!(names(&other).await, ["sales", "idle"]);
    assert_eq!(names(&operator).await, ["sales", "writer", "idle"]);
    for path in [
        "/agents/v2/writer/mcpServers",
        "/agents/writer/mcpServers",
        "/mcp/servers?agentId=writer",
        "/api/v1/agents/writer",
        "/api/v1/agents/writer/frameworks/openai",
    ] {
        writer.get(path).await.good();
        operator.get(path).await.good();
        other.get(path).await.problem(404, "unknown_agent");
        nobody.get(path).await.problem(401, "unauthorized");
    }
}

#[tokio::test]
async fn a_session_is_an_agent_of_its_owner() {
    let agents = Agents::start("").await;
    let owner = agents.server.api_of("owner", Role::Client).await;
    let other = agents.server.api_of("other", Role::Client).await;
    owner.new_session(json!({"id": "work", "title": "Work", "servers": ["mail"]})).await;
    let found = owner.get("/agents/v2/work/mcpServers").await.good();
    let base = owner.url.clone();
    assert_eq!(found["mcpServers"], json!([entry(&base, "work", "mail")]));
    let view = owner.get("/api/v1/agents/work").await.good();
    assert_eq!((&view["kind"], &view["description"]), (&json!("session"), &json!("Work")));
    other.get("/agents/v2/work/mcpServers").await.problem(404, "unknown_agent");
}

#[tokio::test]
async fn the_api_shows_agents_with_their_limits_and_servers() {
    let agents = Agents::start("").await;
    let api = agents.server.api();
    let list = api.get("/api/v1/agents").await.good();
    assert_eq!(
        list["agents"][0],
        json!({"name": "sales", "description": "Sells", "servers": ["crm", "down"], "tools": 1})
    );
    let base = api.url.clone();
    let view = api.get("/api/v1/agents/sales").await.good();
    assert_eq!(
        view,
        json!({
            "name": "sales",
            "kind": "profile",
            "description": "Sells",
            "limits": {"max_concurrent": 2, "timeout": "5s", "queue_timeout": null, "max_result_bytes": null},
            "platform_endpoint": base,
            "discovery_url": format!("{base}/agents/v2/sales/mcpServers"),
            "servers": [
                {"name": "crm", "url": format!("{base}/mcp/agents/sales/servers/crm"), "state": "ready", "connectivity": "Ready", "tools": 1},
                {"name": "down", "url": format!("{base}/mcp/agents/sales/servers/down"), "state": "unavailable", "connectivity": "Ready", "tools": 0},
            ],
        })
    );
    for framework in ["openai", "semantic-kernel", "agent-framework", "azure-ai-foundry"] {
        let path = format!("/api/v1/agents/sales/frameworks/{framework}");
        let rendered = api.get(&path).await.good();
        assert_eq!(rendered["framework"], framework);
        let text = rendered["config"].to_string();
        assert!(text.contains(&format!("{base}/mcp/agents/sales/servers/crm")), "{text}");
        assert!(text.contains("Bearer ${SWITCHBOARD_API_KEY}"), "{text}");
    }
}

#[tokio::test]
async fn a_reload_changes_the_agents() {
    let agents = Agents::start("").await;
    let api = agents.server.api();
    let sales = "/agents/v2/sales/mcpServers";
    assert_eq!(api.get(sales).await.status, 200);
    let renamed = agents.text.replace("name: sales", "name: market");
    agents.server.reload(&renamed).await;
    api.get(sales).await.problem(404, "unknown_agent");
    assert_eq!(api.get("/agents/v2/market/mcpServers").await.status, 200);
}

#[tokio::test]
async fn the_paths_of_agents_lead_to_the_mcp_server() {
    let server = ApiServer::without_board().await;
    let api = server.api();
    let of_agent =
        |agent: &str, server: &str| McpRoute::Agent { agent: agent.into(), server: server.into() };
    for (path, route) in [
        ("/mcp/agents/bot/servers/crm", of_agent("bot", "crm")),
        ("/mcp/agents/b%20t/servers/a%2Fb", of_agent("b t", "a/b")),
        ("/mcp/agents/b%C3%B6t/servers/crm", of_agent("böt", "crm")),
        ("/agents/servers/crm", McpRoute::Server("crm".into())),
        ("/agents/servers/a%20b", McpRoute::Server("a b".into())),
    ] {
        for method in [Method::POST, Method::GET, Method::DELETE] {
            server.mcp.0.lock().clear();
            let answer = api.send(method.clone(), path, None).await;
            assert_eq!(answer.status, 200, "{method} {path}");
            let reached = server.mcp.0.lock().first().map(|(route, _)| route.clone());
            assert_eq!(reached, Some(route.clone()), "{method} {path}");
        }
        let refused = api.send(Method::PUT, path, None).await;
        refused.problem(405, "method_not_allowed");
    }
}
