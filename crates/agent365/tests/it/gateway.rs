//! The list of an agent's servers from a gateway: requests, answers, and every failure by its text.

use std::time::Duration;

use pretty_assertions::assert_eq;
use serde_json::json;
use switchboard_agent365::{
    Environment, FoundServers, GatewayPath, MAX_BODY_BYTES, REQUEST_TIMEOUT, ToolOptions,
    ToolingClient, ToolingError, TurnContext, user_agent,
};
use switchboard_model::EgressPolicy;
use switchboard_outbound::HttpPool;
use switchboard_test_support::free_port;

use crate::recorder::{Recorder, Reply};

const TOKEN: &str = "s3cret-gateway-token";

fn environment(platform: &str) -> Environment {
    let platform = platform.to_owned();
    Environment::from_lookup(move |name| {
        (name == "MCP_PLATFORM_ENDPOINT").then(|| platform.clone())
    })
}

fn client(platform: &str) -> ToolingClient {
    ToolingClient::new(HttpPool::default(), environment(platform))
}

async fn list(client: &ToolingClient) -> Result<FoundServers, ToolingError> {
    client.list_tool_servers("app-id-123", TOKEN, &ToolOptions::default()).await
}

/// The text of the failure that this answer causes.
async fn failure(reply: Reply) -> String {
    let gateway = Recorder::always(reply).await;
    let error = list(&client(gateway.url())).await.unwrap_err();
    let text = error.to_string();
    assert!(!text.contains(TOKEN), "{text}");
    text
}

fn one_server() -> Reply {
    Reply::new(200, json!({"mcpServers": [{"mcpServerName": "mail"}]}).to_string())
}

#[tokio::test]
async fn a_request_has_the_path_and_the_headers_of_the_platform() {
    let gateway = Recorder::always(one_server()).await;
    let options = ToolOptions { orchestrator_name: Some("LangChain".to_owned()) };
    let client = client(gateway.url());
    let found = client.list_tool_servers("app-id-123", TOKEN, &options).await.unwrap();
    assert_eq!(found.servers[0].url.as_str(), format!("{}/agents/servers/mail", gateway.url()));
    let seen = gateway.take().remove(0);
    assert_eq!(
        (seen.method.as_str(), seen.path.as_str()),
        ("GET", "/agents/v2/app-id-123/mcpServers")
    );
    assert_eq!(seen.headers["authorization"], format!("Bearer {TOKEN}"));
    assert_eq!(seen.headers["user-agent"], user_agent(Some("LangChain")));
    assert_eq!(seen.headers["accept"], "*/*");
    assert_eq!(seen.headers["x-ms-correlation-id"].len(), 36);
    assert!(!seen.headers.contains_key("x-ms-agentid"), "an opaque token names no agent");
}

#[tokio::test]
async fn a_turn_gives_the_request_its_ids() {
    let gateway = Recorder::always(one_server()).await;
    let turn = TurnContext {
        message_id: Some("activity-1".to_owned()),
        agent_blueprint_id: Some("blueprint-1".to_owned()),
        ..TurnContext::default()
    };
    let client = client(gateway.url());
    let options = ToolOptions::default();
    client.list_tool_servers_in_turn("app", TOKEN, &options, &turn).await.unwrap();
    let seen = gateway.take().remove(0);
    assert_eq!(seen.headers["x-ms-correlation-id"], "activity-1");
    assert_eq!(seen.headers["x-ms-agentid"], "blueprint-1");
}

#[tokio::test]
async fn the_path_is_a_template() {
    let gateway = Recorder::always(one_server()).await;
    let path: GatewayPath = GatewayPath::QUERY.parse().unwrap();
    let client = client(gateway.url()).with_gateway_path(path);
    client.list_tool_servers("a b&c", TOKEN, &ToolOptions::default()).await.unwrap();
    assert_eq!(gateway.take()[0].path, "/mcp/servers?agentId=a%20b%26c");
}

#[tokio::test]
async fn a_token_with_bearer_in_it_is_not_doubled() {
    let gateway = Recorder::always(one_server()).await;
    let client = client(gateway.url());
    let token = format!("Bearer {TOKEN}");
    client.list_tool_servers("app", &token, &ToolOptions::default()).await.unwrap();
    assert_eq!(gateway.take()[0].headers["authorization"], token);
}

#[tokio::test]
async fn agentic_app_id_cannot_be_empty_or_none() {
    let gateway = Recorder::always(one_server()).await;
    for id in ["", " ", "\t"] {
        let client = client(gateway.url());
        let error = client.list_tool_servers(id, TOKEN, &ToolOptions::default()).await.unwrap_err();
        assert_eq!(error.to_string(), "agentic_app_id cannot be empty or None");
    }
    assert_eq!(gateway.take(), []);
}

#[tokio::test]
async fn auth_token_cannot_be_empty_or_none() {
    let gateway = Recorder::always(one_server()).await;
    for token in ["", " ", "Bearer \n"] {
        let client = client(gateway.url());
        let error =
            client.list_tool_servers("app", token, &ToolOptions::default()).await.unwrap_err();
        assert_eq!(error.to_string(), "auth_token cannot be empty or None", "{token:?}");
    }
    assert_eq!(gateway.take(), []);
}

#[tokio::test]
async fn a_status_is_told_with_its_body() {
    for (status, body) in [(401, "who?"), (404, ""), (500, "broken"), (503, "later"), (201, "[]")] {
        let expected = format!("Failed to read MCP servers from endpoint: HTTP {status}: {body}");
        assert_eq!(failure(Reply::new(status, body)).await, expected);
    }
    let none = "Failed to read MCP servers from endpoint: HTTP 204: ";
    assert_eq!(failure(Reply::new(204, "")).await, none);
    let nowhere = "Failed to read MCP servers from endpoint: HTTP 301: gone";
    assert_eq!(failure(Reply::new(301, "gone")).await, nowhere);
}

#[tokio::test]
async fn a_body_that_quotes_the_token_is_told_without_it() {
    let text = failure(Reply::new(403, format!("no Bearer {TOKEN} here"))).await;
    assert_eq!(text, "Failed to read MCP servers from endpoint: HTTP 403: no Bearer *** here");
    let long = failure(Reply::new(500, "x".repeat(1_000_000))).await;
    assert!(long.len() < 3_000 && long.ends_with('…'), "{}", long.len());
}

#[tokio::test]
async fn an_answer_that_is_no_json_is_told() {
    for body in ["<html>sign in</html>", "{\"mcpServers\": ["] {
        let text = failure(Reply::new(200, body)).await;
        let begin = "Failed to parse MCP server configuration response: ";
        assert!(text.starts_with(begin), "{text}");
    }
}

#[tokio::test]
async fn an_answer_of_another_shape_has_no_list() {
    for body in ["", "null", "{}", "{\"mcpServers\": 7}"] {
        let gateway = Recorder::always(Reply::new(200, body)).await;
        let found = list(&client(gateway.url())).await.unwrap();
        assert_eq!((found.servers.len(), found.is_list), (0, false), "{body}");
        let expected =
            "Unexpected gateway response format: expected a list or {\"mcpServers\": [...]}";
        assert_eq!(found.warnings, [expected], "{body}");
    }
}

#[tokio::test]
async fn the_bare_list_of_older_gateways_is_read() {
    let body = json!([{"mcpServerName": "mail", "mcpServerUniqueName": "https://mail.test/mcp"}]);
    let gateway = Recorder::always(Reply::new(200, body.to_string())).await;
    let found = list(&client(gateway.url())).await.unwrap();
    assert_eq!(found.servers[0].url.as_str(), "https://mail.test/mcp");
}

#[tokio::test]
async fn a_gateway_that_is_down_is_told() {
    let down = format!("http://127.0.0.1:{}", free_port());
    let text = list(&client(&down)).await.unwrap_err().to_string();
    let begin = "Failed to connect to MCP configuration endpoint: cannot connect";
    assert!(text.starts_with(begin), "{text}");
}

#[tokio::test]
async fn a_gateway_that_is_slow_is_given_up() {
    assert_eq!(REQUEST_TIMEOUT, Duration::from_secs(30), "the time without another one");
    let slow = Recorder::always(one_server().after(Duration::from_mins(1))).await;
    let client = client(slow.url()).with_timeout(Duration::from_millis(250));
    let text = list(&client).await.unwrap_err().to_string();
    assert_eq!(text, "Failed to read MCP servers from endpoint: no whole answer within 0.25 s");
}

#[tokio::test]
async fn a_redirect_to_another_host_is_refused_and_carries_nothing() {
    let other = Recorder::always(one_server()).await;
    for status in [301, 302, 303, 307, 308] {
        let target = format!("{}/agents/v2/app/mcpServers", other.url());
        let text = failure(Reply::new(status, "").header("location", target)).await;
        assert_eq!(
            text,
            format!(
                "Failed to read MCP servers from endpoint: HTTP {status}: redirects to {}, and the token is not for \
                 another host; set the address of the gateway to the new one if it moved",
                other.url()
            )
        );
    }
    assert_eq!(other.take(), []);
}

#[tokio::test]
async fn a_redirect_within_the_host_is_followed() {
    let gateway = Recorder::start(|seen| match seen.path.as_str() {
        "/moved" => one_server(),
        _ => Reply::new(307, "").header("location", "/moved"),
    })
    .await;
    let found = list(&client(gateway.url())).await.unwrap();
    assert_eq!(found.servers.len(), 1);
    assert_eq!(gateway.take().len(), 2);
}

#[tokio::test]
async fn an_answer_without_an_end_is_given_up() {
    let body = format!("[{}]", " ".repeat(MAX_BODY_BYTES));
    let text = failure(Reply::new(200, body)).await;
    assert_eq!(
        text,
        "Failed to read MCP servers from endpoint: the answer has more than 16777216 bytes"
    );
}

#[tokio::test]
async fn a_pool_that_is_guarded_refuses_this_machine() {
    let gateway = Recorder::always(one_server()).await;
    let pool = HttpPool::guarded(EgressPolicy::default());
    let client = ToolingClient::new(pool, environment(gateway.url()));
    let text = list(&client).await.unwrap_err().to_string();
    let begin =
        "Failed to connect to MCP configuration endpoint: the egress check refuses 127.0.0.1";
    assert!(text.starts_with(begin), "{text}");
    assert_eq!(gateway.take(), []);
}

#[tokio::test]
async fn ten_thousand_servers_are_listed() {
    let entries: Vec<_> =
        (0..10_000).map(|at| json!({"mcpServerName": format!("server-{at}")})).collect();
    let gateway =
        Recorder::always(Reply::new(200, json!({"mcpServers": entries}).to_string())).await;
    let found = list(&client(gateway.url())).await.unwrap();
    assert_eq!((found.servers.len(), found.problems.len()), (10_000, 0));
}
