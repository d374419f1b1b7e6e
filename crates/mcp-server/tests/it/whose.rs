//! Messages of a server reach only the client they belong to, and messages of a client only the server concerned.

use futures::future::{BoxFuture, FutureExt as _};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use switchboard_test_support::{ScriptedServer, ScriptedServerBuilder, Tool};

use crate::support::{Reading, World, until};

const LIST_CHANGED: &str = "notifications/tools/list_changed";

/// The first message of a call during which the server sends a request while another call runs; `None` when the server
/// gets an error instead.
async fn asked_beside(
    server: &ScriptedServer,
    mut running: BoxFuture<'_, Reading>,
    asking: BoxFuture<'_, Reading>,
) -> Option<Value> {
    let is_refused = || {
        let stats = server.stats();
        let mut heard = stats.requests.iter().map(|seen| &seen.body);
        heard.any(|body| body["id"] == "question-1" && body["error"].is_object())
    };
    tokio::select! {
        _ = &mut running => panic!("it runs for longer"),
        () = until(|| server.stats().running_calls == 1) => {}
    }
    tokio::select! {
        _ = &mut running => panic!("it runs for longer"),
        mut asked = asking => asked.next().await,
        () = until(is_refused) => None,
    }
}

/// Over HTTP+SSE, a server's request does not say which call it belongs to.
#[tokio::test]
async fn a_question_that_names_no_call_is_asked_only_while_one_client_uses_the_server() {
    let able = json!({"elicitation": {}});
    let call = |tool: &str| json!({"name": tool, "arguments": {}});
    for (users, is_asked) in
        [("one legacy client", true), ("two of them", false), ("two modern requests", false)]
    {
        let tools = [Tool::new("asks").asks().sleeps(60_000), Tool::new("slow").sleeps(60_000)];
        let server = ScriptedServer::builder().sse_transport().tools(tools).start().await;
        let world = World::of(&[("one", &server)]).await;
        let (a, b) = (world.open(able.clone()).await, world.open(able.clone()).await);
        let modern = |tool: &str| world.modern("tools/call", call(tool), json!({})).boxed();
        let asked = match users {
            "one legacy client" => {
                asked_beside(&server, a.call("one__slow").boxed(), a.call("one__asks").boxed())
                    .await
            }
            "two of them" => {
                asked_beside(&server, a.call("one__slow").boxed(), b.call("one__asks").boxed())
                    .await
            }
            _ => asked_beside(&server, modern("one__slow"), modern("one__asks")).await,
        };
        assert_eq!(asked.is_some(), is_asked, "{users}: {asked:?}");
        let method = asked.map(|asked| asked["method"].clone());
        assert!(method.is_none_or(|method| method == "elicitation/create"), "{users}");
    }
}

#[tokio::test]
async fn a_log_message_that_belongs_to_no_call_is_told_to_nobody() {
    let builder = ScriptedServer::builder().legacy().tools([Tool::new("t")]).logging();
    let server = builder.start().await;
    let world = World::of(&[("one", &server)]).await;
    let session = world.open(json!({})).await;
    session.ask("logging/setLevel", json!({"level": "debug"})).await.result().await;
    let mut stream = session.listen().await;
    until(|| server.open_streams() == 1).await;
    assert_eq!(server.log("somebody's secret").await, 1);
    server.set_tools_and_notify([Tool::new("u")]).await;
    assert_eq!(stream.next().await.unwrap()["method"], LIST_CHANGED);
}

#[tokio::test]
async fn what_a_client_adds_goes_to_the_server_and_what_the_protocol_says_of_it_does_not() {
    for era in [ScriptedServerBuilder::legacy, ScriptedServerBuilder::modern] {
        let server = era(ScriptedServer::builder()).tools([Tool::new("t")]).start().await;
        let world = World::of(&[("one", &server)]).await;
        let session = world.open(json!({})).await;
        let mut meta = json!({"example.com/trace": {"id": 7}, "progressToken": "mine"});
        let mut call = json!({"name": "one__t", "arguments": {"n": 1}, "x-mine": [1]});
        call["_meta"] = meta.clone();
        session.ask("tools/call", call.clone()).await.result().await;
        call["arguments"]["n"] = json!(2);
        meta["io.modelcontextprotocol/clientInfo"] = json!({"name": "a client", "version": "1"});
        world.modern("tools/call", call, meta).await.result().await;
        let calls = server.stats().calls;
        assert_eq!(calls.len(), 2);
        for called in calls {
            let params = &called.params;
            assert_eq!(params["x-mine"], json!([1]), "{params}");
            assert_eq!(params["_meta"]["example.com/trace"], json!({"id": 7}), "{params}");
            let text = params.to_string();
            assert!(!text.contains(r#""mine""#), "the token of another hop: {text}");
            assert!(!text.contains("a client"), "{text}");
        }
    }
}
