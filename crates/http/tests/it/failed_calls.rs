//! The problem of each kind of failed tool call: its status, its kind and its text.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use switchboard_auth::Role;
use switchboard_test_support::{Reply, ScriptedServer, Tool};
use tokio::task::JoinSet;

use crate::api_server::{Answer, Api, ApiServer, scripted, until, yaml, yaml_with};

async fn board() -> (ScriptedServer, ApiServer) {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
    let one = scripted([
        Tool::echo("echo").schema(schema),
        Tool::new("fails").replies(Reply::ToolError("no".into())),
        Tool::new("breaks").replies(Reply::RpcError { code: -32000, message: "broken".into() }),
        Tool::new("hangs").replies(Reply::Hang),
        Tool::new("silent").replies(Reply::Hang),
        Tool::new("busy").replies(Reply::Hang),
    ])
    .await;
    let tools = [
        "{name: hangs, timeout: 300ms}",
        "{name: silent, timeout: 20s, inactivity_timeout: 300ms}",
        "{name: busy, max_instances: 1, timeout: 20s, queue_timeout: 300ms}",
    ];
    let server = ApiServer::start(&yaml(&tools, &[("one", &one)])).await;
    (one, server)
}

async fn call(api: &Api, tool: &str, arguments: Value) -> Answer {
    api.post(&format!("/api/v1/tools/{tool}/call"), json!({ "arguments": arguments })).await
}

/// Keeps a call running until the returned set is dropped.
async fn hold(api: &Api, server: &ScriptedServer, tool: &'static str) -> JoinSet<()> {
    let api = api.clone();
    let mut holding = JoinSet::new();
    holding.spawn(async move { drop(call(&api, tool, json!({})).await) });
    until(|| server.stats().running_calls == 1).await;
    holding
}

#[tokio::test]
async fn every_kind_of_failed_call_has_its_status_and_its_problem() {
    let (one, server) = board().await;
    let api = server.api();
    let _holding = hold(&api, &one, "busy").await;
    for (tool, arguments, status, kind, detail) in [
        ("one.eko", json!({}), 404, "unknown_tool", "there is no tool 'one.eko'"),
        (
            "one.echo",
            json!({"n": "x"}),
            422,
            "invalid_arguments",
            "the arguments of tool 'echo' of MCP server 'one' do not fit: argument `n`: \"x\" is not of type \"integer\"",
        ),
        (
            "one.echo",
            json!([1]),
            422,
            "invalid_arguments",
            "the arguments of tool 'echo' of MCP server 'one' must be a JSON object, not a list",
        ),
        (
            "one.busy",
            json!({}),
            503,
            "queue_timeout",
            "tool 'busy' of MCP server 'one' waited longer than its queue_timeout of 300ms and was not run: \
             all 1 of its max_instances are in use",
        ),
        (
            "one.hangs",
            json!({}),
            504,
            "timeout",
            "tool 'hangs' of MCP server 'one' was running longer than its timeout of 300ms and was cancelled",
        ),
        (
            "one.silent",
            json!({}),
            504,
            "inactivity_timeout",
            "tool 'silent' of MCP server 'one' was running but gave no sign of life for its inactivity_timeout \
             of 300ms and was cancelled",
        ),
        (
            "one.breaks",
            json!({}),
            502,
            "upstream_error",
            "tool 'breaks' of MCP server 'one' gave no result: ",
        ),
    ] {
        let answer = call(&api, tool, arguments).await;
        let id = answer.body["call"].as_str().map(str::to_owned);
        let said = answer.problem(status, kind);
        assert!(said.starts_with(detail), "{said}");
        // Every failure is recorded under the id that the problem names.
        let recorded = api.get("/api/v1/calls?limit=1").await.good();
        assert_eq!(recorded["calls"][0]["id"].as_str(), id.as_deref(), "{tool}: {recorded:#}");
    }
    one.stop().await;
    call(&api, "one.echo", json!({})).await.problem(503, "unavailable");
}

#[tokio::test]
async fn an_error_that_a_tool_reports_is_a_result_and_no_problem() {
    let (_one, server) = board().await;
    let failed = call(&server.api(), "one.fails", json!({})).await.good();
    let outcome = (&failed["outcome"], &failed["result"]["isError"]);
    assert_eq!(outcome, (&json!("tool_error"), &json!(true)));
}

#[tokio::test]
async fn an_unknown_tool_has_a_hint_for_operators_and_none_that_names_hidden_tools() {
    let (one, hidden) =
        (scripted([Tool::echo("echo")]).await, scripted([Tool::echo("secret")]).await);
    let config = yaml(&[], &[("one", &one), ("hidden", &hidden)]);
    let server =
        ApiServer::start(&format!("{config}  gateway: {{deny_toolsets: [hidden]}}\n")).await;
    let operator = server.api_of("operator", Role::Operator).await;
    let client = server.api_of("client", Role::Client).await;
    let hint = async |api: &Api, tool: &str| {
        let answer = call(api, tool, json!({})).await;
        let hint = answer.body["hint"].as_str().unwrap_or_default().to_owned();
        answer.problem(404, "unknown_tool");
        hint
    };
    assert_eq!(hint(&operator, "hidden.secre").await, "did you mean 'hidden.secret'?");
    assert_eq!(hint(&client, "hidden.secre").await, "");
    // A hidden tool is answered like one that does not exist.
    let there = call(&client, "hidden.secret", json!({})).await.problem(404, "unknown_tool");
    let not_there = call(&client, "hidden.secrex", json!({})).await.problem(404, "unknown_tool");
    assert_eq!(there.replace("secret", "secrex"), not_there);
    assert_eq!(hidden.stats().total_calls(), 0);
}

#[tokio::test]
async fn a_call_that_waits_for_the_slots_of_the_board_says_so() {
    let one = scripted([Tool::new("hangs").replies(Reply::Hang), Tool::echo("echo")]).await;
    let tools = ["{name: echo, queue_timeout: 300ms}"];
    let server = ApiServer::start(&yaml_with("max_concurrent: 1", &tools, &[("one", &one)])).await;
    let api = server.api();
    let holding = hold(&api, &one, "hangs").await;
    let said = call(&api, "echo", json!({})).await.problem(503, "queue_timeout");
    assert_eq!(
        said,
        "tool 'echo' of MCP server 'one' waited longer than its queue_timeout of 300ms and was not run: all 1 \
         slots of max_concurrent are in use"
    );
    assert_eq!(one.stats().total_calls(), 1, "nothing was sent");
    // A client that closes its connection cancels its call.
    drop(holding);
    until(|| one.stats().running_calls == 0).await;
    call(&api, "echo", json!({})).await.good();
}
