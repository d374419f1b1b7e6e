//! Content checks of tool calls, whoever makes them.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use pretty_assertions::assert_eq;
use serde_json::json;
use switchboard_model::{CallErrorKind, Caller, ContentVerdict, Face};
use switchboard_runtime::{Board, CallRequest, CheckInput, ContentCheck, MAX_CHECKED_BYTES};
use switchboard_test_support::{Reply, ThreatAnswer, ThreatEndpoint, ThreatRequest, Tool};
use tokio::task::JoinSet;

use crate::support::{
    answer, board, call, dynamic, end, failure, plan, records, request, server, spawn_call, until,
    with, yaml,
};

const BLOCK: &str = "content_check: {before_call: block, after_call: block}";

/// The configuration with this endpoint and further settings of `threat_protection`.
fn protected(yaml: &str, endpoint: &ThreatEndpoint, more: &str) -> String {
    format!("{yaml}  threat_protection: {{endpoint: \"{}\"{more}}}\n", endpoint.url())
}

fn refuses_evil(request: &ThreatRequest) -> ThreatAnswer {
    let is_evil = request.content().contains("evil");
    if is_evil { ThreatAnswer::Refuse("it is evil") } else { ThreatAnswer::Allow }
}

#[tokio::test]
async fn a_refused_call_is_not_made_and_a_refused_result_is_not_given() {
    let endpoint = ThreatEndpoint::judging(refuses_evil).await;
    let poisoned = Tool::new("news").replies(Reply::Text("evil news".into()));
    let crm = server([Tool::new("get"), poisoned]).await;
    let text = protected(&yaml(&[], &[with(&dynamic("crm", &crm), BLOCK)]), &endpoint, "");
    let board = board(&text).await;

    let refused = failure(&board, "get", json!({"id": "evil"})).await;
    assert_eq!(refused.kind, CallErrorKind::Blocked);
    let text = "tool 'get' of MCP server 'crm' was not called: the content check refused it: it is evil (code 112)";
    assert_eq!(refused.message, text);
    assert_eq!(crm.stats().total_calls(), 0);

    let withheld = failure(&board, "news", json!({})).await;
    let text = "tool 'news' of MCP server 'crm' has run, but its result is withheld: the content check refused it: it is evil (code 112)";
    assert_eq!((withheld.kind, &*withheld.message), (CallErrorKind::Blocked, text));
    assert_eq!(crm.stats().total_calls(), 1);

    let report = call(&board, "get", json!({"id": "good\nid"})).await;
    assert!(report.result.is_ok());
    let requests = endpoint.requests();
    let hooks: Vec<_> = requests.iter().map(|request| &*request.hook).collect();
    assert_eq!(hooks, ["before_tool", "before_tool", "after_tool", "before_tool", "after_tool"]);
    let before = &requests[3];
    let text = "Call of the tool crm.get with the arguments {\"id\": \"good\nid\"}";
    assert_eq!((before.content(), before.user_message()), (text, text));
    assert_eq!(before.body["messageId"], json!(report.id.0));
    assert!(requests[4].content().starts_with("Result of the tool crm.get: {"));

    let outcomes: Vec<_> = records(&board, 3).await.iter().map(|it| it.outcome.as_str()).collect();
    assert_eq!(outcomes, ["ok", "blocked", "blocked"]);
    end(&board).await;
}

#[tokio::test]
async fn a_tool_entry_decides_over_its_server_and_the_server_over_the_defaults() {
    let endpoint = ThreatEndpoint::start().await;
    let crm = server([Tool::new("get"), Tool::new("put"), Tool::new("list")]).await;
    let other = server([Tool::new("see")]).await;
    let text = crate::support::yaml_with(
        "defaults: {content_check: {before_call: block}}",
        &[
            "{name: get, content_check: {before_call: 'off'}}",
            "{name: put, content_check: {after_call: block}}",
        ],
        &[
            with(&dynamic("crm", &crm), "content_check: {before_call: observe}"),
            dynamic("other", &other),
        ],
    );
    let board = board(&protected(&text, &endpoint, "")).await;
    let modes = |name: &str| {
        let catalog = board.catalog();
        let modes = catalog.resolve(name).unwrap().content_check;
        (modes.before_call.as_str(), modes.after_call.as_str())
    };
    assert_eq!(modes("crm.get"), ("off", "off"));
    assert_eq!(modes("crm.put"), ("observe", "block"));
    assert_eq!(modes("crm.list"), ("observe", "off"));
    assert_eq!(modes("other.see"), ("block", "off"));
    end(&board).await;
}

#[tokio::test]
async fn the_hooks_of_turns_concern_calls_of_models_only() {
    let endpoint = ThreatEndpoint::start().await;
    let crm = server([Tool::new("get")]).await;
    let text = protected(&yaml(&[], &[dynamic("crm", &crm)]), &endpoint, ", before_tool: block");
    let board = board(&text).await;
    for face in [Face::Cli, Face::Http, Face::Mcp, Face::Turn] {
        let caller = Arc::new(Caller::local(face));
        let request = CallRequest { caller, ..request("get", json!({})) };
        answer(&board.call(request).await);
    }
    assert_eq!(endpoint.hooks(), ["before_tool"]);
    end(&board).await;
}

#[tokio::test]
async fn a_check_that_waits_holds_no_slot() {
    let endpoint = ThreatEndpoint::judging(|request| {
        if request.content().contains("slow") { ThreatAnswer::Hang } else { ThreatAnswer::Allow }
    })
    .await;
    let crm = server([Tool::new("get")]).await;
    let entry = format!("{{name: get, max_instances: 1, {BLOCK}}}");
    let text = protected(&yaml(&[&entry], &[dynamic("crm", &crm)]), &endpoint, ", timeout: 60s");
    let board = board(&text).await;
    let mut tasks = JoinSet::new();
    spawn_call(&mut tasks, &board, request("get", json!({"id": "slow"})));
    until(|| endpoint.requests().len() == 1).await;
    answer(&call(&board, "get", json!({"id": 1})).await);
    tasks.shutdown().await;
    let outcomes: Vec<_> = records(&board, 2).await.iter().map(|it| it.outcome.as_str()).collect();
    assert!(outcomes.contains(&"cancelled") && outcomes.contains(&"ok"), "{outcomes:?}");
    assert_eq!(crm.stats().total_calls(), 1);
    end(&board).await;
}

#[tokio::test]
async fn fixed_values_and_secrets_stay_here_and_binary_data_is_left_out() {
    let endpoint = ThreatEndpoint::start().await;
    let image = json!({"content": [{"type": "image", "mimeType": "image/png", "data": "A".repeat(2 << 20)}]});
    let crm = server([Tool::new("get"), Tool::new("picture").replies(Reply::Result(image))]).await;
    let entry = with(&dynamic("crm", &crm), "headers: {x-key: s3cret-header}");
    let tool = "{name: get, arguments: [{name: tenant, value: s3cret-tenant}]}";
    let text = protected(&yaml(&[tool], &[with(&entry, BLOCK)]), &endpoint, "");
    let board = board(&text).await;
    // The server echoes its arguments, with the fixed value among them.
    let echoed = answer(&call(&board, "get", json!({"id": "a s3cret-header"})).await);
    assert!(echoed.contains("s3cret-tenant"), "{echoed}");
    call(&board, "picture", json!({})).await.result.unwrap();
    let received = endpoint.received();
    assert!(!received.contains("s3cret") && !received.contains("AAAA"), "{received}");
    assert!(received.contains("2097152 bytes of base64"), "{received}");
    end(&board).await;
}

#[tokio::test]
async fn what_is_too_large_to_be_checked_has_no_verdict() {
    let endpoint = ThreatEndpoint::start().await;
    let huge = Tool::new("huge").replies(Reply::Huge(MAX_CHECKED_BYTES + 1));
    let crm = server([huge]).await;
    let text = protected(&yaml(&[], &[with(&dynamic("crm", &crm), BLOCK)]), &endpoint, "");
    let board = board(&text).await;
    let withheld = failure(&board, "huge", json!({})).await.message;
    assert!(withheld.contains("and at most 1048576 are checked"), "{withheld}");
    assert_eq!(endpoint.hooks(), ["before_tool"]);
    end(&board).await;
}

#[tokio::test]
async fn a_reload_changes_the_checks() {
    let endpoint = ThreatEndpoint::judging(|_| ThreatAnswer::Refuse("no")).await;
    let crm = server([Tool::new("get")]).await;
    let text = protected(&yaml(&[], &[with(&dynamic("crm", &crm), BLOCK)]), &endpoint, "");
    let board = board(&text).await;
    assert_eq!(failure(&board, "get", json!({})).await.kind, CallErrorKind::Blocked);
    board.apply(plan(&yaml(&[], &[dynamic("crm", &crm)]))).await.unwrap();
    answer(&call(&board, "get", json!({})).await);
    let other = ThreatEndpoint::start().await;
    let text = protected(&yaml(&[], &[with(&dynamic("crm", &crm), BLOCK)]), &other, "");
    board.apply(plan(&text)).await.unwrap();
    answer(&call(&board, "get", json!({})).await);
    assert_eq!((endpoint.requests().len(), other.requests().len()), (1, 2));
    end(&board).await;
}

/// A check of another program, which never answers.
#[derive(Debug)]
struct Silent;

impl ContentCheck for Silent {
    fn check(&self, _: CheckInput) -> BoxFuture<'static, ContentVerdict> {
        std::future::pending().boxed()
    }
}

#[tokio::test]
async fn a_program_can_bring_its_own_check_and_its_time_is_limited() {
    let endpoint = ThreatEndpoint::start().await;
    let crm = server([Tool::new("get")]).await;
    let servers = [with(&dynamic("crm", &crm), BLOCK)];
    let text = protected(&yaml(&[], &servers), &endpoint, ", timeout: 100ms");
    let board: Arc<Board> = board(&text).await;
    board.set_content_check(Arc::new(Silent));
    let failed = tokio::time::timeout(Duration::from_secs(5), failure(&board, "get", json!({})));
    let text = "tool 'get' of MCP server 'crm' was not called: the content check gave no verdict, and `threat_protection.on_failure` is `closed`: it took longer than its timeout of 100ms";
    assert_eq!(failed.await.unwrap().message, text);
    assert!(endpoint.requests().is_empty());
    end(&board).await;
}
