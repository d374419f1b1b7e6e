//! Runs the built program: commands to their end, and `serve` in the background.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use reqwest::{Client, StatusCode};
use serde_json::{Value, json};
use switchboard_test_support::{ScriptedServer, Tool, wait_until};

/// The program under test: cargo puts it beside the directory of the test programs.
pub fn program() -> PathBuf {
    let test = std::env::current_exe().expect("the test knows where it is");
    let built = test.ancestors().nth(2).expect("target/debug").join("switchboard");
    assert!(built.is_file(), "{} is missing: build the workspace first", built.display());
    built
}

/// Longer than any successful step takes, even on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(12);
/// Maximum duration of a start; the program opens its database, and the disk may be busy.
const LONGEST_START: Duration = Duration::from_mins(1);

const SERVE: [&str; 4] = ["serve", "--listen", "127.0.0.1:0", "--json"];

/// A temporary directory for a run of the program.
#[derive(Debug)]
pub struct Home {
    directory: Arc<tempfile::TempDir>,
    variables: HashMap<String, String>,
}

/// The exit code and output of a command.
#[derive(Debug)]
pub struct Outcome {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Home {
    pub fn empty() -> Self {
        let directory = Arc::new(tempfile::tempdir().unwrap());
        Self { directory, variables: HashMap::new() }
    }

    /// A home with this configuration as `switchboard.yaml`, the default file name.
    pub fn new(yaml: impl AsRef<str>) -> Self {
        let home = Self::empty();
        home.rewrite(yaml);
        home
    }

    #[must_use]
    pub fn with_variable(mut self, name: &str, value: impl Into<String>) -> Self {
        self.variables.insert(name.into(), value.into());
        self
    }

    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    pub fn config(&self) -> PathBuf {
        self.path().join("switchboard.yaml")
    }

    /// Replaces the configuration atomically.
    pub fn rewrite(&self, yaml: impl AsRef<str>) {
        let draft = self.file("draft~", yaml);
        std::fs::rename(draft, self.config()).unwrap();
    }

    pub fn file(&self, name: &str, text: impl AsRef<str>) -> PathBuf {
        let path = self.path().join(name);
        std::fs::write(&path, text.as_ref()).unwrap();
        path
    }

    /// A command of the program in this directory, with a clean environment and its own store.
    pub fn command<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Command {
        let mut command = Command::new(program());
        let kept = ["PATH", "LLVM_PROFILE_FILE"];
        command
            .env_clear()
            .envs(kept.iter().filter_map(|name| Some((name, std::env::var_os(name)?))))
            .env("HOME", self.path())
            .env("SWITCHBOARD_DATA_DIR", self.path().join("data"))
            .envs(&self.variables)
            .current_dir(self.path())
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    pub fn run<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Outcome {
        Outcome::of(self.command(arguments))
    }

    /// Runs the words of one line as arguments.
    pub fn line(&self, line: &str) -> Outcome {
        self.run(&line.split_whitespace().collect::<Vec<_>>())
    }

    /// Runs a command with this text as standard input.
    pub fn run_with_input(&self, arguments: &[&str], input: impl Into<Vec<u8>>) -> Outcome {
        let mut command = self.command(arguments);
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        let (mut stdin, input) = (child.stdin.take().unwrap(), input.into());
        let writing = thread::spawn(move || {
            // A program that has read enough closes its input.
            let _closed = stdin.write_all(&input);
        });
        let outcome = child.wait_with_output().unwrap().into();
        writing.join().unwrap();
        outcome
    }

    pub async fn serve(&self) -> Serve {
        self.serve_with(&[]).await
    }

    /// Starts `serve` on a free port and waits until it is ready.
    pub async fn serve_with(&self, arguments: &[&str]) -> Serve {
        let mut serve = self.start_serve(arguments);
        serve.ready().await;
        serve
    }

    /// Starts `serve` so that a file size limit causes a write error and not a signal that ends it.
    pub async fn serve_on_a_small_disk(&self) -> Serve {
        let command = self.command::<&str>(&[]);
        let mut shell = Command::new("sh");
        shell
            .args(["-c", "trap '' XFSZ; exec \"$0\" \"$@\""])
            .arg(command.get_program())
            .args(SERVE);
        shell.env_clear().current_dir(self.path());
        shell.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        shell.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut serve = self.started(shell);
        serve.ready().await;
        serve
    }

    /// Starts `serve` and does not wait.
    pub fn start_serve(&self, arguments: &[&str]) -> Serve {
        self.start_serve_at("127.0.0.1:0", arguments)
    }

    /// Starts `serve` at this address and does not wait.
    pub fn start_serve_at(&self, address: &str, arguments: &[&str]) -> Serve {
        let fixed = ["serve", "--listen", address, "--json"];
        self.started(self.command(&[&fixed, arguments].concat()))
    }

    fn started(&self, mut command: Command) -> Serve {
        let mut child = command.spawn().unwrap();
        let stdout = Gathered::from(child.stdout.take().unwrap());
        let stderr = Gathered::from(child.stderr.take().unwrap());
        let http = Client::builder().no_proxy().build().unwrap();
        let (start, url, directory) = (Value::Null, String::new(), self.directory.clone());
        Serve { child, stdout, stderr, http, start, url, _directory: directory }
    }
}

impl Outcome {
    pub fn of(mut command: Command) -> Self {
        command.output().unwrap().into()
    }

    /// The JSON document of `--json`.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("not one JSON document ({error}): {self:#?}"))
    }

    #[track_caller]
    #[expect(
        clippy::return_self_not_must_use,
        reason = "it checks; what it returns is for the next check"
    )]
    pub fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{}\n{}", self.stdout, self.stderr);
        self
    }

    /// Both streams, for checks that something is in neither.
    pub fn all(&self) -> String {
        format!("{}{}", self.stdout, self.stderr)
    }
}

impl From<std::process::Output> for Outcome {
    fn from(output: std::process::Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).expect("the program writes text");
        Self {
            code: output.status.code(),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }
}

/// The output of a stream so far.
#[derive(Debug, Clone, Default)]
struct Gathered(Arc<Mutex<String>>);

impl<R: Read + Send + 'static> From<R> for Gathered {
    fn from(stream: R) -> Self {
        let gathered = Self::default();
        let text = gathered.0.clone();
        thread::spawn(move || {
            let mut lines = BufReader::new(stream);
            let mut line = String::new();
            while lines.read_line(&mut line).is_ok_and(|read| read > 0) {
                text.lock().unwrap().push_str(&line);
                line.clear();
            }
        });
        gathered
    }
}

impl Gathered {
    fn text(&self) -> String {
        self.0.lock().unwrap().clone()
    }
}

/// A running `serve`. Dropping it kills it.
#[derive(Debug)]
pub struct Serve {
    child: Child,
    stdout: Gathered,
    stderr: Gathered,
    pub http: Client,
    /// The JSON document that it prints when it is ready.
    pub start: Value,
    pub url: String,
    /// Keeps the directory alive while the process runs.
    _directory: Arc<tempfile::TempDir>,
}

impl Drop for Serve {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

impl Serve {
    pub async fn ready(&mut self) {
        self.start = wait_until(LONGEST_START, async || {
            let ended = self.child.try_wait().unwrap();
            assert!(ended.is_none(), "serve ended: {}{}", self.stdout.text(), self.stderr.text());
            serde_json::from_str(&self.stdout.text()).ok()
        })
        .await;
        let url = self.start["url"].as_str();
        url.unwrap_or_else(|| panic!("serve fails: {:#}", self.start)).clone_into(&mut self.url);
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn stdout(&self) -> String {
        self.stdout.text()
    }

    pub fn stderr(&self) -> String {
        self.stderr.text()
    }

    /// Limits the size of files that the program writes; `None` removes the limit.
    pub fn limit_files(&self, bytes: Option<u64>) {
        let limit = bytes.map_or_else(|| "unlimited".to_owned(), |bytes| bytes.to_string());
        let mut prlimit = Command::new("prlimit");
        prlimit.arg(format!("--pid={}", self.pid())).arg(format!("--fsize={limit}:"));
        let done = prlimit.output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }

    pub fn signal(&self, name: &str) {
        signal(self.pid(), name);
    }

    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    pub async fn ended(&mut self) -> ExitStatus {
        let status = wait_until(PATIENCE, async || self.child.try_wait().unwrap()).await;
        // The reading threads may still hold the last output.
        wait_until(PATIENCE, async || (Arc::strong_count(&self.stderr.0) == 1).then_some(())).await;
        status
    }

    /// Waits until standard error contains this text.
    pub async fn said(&self, text: &str) {
        let found = wait_for(async || self.stderr().contains(text).then_some(())).await;
        assert!(found.is_some(), "{text:?} is not in:\n{}", self.stderr());
    }

    pub fn at(&self, path: &str) -> String {
        format!("{}{path}", self.url)
    }

    pub async fn get(&self, path: &str) -> Value {
        self.http.get(self.at(path)).send().await.unwrap().json().await.unwrap()
    }

    pub async fn text(&self, path: &str) -> String {
        self.http.get(self.at(path)).send().await.unwrap().text().await.unwrap()
    }

    pub async fn call(&self, tool: &str, arguments: Value) -> (StatusCode, Value) {
        call(&self.http, &self.url, tool, arguments).await
    }

    /// The result of a successful call.
    pub async fn answer(&self, tool: &str, arguments: Value) -> Value {
        let (status, body) = self.call(tool, arguments).await;
        assert_eq!(status, StatusCode::OK, "{body}\n{}", self.stderr());
        body
    }

    pub async fn tool_names(&self) -> Vec<String> {
        names(&self.get("/api/v1/tools").await)
    }

    pub async fn revision(&self) -> u64 {
        self.get("/readyz").await["revision"].as_u64().unwrap()
    }

    /// Waits until the catalog contains exactly these tools.
    pub async fn until_tools(&self, expected: &[&str]) {
        let found = wait_for(async || (self.tool_names().await == expected).then_some(())).await;
        let (is, said) = (self.tool_names().await, self.stderr());
        assert!(found.is_some(), "{expected:?} expected, {is:?} found\n{said}");
    }

    pub async fn until_status(&self, expected: &str) {
        wait_until(PATIENCE, async || {
            (self.get("/readyz").await["status"] == expected).then_some(())
        })
        .await;
    }
}

/// Like `wait_until`, but returns `None` at the deadline.
async fn wait_for<T>(mut probe: impl AsyncFnMut() -> Option<T>) -> Option<T> {
    let end = tokio::time::Instant::now() + PATIENCE;
    while tokio::time::Instant::now() < end {
        if let Some(found) = probe().await {
            return Some(found);
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    None
}

pub async fn call(http: &Client, url: &str, tool: &str, arguments: Value) -> (StatusCode, Value) {
    let request = http.post(format!("{url}/api/v1/tools/{tool}/call"));
    let response = request.json(&json!({ "arguments": arguments })).send().await.unwrap();
    (response.status(), response.json().await.unwrap())
}

/// The names in the output of `tool list`.
pub fn names(list: &Value) -> Vec<String> {
    let tools = list["tools"].as_array().unwrap();
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

/// `name max_instances timeout configured` of each tool.
pub fn limits(list: &Value) -> Vec<String> {
    let tools = list["tools"].as_array().unwrap();
    tools
        .iter()
        .map(|tool| {
            let limits = &tool["limits"];
            let texts = [&tool["name"], &limits["timeout"], &tool["configured"]];
            let [name, timeout, configured] = texts.map(|text| text.as_str().unwrap());
            format!("{name} {} {timeout} {configured}", limits["max_instances"])
        })
        .collect()
}

pub fn signal(pid: u32, name: &str) {
    let status = Command::new("kill").arg(format!("-{name}")).arg(pid.to_string()).status();
    assert!(status.unwrap().success(), "no signal reaches {pid}");
}

pub async fn server(tools: impl IntoIterator<Item = Tool>) -> ScriptedServer {
    ScriptedServer::builder().tools(tools).start().await
}

/// The entry of a dynamic server.
pub fn dynamic(name: &str, url: &str) -> String {
    format!(
        "{{name: {name}, url: \"{url}\", mode: dynamic, \
         default_tool_config: {{max_instances: 10, timeout: 30s}}}}"
    )
}

/// The entry of a strict server.
pub fn strict(name: &str, url: &str) -> String {
    format!("{{name: {name}, url: \"{url}\", mode: strict}}")
}

/// The entry of a dynamic stdio server.
pub fn stdio(name: &str, command: &Path, arguments: &[&str]) -> String {
    let arguments = serde_json::to_string(arguments).unwrap();
    format!(
        "{{name: {name}, command: {:?}, args: {arguments}, mode: dynamic, \
         default_tool_config: {{max_instances: 10, timeout: 30s}}}}",
        command.to_str().unwrap()
    )
}

/// The entry with further members.
pub fn with(entry: &str, more: &str) -> String {
    format!("{}, {more}}}", entry.strip_suffix('}').unwrap())
}

/// A configuration with these entries of `tools` and `mcps`.
pub fn yaml(tools: &[&str], servers: &[String]) -> String {
    yaml_with("max_concurrent: 64", tools, servers)
}

pub fn yaml_with(toolbox: &str, tools: &[&str], servers: &[String]) -> String {
    let list = |entries: Vec<&str>| match entries.len() {
        0 => " []".to_owned(),
        _ => format!("\n      - {}", entries.join("\n      - ")),
    };
    let servers = list(servers.iter().map(String::as_str).collect());
    let tools = list(tools.to_vec());
    format!("switchboard:\n  toolbox:\n    {toolbox}\n    tools:{tools}\n    mcps:{servers}\n")
}

/// Compares a message after replacing parts that differ from run to run.
#[macro_export]
macro_rules! assert_says {
    ($text:expr, @$expected:literal) => {
        insta::with_settings!({filters => vec![
            (r"127\.0\.0\.1:\d+", "HOST"),
            (r"/tmp/\.tmp\w+", "HOME"),
            (r"/\S*/switchboard-stdio-peer\b", "PEER"),
            (r"/\S*/debug/switchboard\b", "SWITCHBOARD"),
            (r"\d{4}-\d\d-\d\dT[\d:.]+Z", "TIME"),
            (r"\b\d+ ?ms\b", "MS"),
        ]}, {
            insta::assert_snapshot!($text, @$expected);
        });
    };
}
pub use crate::assert_says;
