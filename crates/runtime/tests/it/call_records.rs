//! What a record says about who called and by which policy, and which contents it keeps.

use std::sync::Arc;

use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use switchboard_model::{CallRecord, Caller, ClientInfo, Face, Identity, Role};
use switchboard_runtime::{Board, CallRequest};
use switchboard_test_support::{Reply, Tool};

use crate::support::{board, call, dynamic, end, plan, records, request, server, with, yaml};

async fn last(board: &Board, count: usize) -> CallRecord {
    records(board, count).await.swap_remove(0)
}

#[tokio::test]
async fn a_record_says_who_called_and_what_admitted_the_tool() {
    let crm = server([Tool::echo("get"), Tool::echo("put")]).await;
    let config = |timeout: &str| {
        yaml(&[&format!("{{name: get, timeout: {timeout}}}")], &[dynamic("crm", &crm)])
    };
    let board = board(&config("5s")).await;
    let identity = Identity::of_key("1", &"laptop".into(), Some("anna"));
    let caller = Caller {
        client: ClientInfo { name: Some("inspector".into()), version: Some("1.2".into()) },
        agent: Some("invoicing".into()),
        ..Caller::new("key:1".into(), Arc::new(identity), Role::Operator, Face::Mcp)
    };
    let caller = Arc::new(caller.in_session("work".into(), "key:2".into()));
    board.call(CallRequest { caller, ..request("get", json!({})) }).await;
    let first = last(&board, 1).await;
    let who = &first.caller;
    let texts = [
        &who.principal,
        &who.person,
        &who.owner,
        &who.key,
        &who.client,
        &who.client_version,
        &who.agent,
        &first.session,
    ];
    assert_eq!(
        texts.map(|text| text.as_deref().unwrap_or("-")),
        ["key:1", "user:anna", "key:2", "laptop", "inspector", "1.2", "invoicing", "work"]
    );
    let policy = |record: &CallRecord| {
        let policy = record.policy.clone().unwrap();
        let word = |word: Option<std::borrow::Cow<'static, str>>| word.unwrap_or_default();
        (word(policy.configured), word(policy.mode), policy.digest)
    };
    let (configured, mode, digest) = policy(&first);
    assert_eq!((&*configured, &*mode, digest.len()), ("merged", "dynamic", 16));
    call(&board, "put", json!({})).await;
    let second = last(&board, 2).await;
    assert_eq!(policy(&second), ("default".into(), "dynamic".into(), digest.clone()));
    call(&board, "none", json!({})).await;
    let unknown = last(&board, 3).await;
    assert_eq!(policy(&unknown), ("".into(), "".into(), digest.clone()), "the policy refused it");
    board.apply(plan(&config("6s"))).await.unwrap();
    call(&board, "get", json!({})).await;
    assert_ne!(policy(&last(&board, 4).await).2, digest, "another configuration decided");
    board.apply(plan(&config("5s"))).await.unwrap();
    call(&board, "get", json!({})).await;
    assert_eq!(policy(&last(&board, 5).await).2, digest, "the first configuration decided again");
    end(&board).await;
}

#[tokio::test]
async fn contents_are_recorded_where_the_configuration_says_so() {
    let crm = server(["a", "b", "c"].map(Tool::echo)).await;
    let wiki = server([Tool::echo("d")]).await;
    let tools =
        ["{name: a, record: {results: false}}", "{name: crm.b, record: {arguments: false}}"];
    let recorded = with(&dynamic("crm", &crm), "record: {arguments: true, results: true}");
    let board = board(&yaml(&tools, &[recorded, dynamic("wiki", &wiki)])).await;
    for (at, (tool, keeps)) in
        [("a", (true, false)), ("b", (false, true)), ("c", (true, true)), ("d", (false, false))]
            .into_iter()
            .enumerate()
    {
        call(&board, tool, json!({"x": tool})).await;
        let record = last(&board, at + 1).await;
        assert_eq!((record.arguments.is_some(), record.result.is_some()), keeps, "{record:?}");
        if let Some(arguments) = record.arguments {
            assert_eq!(arguments.text, format!(r#"{{"x":"{tool}"}}"#));
        }
        if let Some(result) = record.result {
            let result: Value = serde_json::from_str(&result.text).unwrap();
            assert_eq!(result["structuredContent"], json!({"x": tool}));
        }
    }
    end(&board).await;
}

#[tokio::test]
async fn what_is_recorded_has_no_secret_and_is_cut() {
    let fixed = "{name: get, arguments: [{name: key, type: string, value: f1xed-s3cret}], \
        record: {arguments: true, results: true}}";
    let fails = "{name: fails, record: {results: true}}";
    let failing = Tool::new("fails").replies(Reply::ToolError(
        "refused h3ader-s3cret and eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln".into(),
    ));
    let crm = server([Tool::echo("get"), failing]).await;
    let entry = with(&dynamic("crm", &crm), "headers: {X-Key: h3ader-s3cret}");
    let board = board(&yaml(&[fixed, fails], &[entry])).await;
    call(&board, "get", json!({"x": "my h3ader-s3cret, sbk_abcdefghijklmnopqrstuvwxyz"})).await;
    let record = last(&board, 1).await;
    assert_eq!(record.arguments.as_ref().unwrap().text, r#"{"x":"my ***, ***"}"#);
    let result = record.result.as_ref().unwrap();
    assert!(result.text.contains(r#""key":"***""#), "the fixed value came back: {}", result.text);
    call(&board, "fails", json!({})).await;
    let failed = last(&board, 2).await;
    assert_eq!(failed.message.as_deref(), Some("refused *** and ***"));
    call(&board, "get", json!({"x": "y".repeat(100_000)})).await;
    let long = last(&board, 3).await.arguments.unwrap();
    assert!(long.is_cut && long.text.len() == 8192 && long.bytes > 100_000, "{}", long.bytes);
    assert!(!format!("{:?}", records(&board, 3).await).contains("s3cret"));
    end(&board).await;
}

#[tokio::test]
async fn the_oldest_records_go_when_there_are_more_than_configured() {
    let crm = server([Tool::echo("get")]).await;
    let config = yaml(&[], &[dynamic("crm", &crm)]) + "  records: {max_count: 100}\n";
    let board = board(&config).await;
    for _ in 0..310 {
        call(&board, "get", json!({})).await;
        board.flush_records().await;
    }
    let kept = records(&board, 1).await.len();
    assert!((100..=210).contains(&kept), "{kept} records are kept");
    end(&board).await;
}
