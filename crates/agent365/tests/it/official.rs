//! Microsoft's package `microsoft-agents-a365-tooling`, unmodified, and our client do the same operations against the
//! same recording server. Requests and results are compared member by member; the differences that are meant are a table
//! (`differences.rs`), and there are no others. `e2e/install-agent365.sh` installs the package.

mod cases;
mod differences;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use pretty_assertions::assert_eq;
use serde_json::{Map, Value, json};
use switchboard_agent365::{
    ChatHistoryMessage, ChatRole, Environment, McpServerConfig, ToolOptions, ToolingClient,
    TurnContext, build_mcp_server_url, get_chat_history_endpoint, get_mcp_base_url,
    get_tooling_gateway_for_digital_worker,
};
use switchboard_outbound::HttpPool;
use switchboard_test_support::peers;

use crate::recorder::{Recorder, Reply, Seen};
use cases::{Case, MANIFEST, REDIRECTING, cases};
use differences::{DIFFERENCES, IN_EVERY_REQUEST};

/// Members of a request that only say how the connection is made.
const OF_THE_CONNECTION: [&str; 3] = ["host", "connection", "content-length"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_client_does_what_the_package_does_but_for_the_listed_differences() {
    let recorder = start_recorder().await;
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("ToolingManifest.json"), MANIFEST).unwrap();
    let cases = cases();
    let theirs = run_package(&cases, recorder.url(), home.path());
    let their_requests = by_case(recorder.take());
    let mut found = Vec::new();
    for (case, theirs) in cases.iter().zip(theirs) {
        let ours = run_client(case, recorder.url(), home.path()).await;
        let our_requests = by_case(recorder.take());
        let whole = |result: Value, requests: &BTreeMap<String, Vec<Value>>| {
            let requests = requests.get(case.name).cloned().unwrap_or_default();
            let whole = json!({"result": result, "requests": requests}).to_string();
            let whole = whole.replace(&format!("{}/{}", recorder.url(), case.name), "BASE");
            let whole = whole.replace(&recorder.url().replace("127.0.0.1", "localhost"), "OTHER");
            serde_json::from_str::<Value>(&whole).unwrap()
        };
        let (theirs, ours) = (whole(theirs, &their_requests), whole(ours, &our_requests));
        for (member, theirs, ours) in differences_of(&theirs, &ours) {
            found.push((case.name.to_owned(), member, theirs, ours));
        }
    }
    let expected: Vec<(String, String, String, String)> = DIFFERENCES
        .iter()
        .map(|(case, member, theirs, ours, _why)| {
            [case, member, theirs, ours].map(|it| (*it).to_owned()).into()
        })
        .collect();
    assert_eq!(found, expected);
}

/// The members that differ: path, the package's value, ours. Where one side sends no request, or fails, that is one
/// difference.
fn differences_of(theirs: &Value, ours: &Value) -> Vec<(String, String, String)> {
    let mut found = Vec::new();
    let mut compare = |part: &str, summary: fn(&Value) -> (String, String)| {
        let (theirs, ours) = (&theirs[part], &ours[part]);
        let ((their_kind, their_text), (our_kind, our_text)) = (summary(theirs), summary(ours));
        if their_kind != our_kind {
            found.push((format!("/{part}"), their_text, our_text));
            return;
        }
        let (theirs, ours) = (members(theirs), members(ours));
        let all: BTreeSet<_> = theirs.keys().chain(ours.keys()).collect();
        for member in all {
            let of =
                |side: &BTreeMap<String, String>| side.get(member).cloned().unwrap_or_default();
            if of(&theirs) != of(&ours) && !is_general(member) {
                found.push((format!("/{part}{member}"), of(&theirs), of(&ours)));
            }
        }
    };
    compare("requests", |requests| {
        let count = requests.as_array().map_or(0, Vec::len).to_string();
        (count.clone(), count)
    });
    compare("result", |result| match (&result["error"], &result["servers"], &result["text"]) {
        (Value::String(error), _, _) => ("error".to_owned(), format!("error: {error}")),
        (_, Value::Array(servers), _) => {
            let names = servers.iter().filter_map(|server| server["mcp_server_name"].as_str());
            ("servers".to_owned(), format!("servers: {}", names.collect::<Vec<_>>().join(", ")))
        }
        (_, _, Value::String(text)) => ("text".to_owned(), format!("result: {text}")),
        _ => ("other".to_owned(), result.to_string()),
    });
    found
}

/// The two differences that every request has; a test of its own checks the form of the first.
fn is_general(member: &str) -> bool {
    IN_EVERY_REQUEST.iter().any(|(header, _why)| member.ends_with(&format!("/headers/{header}")))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_user_agent_has_the_form_of_the_packages() {
    let recorder = start_recorder().await;
    let home = tempfile::tempdir().unwrap();
    let plain: Vec<_> = cases().into_iter().filter(|case| case.name == "plain").collect();
    run_package(&plain, recorder.url(), home.path());
    let theirs = recorder.take().remove(0).headers.remove("user-agent").unwrap();
    run_client(&plain[0], recorder.url(), home.path()).await;
    let ours = recorder.take().remove(0).headers.remove("user-agent").unwrap();
    let form = |agent: &str| {
        let (product, rest) = agent.split_once('/').unwrap();
        let (version, rest) = rest.split_once(" (").unwrap();
        let parts: Vec<_> =
            rest.strip_suffix(')').unwrap().split("; ").map(str::to_owned).collect();
        assert!(version.starts_with(|first: char| first.is_ascii_digit()), "{agent}");
        (product.to_owned(), parts)
    };
    let ((their_product, their_parts), (our_product, our_parts)) = (form(&theirs), form(&ours));
    assert_eq!((their_product.as_str(), our_product.as_str()), ("Agent365SDK", "Switchboard"));
    assert_eq!((&their_parts[0], &their_parts[2]), (&our_parts[0], &our_parts[2]));
    assert!(their_parts[1].starts_with("Python ") && our_parts[1] == "Rust", "{theirs} {ours}");
}

/// Answers each case by the first segment of its path.
async fn start_recorder() -> Recorder {
    let replies: BTreeMap<&str, Reply> =
        cases().into_iter().map(|case| (case.name, case.reply)).collect();
    Recorder::start(move |seen| {
        let case = seen.path.split('/').nth(1).unwrap_or_default();
        if case == REDIRECTING {
            let other = seen.headers["host"].replace("127.0.0.1", "localhost");
            return Reply::new(302, "").header("location", format!("http://{other}/target"));
        }
        replies.get(case).cloned().unwrap_or_else(|| Reply::new(200, "[]"))
    })
    .await
}

/// The requests of each case, without what differs from run to run.
fn by_case(seen: Vec<Seen>) -> BTreeMap<String, Vec<Value>> {
    let mut requests: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for mut seen in seen {
        seen.headers.retain(|name, _| !OF_THE_CONNECTION.contains(&name.as_str()));
        if let Some(id) = seen.headers.get_mut("x-ms-correlation-id")
            && uuid(id)
        {
            "a new UUID".clone_into(id);
        }
        let case = seen.path.split('/').nth(1).unwrap_or_default().to_owned();
        let body: Value = serde_json::from_str(&seen.body).unwrap_or(Value::Null);
        let path = seen.path.strip_prefix(&format!("/{case}")).unwrap_or(&seen.path);
        requests.entry(case).or_default().push(
            json!({"method": seen.method, "path": path, "headers": seen.headers, "body": body}),
        );
    }
    requests
}

fn uuid(text: &str) -> bool {
    let lengths: Vec<_> = text.split('-').map(str::len).collect();
    lengths == [8, 4, 4, 4, 12] && text.chars().all(|it| it == '-' || it.is_ascii_hexdigit())
}

/// Each scalar with its path.
fn members(value: &Value) -> BTreeMap<String, String> {
    fn add(path: &str, value: &Value, members: &mut BTreeMap<String, String>) {
        match value {
            Value::Object(inner) => {
                inner.iter().for_each(|(key, value)| add(&format!("{path}/{key}"), value, members));
            }
            Value::Array(inner) => {
                let inner = inner.iter().enumerate();
                inner.for_each(|(at, value)| add(&format!("{path}/{at}"), value, members));
            }
            Value::String(text) => drop(members.insert(path.to_owned(), text.clone())),
            Value::Null => {}
            Value::Bool(_) | Value::Number(_) => {
                drop(members.insert(path.to_owned(), value.to_string()));
            }
        }
    }
    let mut members_of_value = BTreeMap::new();
    add("", value, &mut members_of_value);
    members_of_value
}

/// The variables of a case. Each case has its own platform: a path of the recorder.
fn variables(case: &Case, base: &str) -> BTreeMap<String, String> {
    let mut variables = BTreeMap::from([
        ("ENVIRONMENT".to_owned(), "Production".to_owned()),
        ("MCP_PLATFORM_ENDPOINT".to_owned(), format!("{base}/{}", case.name)),
    ]);
    for (name, value) in case.env {
        variables.remove(*name);
        variables.extend(value.map(|value| ((*name).to_owned(), value.to_owned())));
    }
    variables
}

/// What the package makes of all cases, in one process.
fn run_package(cases: &[Case], base: &str, directory: &Path) -> Vec<Value> {
    let all: BTreeSet<_> =
        cases.iter().flat_map(|case| variables(case, base).into_keys()).collect();
    let operations = cases.iter().map(|case| {
        let own = variables(case, base);
        let env: Map<_, _> =
            all.iter().map(|name| (name.clone(), own.get(name).cloned().into())).collect();
        let mut operation = case.operation.clone();
        operation["env"] = env.into();
        operation
    });
    let operations = Value::Array(operations.collect()).to_string();
    let mut process = Command::new(peers::python())
        .arg(peers::agent365_tooling())
        .current_dir(directory)
        .env_clear()
        .env("PYTHONPATH", peers::agent365_packages())
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    process.stdin.take().unwrap().write_all(operations.as_bytes()).unwrap();
    let output = process.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let results: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(results.len(), cases.len());
    results.into_iter().map(with_warnings_only).collect()
}

/// Of what the package logs, the warnings.
fn with_warnings_only(mut result: Value) -> Value {
    let logs =
        result.as_object_mut().and_then(|members| members.remove("logs")).unwrap_or_default();
    let lines = logs.as_array().cloned().unwrap_or_default();
    let warnings: Vec<_> =
        lines.iter().filter_map(|line| line.as_str()?.strip_prefix("WARNING ")).collect();
    result["warnings"] = json!(warnings);
    result
}

/// What our client makes of a case.
async fn run_client(case: &Case, base: &str, directory: &Path) -> Value {
    let variables = variables(case, base);
    let environment = Environment::from_lookup(move |name| variables.get(name).cloned());
    let client = ToolingClient::new(HttpPool::default(), environment.clone())
        .with_working_directory(directory);
    let operation = &case.operation;
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let options = ToolOptions { orchestrator_name: text(&operation["orchestrator"]) };
    let turn = TurnContext {
        conversation_id: text(&operation["turn"]["conversation"]),
        message_id: text(&operation["turn"]["message"]),
        user_message: text(&operation["turn"]["text"]),
        agent_blueprint_id: text(&operation["turn"]["blueprint"]),
    };
    match operation["op"].as_str() {
        Some("list") => {
            let (agent, token) = (text(&operation["agent"]), text(&operation["token"]));
            let (agent, token) = (agent.unwrap_or_default(), token.unwrap_or_default());
            match client.list_tool_servers_in_turn(&agent, &token, &options, &turn).await {
                Ok(found) => {
                    let servers: Vec<_> = found.servers.iter().map(server).collect();
                    let problems = found.problems.into_iter().map(|problem| problem.message);
                    let warnings: Vec<_> = problems.chain(found.warnings).collect();
                    json!({"servers": servers, "warnings": warnings})
                }
                Err(error) => json!({"error": error.to_string()}),
            }
        }
        Some("chat") => {
            let history: Vec<_> =
                operation["history"].as_array().unwrap().iter().map(message).collect();
            let result = client.send_chat_history(&turn, &history, &options).await;
            let errors: Vec<_> = result.errors().iter().map(|error| &error.message).collect();
            json!({"succeeded": result.succeeded(), "text": result.to_string(), "errors": errors})
        }
        Some("urls") => {
            let agent = text(&operation["agent"]).unwrap();
            let name = text(&operation["server"]).unwrap();
            json!({
                "gateway": get_tooling_gateway_for_digital_worker(&environment, &agent).unwrap(),
                "base": get_mcp_base_url(&environment).unwrap(),
                "server": build_mcp_server_url(&environment, &name).unwrap(),
                "chat": get_chat_history_endpoint(&environment)
                    .map_or_else(|error| error.to_string(), |url| url.to_string()),
            })
        }
        other => panic!("there is no operation {other:?}"),
    }
}

fn server(server: &McpServerConfig) -> Value {
    let headers: BTreeMap<_, _> =
        server.headers.iter().map(|(name, value)| (name, value.expose())).collect();
    json!({
        "mcp_server_name": server.mcp_server_name,
        "mcp_server_unique_name": server.mcp_server_unique_name,
        "url": server.url,
        "headers": headers,
        "audience": server.audience,
        "scope": server.scope,
        "publisher": server.publisher,
    })
}

fn message(value: &Value) -> ChatHistoryMessage {
    let text = |key: &str| value[key].as_str();
    let role = match text("role").unwrap() {
        "user" => ChatRole::User,
        "assistant" => ChatRole::Assistant,
        "system" => ChatRole::System,
        other => panic!("{other}"),
    };
    let mut message = ChatHistoryMessage::new(role, text("content").unwrap()).unwrap();
    message.id = text("id").map(str::to_owned);
    message.timestamp = text("timestamp").map(str::to_owned);
    message
}
