//! Tests of one call: its name, its arguments, its result, its record.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use pretty_assertions::assert_eq;
use serde_json::{Map, Value, json};
use switchboard_model::{
    CallError, CallErrorKind, CallOutcome, Caller, CanonicalName, ClientInfo, Face, Identity, Role,
    ToolDescriptor, ToolResult,
};
use switchboard_runtime::{Board, BoardOptions, LocalTool, LocalTools, RefusedCall};
use switchboard_test_support::{Reply, Tool};
use tracing::Level;

use crate::support::{
    Logs, answer, board, call, dynamic, end, failure, names, options, plan, records, request,
    revision, server, started, status, text, with, yaml,
};

fn typed(name: &str) -> Tool {
    Tool::echo(name).schema(json!({
        "type": "object",
        "properties": {"id": {"type": "integer"}},
        "required": ["id"],
        "additionalProperties": false,
    }))
}

/// A caller with a key, through an MCP client.
fn inspector(face: Face) -> Caller {
    let client = ClientInfo { name: Some("inspector".into()), version: Some("1".into()) };
    let identity = Arc::new(Identity::of("key:1".into()));
    Caller { client, ..Caller::new("key:1".into(), identity, Role::Client, face) }
}

#[tokio::test]
async fn arguments_that_do_not_fit_never_reach_the_server() {
    let crm = server([typed("get")]).await;
    let board = board(&yaml(&[], &[dynamic("crm", &crm)])).await;
    for (arguments, named) in [
        (json!({}), "id"),
        (json!({"id": "seven"}), "id"),
        (json!({"id": 7, "extra": 1}), "extra"),
        (json!(null), "id"),
        (json!([7]), "a JSON object, not a list"),
        (json!("7"), "a JSON object, not a string"),
    ] {
        let error = failure(&board, "get", arguments.clone()).await;
        assert_eq!(error.kind, CallErrorKind::InvalidArguments, "{arguments}");
        assert!(error.message.contains("tool 'get' of MCP server 'crm'"), "{error}");
        assert!(error.message.contains(named), "{arguments}: {error}");
    }
    assert_eq!(crm.stats().total_calls(), 0);
    assert_eq!(text(&board, "get", json!({"id": 7})).await, r#"{"id":7}"#);
    end(&board).await;
}

#[tokio::test]
async fn the_record_of_refused_arguments_names_the_argument_and_the_rule_but_no_value() {
    let crm = server([typed("get")]).await;
    let board = board(&yaml(&[], &[dynamic("crm", &crm)])).await;
    let rows = [
        (
            json!({"id": "s3cret"}),
            "do not fit: argument `id`: the value is not of type \"integer\"",
        ),
        (json!({}), "do not fit: missing required argument `id`"),
        (
            json!({"id": 1, "idd": "s3cret"}),
            "do not fit: unknown argument `idd`; did you mean `id`?",
        ),
        (json!(["s3cret"]), "must be a JSON object, not a list"),
    ];
    for (at, (arguments, told)) in rows.into_iter().enumerate() {
        failure(&board, "get", arguments).await;
        let record = records(&board, at + 1).await.swap_remove(0);
        assert_eq!(record.message, Some(format!("the arguments {told}")));
        assert!(!format!("{record:?}").contains("s3cret"), "{record:?}");
    }
    end(&board).await;
}

#[tokio::test]
async fn a_call_that_a_face_refuses_leaves_a_record_and_no_label() {
    let metrics = switchboard_telemetry::install_metrics();
    let crm = server([Tool::echo("get")]).await;
    let board = board(&yaml(&[], &[dynamic("crm", &crm)])).await;
    let error = CallError::new(CallErrorKind::UnknownTool, "there is no tool 'made_up' here");
    let refused = |requested: &'static str| RefusedCall {
        requested,
        tool: None,
        arguments: r#"{"a":"s3cret"}"#,
        caller: Arc::new(inspector(Face::Mcp).in_session("work".into(), "me".into())),
        error: &error,
    };
    let id = board.record_refused(refused("made_up")).await;
    let record = records(&board, 1).await.swap_remove(0);
    assert_eq!((&record.id, record.requested.as_str(), &record.tool), (&id, "made_up", &None));
    assert_eq!(record.outcome, CallOutcome::Failed(CallErrorKind::UnknownTool));
    assert_eq!(record.message.as_deref(), Some("there is no tool 'made_up' here"));
    assert_eq!((record.session.as_deref(), record.face), (Some("work"), Face::Mcp));
    assert_eq!(record.caller.client.as_deref(), Some("inspector"));
    assert!(!format!("{record:?}").contains("s3cret"), "{record:?}");
    // A tool that the caller knows is counted by its name; what the caller wrote is not.
    let catalog = board.catalog();
    let get = Some(&**catalog.resolve("crm.get").unwrap());
    board.record_refused(RefusedCall { tool: get, ..refused("crm__get") }).await;
    let record = records(&board, 2).await.swap_remove(0);
    assert_eq!(record.tool.as_ref().map(CanonicalName::as_str), Some("crm.get"));
    let page = metrics.render();
    assert!(page.contains(r#"server="crm",tool="get",outcome="unknown_tool""#), "{page}");
    assert!(!page.contains("made_up") && !page.contains("crm__get"), "{page}");
    end(&board).await;
}

#[tokio::test]
async fn declared_arguments_are_what_is_checked() {
    let crm = server([Tool::echo("get")]).await;
    let entry =
        "{name: get, arguments: [{name: id, type: integer, description: d, required: true}]}";
    let board = board(&yaml(&[entry], &[dynamic("crm", &crm)])).await;
    let error = failure(&board, "get", json!({})).await;
    assert_eq!(error.kind, CallErrorKind::InvalidArguments, "{error}");
    assert_eq!(text(&board, "get", json!({"id": 1})).await, r#"{"id":1}"#);
    end(&board).await;
}

#[tokio::test]
async fn no_arguments_are_an_empty_object() {
    let crm = server([Tool::echo("ping")]).await;
    let board = board(&yaml(&[], &[dynamic("crm", &crm)])).await;
    assert_eq!(text(&board, "ping", Value::Null).await, "{}");
    assert_eq!(crm.stats().calls[0].params["arguments"], json!({}));
    end(&board).await;
}

#[tokio::test]
async fn an_unknown_tool_is_answered_with_the_nearest_names() {
    let crm = server([Tool::echo("get_customer")]).await;
    let board = board(&yaml(&[], &[dynamic("crm", &crm)])).await;
    let error = failure(&board, "get_custmer", json!({})).await;
    assert_eq!(error.kind, CallErrorKind::UnknownTool);
    assert_eq!(error.message, "there is no tool 'get_custmer'");
    assert_eq!(error.hint().as_deref(), Some("did you mean 'crm.get_customer'?"));
    let hint = failure(&board, "zzz", json!({})).await.hint().unwrap();
    assert_eq!(hint, "`switchboard tool list` shows all tools");
    let record = &records(&board, 2).await[1];
    assert_eq!(
        (record.requested.as_str(), &record.tool, record.outcome),
        ("get_custmer", &None, CallOutcome::Failed(CallErrorKind::UnknownTool))
    );
    end(&board).await;
}

#[tokio::test]
async fn what_the_server_answers_is_passed_on_and_told_apart() {
    let rpc = Reply::RpcError { code: -32050, message: "no budget left".into() };
    let whole = json!({
        "content": [{"type": "text", "text": "t"}, {"type": "image", "data": "AA==", "mimeType": "image/png"}],
        "structuredContent": {"deep": [1, {"x": null}]},
        "_meta": {"k": "v"},
    });
    let crm = server([
        Tool::new("fails").replies(Reply::ToolError("disk full".into())),
        Tool::new("refuses").replies(rpc),
        Tool::new("breaks").replies(Reply::CloseMidBody),
        Tool::new("whole").replies(Reply::Result(whole.clone())),
        Tool::new("odd").replies(Reply::UnknownContent),
        Tool::new("asks").replies(Reply::Result(json!({"resultType": "input_required"}))),
    ])
    .await;
    let board = board(&yaml(&[], &[dynamic("crm", &crm)])).await;
    let report = call(&board, "fails", json!({})).await;
    assert!(report.result.as_ref().unwrap().is_error);
    assert_eq!(answer(&report), "disk full");
    let error = failure(&board, "refuses", json!({})).await;
    assert_eq!(error.kind, CallErrorKind::Upstream);
    assert!(error.message.contains("no budget left (JSON-RPC error -32050)"), "{error}");
    let result = call(&board, "whole", json!({})).await.result.unwrap();
    assert_eq!(result.content.len(), 2);
    assert_eq!(result.structured, Some(whole["structuredContent"].clone()));
    assert_eq!(result.extra["_meta"]["k"], "v");
    let odd = call(&board, "odd", json!({})).await.result.unwrap();
    assert_eq!(odd.content[0]["type"], "hologram");
    let error = failure(&board, "asks", json!({})).await;
    assert_eq!(error.kind, CallErrorKind::Upstream);
    assert!(error.message.contains("asks for more input"), "{error}");
    let error = failure(&board, "breaks", json!({})).await;
    assert!(matches!(error.kind, CallErrorKind::Unavailable | CallErrorKind::Upstream), "{error}");
    end(&board).await;
}

#[tokio::test]
async fn a_record_says_everything_about_its_call_but_the_arguments() {
    let crm =
        server([typed("get"), Tool::new("fails").replies(Reply::ToolError("no".into()))]).await;
    let board = board(&yaml(&[], &[dynamic("crm", &crm)])).await;
    let secret = json!({"id": 4711});
    let report = board
        .call(switchboard_runtime::CallRequest {
            check: None,
            caller: Arc::new(inspector(Face::Http)),
            ..request("get", secret.clone())
        })
        .await;
    let failed = call(&board, "fails", json!({})).await;
    call(&board, "crm.get", secret).await;
    let kept = records(&board, 3).await;
    let first = kept.iter().find(|record| record.id == report.id).unwrap();
    let refused = kept.iter().find(|record| record.id == failed.id).unwrap();
    assert_eq!((refused.outcome, refused.message.as_deref()), (CallOutcome::ToolError, Some("no")));
    assert_eq!(first.face, Face::Http);
    assert_eq!(first.caller.principal.as_deref(), Some("key:1"));
    assert_eq!(first.caller.client.as_deref(), Some("inspector"));
    assert_eq!(first.tool.as_ref().unwrap().as_str(), "crm.get");
    assert_eq!((first.requested.as_str(), first.outcome), ("get", CallOutcome::Ok));
    assert_eq!(first.revision, revision(&board));
    assert!(first.result_bytes > 0 && !first.run.is_zero());
    assert_eq!((first.wait, first.run), (report.wait, report.run));
    assert!(!format!("{kept:?}").contains("4711"), "only a digest is kept");
    let outcomes: Vec<_> = kept.iter().map(|record| record.outcome).collect();
    assert_eq!(outcomes, [CallOutcome::Ok, CallOutcome::ToolError, CallOutcome::Ok]);
    assert_eq!(kept[0].argument_digest, first.argument_digest, "same arguments, same digest");
    assert_ne!(kept[1].argument_digest, first.argument_digest);
    end(&board).await;
}

#[tokio::test]
async fn a_large_result_is_answered_with_a_handle_to_the_whole() {
    let crm = server([Tool::new("huge").replies(Reply::Huge(300_000)), Tool::echo("small")]).await;
    let entry = "{name: huge, max_result_bytes: 4096}";
    let board = board(&yaml(&[entry], &[dynamic("crm", &crm)])).await;
    let report = call(&board, "huge", json!({})).await;
    let handle = report.whole_result.clone().expect("a handle");
    let shown = answer(&report);
    assert!(shown.contains(&handle.0) && shown.contains("4096"), "{shown}");
    assert!(shown.len() < 4096, "{} bytes", shown.len());
    let meta = &report.result.as_ref().unwrap().extra["_meta"]["switchboard/result"];
    assert_eq!(meta["handle"], json!(handle.0));

    let kept = board.store().read_result(&handle.0, 0, u64::MAX).await.unwrap().unwrap();
    assert_eq!(meta["bytes"], json!(kept.total));
    let whole: Value = serde_json::from_slice(&kept.bytes).unwrap();
    assert_eq!(whole["content"][0]["text"].as_str().unwrap().len(), 300_000);
    let record = &records(&board, 1).await[0];
    assert_eq!(record.result_handle.as_deref(), Some(handle.0.as_str()));
    assert_eq!(record.outcome, CallOutcome::Ok);
    assert!(call(&board, "small", json!({})).await.whole_result.is_none());
    end(&board).await;
}

#[tokio::test]
async fn usage_and_the_other_metrics_are_on_the_page() {
    let page = switchboard_telemetry::install_metrics();
    let crm = server([Tool::echo("measured_tool")]).await;
    let config = yaml(&["{name: sum_numbers}"], &[dynamic("measured", &crm)]);
    let board = board(&config).await;
    for _ in 0..3 {
        text(&board, "measured_tool", json!({})).await;
    }
    text(&board, "sum_numbers", json!({"a": 1, "b": 1})).await;
    let page = page.render();
    for line in [
        "# TYPE tool_usage summary",
        "tool_usage_count{tool_name=\"measured_tool\"} 3",
        "tool_usage_sum{tool_name=\"measured_tool\"} ",
        "tool_usage{tool_name=\"measured_tool\",quantile=\"0.5\"} ",
        "switchboard_tool_calls_total{server=\"measured\",tool=\"measured_tool\",outcome=\"ok\"} 3",
        "switchboard_server_up{server=\"measured\"} 1",
        "tool_usage_count{tool_name=\"sum_numbers\"}",
    ] {
        assert!(page.contains(line), "{line} is not in\n{page}");
    }
    end(&board).await;
}

/// Panics where its argument says.
#[derive(Debug)]
struct Faulty;

impl LocalTool for Faulty {
    fn descriptor(&self) -> ToolDescriptor {
        ToolDescriptor::named("faulty")
    }

    fn run(&self, arguments: Map<String, Value>) -> BoxFuture<'static, ToolResult> {
        assert!(arguments.get("when") != Some(&json!("at once")), "scripted");
        async move {
            assert!(arguments.get("when") != Some(&json!("later")), "scripted");
            ToolResult::text("fine")
        }
        .boxed()
    }
}

#[tokio::test]
async fn a_local_tool_that_panics_is_an_error_and_frees_its_slot() {
    let local_tools = LocalTools::built_in().with(Faulty);
    let options = BoardOptions { local_tools, ..options().await };
    let config = yaml(&["{name: faulty, max_instances: 1, queue_timeout: 1s}"], &[]);
    let board = started(Board::start(plan(&config), options, |_| {}).await);
    for when in ["later", "at once", "later", "at once"] {
        let error = failure(&board, "faulty", json!({"when": when})).await;
        assert_eq!(error.kind, CallErrorKind::Internal, "{when}");
        assert!(error.message.contains("tool 'faulty' (local tool)"), "{error}");
    }
    assert_eq!(text(&board, "faulty", json!({})).await, "fine");
    let outcomes: Vec<_> = records(&board, 5).await.iter().map(|record| record.outcome).collect();
    let internal = CallOutcome::Failed(CallErrorKind::Internal);
    assert_eq!(outcomes, [CallOutcome::Ok, internal, internal, internal, internal]);
    end(&board).await;
}

#[tokio::test]
async fn a_tool_that_a_policy_hides_is_unknown() {
    let crm = server([Tool::echo("read"), Tool::echo("drop_all"), Tool::echo("off")]).await;
    let entry = with(&dynamic("crm", &crm), "tool_denylist: [\"drop_*\"]");
    let board = board(&yaml(&["{name: off, enabled: false}"], &[entry])).await;
    for hidden in ["drop_all", "crm.drop_all", "off"] {
        let error = failure(&board, hidden, json!({})).await;
        assert_eq!(error.kind, CallErrorKind::UnknownTool, "{hidden}");
    }
    assert_eq!(crm.stats().total_calls(), 0);
    end(&board).await;
}

#[tokio::test]
async fn a_repaired_tool_is_called_under_the_schema_that_its_server_gave() {
    let odd = |name: &str, schema: Value| {
        Tool::listed_as(name, json!({"name": name, "inputSchema": schema}))
    };
    let never = json!({"properties": {"a": false, "b": {"type": "integer"}}});
    let server = server([odd("never", never), odd("broken", json!({"type": "string"}))]).await;
    let logs = Logs::listen();
    let board = board(&yaml(&[], &[dynamic("odd", &server)])).await;
    assert_eq!(names(&board), ["odd.never"]);
    assert_eq!(text(&board, "odd.never", json!({"b": 1})).await, r#"{"b":1}"#);
    let refused = failure(&board, "odd.never", json!({"a": 1})).await;
    assert_eq!(refused.kind, CallErrorKind::InvalidArguments);
    let tool = board.catalog().tools()[0].clone();
    let listed =
        json!({"properties": {"a": {"not": {}}, "b": {"type": "integer"}}, "type": "object"});
    assert_eq!(tool.descriptor.shown_schema().parse(), listed);
    let quarantined = &status(&board, "odd").quarantined;
    assert_eq!(
        quarantined.iter().map(ToString::to_string).collect::<Vec<_>>(),
        ["'broken': its inputSchema is of type \"string\", and arguments are always an object"]
    );
    logs.assert_once(
        Level::WARN,
        "Tool 'broken' of MCP server 'odd' is quarantined: its inputSchema is of type \"string\", and arguments are \
         always an object",
    );
    logs.assert_once(
        Level::WARN,
        "Tool 'never' of MCP server 'odd' is listed in a repaired form, because strict clients refuse its definition: \
         inputSchema: `type: object` was added",
    );
    end(&board).await;
}

#[tokio::test]
async fn a_text_that_reads_as_what_is_asked_for_is_sent_as_it_was_written() {
    let server = server([typed("get")]).await;
    let board = board(&yaml(&["{name: sum_numbers}"], &[dynamic("crm", &server)])).await;
    assert_eq!(text(&board, "crm.get", json!({"id": "7"})).await, r#"{"id":"7"}"#);
    let refused = failure(&board, "crm.get", json!({"id": "seven"})).await;
    assert_eq!(refused.kind, CallErrorKind::InvalidArguments);
    assert_eq!(server.stats().total_calls(), 1);
    // Nobody converts for a local tool.
    assert_eq!(text(&board, "sum_numbers", json!({"a": "1", "b": 2})).await, "3");
    end(&board).await;
}
