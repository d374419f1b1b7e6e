//! One of the agent programs, run headless in a directory of its own against a model that the test plays.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use switchboard_test_support::{peers, wait_until};
use tokio::process::{Child, Command};

use crate::support::Home;

/// What an agent and its children need to end.
const ENDING: Duration = Duration::from_secs(30);
/// Nothing listens there: what an agent sends to its vendor goes nowhere.
const DEAD_PROXY: &str = "http://127.0.0.1:9";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Agent {
    Codex,
    Claude,
    Gemini,
}

/// How the agent reaches Switchboard.
#[derive(Debug, Clone)]
pub(crate) enum Link {
    /// A running board at this address.
    Http(String),
    /// It starts a board of its own.
    OwnBoard,
    /// It starts `stdio --url`, which leads to a running board.
    Bridge(String),
    /// Only as its model: it knows no MCP server.
    AsModel,
}

impl Agent {
    /// Its name for `switchboard connect`.
    fn client(self) -> &'static str {
        match self {
            Self::Codex => "codex",
            Self::Claude => "claude-code",
            Self::Gemini => "gemini",
        }
    }

    /// The name under which it offers a tool of the entry `switchboard` to its model.
    pub(crate) fn tool(self, name: &str) -> String {
        match self {
            // A function in a namespace.
            Self::Codex => format!("mcp__switchboard.{name}"),
            Self::Claude => format!("mcp__switchboard__{name}"),
            Self::Gemini => format!("mcp_switchboard_{name}"),
        }
    }

    /// Whether it lists again when it hears that the list changed.
    pub(crate) fn lists_again(self) -> bool {
        match self {
            Self::Codex => false,
            Self::Claude | Self::Gemini => true,
        }
    }

    /// The path below the board's address where its model is, and the provider behind it.
    pub(crate) fn model_at_board(self) -> (&'static str, &'static str) {
        match self {
            Self::Codex => ("/openai", "openai"),
            Self::Claude => ("/anthropic", "anthropic"),
            Self::Gemini => ("/gemini", "gemini"),
        }
    }

    /// Its own tool for reading a file, with the arguments for this one.
    pub(crate) fn reader(self, file: &Path) -> (&'static str, Value) {
        let file = file.to_str().unwrap();
        match self {
            Self::Codex => ("exec_command", json!({"cmd": format!("cat {file}")})),
            Self::Claude => ("Read", json!({"file_path": file})),
            Self::Gemini => ("read_file", json!({"file_path": file})),
        }
    }

    fn command(self, link: &Link, model: &str) -> Command {
        let program = match self {
            Self::Codex => "codex",
            Self::Claude => "claude",
            Self::Gemini => "gemini",
        };
        let mut command = Command::new(peers::agent(program));
        command.env_clear();
        match self {
            Self::Codex => {
                command.args(["exec", "--skip-git-repo-check"]).env("FAKE_API_KEY", "dummy");
                if matches!(link, Link::AsModel) {
                    // Its sandbox needs programs that a machine may lack; here it only reads a file.
                    command.args(["--sandbox", "danger-full-access"]);
                }
            }
            Self::Claude => {
                if !matches!(link, Link::AsModel) {
                    command
                        .args(["--mcp-config", ".mcp.json", "--strict-mcp-config"])
                        .args(["--allowedTools", "mcp__switchboard"]);
                }
                command
                    .arg("-p")
                    .env("ANTHROPIC_BASE_URL", model)
                    .env("ANTHROPIC_API_KEY", "dummy")
                    .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
                    .env("DISABLE_AUTOUPDATER", "1")
                    // Else the tools of servers are only named until the model searches for them.
                    .env("ENABLE_TOOL_SEARCH", "false");
            }
            Self::Gemini => {
                command
                    .args(["--approval-mode", "yolo", "--skip-trust", "-m", "gemini-2.5-pro", "-p"])
                    .env("GEMINI_API_KEY", "dummy")
                    .env("GOOGLE_GEMINI_BASE_URL", model);
            }
        }
        command.arg("please test");
        command
    }

    /// What its user has set up before Switchboard comes.
    fn settings(self, model: &str) -> Option<(&'static str, String)> {
        match self {
            Self::Codex => Some((
                ".codex/config.toml",
                format!(
                    "model = \"gpt-5.1\"\nmodel_provider = \"fake\"\napproval_policy = \"never\"\n\n\
                     [model_providers.fake]\nname = \"fake\"\nbase_url = \"{model}/v1\"\n\
                     env_key = \"FAKE_API_KEY\"\nwire_api = \"responses\"\nsupports_websockets = false\n"
                ),
            )),
            Self::Claude => None,
            Self::Gemini => Some((
                ".gemini/settings.json",
                json!({
                    "security": {"auth": {"selectedType": "gemini-api-key"}},
                    "general": {"enableAutoUpdate": false},
                    "privacy": {"usageStatisticsEnabled": false},
                })
                .to_string(),
            )),
        }
    }
}

/// A running agent. Dropping it kills it and everything that it started.
#[derive(Debug)]
pub(crate) struct Running {
    child: Child,
    directory: PathBuf,
}

impl Running {
    /// Writes the entry with `switchboard connect --write`, as a user does, and starts the agent. `model` is the address of its
    /// model, without the version.
    pub(crate) fn start(agent: Agent, home: &Home, link: &Link, model: &str) -> Self {
        let directory = home.path().join("agent");
        let work = directory.join("work");
        std::fs::create_dir_all(&work).unwrap();
        if let Some((file, text)) = agent.settings(model) {
            let file = directory.join(file);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text).unwrap();
        }
        connect(agent, home, link, &directory, &work);
        let node = peers::node();
        let path = std::env::var("PATH").unwrap();
        let file = |name| Stdio::from(std::fs::File::create(directory.join(name)).unwrap());
        let child = agent
            .command(link, model)
            .env("PATH", format!("{}:{path}", node.parent().unwrap().display()))
            .envs([("HOME", &directory), ("TMPDIR", &directory)])
            .env("HTTPS_PROXY", DEAD_PROXY)
            .env("NO_PROXY", "127.0.0.1,localhost")
            .current_dir(&work)
            .stdin(Stdio::null())
            .stdout(file("stdout"))
            .stderr(file("stderr"))
            .spawn()
            .unwrap();
        Self { child, directory }
    }

    /// Waits for the end of it and of what it started; gives what it printed.
    pub(crate) async fn ended(mut self) -> String {
        let ended = tokio::time::timeout(ENDING, self.child.wait()).await;
        let Ok(Ok(status)) = ended else { panic!("it goes on: {}", self.said()) };
        assert!(status.success(), "{status}: {}", self.said());
        wait_until(ENDING, async || self.processes().is_empty().then_some(())).await;
        std::fs::read_to_string(self.directory.join("stdout")).unwrap()
    }

    /// What it wrote so far, for the message of a failed test.
    pub(crate) fn said(&self) -> String {
        let text = |name| std::fs::read_to_string(self.directory.join(name)).unwrap_or_default();
        format!("{}\n{}", text("stdout"), text("stderr"))
    }

    /// The processes of the agent and of what it started.
    fn processes(&self) -> Vec<u32> {
        processes_at_home(&self.directory)
    }

    fn kill(&self) {
        for process in self.processes() {
            std::process::Command::new("kill").args(["-KILL", &process.to_string()]).output().ok();
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}

fn connect(agent: Agent, home: &Home, link: &Link, directory: &Path, work: &Path) {
    let config = home.config();
    let data = home.path().join("data");
    let own =
        ["--stdio", "--config", config.to_str().unwrap(), "--data-dir", data.to_str().unwrap()];
    let reach = match link {
        Link::Http(url) => vec!["--url", url],
        Link::OwnBoard => own.to_vec(),
        Link::Bridge(url) => vec!["--stdio", "--url", url],
        Link::AsModel => return,
    };
    let mut command = home.command(&[&["connect", agent.client(), "--write"], &reach[..]].concat());
    let output = command.env("HOME", directory).current_dir(work).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    if agent == Agent::Codex {
        // Nobody is there to approve a call, and a tool without annotations may do anything. Servers that are not
        // required are not waited for: their tools come with a later request.
        let file = directory.join(".codex/config.toml");
        let entry = std::fs::read_to_string(&file).unwrap();
        let more = "default_tools_approval_mode = \"approve\"\nrequired = true\n";
        std::fs::write(file, entry + more).unwrap();
    }
}

/// The processes whose home is this directory: the agent and what it started.
fn processes_at_home(directory: &Path) -> Vec<u32> {
    let home = format!("HOME={}", directory.display()).into_bytes();
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    processes
        .filter_map(|entry| {
            let id = entry.file_name().to_str()?.parse().ok()?;
            let environment = std::fs::read(entry.path().join("environ")).ok()?;
            environment.split(|byte| *byte == 0).any(|variable| variable == home).then_some(id)
        })
        .collect()
}
