//! Attached MCP servers: no other session sees them, and the egress policy applies to them.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use switchboard_test_support::{Fault, ScriptedServer, Stage, Tool, wait_until};

use crate::board::{NOTES, SHOP, TwoServers, shop_tools, two_servers_yaml};
use crate::chat::{Api, Chat};
use crate::peer::{BOTH, Era, Peer};
use crate::restarts::{everything, restart};
use crate::support::{Home, PATIENCE, server};

const SECRET: &str = "s3cret-of-the-session";

/// The two servers of the file; sessions may bring servers of this machine.
async fn world(gateway: &str) -> TwoServers {
    let shop = server(shop_tools()).await;
    let notes = server([Tool::echo("read"), Tool::echo("write")]).await;
    let yaml = two_servers_yaml(gateway, &shop.url(), &notes.url());
    let home = Home::new(format!("{yaml}  security: {{egress: {{allow: [\"127.0.0.0/8\"]}}}}\n"));
    TwoServers { shop, notes, home }
}

async fn own_server(tools: &[&str]) -> ScriptedServer {
    let tools = tools.iter().map(|name| Tool::echo(*name));
    ScriptedServer::builder().tools(tools).requires_bearer(SECRET).start().await
}

fn body(server: &ScriptedServer) -> Value {
    json!({"url": server.url(), "headers": {"Authorization": format!("Bearer {SECRET}")}})
}

/// Gives it the server, and waits for its tools.
async fn bring(chat: &Chat, name: &str, server: &ScriptedServer, last_tool: &str) {
    chat.put(&format!("/servers/{name}"), body(server)).await;
    chat.until_has(last_tool).await;
}

#[tokio::test]
async fn the_tools_of_an_own_server_are_seen_and_called_in_its_session_alone() {
    let world = world("").await;
    let serve = world.home.serve().await;
    let api = Api::of(&serve);
    let (chat, other) =
        (api.new_chat(json!({"id": "mine"})).await, api.new_chat(json!({"id": "other"})).await);
    let own = own_server(&["look", "tell"]).await;
    let (events, others) = (chat.follow(None).await, other.follow(None).await);
    bring(&chat, "own", &own, "own__tell").await;
    let mine = [&SHOP[..], &NOTES, &["own__look", "own__tell"]].concat();
    assert_eq!(chat.names().await, mine);
    assert_eq!(chat.rendered("openai").await, mine);
    let heard = events.settles(2).await;
    assert_eq!(heard[1].data["added"], json!(["own__look", "own__tell"]));
    assert_eq!(chat.revision().await, 2, "one step");

    // Over the API and over MCP, in both eras.
    chat.call("own__look", json!({"n": 1})).await;
    chat.call("own.look", json!({"n": 2})).await;
    let mut clients = Vec::new();
    for era in BOTH {
        let client = Peer::open(era, &serve, "/mcp/sessions/mine").await;
        assert_eq!(client.list().await, mine);
        client.done("own__look", json!({"n": 3})).await;
        clients.push(client);
    }
    assert_eq!(own.stats().total_calls(), 4);

    // Nobody else finds them, by no name and by no way.
    assert_eq!(other.names().await, [&SHOP[..], &NOTES].concat());
    assert_eq!(others.settles(1).await.len(), 1);
    let catalog = api.get("/tools").await.good().to_string();
    assert!(!catalog.contains("own") && !catalog.contains("tell"), "{catalog}");
    assert!(!api.get("/servers").await.good().to_string().contains("own"));
    assert!(!api.get("/toolsets").await.good().to_string().contains("own"));
    let internal = chat.get("/tools").await["tools"][5]["canonical_name"].clone();
    assert_eq!(internal, "own.look");
    for name in ["own__look", "own.look", "look", "mine.look", "mine__look", "tell"] {
        other.try_call(name, json!({})).await.refused(404, "unknown_tool");
        other
            .try_put(&format!("/tools/{name}"), json!({"enabled": true}))
            .await
            .refused(422, "bad_request");
        let (status, answer) = serve.call(name, json!({})).await;
        assert_eq!(status, 404, "{name}: {answer}");
    }
    for path in ["/mcp", "/mcp/sessions/other"] {
        for era in BOTH {
            let client = Peer::open(era, &serve, path).await;
            assert_eq!(client.list().await, [&SHOP[..], &NOTES].concat());
            let answer =
                client.ask("tools/call", json!({"name": "own__look", "arguments": {}})).await;
            assert_eq!(answer["result"]["isError"], true, "{answer}");
        }
    }
    assert_eq!(own.stats().total_calls(), 4, "none of that reached it");
}

#[tokio::test]
async fn an_own_server_changes_goes_and_comes_as_others_do() {
    let world = world("").await;
    let serve = world.home.serve().await;
    let chat = Api::of(&serve).new_chat(json!({"id": "mine", "servers": ["notes"]})).await;
    let events = chat.follow(None).await;
    let (own, twin) = (own_server(&["look"]).await, own_server(&["look"]).await);
    bring(&chat, "own", &own, "own__look").await;
    bring(&chat, "twin", &twin, "twin__look").await;
    let both = [&NOTES[..], &["own__look", "twin__look"]].concat();
    assert_eq!(chat.names().await, both, "also beside what it is bound to");
    events.settles(3).await;
    wait_until(PATIENCE, async || (own.open_streams() > 0).then_some(())).await;
    own.set_tools_and_notify([Tool::echo("look"), Tool::echo("later")]).await;
    let all = [&NOTES[..], &["own__look", "twin__look", "own__later"]].concat();
    chat.until_names(&all).await;
    events.settles(4).await;
    // A tool of it is switched like any other.
    chat.put("/tools/own.later", json!({"enabled": false})).await;
    assert_eq!(chat.names().await, both);
    let refused = chat.try_call("own__later", json!({})).await.refused(404, "unknown_tool");
    assert!(refused.contains("switched off"), "{refused}");
    events.settles(5).await;
    // Taken away, it is one step each, and the connection is closed.
    for (at, (name, left)) in [("own", 3), ("twin", 2)].into_iter().enumerate() {
        let view = chat.delete(&format!("/servers/{name}")).await.good();
        assert_eq!(view["tools_revision"], 6 + at, "{name}");
        assert_eq!(chat.names().await.len(), left, "{name}");
        events.settles(6 + at).await;
    }
    let gone = async || (own.open_sessions() == 0 && twin.open_sessions() == 0).then_some(());
    wait_until(PATIENCE, gone).await;
    chat.delete("/servers/own").await.refused(404, "unknown_server");
    assert_eq!(chat.view().await["own_servers"], json!({}));
}

#[tokio::test]
async fn without_an_exception_this_machine_is_out_of_reach() {
    let own = own_server(&["look"]).await;
    let board = crate::board::two_servers("").await;
    let serve = board.home.serve().await;
    let chat = Api::of(&serve).new_chat(json!({})).await;
    for url in [
        own.url(),
        own.url().replace("127.0.0.1", "localhost"),
        own.url().replace("127.0.0.1", "[::1]"),
        own.url().replace("127.0.0.1", "2130706433"),
        "http://169.254.169.254/latest/meta-data".to_owned(),
    ] {
        let refused = chat.try_put("/servers/own", json!({"url": url})).await;
        let refused = refused.refused(422, "bad_request");
        assert!(refused.contains("security.egress.allow"), "{url}: {refused}");
        let made = json!({"id": "with", "own_servers": {"own": {"url": url}}});
        let refused = chat.api.send(reqwest::Method::POST, "/sessions", Some(made)).await;
        refused.refused(422, "bad_request");
    }
    for url in ["", "nonsense", "file:///etc/passwd", "stdio:cat", "http://"] {
        chat.try_put("/servers/own", json!({"url": url})).await.refused(422, "bad_request");
    }
    for name in ["shop", "local", "a.b", "a%20b", &"x".repeat(65)] {
        let refused = chat.try_put(&format!("/servers/{name}"), body(&own)).await;
        assert!(refused.status.is_client_error(), "{name}: {}", refused.body);
    }
    assert_eq!(own.stats().requests.len(), 0, "nothing was dialled");
    assert_eq!(chat.view().await["own_servers"], json!({}));
    assert_eq!(chat.revision().await, 1);
    assert_eq!(chat.api.sessions().await.len(), 1, "what was refused made no session");
}

#[tokio::test]
async fn secrets_of_own_servers_are_shown_to_nobody() {
    let world = world("").await;
    let serve = world.home.serve_with(&["-vvv"]).await;
    let chat = Api::of(&serve).new_chat(json!({"id": "mine"})).await;
    let own = own_server(&["look"]).await;
    bring(&chat, "own", &own, "own__look").await;
    chat.call("own__look", json!({})).await;
    let with_query = format!("{}?key={SECRET}", own.url());
    chat.put("/servers/keyed", json!({"url": with_query, "headers": {"X-Key": SECRET}})).await;
    // A server that refuses is said to, without what it was shown.
    let wrong =
        json!({"url": own.url(), "headers": {"Authorization": format!("Bearer x{SECRET}")}});
    chat.put("/servers/wrong", wrong).await;
    // Its path, which the session itself sees, is not in the log, also where the server quotes it.
    let quoting = ScriptedServer::builder().fault(Fault::Reflect(Stage::Any)).start().await;
    let keyed = quoting.url().replace("/mcp", "/a-key-in-the-path/mcp");
    let answer = chat.put("/servers/quoting", json!({"url": keyed})).await;
    let error = answer["own_servers"]["quoting"]["error"].as_str().unwrap();
    assert_eq!(error, "HTTP 401 Unauthorized: path: ***");
    serve.said("Error: HTTP 401 Unauthorized: path: ***").await;
    assert!(!serve.stderr().contains("a-key-in"), "{}", serve.stderr());
    assert_eq!(chat.view().await["own_servers"]["own"]["headers"], json!(["Authorization"]));
    let mut all: Vec<String> =
        everything(&chat).await.into_values().map(|value| value.to_string()).collect();
    all.push(json!(chat.api.sessions().await).to_string());
    all.push(chat.api.get("/calls").await.body.to_string());
    all.push(serve.text("/metrics").await);
    all.push(serve.stdout());
    all.push(serve.stderr());
    all.push(world.home.line(&format!("session show mine --json --url {}", serve.url)).all());
    all.push(world.home.line(&format!("session show mine -vvv --url {}", serve.url)).all());
    for text in all {
        assert!(!text.contains(SECRET), "{text}");
    }
}

#[tokio::test]
async fn own_servers_are_there_again_after_a_restart() {
    let world = world("").await;
    let mut serve = world.home.serve().await;
    let mut chat = Api::of(&serve).new_chat(json!({"id": "mine"})).await;
    let own = own_server(&["look", "tell"]).await;
    bring(&chat, "own", &own, "own__tell").await;
    // Behind the tools of the session's own server, although the file has it in front.
    wait_until(PATIENCE, async || (world.shop.open_streams() > 0).then_some(())).await;
    world.shop.set_tools_and_notify(shop_tools().into_iter().chain([Tool::echo("refund")])).await;
    chat.until_has("shop__refund").await;
    for signal in ["TERM", "KILL"] {
        let before = everything(&chat).await;
        serve = restart(&world.home, serve, signal).await;
        chat.moved_to(&serve);
        assert_eq!(everything(&chat).await, before, "after {signal}");
        chat.call("own__look", json!({})).await;
        let client = Peer::open(Era::Legacy, &serve, "/mcp/sessions/mine").await;
        client.done("own__tell", json!({})).await;
        assert_eq!(client.delete().await, 204);
    }
    // The session ends, and with it the connection.
    let before = own.stats().delete_count;
    assert_eq!(chat.delete("").await.status, 204);
    let is_closed =
        async || (own.stats().delete_count > before && own.open_streams() == 0).then_some(());
    wait_until(PATIENCE, is_closed).await;
}

#[tokio::test]
async fn an_own_server_that_is_away_stays_declared() {
    let world = world("").await;
    let serve = world.home.serve().await;
    let chat = Api::of(&serve).new_chat(json!({"id": "mine"})).await;
    let own = own_server(&["look"]).await;
    bring(&chat, "own", &own, "own__look").await;
    let before = (chat.revision().await, chat.bare("anthropic").await);
    own.stop().await;
    chat.try_call("own__look", json!({})).await.refused(503, "unavailable");
    wait_until(PATIENCE, async || {
        let tools = chat.get("/tools").await;
        let away = tools["tools"].as_array().unwrap().last().unwrap().clone();
        assert_eq!(away["name"], "own__look");
        (away["available"] == false).then_some(())
    })
    .await;
    assert_eq!((chat.revision().await, chat.bare("anthropic").await), before);
    own.restart_on_same_port().await;
    wait_until(PATIENCE, async || {
        chat.try_call("own__look", json!({})).await.status.is_success().then_some(())
    })
    .await;
    assert_eq!((chat.revision().await, chat.bare("anthropic").await), before);
}

#[tokio::test]
async fn a_server_that_never_answers_spoils_nothing() {
    let world = world("").await;
    let serve = world.home.serve().await;
    let chat = Api::of(&serve).new_chat(json!({"id": "mine"})).await;
    let nobody = format!("http://127.0.0.1:{}/mcp", switchboard_test_support::free_port());
    let view = chat.put("/servers/nobody", json!({ "url": nobody })).await;
    assert_eq!(view["own_servers"]["nobody"]["url"], nobody);
    assert_eq!(chat.names().await, [&SHOP[..], &NOTES].concat());
    chat.call("shop__find", json!({})).await;
    assert_eq!(serve.get("/readyz").await["status"], "ready");
}

#[tokio::test]
async fn the_answer_comes_when_the_server_has_connected_or_failed() {
    let world = world("").await;
    let serve = world.home.serve().await;
    let api = Api::of(&serve);
    let chat = api.new_chat(json!({"id": "mine"})).await;
    for round in 1..=5 {
        let own = own_server(&["look"]).await;
        let answer = chat.put(&format!("/servers/own{round}"), body(&own)).await;
        let tool = format!("own{round}__look");
        assert!(chat.names().await.contains(&tool), "{tool} is missing right after the answer");
        assert_eq!(answer["own_servers"][format!("own{round}")]["state"], "ready");
        assert_eq!(answer["tools_revision"], json!(chat.revision().await));
        assert_eq!(chat.revision().await, 1 + round, "one step");
    }

    // The log names the origin alone: a path may hold a key.
    let url = format!("http://127.0.0.1:{}", switchboard_test_support::free_port());
    let answer = chat.put("/servers/dead", json!({"url": format!("{url}/mcp")})).await;
    let dead = &answer["own_servers"]["dead"];
    assert_eq!(dead["state"], "unavailable", "{answer}");
    assert!(dead["error"].as_str().unwrap().contains("refused"), "{answer}");
    assert_eq!(chat.get("").await["own_servers"]["dead"]["state"], "unavailable");
    serve.said(&format!("Connecting to MCP server 'dead' at {url}")).await;
    serve.said(&format!("Failed to connect to MCP server 'dead' at {url}")).await;

    let hung = ScriptedServer::builder().fault(Fault::HangAtConnect).start().await;
    for wait in [0, 1] {
        let tail = format!("/servers/hung{wait}?wait={wait}");
        let answer = chat.put(&tail, json!({"url": hung.url()})).await;
        assert_eq!(answer["own_servers"][format!("hung{wait}")]["state"], "connecting");
    }
}

#[tokio::test]
async fn a_server_is_attached_and_detached_on_the_command_line() {
    let world = world("").await;
    let serve = world.home.serve().await;
    let api = Api::of(&serve);
    let chat = api.new_chat(json!({"id": "mine"})).await;
    let own = own_server(&["look"]).await;
    let (url, bearer) = (own.url(), format!("Authorization: Bearer {SECRET}"));
    let run = |arguments: &[&str]| {
        let at = ["--url", serve.url.as_str(), "session"];
        world.home.run(&[&at[..], arguments].concat())
    };
    run(&["attach", "mine", "own", &url, "--header", &bearer]).expect(0);
    assert!(chat.names().await.contains(&"own__look".to_owned()));
    let shown = run(&["show", "mine"]).expect(0);
    assert!(shown.stdout.contains(&format!("own: {url} (ready)")), "{}", shown.stdout);
    run(&["detach", "mine", "own", "--now"]).expect(0);
    assert!(!chat.names().await.contains(&"own__look".to_owned()));
    run(&["detach", "mine", "own"]).expect(2);
    run(&["attach", "mine", "own", &url, "--header", "nonsense"]).expect(2);
    let refused = run(&["attach", "mine", "own", &url]).expect(0);
    assert!(refused.stderr.contains("server 'own' is unavailable: "), "{}", refused.stderr);
}
