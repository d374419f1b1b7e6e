//! Arguments that the configuration declares, fixes or hides.

use pretty_assertions::assert_eq;
use serde_json::json;
use switchboard_model::CallErrorKind;
use switchboard_runtime::Contradiction;
use switchboard_test_support::Tool;

use crate::support::{board, call, dynamic, end, failure, names, server, text, with, yaml};

fn search() -> Tool {
    Tool::echo("search").schema(json!({
        "type": "object",
        "properties": {
            "query": {"type": "string"},
            "limit": {"type": "integer", "maximum": 10},
            "tenant": {"type": "string"},
        },
        "required": ["query", "tenant"],
        "additionalProperties": false,
    }))
}

#[tokio::test]
async fn a_fixed_argument_is_sent_and_never_shown_and_cannot_be_given() {
    let crm = server([search()]).await;
    let entry = "{name: search, arguments: [{name: tenant, value: blue}, {name: limit, hidden: true, default: 5}]}";
    let board = board(&yaml(&[entry], &[dynamic("crm", &crm)])).await;
    let catalog = board.catalog();
    let tool = catalog.resolve("crm.search").unwrap();
    let schema = tool.descriptor.input_schema.parse();
    assert_eq!(schema["properties"], json!({"query": {"type": "string"}}));
    assert_eq!(schema["required"], json!(["query"]));

    let sent = text(&board, "search", json!({"query": "x"})).await;
    assert_eq!(sent, r#"{"tenant":"blue","limit":5,"query":"x"}"#);
    for (name, value) in [("tenant", json!("red")), ("tenant", json!("blue")), ("limit", json!(1))]
    {
        let error = failure(&board, "search", json!({"query": "x", name: value})).await;
        assert_eq!(error.kind, CallErrorKind::InvalidArguments);
        let expected = format!(
            "the arguments of tool 'search' of MCP server 'crm' do not fit: argument `{name}` is set by the configuration \
             and cannot be given; call the tool without it"
        );
        assert_eq!(error.message, expected);
    }
    let unknown = failure(&board, "search", json!({"query": "x", "tenat": 1})).await;
    assert!(!unknown.message.contains("tenant"), "a hidden name was shown: {unknown}");
    assert_eq!(crm.stats().total_calls(), 1);
    end(&board).await;
}

#[tokio::test]
async fn a_declared_default_is_sent_when_the_caller_gives_none() {
    let crm = server([search()]).await;
    let entry = "{name: search, arguments: [{name: tenant, default: blue}]}";
    let board = board(&yaml(&[entry], &[dynamic("crm", &crm)])).await;
    let sent = text(&board, "search", json!({"query": "x"})).await;
    assert_eq!(sent, r#"{"tenant":"blue","query":"x"}"#);
    let sent = text(&board, "search", json!({"query": "x", "tenant": "red"})).await;
    assert_eq!(sent, r#"{"query":"x","tenant":"red"}"#);
    end(&board).await;
}

#[tokio::test]
async fn a_declaration_that_contradicts_the_server_costs_only_its_tool() {
    let crm = server([search(), Tool::echo("other")]).await;
    for (argument, reason) in [
        (
            "{name: limit, value: 11}",
            "value: argument `limit` has a fixed value that does not fit the schema of the server: the value is greater \
             than the maximum of 10",
        ),
        (
            "{name: limit, hidden: true, default: 11}",
            "default: argument `limit` has a hidden default that does not fit the schema of the server: the value is \
             greater than the maximum of 10",
        ),
        (
            "{name: tenant, hidden: true}",
            "hidden: argument `tenant` is hidden and has no default, but the server requires it: give it a `value`",
        ),
    ] {
        let entry = format!("{{name: search, arguments: [{argument}]}}");
        let board = board(&yaml(&[&entry], &[dynamic("crm", &crm)])).await;
        assert_eq!(names(&board), ["crm.other"]);
        let snapshot = board.snapshot();
        let [(server, tool)] = snapshot.quarantined() else {
            panic!("{:?}", snapshot.quarantined())
        };
        assert_eq!((server.as_str(), tool.tool.as_deref()), ("crm", Some("search")));
        let place = "toolbox.tools[0].arguments[0]";
        let expected = format!("its entry in the configuration is wrong: {place}.{reason}");
        assert_eq!(tool.reason, expected);
        let found: Vec<_> =
            board.contradictions(&board.plan()).iter().map(Contradiction::path).collect();
        let key = reason.split(':').next().unwrap();
        assert_eq!(found, [format!("{place}.{key}")]);
        end(&board).await;
    }
}

#[tokio::test]
async fn a_server_or_a_tool_can_be_left_unchecked() {
    let crm = server([search(), Tool::echo("other").schema(json!({"required": ["a"]}))]).await;
    let unchecked = with(&dynamic("crm", &crm), "validate_arguments: false");
    let entry = "{name: other, validate_arguments: true}";
    let first = board(&yaml(&[entry], &[unchecked])).await;
    assert_eq!(text(&first, "search", json!({"limit": 11})).await, r#"{"limit":11}"#);
    assert_eq!(failure(&first, "other", json!({})).await.kind, CallErrorKind::InvalidArguments);
    end(&first).await;

    let entry =
        "{name: search, validate_arguments: false, arguments: [{name: tenant, value: blue}]}";
    let second = board(&yaml(&[entry], &[dynamic("crm", &crm)])).await;
    assert_eq!(text(&second, "search", json!({})).await, r#"{"tenant":"blue"}"#);
    // A fixed argument stays fixed.
    let error = failure(&second, "search", json!({"tenant": "red"})).await;
    assert_eq!(error.kind, CallErrorKind::InvalidArguments);
    let report = call(&second, "search", json!([1])).await;
    assert!(report.result.is_err(), "arguments that are no object are refused all the same");
    end(&second).await;
}
