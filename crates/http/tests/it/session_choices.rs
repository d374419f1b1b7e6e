//! What a session could have and why, what a change would do, copies, and pages of sessions.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use switchboard_auth::Role;

use crate::api_server::{Api, TwoServers};

/// The tools of a session with what decided: `name reason toolsets`, those that are off with a `-` before them.
async fn standings(api: &Api, session: &str) -> Vec<String> {
    let list = api.get(&format!("{session}/tools?all=true")).await.good();
    let shown = list["tools"].as_array().unwrap().iter().map(|tool| {
        let sets = tool["because"]["toolsets"].as_array().unwrap().iter();
        let sets: Vec<_> = sets.map(|set| set.as_str().unwrap()).collect();
        let sign = if tool["enabled"] == true { "" } else { "-" };
        let (name, reason) = (&tool["canonical_name"], &tool["because"]["reason"]);
        format!("{sign}{} {} {}", name.as_str().unwrap(), reason.as_str().unwrap(), sets.join(","))
    });
    let mut shown: Vec<_> = shown.map(|it| it.trim().to_owned()).collect();
    shown.sort();
    shown
}

#[tokio::test]
async fn each_tool_says_why_a_session_has_it_or_not() {
    let board = TwoServers::start("").await;
    let api = board.server.api();
    let work = api.new_session(json!({"servers": ["shop"]})).await;
    api.patch(
        &work,
        json!({"toolsets": {"look": true, "buy": false}, "tools": {"shop.slow": false}}),
    )
    .await
    .good();
    assert_eq!(
        standings(&api, &work).await,
        [
            "-notes.read binding",
            "-notes.write binding",
            "-shop.order toolset buy",
            "-shop.price toolset buy",
            "-shop.slow tool",
            "shop.find default",
        ]
    );
    let enabled = |list: &Value| {
        let tools = list["tools"].as_array().unwrap().iter();
        tools.filter(|tool| tool["enabled"] != false).count()
    };
    let all = api.get(&format!("{work}/tools?all=true")).await.good();
    let own = api.get(&format!("{work}/tools")).await.good();
    assert_eq!(enabled(&all), own["tools"].as_array().unwrap().len());
    assert!(own["tools"][0].get("enabled").is_none(), "{own:#}");
    api.patch(&work, json!({"allow": {"gemini": ["find"]}})).await.good();
    let all = api.get(&format!("{work}/tools?all=true")).await.good();
    let price = all["tools"].as_array().unwrap().iter();
    let price = price.into_iter().find(|tool| tool["canonical_name"] == "shop.price").unwrap();
    assert_eq!(price["because"]["not_for"], json!(["gemini"]));
}

#[tokio::test]
async fn what_policy_hides_is_shown_to_operators_with_the_reason() {
    let board = TwoServers::start("deny_toolsets: [buy]").await;
    let operator = board.server.api_of("operator", Role::Operator).await;
    let client = board.server.api_of("client", Role::Client).await;
    let work = client.new_session(json!({})).await;
    let hidden =
        |all: Vec<String>| all.into_iter().filter(|it| it.starts_with('-')).collect::<Vec<_>>();
    assert_eq!(hidden(standings(&client, &work).await), Vec::<String>::new());
    let seen = hidden(standings(&operator, &work).await);
    assert_eq!(seen, ["-shop.order policy", "-shop.price policy"]);
    let list = operator.get("/api/v1/tools?all=true").await.good();
    let hidden = list["hidden"].as_array().unwrap();
    let reason = |name: &str| {
        let found = hidden.iter().find(|it| it["name"] == name);
        found.map_or("", |it| it["reason"].as_str().unwrap())
    };
    let expected = [
        ("shop.price", "denied"),
        ("shop.order", "denied"),
        ("local.sum_numbers", "not_chosen"),
        ("shop.find", ""),
    ];
    assert_eq!(expected.map(|(name, _)| (name, reason(name))), expected);
    let list = client.get("/api/v1/tools?all=true").await.good();
    assert_eq!(list.get("hidden"), None, "{list:#}");
}

#[tokio::test]
async fn a_preview_changes_nothing_and_says_what_the_change_does() {
    let board = TwoServers::start("").await;
    let api = board.server.api();
    let work = api.new_session(json!({"id": "work"})).await;
    let before = api.get(&work).await.good();
    let change = json!({"servers": ["shop"], "tools": {"shop.slow": false}});
    let path = format!("{work}/preview?providers=anthropic,mcp");
    let preview = api.post(&path, change.clone()).await.good();
    assert_eq!(preview["removed"], json!(["shop__slow", "notes__read", "notes__write"]));
    assert_eq!((&preview["added"], &preview["tools_revision"]), (&json!([]), &json!(1)));
    let tokens = preview["tokens"].as_object().unwrap();
    assert_eq!(tokens.keys().collect::<Vec<_>>(), ["anthropic", "mcp"]);
    for (provider, cost) in tokens {
        assert!(cost["after"].as_u64() < cost["before"].as_u64(), "{provider}: {cost}");
    }
    assert_eq!(api.get(&work).await.good(), before, "nothing has changed");
    api.patch(&work, change).await.good();
    let events = api.get(&format!("{work}/render?provider=anthropic")).await.good();
    assert_eq!(events["tokens"]["total"], tokens["anthropic"]["after"], "as the preview said");
    let stale = json!({"tools_revision": 1, "title": "x"});
    api.post(&format!("{work}/preview"), stale).await.problem(409, "stale_revision");
    let refused = api.post(&format!("{work}/preview"), json!({"toolsets": {"none": true}})).await;
    assert_eq!(refused.body["errors"][0]["path"], "/toolsets/none");
    refused.problem(422, "bad_request");
    api.post(&format!("{work}/preview?providers=none"), json!({}))
        .await
        .problem(400, "bad_request");
}

#[tokio::test]
async fn a_copy_has_the_settings_of_its_original() {
    let board = TwoServers::start("").await;
    let api = board.server.api();
    let settings = json!({
        "id": "work", "title": "Work", "provider": "demo", "model": "demo", "servers": ["shop"],
        "toolsets": {"buy": false}, "tools": {"shop.slow": false}, "allow": {"gemini": ["find"]},
    });
    let work = api.new_session(settings).await;
    let copy = api.post(&format!("{work}/clone"), json!({"id": "copy"})).await;
    assert_eq!(copy.status, 201, "{:#}", copy.body);
    let original = api.get(&work).await.good();
    let copy = api.get("/api/v1/sessions/copy").await.good();
    for member in [
        "title",
        "provider",
        "model",
        "servers",
        "disabled_toolsets",
        "enabled_toolsets",
        "tools",
        "allow",
    ] {
        assert_eq!(copy[member], original[member], "{member}");
    }
    api.post(&format!("{work}/clone"), json!({"id": "copy"})).await.problem(409, "session_exists");
    let titled = api.post(&format!("{work}/clone"), json!({"title": "Other"})).await.good();
    assert_eq!(titled["title"], "Other");
}

#[tokio::test]
async fn sessions_are_found_by_kind_and_text_and_listed_in_pages() {
    let board = TwoServers::start("").await;
    let api = board.server.api();
    for (id, title) in [("a", "Report"), ("b", "Mail"), ("c", "Old report"), ("d", "Notes")] {
        api.new_session(json!({"id": id, "title": title})).await;
    }
    let check = async |query: &str, expected: &[&str]| {
        let list = api.get(&format!("/api/v1/sessions{query}")).await.good();
        let ids = list["sessions"].as_array().unwrap().iter();
        let ids: Vec<_> = ids.map(|session| session["id"].as_str().unwrap()).collect();
        assert_eq!(ids, expected, "{query}");
    };
    check("", &["a", "b", "c", "d"]).await;
    check("?q=REPORT", &["a", "c"]).await;
    check("?kind=endpoint&limit=2", &["c", "d"]).await;
    check("?limit=2&before=c", &["a", "b"]).await;
    check("?limit=2&before=a", &[]).await;
    check("?kind=client", &[]).await;
    for wrong in ["?limit=0", "?limit=1001", "?kind=chat", "?order=up"] {
        api.get(&format!("/api/v1/sessions{wrong}")).await.problem(400, "bad_request");
    }
    let turn =
        api.post("/api/v1/sessions/a/turns", json!({"id": "t", "message": "/say hi"})).await.good();
    assert_eq!((&turn["provider"], &turn["tools_revision"]), (&json!("demo"), &json!(1)));
    assert!(turn["started_at_ms"].as_i64().unwrap() > 0, "{turn:#}");
    assert_eq!(api.get("/api/v1/sessions/a").await.good()["running_turn"], Value::Null);
}
