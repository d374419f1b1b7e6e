//! The environment for the examples of one page: a directory, the built program and TrustGraph's commands in `PATH`, the
//! quick start configuration as `switchboard.yaml`, and a running server where a block asks for one.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use switchboard_test_support::peers;
use tempfile::TempDir;

use crate::compare::is_as_written;
use crate::page::{Block, Marker, workspace};

const PROGRAM: &str = env!("CARGO_BIN_EXE_switchboard");
/// The address that the pages write, whatever port the server of the test really has.
const WRITTEN_ADDRESS: &str = "127.0.0.1:8420";
/// Separates the outputs of the commands of one block.
const SEPARATOR: &str = "=== the next command ===";

pub(crate) struct Stage {
    directory: TempDir,
    server: Option<Served>,
    /// What earlier blocks exported: a reader keeps the terminal open.
    exported: Vec<(String, String)>,
}

struct Served {
    child: Child,
    address: String,
    /// What it printed while it started.
    said: String,
}

impl Drop for Served {
    fn drop(&mut self) {
        // It may have ended by itself; its children end with it.
        let _ended = self.child.kill();
        let _reaped = self.child.wait();
    }
}

/// `python3` and `node` with the libraries of the model providers.
fn with_libraries(directory: &Path) {
    let (python, node) = (peers::app("openai_app.py"), peers::app("node_apps.mjs"));
    let bin = directory.join("bin");
    fs::create_dir(&bin).expect("a directory can be made");
    for (name, command) in [("python3", &python), ("node", &node)] {
        let set = command
            .get_envs()
            .filter_map(|(name, value)| Some(format!("{}='{}'", name.to_str()?, value?.to_str()?)));
        let set: Vec<_> = set.collect();
        let program = command.get_program().to_str().expect("its path is text");
        let script = format!("#!/bin/sh\nexec env {} '{program}' \"$@\"\n", set.join(" "));
        let file = bin.join(name);
        fs::write(&file, script).expect("it can be written");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect("it can be run");
    }
    let npm = node.get_envs().find(|(name, _)| *name == "APPS_NPM").and_then(|(_, npm)| npm);
    let modules = Path::new(npm.expect("the place of the packages is known")).join("node_modules");
    symlink(modules, directory.join("node_modules")).expect("a link can be made");
}

impl Stage {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory can be made");
        let examples = directory.path().join("examples");
        fs::create_dir(&examples).expect("a directory can be made");
        for example in fs::read_dir(workspace().join("examples")).expect("there are examples") {
            let example = example.expect("the examples can be listed");
            fs::copy(example.path(), examples.join(example.file_name())).expect("it can be copied");
        }
        let first = directory.path().join("switchboard.yaml");
        fs::copy(examples.join("quickstart.yaml"), first).expect("it can be copied");
        with_libraries(directory.path());
        Self { directory, server: None, exported: Vec::new() }
    }

    /// A command in this place, with an environment that holds nothing of ours.
    pub(crate) fn command(&self, program: &str) -> Command {
        let programs = Path::new(PROGRAM).parent().expect("the program is in a directory");
        let trustgraph = peers::trustgraph_commands();
        let inherited = std::env::var("PATH").unwrap_or_default();
        let mut command = Command::new(program);
        command
            .current_dir(self.directory.path())
            .env_clear()
            .env(
                "PATH",
                format!(
                    "{}:{}:{}:{inherited}",
                    self.directory.path().join("bin").display(),
                    programs.display(),
                    trustgraph.display()
                ),
            )
            .env("HOME", self.directory.path())
            .env("SWITCHBOARD_DATA_DIR", self.directory.path().join("data"))
            .envs(self.exported.iter().cloned());
        command
    }

    /// Runs or checks a block; says what is wrong.
    pub(crate) fn perform(&mut self, block: &Block) -> Result<(), String> {
        let is_program = !["console", "sh", "yaml"].contains(&block.language.as_str());
        if is_program && block.has(&Marker::Serve) && self.server.is_none() {
            self.serve("127.0.0.1:0")?;
        }
        for marker in &block.markers {
            if let Marker::File(name) = marker {
                let text = if is_program {
                    self.with_real_address(&block.text)
                } else {
                    block.text.clone()
                };
                fs::write(self.directory.path().join(name), text).expect("it can be written");
            }
        }
        match block.language.as_str() {
            "console" | "sh" => self.run(block),
            "yaml" => self.check(block),
            _ => Ok(()),
        }
    }

    fn run(&mut self, block: &Block) -> Result<(), String> {
        let mut commands = block.commands();
        if block.has(&Marker::Restart) {
            self.restart()?;
        }
        if block.has(&Marker::Serve) && self.server.is_none() {
            self.serve("127.0.0.1:0")?;
        }
        if (block.has(&Marker::Serve) || block.has(&Marker::Restart))
            && commands.first().is_some_and(|(command, _)| is_serve(command))
        {
            let (_, expected) = commands.remove(0);
            let said = self.server.as_ref().map(|server| server.said.clone()).unwrap_or_default();
            verdict("switchboard serve", &expected, &said)?;
        }
        let mut script = String::from("exec 2>&1\n");
        for (command, _) in &commands {
            if let Some((name, value)) =
                command.strip_prefix("export ").and_then(|set| set.split_once('='))
            {
                let value = self.with_real_address(value);
                self.exported.push((name.to_owned(), value));
            }
        }
        for (command, _) in &commands {
            let command = self.with_real_address(command);
            let separate = ["\nstatus=$?; printf '\\n", SEPARATOR, "\\n'; (exit $status)\n"];
            script.push_str(&command);
            script.extend(separate);
        }
        let output = self.command("sh").arg("-c").arg(script).stdin(Stdio::null()).output();
        let output = output.expect("sh can be started");
        let printed = self.with_written_address(&String::from_utf8_lossy(&output.stdout));
        for ((command, expected), actual) in commands.iter().zip(printed.split(SEPARATOR)) {
            verdict(command, expected, actual.strip_prefix('\n').unwrap_or(actual))?;
        }
        Ok(())
    }

    /// A configuration is valid, unless the page says that it is not.
    fn check(&self, block: &Block) -> Result<(), String> {
        let mut text = block.text.clone();
        for marker in &block.markers {
            if let Marker::Fragment(path) = marker {
                text = below(path, &text);
            }
        }
        fs::write(self.directory.path().join("checked.yaml"), &text).expect("it can be written");
        let mut command = self.command("switchboard");
        for marker in &block.markers {
            if let Marker::Env(name, value) = marker {
                command.env(name, value);
            }
        }
        let output = command.args(["check", "--config", "checked.yaml"]).output();
        let output = output.expect("switchboard can be started");
        if output.status.success() == block.has(&Marker::Fails) {
            let printed = [output.stdout, output.stderr].concat();
            return Err(format!("{text}\n{}", String::from_utf8_lossy(&printed)));
        }
        Ok(())
    }

    /// Ends the server as a user would, and starts it again at its address.
    fn restart(&mut self) -> Result<(), String> {
        let mut server = self.server.take().ok_or("no server runs that could be started again")?;
        let pid = server.child.id().to_string();
        let asked = Command::new("sh").args(["-c", &format!("kill -TERM {pid}")]).status();
        assert!(asked.is_ok_and(|status| status.success()), "the server can be asked to end");
        server.child.wait().expect("it ends");
        let address = server.address.clone();
        self.serve(&address)
    }

    /// Starts a server and waits until it says where it listens.
    fn serve(&mut self, listen: &str) -> Result<(), String> {
        let log = fs::File::create(self.directory.path().join("serve.log")).expect("a log");
        let mut child = self
            .command("switchboard")
            .args(["serve", "--listen", listen])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .expect("switchboard can be started");
        let mut said = String::new();
        let stdout = child.stdout.take().expect("its output is piped");
        for line in BufReader::new(stdout).lines() {
            let line = line.expect("its output is text");
            said.extend([line.as_str(), "\n"]);
            let address = line.strip_prefix("MCP clients connect to http://");
            if let Some(address) = address.and_then(|place| place.strip_suffix("/mcp")) {
                let (address, said) = (address.to_owned(), said.replace(address, WRITTEN_ADDRESS));
                self.server = Some(Served { child, address, said });
                return Ok(());
            }
        }
        let ended = child.wait().expect("it has ended");
        let log = fs::read_to_string(self.directory.path().join("serve.log")).unwrap_or_default();
        Err(format!("serve ended ({ended}) before it served:\n{said}{log}"))
    }

    fn with_real_address(&self, text: &str) -> String {
        match &self.server {
            Some(server) => text.replace(WRITTEN_ADDRESS, &server.address),
            None => text.to_owned(),
        }
    }

    fn with_written_address(&self, text: &str) -> String {
        match &self.server {
            Some(server) => text.replace(&server.address, WRITTEN_ADDRESS),
            None => text.to_owned(),
        }
    }
}

/// Whether the page shows the start of the server that the stage has already started.
fn is_serve(command: &str) -> bool {
    command.split_whitespace().take(2).eq(["switchboard", "serve"])
}

fn verdict(command: &str, expected: &str, actual: &str) -> Result<(), String> {
    if is_as_written(expected, actual) {
        return Ok(());
    }
    Err(format!("$ {command}\n--- the page says\n{expected}--- it printed\n{actual}---"))
}

/// The fragment, indented below `switchboard:` and the keys of the path.
fn below(path: &str, fragment: &str) -> String {
    let mut lines = vec!["switchboard:".to_owned()];
    for (depth, key) in path.split('.').enumerate() {
        lines.push(format!("{}{key}:", "  ".repeat(depth + 1)));
    }
    let indent = "  ".repeat(lines.len());
    lines.extend(fragment.lines().map(|line| format!("{indent}{line}")));
    lines.join("\n") + "\n"
}
