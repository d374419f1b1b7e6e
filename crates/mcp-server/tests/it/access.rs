//! Callers with different access: what is not granted does not exist for them, on every path and at every moment.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use switchboard_mcp_server::Route;
use switchboard_model::{Access, AccessRule, CallerLimits};
use switchboard_test_support::{ScriptedServer, Tool};

use crate::support::{Reading, World, until};

/// Each server with its tools. Everything of a server carries a mark that no request contains.
const SERVERS: [(&str, [&str; 2]); 3] =
    [("crm", ["get", "drop"]), ("mail", ["read", "send"]), ("apart", ["leak", "spill"])];

fn mark(server: &str) -> String {
    format!("secret-of-{server}")
}

async fn servers() -> Vec<ScriptedServer> {
    let mut started = Vec::new();
    for (name, tools) in SERVERS {
        let tools =
            tools.map(|tool| Tool::echo(tool).description(format!("{} {tool}", mark(name))));
        let prompt = format!("prompt-{}", mark(name));
        let resource = format!("{name}:///{}", mark(name));
        let server = ScriptedServer::builder()
            .tools(tools)
            .prompts([prompt.as_str()])
            .resources([resource.as_str()]);
        started.push(server.start().await);
    }
    started
}

async fn world(servers: &[ScriptedServer], gateway: &str) -> World {
    let named: Vec<_> = SERVERS.iter().map(|(name, _)| *name).zip(servers).collect();
    World::with(&named, gateway).await
}

fn rule(toolsets: Option<&[&str]>, tools: Option<&[&str]>, deny: &[&str]) -> AccessRule {
    let texts = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let deny_tools = texts(deny);
    AccessRule {
        toolsets: toolsets.map(texts),
        tools: tools.map(texts),
        deny_tools,
        read_only: false,
    }
}

fn of(rule: AccessRule) -> Access {
    Access::of(rule, CallerLimits::default())
}

fn with_access(world: &World, id: &str, access: Access) -> World {
    let world = world.with_key(id, id);
    world.principal.access.set(access);
    world
}

/// Every request that shows or runs something of a server.
fn requests(server: &str, tools: [&str; 2]) -> Vec<(&'static str, Value)> {
    let call = |tool: &str, arguments: Value| {
        ("tools/call", json!({"name": tool, "arguments": arguments}))
    };
    let mut all = vec![
        ("tools/list", json!({})),
        ("prompts/list", json!({})),
        ("resources/list", json!({})),
        ("resources/templates/list", json!({})),
        ("prompts/get", json!({"name": "prompt"})),
        ("resources/read", json!({"uri": format!("{server}:///x")})),
        (
            "completion/complete",
            json!({"ref": {"type": "ref/prompt", "name": "prompt"}, "argument": {"name": "a", "value": ""}}),
        ),
        call("list_toolsets", json!({})),
        call("describe_toolset", json!({"toolsetName": server})),
        call("enable_toolset", json!({"toolsetName": server})),
    ];
    for tool in tools {
        let exposed = format!("{server}__{tool}");
        all.push(call(&exposed, json!({})));
        all.push(call(&format!("{server}.{tool}"), json!({})));
        all.push(call(tool, json!({})));
        all.push(call("search_tools", json!({"query": tool})));
        all.push(call("describe_tool", json!({"name": exposed})));
        all.push(call("call_tool", json!({"name": exposed, "arguments": {}})));
    }
    all
}

async fn listed(answer: Reading) -> Vec<String> {
    let list = answer.result().await;
    let tools = list["tools"].as_array().unwrap().iter();
    let names = tools.map(|tool| tool["name"].as_str().unwrap().to_owned());
    names.filter(|name| name.contains("__")).collect()
}

/// A key with this access finds exactly these tools, and nothing of the servers that have none of them.
async fn check(gateway: &str, access: Access, granted: &[&str]) {
    let servers = servers().await;
    let all = world(&servers, gateway).await;
    let caller = with_access(&all, "1", access);
    let session = caller.open(json!({})).await;
    let is_dynamic = gateway.contains("dynamic");
    if !is_dynamic {
        assert_eq!(listed(session.ask("tools/list", json!({})).await).await, granted);
        assert_eq!(listed(caller.modern("tools/list", json!({}), json!({})).await).await, granted);
    }
    for ((server, tools), running) in SERVERS.into_iter().zip(&servers) {
        let own: Vec<_> = tools
            .into_iter()
            .filter(|tool| granted.contains(&&*format!("{server}__{tool}")))
            .collect();
        for (method, params) in requests(server, tools) {
            let legacy = session.ask(method, params.clone()).await.text().await;
            let modern = caller.modern(method, params.clone(), json!({})).await.text().await;
            for text in [legacy, modern] {
                let place = format!("{gateway} {server}: {method} {params}: {text}");
                if own.is_empty() {
                    assert!(!text.contains(&mark(server)), "{place}");
                    let names_it = text.contains(&format!("\"{server}\""))
                        && !params.to_string().contains(server);
                    assert!(!names_it, "{place}");
                }
                for tool in tools.iter().filter(|tool| !own.contains(tool)) {
                    assert!(!text.contains(&format!("{} {tool}", mark(server))), "{place}");
                }
            }
        }
        // Its endpoint is answered like one of a server that does not exist.
        for (route, unknown) in [
            (Route::Server(server.into()), Route::Server("nobody".into())),
            (Route::Toolsets(server.into()), Route::Toolsets("nobody".into())),
        ] {
            let is_toolset = matches!(route, Route::Toolsets(_));
            let answer =
                caller.at(route).modern("tools/list", json!({}), json!({})).await.text().await;
            let none =
                caller.at(unknown).modern("tools/list", json!({}), json!({})).await.text().await;
            let none = none.replace("nobody", server);
            // A toolset that is granted in part by the names of its tools is known.
            if own.is_empty() {
                assert_eq!(
                    without_id(&answer),
                    without_id(&none),
                    "{gateway} {server} {is_toolset}"
                );
            } else {
                assert_ne!(without_id(&answer), without_id(&none), "{gateway} {server}");
            }
        }
        let calls = running.stats().total_calls();
        assert_eq!(calls > 0, !own.is_empty(), "{gateway} {server}: {calls} calls");
    }
}

/// A response without the number of its request.
fn without_id(text: &str) -> String {
    let mut message: Value = serde_json::from_str(text).unwrap();
    message["id"] = Value::Null;
    message.to_string()
}

#[tokio::test]
async fn what_is_not_granted_does_not_exist_on_any_path() {
    for gateway in ["{exposure: legacy}", "{exposure: dynamic}"] {
        check(gateway, of(rule(Some(&["crm"]), None, &[])), &["crm__get", "crm__drop"]).await;
        let mails = of(rule(None, Some(&["mail.*"]), &["send"]));
        check(gateway, mails, &["mail__read"]).await;
        check(gateway, Access::none(), &[]).await;
        let both = Access::union([
            (rule(Some(&["crm"]), None, &["drop"]), CallerLimits::default()),
            (rule(Some(&[]), Some(&["apart.leak"]), &[]), CallerLimits::default()),
        ]);
        check(gateway, both, &["crm__get", "apart__leak"]).await;
    }
}

#[tokio::test]
async fn callers_with_equal_access_share_one_view() {
    let servers = servers().await;
    let all = world(&servers, "{exposure: legacy}").await;
    let crm = || of(rule(Some(&["crm"]), None, &[]));
    let view = |access: Access| {
        let caller = with_access(&all, "1", access);
        let scope =
            all.sessions.scope_for(&std::sync::Arc::default(), None, &caller.principal.access);
        all.sessions.view_of(&scope, None)
    };
    assert!(std::sync::Arc::ptr_eq(&view(crm()), &view(crm())));
    let limited = Access { limits: CallerLimits { max_instances: Some(1), rate: None }, ..crm() };
    assert!(std::sync::Arc::ptr_eq(&view(crm()), &view(limited)), "limits change no list");
    assert!(!std::sync::Arc::ptr_eq(&view(crm()), &view(Access::all())));
}

#[tokio::test]
async fn a_change_is_in_force_at_once_and_announced_once() {
    let servers = servers().await;
    let all = world(&servers, "{exposure: legacy}").await;
    let caller = with_access(&all, "1", Access::all());
    let other = with_access(&all, "2", Access::all());
    let (session, untouched) = (caller.open(json!({})).await, other.open(json!({})).await);
    let mut stream = session.listen().await;
    let mut quiet = untouched.listen().await;
    let listening = json!({"notifications": {"toolsListChanged": true}});
    let mut modern = caller.modern("subscriptions/listen", listening, json!({})).await;
    modern.next().await.expect("an acknowledgement");

    caller.principal.access.set(of(rule(Some(&["crm"]), None, &[])));
    // Requests do not wait for the notification.
    assert_eq!(listed(session.ask("tools/list", json!({})).await).await, ["crm__get", "crm__drop"]);
    all.sessions.access_changed();
    all.sessions.access_changed();
    let changed = "notifications/tools/list_changed";
    assert_eq!(stream.next().await.unwrap()["method"], changed);
    assert_eq!(modern.next().await.unwrap()["method"], changed);
    // The next thing that each of them hears is the next change of tools: nothing was announced twice.
    caller.principal.access.set(Access::all());
    all.sessions.access_changed();
    let rest = ["notifications/prompts/list_changed", "notifications/resources/list_changed"];
    for expected in [rest[0], rest[1], changed] {
        assert_eq!(stream.next().await.unwrap()["method"], expected);
    }
    assert_eq!(modern.next().await.unwrap()["method"], changed);
    other.principal.access.set(Access::none());
    all.sessions.access_changed();
    assert_eq!(quiet.next().await.unwrap()["method"], changed, "the first that it hears");
}

#[tokio::test]
async fn a_call_that_waits_is_refused_when_its_key_was_narrowed_meanwhile() {
    let slow = Tool::echo("slow").sleeps(60_000);
    let server = ScriptedServer::builder().tools([slow]).start().await;
    let all = World::with(&[("one", &server)], "{exposure: legacy}").await;
    let limits = CallerLimits { max_instances: Some(1), rate: None };
    let caller = with_access(&all, "1", Access { tools: None, limits });
    let session = caller.open(json!({})).await;
    let call = || async { session.call("one__slow").await.text().await };
    let mut running = Box::pin(call());
    tokio::select! {
        answer = &mut running => panic!("{answer}"),
        () = until(|| server.stats().running_calls == 1) => {}
    }
    // The tool has many slots; the caller has one.
    let mut waiting = Box::pin(call());
    for _ in 0..100 {
        assert!(futures::poll!(&mut waiting).is_pending());
        tokio::task::yield_now().await;
    }
    caller.principal.access.set(Access { limits, ..Access::none() });
    drop(running);
    let answer = waiting.await;
    assert!(answer.contains("no longer available to this caller"), "{answer}");
    assert_eq!(server.stats().total_calls(), 1);
}

#[tokio::test]
async fn a_rate_is_refused_in_words_for_a_model_and_counted_for_each_caller() {
    let servers = servers().await;
    let all = world(&servers, "{exposure: legacy}").await;
    let limits = CallerLimits { max_instances: None, rate: "2/h".parse().ok() };
    let (one, two) = (
        with_access(&all, "1", Access { tools: None, limits }),
        with_access(&all, "2", Access { tools: None, limits }),
    );
    let call = async |world: &World, tool: &str| {
        let params = json!({"name": tool, "arguments": {}});
        world.modern("tools/call", params, json!({})).await.result().await
    };
    for _ in 0..2 {
        assert_ne!(call(&one, "crm__get").await["isError"], true);
    }
    let refused = call(&one, "crm__get").await;
    assert_eq!(refused["isError"], true, "{refused}");
    let text = refused["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("2/h by this caller") && text.contains("wait 1800 seconds"), "{text}");
    assert_eq!(refused["_meta"]["switchboard/outcome"], "rate_limited");
    assert_eq!(refused["_meta"]["switchboard/retryAfterSeconds"], 1800);
    assert_ne!(call(&one, "mail__read").await["isError"], true, "another tool");
    assert_ne!(call(&two, "crm__get").await["isError"], true, "another caller");
    assert_eq!(servers[0].stats().total_calls(), 3);
}
