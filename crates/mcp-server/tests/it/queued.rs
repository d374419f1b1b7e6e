//! A queued call runs only if its caller is still permitted to make it when its slot becomes free.

use std::path::Path;
use std::time::Duration;

use pretty_assertions::assert_eq;
use serde_json::json;
use switchboard_config::{ConfigInput, SourceFile, load};
use switchboard_test_support::{ScriptedServer, Tool};

use crate::support::{World, until};

/// One server whose tool runs once at a time.
async fn world(server: &ScriptedServer) -> World {
    let world = World::of(&[("one", server)]).await;
    let text = format!(
        "switchboard:\n  gateway: {{exposure: dynamic}}\n  toolbox:\n    mcps:\n      - {{name: one, url: \"{}\", \
         mode: dynamic, default_tool_config: {{max_instances: 1, timeout: 1m, queue_timeout: 1m}}}}\n",
        server.url()
    );
    let file = SourceFile { name: "test.yaml", directory: Path::new("."), text: &text };
    let read_secret = |_: &Path| Err(std::io::ErrorKind::NotFound.into());
    let loaded = load(&ConfigInput {
        file: Some(file),
        env: &[],
        read_secret: &read_secret,
        read_keyring: None,
    });
    world.board.apply(loaded.unwrap_or_else(|error| panic!("{error}")).plan).await.unwrap();
    world
}

/// Calls a busy tool, sends `meanwhile`, and checks the result of the call that waited.
async fn check(tool: &str, meanwhile: (&str, serde_json::Value), said: Option<&str>) {
    let slow = Tool::echo("slow").sleeps(60_000);
    let server = ScriptedServer::builder().tools([slow]).start().await;
    let world = world(&server).await;
    let session = world.open(json!({})).await;
    let switch = async |meta: &str| {
        let arguments = json!({"toolsetName": "one"});
        session
            .ask("tools/call", json!({"name": meta, "arguments": arguments}))
            .await
            .result()
            .await
    };
    switch("enable_toolset").await;
    let arguments = match tool {
        "call_tool" => json!({"name": "one__slow", "arguments": {}}),
        _ => json!({}),
    };
    let call = || {
        let params = json!({"name": tool, "arguments": arguments});
        async { session.ask("tools/call", params).await.text().await }
    };
    let mut running = Box::pin(call());
    tokio::select! {
        answer = &mut running => panic!("{answer}"),
        () = until(|| server.stats().running_calls == 1) => {}
    }
    let mut waiting = Box::pin(call());
    for _ in 0..100 {
        assert!(futures::poll!(&mut waiting).is_pending());
        tokio::task::yield_now().await;
    }
    let (method, params) = meanwhile;
    session.ask(method, params).await.result().await;
    drop(running);
    match said {
        Some(said) => {
            let answer = waiting.await;
            assert!(answer.contains(said), "{answer}");
            assert_eq!(server.stats().total_calls(), 1);
        }
        None => {
            tokio::select! {
                answer = &mut waiting => panic!("{answer}"),
                () = until(|| server.stats().total_calls() == 2) => {}
            }
        }
    }
    world.board.shutdown(Duration::ZERO).await;
}

#[tokio::test]
async fn a_tool_that_is_switched_off_meanwhile_is_not_called() {
    let disable = json!({"name": "disable_toolset", "arguments": {"toolsetName": "one"}});
    let said = "the tool was switched off while the call waited for a slot";
    check("one__slow", ("tools/call", disable.clone()), Some(said)).await;
    // `call_tool` also reaches tools that are not listed, so the call is still permitted.
    check("call_tool", ("tools/call", disable), None).await;
    check("one__slow", ("tools/list", json!({})), None).await;
}
