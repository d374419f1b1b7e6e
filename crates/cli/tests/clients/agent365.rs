//! Microsoft's Agent 365 SDK, unmodified, finds its servers at the board, and real MCP clients use what it finds.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use switchboard_test_support::{ScriptedServer, Tool, peers};

use crate::support::{Home, Outcome, Serve, dynamic, yaml};

const AGENTS: &str = "  agents:\n    - {name: invoicing, servers: [demo], tools: {deny: [secret]}}\n    - {name: idle, servers: []}\n";

/// A board that needs a key, with a tool that the agent `invoicing` may use and one that it may not.
struct Board {
    home: Home,
    serve: Serve,
    key: String,
    _server: ScriptedServer,
}

impl Board {
    async fn start() -> Self {
        let schema = json!({"type": "object", "properties": {"text": {"type": "string"}}});
        let tools = [Tool::echo("echo").schema(schema), Tool::echo("secret")];
        let server = ScriptedServer::builder().dual().tools(tools).start().await;
        let servers = [dynamic("demo", &server.url())];
        let home = Home::new(format!("{}{AGENTS}", yaml(&[], &servers)));
        let key = home.line("key add bot --quiet").expect(0).stdout.trim().to_owned();
        let serve = home.serve().await;
        Self { home, serve, key, _server: server }
    }

    /// Runs a Python program with the packages of the SDK, in the directory of the board.
    fn python(&self, program: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> Outcome {
        let mut process = Command::new(peers::python());
        process.arg(program).args(arguments).current_dir(self.home.path());
        let path = std::env::var("PATH").unwrap_or_default();
        process
            .env_clear()
            .env("PATH", path)
            .env("HOME", self.home.path())
            .env("NO_PROXY", "*")
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .env("PYTHONPATH", peers::agent365_packages())
            .env("OPENAI_AGENTS_DISABLE_TRACING", "1")
            .envs(variables.iter().copied());
        Outcome::of(process)
    }

    fn server_url(&self) -> String {
        self.serve.at("/mcp/agents/invoicing/servers/demo")
    }
}

/// The sample program of the documentation.
fn documented_program() -> String {
    let page = include_str!("../../../../docs/agent365.md");
    let (_, rest) = page.split_once("```python\n").expect("the page has a program");
    rest.split_once("```").expect("the program ends").0.to_owned()
}

#[tokio::test]
async fn the_documented_agent_finds_its_servers_and_calls_a_tool() {
    let board = Board::start().await;
    let program = board.home.file("agent.py", documented_program());
    let variables = [
        ("ENVIRONMENT", "Production"),
        ("MCP_PLATFORM_ENDPOINT", &board.serve.url),
        ("SWITCHBOARD_API_KEY", &board.key),
        ("AGENT_ID", "invoicing"),
    ];
    let said = board.python(&program, &[], &variables).expect(0).stdout;
    let expected = format!("demo: {}\n['demo__echo']\n", board.server_url());
    assert!(said.starts_with(&expected) && said.contains("hello"), "{said}");
    let calls = board.home.line("calls --json").expect(0).json();
    assert_eq!(calls["calls"][0]["tool"], "demo.echo", "{calls:#}");

    let idle =
        variables.map(|(name, value)| (name, if name == "AGENT_ID" { "idle" } else { value }));
    assert_eq!(board.python(&program, &[], &idle).expect(0).stdout, "");
    let unknown =
        variables.map(|(name, value)| (name, if name == "AGENT_ID" { "x y" } else { value }));
    let said = board.python(&program, &[], &unknown).stderr;
    assert!(said.contains("HTTP 404") && said.contains("there is no agent 'x y'"), "{said}");
}

/// The results of operations of the SDK.
fn tooling(board: &Board, operations: &Value) -> Value {
    let mut process = Command::new(peers::python());
    process.arg(peers::agent365_tooling()).current_dir(board.home.path());
    let asked = board.home.file("operations.json", operations.to_string());
    process
        .env_clear()
        .env("PATH", std::env::var("PATH").unwrap_or_default())
        .env("NO_PROXY", "*")
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("PYTHONPATH", peers::agent365_packages())
        .stdin(std::fs::File::open(asked).unwrap());
    Outcome::of(process).expect(0).json()
}

#[tokio::test]
async fn the_sdk_reads_servers_from_the_board_and_from_a_manifest() {
    let board = Board::start().await;
    let manifest = json!({"mcpServers": [
        {"mcpServerName": "demo", "mcpServerUniqueName": "demo", "url": board.server_url()},
        {"mcpServerName": "demo", "mcpServerUniqueName": "demo"},
    ]});
    board.home.file("ToolingManifest.json", manifest.to_string());
    let environment = |kind: &str| {
        json!({
            "ENVIRONMENT": kind,
            "MCP_PLATFORM_ENDPOINT": board.serve.url,
            "BEARER_TOKEN": board.key,
        })
    };
    let list = |agent: &str, token: &str, kind: &str| json!({"op": "list", "agent": agent, "token": token, "env": environment(kind)});
    let results = tooling(
        &board,
        &json!([
            list("invoicing", &board.key, "Production"),
            list("idle", &board.key, "Production"),
            list("nowhere", &board.key, "Production"),
            list("invoicing", "sbk_wrong", "Production"),
            list("", "", "Development"),
        ]),
    );
    let found = &results[0]["servers"][0];
    assert_eq!(found["mcp_server_name"], "demo", "{results:#}");
    assert_eq!(found["mcp_server_unique_name"], "demo");
    assert_eq!(found["url"], board.server_url());
    assert_eq!(results[1]["servers"], json!([]));
    let refused = results[2]["error"].as_str().unwrap();
    assert!(
        refused.starts_with("Failed to read MCP servers from endpoint: HTTP 404: "),
        "{refused}"
    );
    let refused = results[3]["error"].as_str().unwrap();
    assert!(
        refused.starts_with("Failed to read MCP servers from endpoint: HTTP 401: "),
        "{refused}"
    );
    assert!(!refused.contains("sbk_wrong"), "{refused}");

    let written = results[4]["servers"].as_array().unwrap();
    let urls: Vec<_> = written.iter().map(|server| server["url"].as_str().unwrap()).collect();
    assert_eq!(urls, [board.server_url(), board.serve.at("/agents/servers/demo")]);
    let script = "import asyncio, sys\n\
        from mcp import Client\n\
        from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client\n\
        async def main():\n    \
            async with create_mcp_http_client({'Authorization': sys.argv[2]}) as http:\n        \
                async with Client(streamable_http_client(sys.argv[1], http_client=http), mode=sys.argv[3]) as client:\n            \
                    print(sorted(tool.name for tool in (await client.list_tools()).tools))\n\
        asyncio.run(main())\n";
    let script = board.home.file("list.py", script);
    for (server, tools) in
        written.iter().zip(["['demo__echo']\n", "['demo__echo', 'demo__secret']\n"])
    {
        let authorization = server["headers"]["Authorization"].as_str().unwrap();
        let url = server["url"].as_str().unwrap();
        for mode in ["legacy", "2026-07-28"] {
            let listed = board.python(&script, &[url, authorization, mode], &[]).expect(0).stdout;
            assert_eq!(listed, tools, "{url} {mode}");
        }
    }
}

/// Lets an extension of the SDK give an agent its servers: what the framework got must be what the board renders for it.
async fn check_extension(framework: &str, packages: &OsStr, arguments: fn(&Value) -> Value) {
    let board = Board::start().await;
    let variables = [
        ("ENVIRONMENT", "Production"),
        ("MCP_PLATFORM_ENDPOINT", board.serve.url.as_str()),
        ("PYTHONPATH", packages.to_str().unwrap()),
    ];
    let words = [framework, "invoicing", &board.key];
    let found = board.python(&peers::agent365_extension(), &words, &variables).expect(0).json();
    assert_eq!(found["logs"], json!([]), "{found:#}");
    let server = &found["servers"][0];
    assert_eq!(server["tools"], json!(["demo__echo"]), "{found:#}");
    assert!(server["said"].as_str().unwrap().contains("hello"), "{found:#}");
    let calls = board.home.line("calls --json").expect(0).json();
    assert_eq!(calls["calls"][0]["tool"], "demo.echo", "{calls:#}");
    assert_eq!(calls["calls"].as_array().unwrap().len(), 1, "{calls:#}");
    assert_eq!(found["reported"], "Succeeded", "the report of the conversation");

    let line = format!("agent show invoicing --as {framework} --url {}", board.serve.url);
    let words: Vec<_> = line.split(' ').collect();
    let mut rendering = board.home.command(&words);
    rendering.env("SWITCHBOARD_API_KEY", &board.key);
    let rendered = Outcome::of(rendering).expect(0);
    assert!(!rendered.all().contains(&board.key), "{}", rendered.all());
    let expected = arguments(&rendered.json()).to_string();
    let expected = expected.replace("${SWITCHBOARD_API_KEY}", &board.key);
    let expected: Value = serde_json::from_str(&expected).unwrap();
    assert_eq!(without_user_agent(server["arguments"].clone()), expected);
}

/// The extensions name themselves in a header that no one else needs.
fn without_user_agent(mut value: Value) -> Value {
    let members = value.as_object_mut().into_iter().flat_map(|members| members.values_mut());
    for member in members.filter(|member| member.is_object()) {
        *member = without_user_agent(member.take());
    }
    if let Some(members) = value.as_object_mut() {
        members.remove("User-Agent");
    }
    value
}

#[tokio::test]
async fn the_extension_for_openai_registers_the_servers() {
    let packages = peers::agent365_packages();
    check_extension("openai", packages.as_os_str(), |it| it["servers"][0]["arguments"].clone())
        .await;
}

#[tokio::test]
async fn the_extension_for_semantic_kernel_registers_the_servers() {
    let packages = peers::agent365_semantic_kernel();
    check_extension("semantic-kernel", &packages, |it| it["servers"][0]["arguments"].clone()).await;
}

#[tokio::test]
async fn the_extension_for_agent_framework_registers_the_servers() {
    let packages = peers::agent365_packages();
    check_extension("agent-framework", packages.as_os_str(), |it| {
        it["servers"][0]["arguments"].clone()
    })
    .await;
}

#[tokio::test]
async fn the_extension_for_azure_ai_foundry_registers_the_servers() {
    let packages = peers::agent365_packages();
    check_extension(
        "azure-ai-foundry",
        packages.as_os_str(),
        |it| json!({"tool": it["tools"][0], "resource": it["tool_resources"]["mcp"][0]}),
    )
    .await;
}
