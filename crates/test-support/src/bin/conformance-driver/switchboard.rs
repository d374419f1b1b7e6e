//! The program under test, with one server.

use std::error::Error;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

#[derive(Debug)]
pub(crate) struct Switchboard {
    child: Child,
    /// The MCP endpoint for clients.
    pub(crate) url: String,
    /// Configuration and data; removed with the value.
    home: TempDir,
}

impl Drop for Switchboard {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

impl Switchboard {
    /// Starts the program that `SWITCHBOARD_BIN` names and waits until it is ready. `more` holds further members of the
    /// server's entry, as YAML that begins with a comma.
    pub(crate) fn before(server: &str, more: &str) -> Result<Self, Box<dyn Error>> {
        let home = tempfile::tempdir()?;
        std::fs::write(home.path().join("switchboard.yaml"), configuration(server, more))?;
        let mut child = command(&home)?
            .args(["serve", "--listen", "127.0.0.1:0", "--json"])
            .stdout(Stdio::piped())
            .spawn()?;
        let stdout = child.stdout.take().ok_or("the program has no output")?;
        let mut switchboard = Self { child, url: String::new(), home };
        let start = first_document(BufReader::new(stdout))?;
        let url = start["url"].as_str().ok_or("the program did not say where it listens")?;
        switchboard.url = format!("{url}/mcp");
        Ok(switchboard)
    }

    /// Another command of the program with the same configuration and data.
    pub(crate) fn command(&self) -> Result<Command, Box<dyn Error>> {
        command(&self.home)
    }

    /// The JSON output of such a command.
    pub(crate) fn ask(&self, arguments: &[&str]) -> Result<Value, Box<dyn Error>> {
        let output = self.command()?.args(arguments).arg("--json").output()?;
        Ok(serde_json::from_slice(&output.stdout)?)
    }

    /// Stops the program with time for an orderly shutdown.
    pub(crate) fn stop(mut self) {
        let asked = Command::new("kill").arg(self.child.id().to_string()).status();
        if asked.is_ok_and(|status| status.success()) {
            self.child.wait().ok();
        }
    }
}

fn command(home: &TempDir) -> Result<Command, Box<dyn Error>> {
    let program = std::env::var_os("SWITCHBOARD_BIN").ok_or("SWITCHBOARD_BIN is not set")?;
    let mut command = Command::new(program);
    command
        .current_dir(home.path())
        .env("HOME", home.path())
        .env("SWITCHBOARD_DATA_DIR", home.path().join("data"))
        .stdin(Stdio::null());
    Ok(command)
}

fn configuration(server: &str, more: &str) -> String {
    format!(
        "switchboard:\n  gateway: {{naming: bare}}\n  toolbox:\n    max_concurrent: 64\n    mcps:\n      \
         - {{name: suite, url: \"{server}\", mode: dynamic, \
         default_tool_config: {{max_instances: 10, timeout: 20s}}{more}}}\n"
    )
}

/// The JSON document that the program prints when it is ready.
fn first_document(output: impl BufRead) -> Result<Value, Box<dyn Error>> {
    let mut text = String::new();
    for line in output.lines() {
        text.push_str(&line?);
        text.push('\n');
        if let Ok(document) = serde_json::from_str(&text) {
            return Ok(document);
        }
    }
    Err(format!("the program ended: {text}").into())
}
