//! A client script as a process that reports on its output.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;
use switchboard_test_support::peers;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

/// Starting Python takes some seconds on a busy machine.
const PATIENCE: Duration = Duration::from_secs(40);

/// Where a client finds its server.
#[derive(Debug)]
pub(crate) enum Place {
    Http(String),
    /// It starts the server and speaks to it over standard input and output.
    Program(Vec<String>),
}

#[derive(Debug)]
pub(crate) struct Script {
    interpreter: PathBuf,
    file: PathBuf,
    era: &'static str,
    /// Arguments behind the era.
    more: Vec<String>,
}

/// A running script. Dropping it kills it.
#[derive(Debug)]
pub(crate) struct Running {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Script {
    pub(crate) fn node(name: &str, era: &'static str) -> Self {
        Self { interpreter: peers::node(), file: peers::client(name), era, more: Vec::new() }
    }

    pub(crate) fn python(name: &str, era: &'static str) -> Self {
        Self { interpreter: peers::python(), file: peers::client(name), era, more: Vec::new() }
    }

    /// The script with one more argument.
    #[must_use]
    pub(crate) fn with(mut self, argument: &str) -> Self {
        self.more.push(argument.to_owned());
        self
    }

    pub(crate) fn start(&self, place: &Place) -> Running {
        let (url, command) = match place {
            Place::Http(url) => (url.as_str(), &[][..]),
            Place::Program(command) => ("-", command.as_slice()),
        };
        let mut child = Command::new(&self.interpreter)
            .arg(&self.file)
            .args([url, self.era])
            .args(&self.more)
            .args(command)
            .env("E2E_NODE_MODULES", peers::npm_file(""))
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Running { child, lines }
    }
}

impl Running {
    /// Until it has done all but hear of a change.
    pub(crate) async fn until_it_waits(&mut self) {
        let line = self.said().await;
        assert_eq!(line["waits"], "for a change", "{line}");
    }

    pub(crate) async fn result(mut self) -> Value {
        self.said().await
    }

    /// The next line that it prints.
    pub(crate) async fn said(&mut self) -> Value {
        match tokio::time::timeout(PATIENCE, self.lines.next_line()).await {
            Ok(Ok(Some(line))) => serde_json::from_str(&line).unwrap(),
            other => panic!("{other:?}: {}", self.complaint().await),
        }
    }

    async fn complaint(&mut self) -> String {
        self.child.start_kill().ok();
        let mut text = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut text).await.unwrap();
        text
    }
}
