//! Helpers for server specifications, calls and processes.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use crate::typed_call::{CallFailure, CallTool as _, Progress};
use serde_json::{Map, Value};
use switchboard_mcp_client::{ConnectOptions, Connection};
use switchboard_model::{
    ConnectError, ConnectErrorKind, Endpoint, Era, EraChoice, Secret, ServerName, ServerSpec,
    ToolResult, UpstreamAuth, UpstreamToolList,
};
use switchboard_test_support::{ScriptedServer, peers, wait_until};
use tokio::sync::mpsc;

/// How long anything may take that should come at once; only a test that fails takes so long.
pub(crate) const PATIENCE: Duration = Duration::from_secs(15);

pub(crate) type Opened = Result<(Arc<Connection>, UpstreamToolList), ConnectError>;

pub(crate) fn spec(endpoint: Endpoint) -> ServerSpec {
    ServerSpec {
        name: ServerName::new("tested"),
        place: endpoint.to_string(),
        endpoint,
        referenced: Vec::new(),
        caller_headers: Vec::new(),
        era: EraChoice::Auto,
        connect_timeout: PATIENCE,
        sharing: switchboard_model::Sharing::Shared,
        egress: None,
    }
}

pub(crate) fn http(url: &str) -> ServerSpec {
    let url = url.parse().unwrap();
    spec(Endpoint::StreamableHttp { url, headers: BTreeMap::new(), auth: UpstreamAuth::None })
}

pub(crate) fn sse(url: &str) -> ServerSpec {
    let url = url.parse().unwrap();
    spec(Endpoint::Sse { url, headers: BTreeMap::new(), auth: UpstreamAuth::None })
}

/// The same server, with a header and a bearer token that must never be shown.
pub(crate) fn with_credentials(mut spec: ServerSpec) -> ServerSpec {
    if let Endpoint::StreamableHttp { headers, auth, .. } | Endpoint::Sse { headers, auth, .. } =
        &mut spec.endpoint
    {
        headers.insert("x-key".into(), Secret::new("s3cret-header"));
        *auth = UpstreamAuth::Bearer(Secret::new("s3cret-token"));
    }
    spec
}

pub(crate) fn command(command: &str, args: &[&str]) -> ServerSpec {
    let args = args.iter().map(|arg| (*arg).to_owned()).collect();
    spec(Endpoint::Stdio { command: command.to_owned(), args, env: BTreeMap::new(), cwd: None })
}

/// The scripted stdio server.
pub(crate) fn peer(flags: &[&str]) -> ServerSpec {
    command(peers::stdio_peer().to_str().unwrap(), flags)
}

pub(crate) fn in_era(spec: ServerSpec, era: Era) -> ServerSpec {
    ServerSpec { era: EraChoice::Fixed(era), ..spec }
}

pub(crate) fn within(spec: ServerSpec, milliseconds: u64) -> ServerSpec {
    ServerSpec { connect_timeout: Duration::from_millis(milliseconds), ..spec }
}

pub(crate) async fn open(spec: &ServerSpec) -> Opened {
    Connection::open(spec, &ConnectOptions::default()).await
}

pub(crate) async fn connect(server: &ScriptedServer) -> Arc<Connection> {
    open(&http(&server.url())).await.unwrap().0
}

pub(crate) fn guarded() -> ConnectOptions {
    ConnectOptions { guard: Some(helper()), ..ConnectOptions::default() }
}

/// With and without guard.
pub(crate) fn both_ways() -> [ConnectOptions; 2] {
    [ConnectOptions::default(), guarded()]
}

pub(crate) fn names(list: &UpstreamToolList) -> Vec<&str> {
    list.tools.iter().map(|tool| tool.name.as_str()).collect()
}

/// Calls a tool and lets nobody hear of its progress.
pub(crate) async fn call(
    connection: &Connection,
    tool: &str,
    arguments: Value,
) -> Result<ToolResult, CallFailure> {
    connection.call(tool, object(arguments), mpsc::channel::<Progress>(1).0).await
}

pub(crate) fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        other => panic!("{other} is no object"),
    }
}

pub(crate) fn text(result: &ToolResult) -> &str {
    result.content.first().unwrap()["text"].as_str().unwrap()
}

/// An error as a person sees it: its kind, the message, and the hint behind an arrow.
pub(crate) fn shown(error: &ConnectError) -> String {
    let kind = match error.kind {
        ConnectErrorKind::Forbidden => "forbidden",
        ConnectErrorKind::Unreachable => "unreachable",
        ConnectErrorKind::Overloaded => "overloaded",
        ConnectErrorKind::Unauthorized => "unauthorized",
        ConnectErrorKind::SignIn => "sign-in",
        ConnectErrorKind::Timeout => "timeout",
        ConnectErrorKind::Protocol => "protocol",
        ConnectErrorKind::Process => "process",
    };
    let hint = error.hint().map(|hint| format!(" -> {hint}")).unwrap_or_default();
    format!("{kind}: {error}{hint}")
}

pub(crate) fn failure(opened: Opened) -> String {
    match opened {
        Ok((_, list)) => format!("opened, with {:?}", names(&list)),
        Err(error) => shown(&error),
    }
}

/// All rows at once, so that one run shows everything that is wrong.
#[track_caller]
pub(crate) fn assert_rows(rows: Vec<(String, String, String)>) {
    let wrong: Vec<String> = rows
        .into_iter()
        .filter(|(_, actual, expected)| actual != expected)
        .map(|(case, actual, expected)| format!("{case}\n   is: {actual}\n  not: {expected}"))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

pub(crate) fn is_alive(pid: u32) -> bool {
    // `pid (name) state …`; a zombie is dead and merely not yet buried.
    fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.starts_with(" Z")))
}

/// The process ids that a scripted stdio server wrote.
pub(crate) async fn pids_in(file: &Path) -> Vec<u32> {
    wait_until(PATIENCE, async || {
        let text = fs::read_to_string(file).ok()?;
        Some(text.lines().map(|line| line.parse().unwrap()).collect())
    })
    .await
}

pub(crate) async fn all_gone(pids: &[u32], within: Duration) {
    wait_until(within, async || pids.iter().all(|pid| !is_alive(*pid)).then_some(())).await;
}

/// The example `it-helper`. `cargo test` builds it, but `cargo test --test it` does not.
pub(crate) fn helper() -> PathBuf {
    static HELPER: OnceLock<PathBuf> = OnceLock::new();
    HELPER.get_or_init(fresh_helper).clone()
}

fn fresh_helper() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let profile = test.ancestors().nth(2).expect("tests run in target/PROFILE/deps");
    let helper = profile.join(format!("examples/it-helper{}", std::env::consts::EXE_SUFFIX));
    let crate_directory = Path::new(env!("CARGO_MANIFEST_DIR"));
    let source = crate_directory.join("examples/it-helper.rs");
    let sources = fs::read_dir(crate_directory.join("src")).unwrap();
    let newest =
        sources.map(|file| file.unwrap().path()).chain([source]).map(|path| modified(&path)).max();
    if modified(&helper) < newest.unwrap() {
        let name = profile.file_name().and_then(|name| name.to_str()).unwrap();
        let built = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
            .args([
                "build",
                "--quiet",
                "--package",
                "switchboard-mcp-client",
                "--example",
                "it-helper",
            ])
            .args(["--profile", if name == "debug" { "dev" } else { name }, "--target-dir"])
            .arg(profile.parent().unwrap())
            .status();
        assert!(built.unwrap().success(), "the helper does not build");
    }
    helper
}

fn modified(path: &Path) -> SystemTime {
    fs::metadata(path).and_then(|file| file.modified()).unwrap_or(SystemTime::UNIX_EPOCH)
}
