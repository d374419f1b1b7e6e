//! The log level and the resource subscriptions that servers are told.

use futures::FutureExt as _;
use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use switchboard_test_support::{Fault, ScriptedServer, Stage, Tool};

use crate::support::{World, plan, until};

/// A session-era server that logs and has a resource `NAME://r`.
async fn server(name: &str) -> ScriptedServer {
    let builder = ScriptedServer::builder().legacy().tools([Tool::new("t")]).logging();
    builder.resources([&format!("{name}://r")]).start().await
}

/// The log level that a server was last told.
fn level_of(server: &ScriptedServer) -> Option<String> {
    let stats = server.stats();
    Some(stats.last_request("logging/setLevel")?.body["params"]["level"].as_str()?.to_owned())
}

fn from_level(level: &str) -> Value {
    json!({"io.modelcontextprotocol/logLevel": level})
}

/// Runs `doing` while `waiting` waits for a server that does not respond.
async fn meanwhile(waiting: impl Future<Output = ()>, doing: impl Future<Output = ()>) {
    tokio::select! {
        biased;
        () = waiting => panic!("who waits for the server that is stuck waits for longer"),
        () = doing => {}
    }
}

#[tokio::test]
async fn a_listener_hears_of_the_lists_that_it_named_and_of_no_others() {
    let builder = ScriptedServer::builder().legacy().tools([Tool::new("t")]);
    let server = builder.prompts(["p"]).resources(["one://r"]).start().await;
    let world = World::of(&[("one", &server)]).await;
    let mut streams = Vec::new();
    for list in ["tools", "prompts", "resources"] {
        let wanted = json!({"notifications": {format!("{list}ListChanged"): true}});
        let mut stream = world.modern("subscriptions/listen", wanted, json!({})).await;
        stream.next().await.unwrap();
        streams.push((list, stream));
    }
    until(|| server.open_streams() == 1).await;
    for changed in ["tools", "prompts", "resources"] {
        match changed {
            "tools" => server.set_tools_and_notify([Tool::new("u")]).await,
            "prompts" => drop(server.set_prompts(["q"]).await),
            _ => drop(server.set_resources(["one://s"]).await),
        }
        let (_, named) = streams.iter_mut().find(|(list, _)| *list == changed).unwrap();
        let told = named.next().await.unwrap();
        assert_eq!(told["method"], format!("notifications/{changed}/list_changed"));
        // All are notified at once.
        for (list, stream) in &mut streams {
            assert_eq!(stream.next().now_or_never(), None, "{list} when {changed} changed");
        }
    }
}

#[tokio::test]
async fn a_server_that_comes_with_a_reload_is_told_the_log_level_that_clients_asked_for() {
    let (first, second, third) = (server("a").await, server("b").await, server("c").await);
    let world = World::of(&[("a", &first)]).await;
    let session = world.open(json!({})).await;
    session.ask("logging/setLevel", json!({"level": "warning"})).await.result().await;
    assert_eq!(level_of(&first).as_deref(), Some("warning"));
    world.board.apply(plan(&[("a", &first), ("b", &second)])).await.unwrap();
    until(|| level_of(&second).as_deref() == Some("warning")).await;
    // A stateless-era client states its level with each call; the lowest of all applies.
    let call = json!({"name": "a__t", "arguments": {}});
    world.modern("tools/call", call, from_level("info")).await.result().await;
    until(|| level_of(&second).as_deref() == Some("info")).await;
    world.board.apply(plan(&[("a", &first), ("c", &third)])).await.unwrap();
    until(|| level_of(&third).as_deref() == Some("info")).await;
}

#[tokio::test]
async fn a_server_that_does_not_answer_a_log_level_holds_up_no_call_of_another() {
    let (stuck, good) = (server("stuck").await, server("good").await);
    stuck.set_fault(Fault::Hang(Stage::SetLevel)).await;
    let world = World::of(&[("stuck", &stuck), ("good", &good)]).await;
    let (loud, calm) = (world.open(json!({})).await, world.open(json!({})).await);
    let waiting = async {
        loud.ask("logging/setLevel", json!({"level": "error"})).await.result().await;
    };
    let calling = async {
        until(|| level_of(&stuck).is_some() && level_of(&good).as_deref() == Some("error")).await;
        for session in [&loud, &calm] {
            session.call("good__t").await.result().await;
        }
        let call = json!({"name": "good__t", "arguments": {}});
        world.modern("tools/call", call, from_level("debug")).await.result().await;
        assert_eq!(level_of(&good).as_deref(), Some("debug"));
    };
    meanwhile(waiting, calling).await;
}

#[tokio::test]
async fn a_server_that_does_not_answer_a_subscription_holds_up_neither_calls_nor_subscriptions_of_another()
 {
    let (stuck, good) = (server("stuck").await, server("good").await);
    let world = World::of(&[("stuck", &stuck), ("good", &good)]).await;
    let (patient, other) = (world.open(json!({})).await, world.open(json!({})).await);
    stuck.set_fault(Fault::Hang(Stage::Subscribe)).await;
    let waiting = async {
        patient.ask("resources/subscribe", json!({"uri": "stuck://r"})).await.result().await;
    };
    let doing = async {
        until(|| stuck.stats().last_request("resources/subscribe").is_some()).await;
        other.call("good__t").await.result().await;
        patient.call("good__t").await.result().await;
        other.call("stuck__t").await.result().await;
        other.ask("resources/subscribe", json!({"uri": "good://r"})).await.result().await;
        assert_eq!(good.watched(), ["good://r"]);
        // The end of a subscription is sent in the background.
        other.end().await;
        until(|| good.watched().is_empty()).await;
    };
    meanwhile(waiting, doing).await;
}
