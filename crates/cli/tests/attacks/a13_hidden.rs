//! A13: hidden tools cannot be called by guessing their names, on any interface.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use switchboard_test_support::{ScriptedServer, ScriptedServerBuilder, Tool, wait_until};

use crate::client::{Answer, Events, Peer};
use crate::fixture::Fixture;
use crate::support::{Home, PATIENCE, Serve, dynamic, server, with};
use crate::world::{config_with, key};

/// Every way to name a tool that is hidden.
const HIDDEN: [&str; 4] = ["secret_denied", "secret_off", "secret_not_allowed", "secret_set"];

struct World {
    one: ScriptedServer,
    two: ScriptedServer,
    hidden: ScriptedServer,
    serve: Serve,
    home: Home,
}

impl World {
    /// Calls that reached any server.
    fn calls(&self) -> usize {
        let servers = [&self.one, &self.two, &self.hidden];
        servers.iter().map(|server| server.stats().total_calls()).sum()
    }
}

async fn world(exposure: &str) -> World {
    let one = server(["open", "secret_denied", "secret_off"].map(Tool::new)).await;
    let two = server(["open", "secret_not_allowed"].map(Tool::new)).await;
    let hidden = server([Tool::new("secret_set")]).await;
    let servers = [
        with(&dynamic("one", &one.url()), "tool_denylist: [secret_denied]"),
        with(&dynamic("two", &two.url()), "tool_allowlist: [open]"),
        dynamic("hidden", &hidden.url()),
    ];
    let tools = ["{name: one.secret_off, enabled: false}"];
    let gateway = format!("gateway: {{exposure: {exposure}, deny_toolsets: [hidden]}}");
    let home = Home::new(config_with(&tools, &servers, &[&gateway]));
    let serve = home.serve().await;
    World { one, two, hidden, serve, home }
}

fn guesses() -> Vec<String> {
    let servers = ["one", "two", "hidden"];
    let forms = HIDDEN.iter().flat_map(|tool| {
        servers.iter().flat_map(move |server| {
            [format!("{server}__{tool}"), format!("{server}.{tool}"), format!("{server}/{tool}")]
        })
    });
    forms.chain(HIDDEN.map(str::to_owned)).collect()
}

#[track_caller]
fn assert_hidden(answer: &Answer, way: &str) {
    assert!(answer.is_refusal(), "{way}: {}", answer.body);
    // What was asked may be repeated; what exists must not be told.
    assert!(!answer.body.contains("Scripted tool secret"), "{way}: {}", answer.body);
    let (_, hint) = answer.body.split_once("did you mean").unwrap_or_default();
    assert!(!hint.contains("secret") && !hint.contains("write"), "{way}: {}", answer.body);
}

#[tokio::test]
async fn a13_hidden_tools_cannot_be_called_under_any_name() {
    let world = world("legacy").await;
    let peer = Peer::of(&world.serve);
    let session = peer.open().await;
    assert_eq!(peer.tools().await, ["one__open", "two__open"]);
    assert_eq!(session.tools().await, ["one__open", "two__open"]);
    for name in guesses() {
        assert!(peer.call(&name, json!({})).await.is_refusal(), "{name}");
        assert!(session.call(&name, json!({})).await.is_refusal(), "{name}");
        // Without the exposure for it, neither do the meta-tools exist.
        assert!(peer.call("call_tool", json!({"name": name})).await.is_refusal(), "{name}");
    }
    // Nor do they within one server, or with a wish of their own.
    let only = peer.at(world.serve.at("/mcp/servers/one"));
    assert!(only.call("two__open", json!({})).await.is_refusal());
    let wished = peer.with("x-mcp-tools", "one__secret_denied,hidden__secret_set,one__open");
    assert_eq!(wished.tools().await, ["one__open"]);
    for path in ["/mcp/toolsets/hidden", "/mcp?toolsets=hidden"] {
        let answer = peer.at(world.serve.at(path)).modern("tools/list", json!({})).await;
        assert!(answer.is_refusal(), "{path} {}", answer.body);
    }
    assert_eq!(world.calls(), 0);
}

#[tokio::test]
async fn a13_meta_tools_do_not_reach_what_policy_hides() {
    let world = world("dynamic").await;
    let peer = Peer::of(&world.serve);
    let session = peer.open().await;
    for name in guesses() {
        for (tool, arguments) in [
            ("call_tool", json!({"name": name, "arguments": {}})),
            ("describe_tool", json!({"name": name})),
        ] {
            assert_hidden(&peer.call(tool, arguments.clone()).await, &format!("{tool} {name}"));
            assert_hidden(&session.call(tool, arguments).await, &format!("{tool} {name}"));
        }
    }
    for (tool, arguments) in [
        ("enable_toolset", json!({"toolsetName": "hidden"})),
        ("describe_toolset", json!({"toolsetName": "hidden"})),
        ("disable_toolset", json!({"toolsetName": "hidden"})),
    ] {
        assert_hidden(&peer.call(tool, arguments.clone()).await, tool);
        assert_hidden(&session.call(tool, arguments).await, tool);
    }
    for query in ["secret", "secret_denied", "Scripted tool secret_set", "hidden"] {
        let found = peer.call("search_tools", json!({"query": query, "limit": 50})).await;
        assert!(!found.body.contains("secret"), "{query}: {}", found.body);
    }
    for tool in ["list_toolsets", "search_tools"] {
        let listed = session.call(tool, json!({"query": "open"})).await;
        assert!(!listed.body.contains("hidden"), "{tool}: {}", listed.body);
    }
    // Also with everything switched on, and narrowed to one server.
    for set in ["one", "two"] {
        assert!(!session.call("enable_toolset", json!({"toolsetName": set})).await.is_refusal());
    }
    assert!(!format!("{:?}", session.tools().await).contains("secret"));
    let only = peer.at(world.serve.at("/mcp/servers/one"));
    assert_hidden(&only.call("call_tool", json!({"name": "two__open"})).await, "another server");
    assert!(!only.call("search_tools", json!({"query": "open"})).await.body.contains("two__"));
    assert_eq!(world.calls(), 0);
}

#[tokio::test]
async fn a13_read_only_views_do_not_call_what_changes_things() {
    let reader = Tool::new("read").member("annotations", json!({"readOnlyHint": true}));
    let one = server([reader, Tool::new("write")]).await;
    let gateway = ["gateway: {exposure: dynamic}"];
    let serve = crate::world::home(&[("one", &one.url())], &gateway).serve().await;
    let peer = Peer::of(&serve).with("x-mcp-readonly", "true");
    for name in ["one__write", "one.write"] {
        assert_hidden(&peer.call("call_tool", json!({"name": name})).await, name);
        assert_hidden(&peer.call("describe_tool", json!({"name": name})).await, name);
        assert!(peer.call(name, json!({})).await.is_refusal());
    }
    assert!(!peer.call("call_tool", json!({"name": "one__read"})).await.is_refusal());
    // A wish can only narrow: what is said twice is as narrow as the narrower.
    let both = peer.at(serve.at("/mcp?readonly=false"));
    assert_hidden(&both.call("call_tool", json!({"name": "one__write"})).await, "both");
    assert_eq!(one.stats().total_calls(), 1);
}

#[tokio::test]
async fn a13_prompts_resources_and_completion_of_a_hidden_server_are_hidden_too() {
    let fixture = Fixture::start("legacy");
    let other = server([Tool::new("open")]).await;
    let servers = [("hidden", fixture.url.as_str()), ("one", &other.url())];
    let serve = crate::world::home(&servers, &["gateway: {deny_toolsets: [hidden]}"]).serve().await;
    let peer = Peer::of(&serve);
    let session = peer.open().await;
    let requests: [(&str, Value); 7] = [
        ("prompts/get", json!({"name": "hidden__test_simple_prompt"})),
        ("prompts/get", json!({"name": "test_simple_prompt"})),
        ("resources/read", json!({"uri": "test://static-text"})),
        ("resources/read", json!({"uri": "test://template/1/data"})),
        (
            "completion/complete",
            json!({"ref": {"type": "ref/prompt", "name": "hidden__test_prompt_with_arguments"}, "argument": {"name": "arg1", "value": "p"}}),
        ),
        (
            "completion/complete",
            json!({"ref": {"type": "ref/resource", "uri": "test://template/{id}/data"}, "argument": {"name": "id", "value": "p"}}),
        ),
        ("tools/call", json!({"name": "hidden__test_simple_text"})),
    ];
    for (method, params) in requests {
        assert!(peer.modern(method, params.clone()).await.is_refusal(), "{method} {params}");
        assert!(session.ask(method, params.clone()).await.is_refusal(), "{method} {params}");
    }
    let subscribed =
        session.ask("resources/subscribe", json!({"uri": "test://watched-resource"})).await;
    assert!(subscribed.is_refusal(), "{}", subscribed.body);
    for method in ["tools/list", "prompts/list", "resources/list", "resources/templates/list"] {
        let listed = session.ask(method, json!({})).await;
        assert!(!listed.body.contains("test"), "{method}: {}", listed.body);
    }
}

#[tokio::test]
async fn a13_the_api_does_not_call_what_the_catalog_does_not_have() {
    let world = world("legacy").await;
    let key = key(&world.home, "one", "client");
    let peer = Peer::of(&world.serve).with_key(&key);
    // The first key closes the open door within seconds; until then it is simply not looked at.
    for name in [
        "one.secret_denied",
        "one.secret_off",
        "two.secret_not_allowed",
        "secret_denied",
        "one%2Esecret_off",
    ] {
        let call = peer.at(world.serve.at(&format!("/api/v1/tools/{name}/call")));
        assert_eq!(call.post("{\"arguments\":{}}", &[]).await.status, 404, "{name}");
        let shown = peer.at(world.serve.at(&format!("/api/v1/tools/{name}")));
        assert_eq!(shown.request(Method::GET, &[]).send().await.unwrap().status(), 404, "{name}");
    }
    assert_eq!(world.calls(), 0);
}

#[tokio::test]
async fn a13_the_api_hides_denied_toolsets_from_clients_and_not_from_operators() {
    let world = world("legacy").await;
    let (client, operator) =
        (key(&world.home, "one", "client"), key(&world.home, "two", "operator"));
    let peer =
        |key: &str, path: &str| Peer::of(&world.serve).with_key(key).at(world.serve.at(path));
    // Until the first key is seen the door is open.
    let listed = |key: String| {
        let peer = peer(&key, "/api/v1/tools");
        async move { peer.request(Method::GET, &[]).send().await.unwrap().text().await.unwrap() }
    };
    wait_until(Duration::from_secs(20), async || {
        (!listed(client.clone()).await.contains("secret_set")).then_some(())
    })
    .await;
    assert!(listed(operator.clone()).await.contains("hidden.secret_set"));
    for name in ["hidden.secret_set", "secret_set"] {
        let call = format!("/api/v1/tools/{name}/call");
        assert_eq!(
            peer(&client, &call).post("{\"arguments\":{}}", &[]).await.status,
            404,
            "{name}"
        );
        assert_eq!(world.calls(), 0);
    }
    let call = peer(&operator, "/api/v1/tools/hidden.secret_set/call");
    assert_eq!(call.post("{\"arguments\":{}}", &[]).await.status, 200);
}

/// Servers `a`, `b` and `hidden` of one era, each with a tool and the resource `NAME://r`.
async fn shelves(era: fn(ScriptedServerBuilder) -> ScriptedServerBuilder) -> [ScriptedServer; 3] {
    let start = |uri: &'static str| {
        let builder = era(ScriptedServer::builder()).tools([Tool::new("t")]);
        async move { builder.resources([uri]).start().await }
    };
    [start("a://r").await, start("b://r").await, start("hidden://r").await]
}

fn home_of([a, b, hidden]: &[ScriptedServer; 3], gateway: &str) -> Home {
    let servers = [("a", &*a.url()), ("b", &b.url()), ("hidden", &hidden.url())];
    crate::world::home(&servers, &[gateway])
}

/// Listens for updates; gives the stream, and the addresses that are said to be honoured.
async fn listen(peer: &Peer, uris: &[&str]) -> (Events, Value) {
    let wanted = json!({"notifications": {"resourceSubscriptions": uris}});
    let mut events = Events::of(peer.modern_response("subscriptions/listen", wanted).await);
    let acknowledged = events.next().await.unwrap();
    assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged");
    (events, acknowledged["params"]["notifications"]["resourceSubscriptions"].clone())
}

#[tokio::test]
async fn a13_a_listener_is_promised_and_told_nothing_of_what_it_may_not_see() {
    for era in [ScriptedServerBuilder::legacy, ScriptedServerBuilder::modern] {
        let servers = shelves(era).await;
        let home = home_of(&servers, "gateway: {deny_toolsets: [hidden]}");
        let serve = home.serve().await;
        let [a, b, hidden] = &servers;
        let peer = Peer::of(&serve);
        let everything = ["a://r", "b://r", "hidden://r", "never://r"];
        let (mut open, honoured) = listen(&peer, &everything).await;
        assert_eq!(honoured, json!(["a://r", "b://r"]), "policy hides one server");
        assert_eq!((a.watched(), b.watched()), (vec!["a://r".into()], vec!["b://r".into()]));
        assert_eq!(hidden.watched(), [""; 0], "nobody watches there");
        let narrowed = peer.with("x-mcp-tools", "nothing");
        let (mut nothing, honoured) = listen(&narrowed, &everything).await;
        assert_eq!(honoured, Value::Null, "nothing is seen, so nothing is honoured");
        let (mut only, _) = listen(&peer.at(serve.at("/mcp/servers/a")), &everything).await;
        // Both servers send updates; a stream gets only those of servers that it sees.
        for (server, uri) in [(b, "b://r"), (a, "a://r")] {
            assert!(server.update_resource(uri).await > 0);
            let told = open.next().await.unwrap();
            assert_eq!(told["params"]["uri"], uri, "{told}");
        }
        let told = only.next().await.unwrap();
        assert_eq!(told["params"]["uri"], "a://r", "{told}");
        for stream in [&mut open, &mut nothing, &mut only] {
            assert!(stream.within(Duration::from_millis(300)).await.is_err());
        }
    }
}

#[tokio::test]
async fn a13_a_listener_hears_what_its_session_sees_at_that_time() {
    for era in [ScriptedServerBuilder::legacy, ScriptedServerBuilder::modern] {
        let servers = shelves(era).await;
        let home = home_of(&servers, "gateway: {exposure: dynamic}");
        let serve = home.serve().await;
        let [a, b, _] = &servers;
        let session = async |id: &str| {
            let made = Peer::of(&serve).at(serve.at("/api/v1/sessions"));
            assert_eq!(made.post(json!({ "id": id }).to_string(), &[]).await.status, 201);
            let peer = made.at(serve.at(&format!("/mcp/sessions/{id}")));
            for set in ["a", "b"] {
                let on = peer.call("enable_toolset", json!({"toolsetName": set})).await;
                assert!(!on.is_refusal(), "{}", on.body);
            }
            peer
        };
        let (alice, bob) = (session("alice").await, session("bob").await);
        let (mut hears, _) = listen(&alice, &["a://r"]).await;
        let (mut switches, honoured) = listen(&bob, &["a://r", "b://r"]).await;
        assert_eq!(honoured, json!(["a://r", "b://r"]));
        for set in ["a", "b"] {
            let off = bob.call("disable_toolset", json!({"toolsetName": set})).await;
            assert!(!off.is_refusal(), "{}", off.body);
        }
        // Alice is still subscribed to one of them; the other one has no subscriber.
        wait_until(PATIENCE, async || b.watched().is_empty().then_some(())).await;
        assert!(a.update_resource("a://r").await > 0);
        assert_eq!(hears.next().await.unwrap()["params"]["uri"], "a://r");
        assert!(switches.within(Duration::from_millis(300)).await.is_err());
        // What comes back is heard of again.
        let on = bob.call("enable_toolset", json!({"toolsetName": "b"})).await;
        assert!(!on.is_refusal(), "{}", on.body);
        wait_until(PATIENCE, async || (!b.watched().is_empty()).then_some(())).await;
        assert!(b.update_resource("b://r").await > 0);
        assert_eq!(switches.next().await.unwrap()["params"]["uri"], "b://r");
    }
}

#[tokio::test]
async fn a13_names_of_denied_servers_are_not_told_to_clients() {
    let (one, hidden) = (server([Tool::new("open")]).await, server([Tool::new("secret")]).await);
    let servers = [("one", &*one.url()), ("hidden", &hidden.url())];
    let home = crate::world::home(&servers, &["gateway: {deny_toolsets: [hidden]}"]);
    let keys = ["client", "operator"].map(|role| key(&home, role, role));
    let serve = home.serve().await;
    let [client, operator] = keys.each_ref().map(|key| Peer::of(&serve).with_key(key));
    let servers = async |peer: &Peer| {
        let request = peer.at(serve.at("/api/v1/servers")).request(Method::GET, &[]);
        let list: Value = request.send().await.unwrap().json().await.unwrap();
        crate::client::names(&list["servers"])
    };
    assert_eq!(servers(&client).await, ["one"]);
    assert_eq!(servers(&operator).await, ["one", "hidden"]);
    // What is asked for by name is answered as if it were not configured.
    let endpoint = async |name: &str| {
        let peer = client.at(serve.at(&format!("/mcp/servers/{name}")));
        let answers = [peer.modern("tools/list", json!({})).await, peer.initialize("").await];
        answers.map(|answer| (answer.status, answer.body.replace(name, "NAME")))
    };
    assert_eq!(endpoint("hidden").await, endpoint("never").await);
    let bound = async |name: &str| {
        let peer = client.at(serve.at("/api/v1/sessions"));
        let answer = peer.post(json!({"servers": [name]}).to_string(), &[]).await;
        (answer.status, answer.body.replace(name, "NAME"))
    };
    let (refused, unknown) = (bound("hidden").await, bound("never").await);
    assert_eq!(refused.0, unknown.0);
    assert!(refused.0 >= 400 && !unknown.1.contains("hidden"), "{refused:?} {unknown:?}");
}

#[tokio::test]
async fn a13_names_of_servers_that_are_away_are_told_to_those_who_may_know_them() {
    let servers = ["away", "hidden"]
        .map(|name| with(&dynamic(name, "http://127.0.0.1:1/mcp"), "required: false"));
    let home = Home::new(config_with(&[], &servers, &["gateway: {deny_toolsets: [hidden]}"]));
    let unavailable = async |serve: &Serve, peer: Peer| {
        let request = peer.at(serve.at("/readyz")).request(Method::GET, &[]);
        let told: Value = request.send().await.unwrap().json().await.unwrap();
        assert_eq!(told["status"], "degraded", "{told}");
        told["unavailable"].clone()
    };
    let serve = home.serve().await;
    assert_eq!(unavailable(&serve, Peer::of(&serve)).await, json!(["away", "hidden"]));
    drop(serve);
    let keys = ["client", "operator"].map(|role| key(&home, role, role));
    let serve = home.serve().await;
    let [client, operator] = keys.each_ref().map(|key| Peer::of(&serve).with_key(key));
    assert_eq!(unavailable(&serve, client).await, json!(["away"]));
    assert_eq!(unavailable(&serve, operator).await, json!(["away", "hidden"]));
    assert_eq!(unavailable(&serve, Peer::of(&serve)).await, json!([]));
    assert_eq!(unavailable(&serve, Peer::of(&serve).with_key("sb_wrong")).await, json!([]));
}

/// Removes the hidden server together with the rule that hides it, again and again, under a client that asks for it.
#[tokio::test]
async fn no_edit_of_the_file_shows_what_the_file_hides_before_and_after() {
    let (one, hidden) =
        (server([Tool::new("open")]).await, server([Tool::new("secret_set")]).await);
    let entries = [dynamic("one", &one.url()), dynamic("hidden", &hidden.url())];
    let rule = ["gateway: {exposure: legacy, deny_toolsets: [hidden]}"];
    let hiding = config_with(&[], &entries, &rule);
    let without = config_with(&[], &entries[..1], &[]);
    let home = Home::new(&hiding);
    let serve = home.serve().await;
    let peer = Peer::of(&serve);
    for edit in 1..=12 {
        home.rewrite(if edit % 2 == 1 { &without } else { &hiding });
        wait_until(PATIENCE, async || {
            let answer = peer.call("hidden__secret_set", json!({})).await;
            assert!(answer.is_refusal(), "{answer:?}");
            assert_eq!(peer.tools().await, ["one__open"]);
            let reloads = serve.stderr().matches("the new configuration is in force").count();
            (reloads == edit).then_some(())
        })
        .await;
    }
    assert_eq!(hidden.stats().total_calls(), 0);
}
