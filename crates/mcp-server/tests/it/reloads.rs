//! A tool that no configuration exposes is never exposed or called while configurations replace each other.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use serde_json::{Value, json};
use switchboard_config::{ConfigInput, SourceFile, load};
use switchboard_model::Plan;
use switchboard_test_support::{ScriptedServer, Tool};
use tokio::task::JoinSet;

use crate::support::{World, until};

/// Part of the hidden tool's description, and of no request.
const MARK: &str = "for nobody";
const RELOADS: usize = 200;

/// One configuration of the two servers.
#[derive(Clone, Copy)]
struct Config {
    gateway: &'static str,
    tools: &'static str,
    /// The entry of the server with the hidden tool; `None` if the server is not configured.
    hidden: Option<&'static str>,
}

const WITHOUT: Config = Config { gateway: "", tools: "", hidden: None };

/// Each configuration hides the tool in another way. Its partner has neither the tool nor the rule.
const WAYS: [(&str, Config); 4] = [
    ("deny_toolsets", Config { gateway: "deny_toolsets: [hidden]", hidden: Some(""), ..WITHOUT }),
    ("allow_toolsets", Config { gateway: "allow_toolsets: [open]", hidden: Some(""), ..WITHOUT }),
    ("tool_denylist", Config { hidden: Some(", tool_denylist: [\"*\"]"), ..WITHOUT }),
    (
        "enabled",
        Config { tools: "{name: hidden.leak, enabled: false}", hidden: Some(""), ..WITHOUT },
    ),
];

fn plan(exposure: &str, open: &ScriptedServer, hidden: &ScriptedServer, config: Config) -> Plan {
    let entry = |name: &str, url: &str, more: &str| {
        format!(
            "\n      - {{name: {name}, url: \"{url}\", transport: streamable_http, mode: dynamic, default_tool_config: {{max_instances: 100, timeout: 30s}}{more}}}"
        )
    };
    let mut servers = entry("open", &open.url(), "");
    servers.extend(config.hidden.map(|more| entry("hidden", &hidden.url(), more)));
    let text = format!(
        "switchboard:\n  gateway: {{exposure: {exposure}, {}}}\n  toolbox:\n    max_concurrent: 200\n    tools: [{}]\n    mcps:{servers}\n",
        config.gateway, config.tools,
    );
    let file = SourceFile { name: "test.yaml", directory: Path::new("."), text: &text };
    let read_secret = |_: &Path| Err(std::io::ErrorKind::NotFound.into());
    match load(&ConfigInput {
        file: Some(file),
        env: &[],
        read_secret: &read_secret,
        read_keyring: None,
    }) {
        Ok(loaded) => loaded.plan,
        Err(problems) => panic!("{problems}\n{text}"),
    }
}

/// Every request that could show the tool or run it. Where whole toolsets are hidden, so are the prompts and resources of
/// the server.
fn requests(config: Config) -> Vec<(&'static str, Value)> {
    let call = |tool: &str, arguments: Value| {
        ("tools/call", json!({"name": tool, "arguments": arguments}))
    };
    let mut requests = vec![
        ("tools/list", json!({})),
        call("hidden__leak", json!({})),
        call("call_tool", json!({"name": "hidden__leak", "arguments": {}})),
        call("call_tool", json!({"name": "hidden.leak", "arguments": {}})),
        call("search_tools", json!({"query": "leak"})),
        call("describe_tool", json!({"name": "hidden__leak"})),
        call("describe_toolset", json!({"toolsetName": "hidden"})),
        call("enable_toolset", json!({"toolsetName": "hidden"})),
        call("list_toolsets", json!({})),
    ];
    if !config.gateway.is_empty() {
        requests.extend([("prompts/list", json!({})), ("resources/list", json!({}))]);
    }
    requests
}

/// Sends all requests repeatedly until it is stopped; returns the responses that show the hidden tool.
async fn ask_until(
    world: World,
    config: Config,
    is_legacy: bool,
    stop: Arc<AtomicBool>,
    asked: Arc<AtomicUsize>,
) -> Vec<String> {
    let session = if is_legacy { Some(world.open(json!({})).await) } else { None };
    let mut leaks = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        for (method, params) in requests(config) {
            let answer = match &session {
                Some(session) => session.ask(method, params.clone()).await,
                None => world.modern(method, params.clone(), json!({})).await,
            };
            let text = answer.text().await;
            if text.contains(MARK) {
                leaks.push(format!("{method} {params}: {text}"));
            }
            asked.fetch_add(1, Ordering::Relaxed);
        }
        tokio::task::yield_now().await;
    }
    leaks
}

async fn reload_under_load(way: &str, exposure: &str, config: Config) {
    let open = ScriptedServer::builder().tools([Tool::echo("read")]).start().await;
    let leak = Tool::echo("leak").description(MARK);
    let hidden = ScriptedServer::builder()
        .tools([leak])
        .prompts([MARK])
        .resources(["file:///for nobody"])
        .start()
        .await;
    let world = World::of(&[("open", &open)]).await;
    let apply = async |config| {
        let applied = world.board.apply(plan(exposure, &open, &hidden, config)).await;
        applied.unwrap_or_else(|error| panic!("{error}"));
    };
    apply(config).await;
    let (stop, asked) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let mut callers = JoinSet::new();
    for caller in 0..4 {
        let (stop, asked) = (stop.clone(), asked.clone());
        callers.spawn(ask_until(world.clone(), config, caller % 2 == 0, stop, asked));
    }
    for _ in 0..RELOADS / (WAYS.len() * 2) {
        for config in [WITHOUT, config] {
            apply(config).await;
            let so_far = asked.load(Ordering::Relaxed);
            until(|| asked.load(Ordering::Relaxed) >= so_far + 8).await;
        }
    }
    stop.store(true, Ordering::Relaxed);
    let leaks: Vec<_> = callers.join_all().await.concat();
    assert!(leaks.is_empty(), "{way}, {exposure}: {} leaks, {:?}", leaks.len(), leaks.first());
    assert_eq!(hidden.stats().total_calls(), 0, "{way}, {exposure}: the hidden tool was called");
    world.board.shutdown(std::time::Duration::from_secs(5)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_reload_shows_what_every_configuration_hides() {
    for (way, config) in WAYS {
        reload_under_load(way, "legacy", config).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_reload_lets_meta_tools_reach_what_every_configuration_hides() {
    for (way, config) in WAYS {
        reload_under_load(way, "dynamic", config).await;
    }
}

/// A configuration applies to every request after its `apply`, without delay.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_configuration_is_seen_by_the_next_request() {
    let open = ScriptedServer::builder().tools([Tool::echo("read")]).start().await;
    let hidden = ScriptedServer::builder().tools([Tool::echo("leak")]).start().await;
    let world = World::of(&[("open", &open)]).await;
    let session = world.open(json!({})).await;
    for step in 0..100 {
        let gateway = if step % 2 == 0 { "" } else { "deny_toolsets: [hidden]" };
        let config = Config { gateway, hidden: Some(""), ..WITHOUT };
        world.board.apply(plan("legacy", &open, &hidden, config)).await.unwrap();
        let legacy = session.ask("tools/list", json!({})).await.text().await;
        let modern = world.modern("tools/list", json!({}), json!({})).await.text().await;
        for list in [legacy, modern] {
            assert_eq!(list.contains("hidden__leak"), step % 2 == 0, "step {step}: {list}");
        }
    }
}
