//! `calls`: the records of calls and their stored results.

use pretty_assertions::assert_eq;
use serde_json::json;
use switchboard_test_support::{Reply, Tool, wait_until};

use crate::support::{Home, PATIENCE, assert_says, dynamic, server, yaml};

#[tokio::test]
async fn calls_tell_what_was_called_and_large_results_come_back_whole() {
    let text: Vec<_> = (0..300_000).map(|n| format!("{n:07}")).collect();
    let text = text.join(" ");
    let one = server([
        Tool::new("large").replies(Reply::Text(text.clone())),
        Tool::new("fails").replies(Reply::ToolError("no".into())),
    ])
    .await;
    let home = Home::new(yaml(&[], &[dynamic("one", &one.url())]));
    assert_says!(home.line("calls").expect(0).stderr, @"no calls are recorded");
    let serve = home.serve().await;
    let call = home.run(&["tool", "call", "one.large", "--json"]).expect(0).json();
    let preview = call["result"].to_string();
    assert!(preview.len() < 1 << 20, "{} bytes were answered inline", preview.len());
    let handle = call["result_handle"].as_str().unwrap();
    assert!(preview.contains(handle), "the preview says where the whole is");
    let there = serve.answer("one.large", json!({})).await["result_handle"].clone();
    for (handle, more) in [(handle, vec![]), (there.as_str().unwrap(), vec!["--url", &serve.url])] {
        let whole =
            home.run(&[&["calls", "--result", handle][..], &more].concat()).expect(0).json();
        assert_eq!(whole["content"][0]["text"].as_str().unwrap(), text, "every byte comes back");
    }
    home.run(&["tool", "call", "one.fails", "--url", &serve.url]).expect(3);
    serve.call("nothing", json!({})).await;
    let records = wait_until(PATIENCE, async || {
        let records =
            home.line("calls --json").expect(0).json()["calls"].as_array().unwrap().clone();
        (records.len() == 4).then_some(records)
    })
    .await;
    let shown: Vec<_> = records
        .iter()
        .map(|call| format!("{} {} {}", call["requested"], call["outcome"], call["face"]))
        .collect();
    assert_eq!(
        shown,
        [
            r#""nothing" "unknown_tool" "http""#,
            r#""one.fails" "tool_error" "http""#,
            r#""one.large" "ok" "http""#,
            r#""one.large" "ok" "cli""#,
        ]
    );
    for more in ["", &format!("--url {}", serve.url)] {
        let count = |line: &str| {
            let list = home.line(&format!("calls --json {line} {more}")).expect(0).json();
            list["calls"].as_array().unwrap().len()
        };
        assert_eq!(count("--limit 3"), 3);
        assert_eq!((count("--tool one.large"), count("--tool large")), (2, 2));
        assert_eq!(count("--outcome tool_error"), 1);
        assert_eq!(count("--outcome ok --tool one.fails"), 0);
        assert_eq!((count("--server one"), count("--server two")), (3, 0));
        assert_eq!((count("--since 1h"), count("--since 2100-01-01T00:00:00Z")), (4, 0));
        assert_eq!((count("--since 2024-02-29"), count("--since 2100-01-01")), (4, 0));
        let told = |line: &str| home.line(&format!("calls {line} {more}")).expect(0).stderr;
        let nearest = "no calls are recorded of a tool 'larg'; did you mean 'one.large'?\n";
        assert_eq!(told("--tool larg"), nearest);
        let nearest = "no calls are recorded of a server 'on'; did you mean 'one'?\n";
        assert_eq!(told("--server on"), nearest);
        assert_eq!(told("--tool large --outcome timeout"), "no recorded call matches\n");
        assert_eq!(count("--session none"), 0);
        let failed = home.line(&format!("calls --outcome tool_error {more}")).expect(0).stdout;
        assert!(failed.contains("ERROR") && failed.trim_end().ends_with(" no"), "{failed}");
    }
    let table = home.line("calls -n 1").expect(0).stdout;
    assert!(table.contains("nothing (unknown)") && table.contains("unknown_tool"), "{table}");
}

#[tokio::test]
async fn a_call_of_an_unknown_tool_leaves_a_record_whoever_makes_it() {
    let (one, hidden) = (server([Tool::echo("echo")]).await, server([Tool::echo("secret")]).await);
    let servers = [dynamic("one", &one.url()), dynamic("hidden", &hidden.url())];
    let home = Home::new(yaml(&[], &servers) + "  gateway: {deny_toolsets: [hidden]}\n");
    home.line("tool call one.nope --arg a=1").expect(2);
    let [client, operator] = ["client", "operator"].map(|role| {
        let key = home.line(&format!("key add {role} --role {role}")).expect(0).stdout;
        Home::empty().with_variable("SWITCHBOARD_API_KEY", key.trim())
    });
    let serve = home.serve().await;
    let call = |who: &Home, tool: &str| {
        who.line(&format!("tool call {tool} --arg a=1 --url {}", serve.url))
    };
    // A list that changed without a word is read again before a call is refused.
    one.set_tools([Tool::echo("echo"), Tool::echo("fresh")]);
    call(&client, "one.fresh").expect(0);
    let refused = call(&client, "one.nope").expect(2).stderr;
    assert_eq!(
        call(&client, "hidden.secret").expect(2).stderr.replace("hidden.secret", "one.nope"),
        refused
    );
    call(&operator, "one.nope").expect(2);
    let list = operator.line(&format!("calls --json --url {}", serve.url)).expect(0).json();
    let shown = list["calls"].as_array().unwrap().iter().map(|call| {
        let words =
            ["requested", "tool", "outcome", "face"].map(|key| call[key].as_str().unwrap_or("-"));
        words.join(" ")
    });
    let shown: Vec<_> = shown.collect();
    assert_eq!(
        shown,
        [
            "one.nope - unknown_tool http",
            "hidden.secret - unknown_tool http",
            "one.nope - unknown_tool http",
            "one.fresh one.fresh ok http",
            "one.nope - unknown_tool cli",
        ]
    );
}
