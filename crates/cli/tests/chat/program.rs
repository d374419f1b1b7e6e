//! The program with a scripted server, and a chat that runs in the background.

use std::io::{Read, Write as _};
use std::process::{Child, ChildStdin, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;

use switchboard_test_support::{ScriptedServer, Tool, wait_until};

use crate::support::{Home, Outcome, PATIENCE, Serve, dynamic, server, signal};

/// The program, with an instance to talk to or without.
pub(crate) struct Program {
    pub(crate) home: Home,
    pub(crate) serve: Option<Serve>,
    _shop: ScriptedServer,
}

impl Program {
    pub(crate) async fn alone() -> Self {
        Self::with("").await
    }

    /// With more keys below the root of the configuration.
    pub(crate) async fn with(keys: &str) -> Self {
        let shop = server([Tool::echo("find"), Tool::echo("order")]).await;
        let entry = dynamic("shop", &shop.url());
        let yaml = format!("switchboard:\n{keys}  toolbox:\n    mcps:\n      - {entry}\n");
        Self { home: Home::new(yaml), serve: None, _shop: shop }
    }

    pub(crate) async fn served(mut self) -> Self {
        self.serve = Some(self.home.serve().await);
        self
    }

    /// Both ways of using it.
    pub(crate) async fn both() -> [Self; 2] {
        [Self::alone().await, Self::alone().await.served().await]
    }

    pub(crate) fn way(&self) -> &'static str {
        if self.serve.is_some() { "with --url" } else { "embedded" }
    }

    fn words<'a>(&'a self, words: &[&'a str]) -> Vec<&'a str> {
        let url = self.serve.iter().flat_map(|serve| ["--url", serve.url.as_str()]);
        words.iter().copied().chain(url).collect()
    }

    pub(crate) fn run(&self, words: &[&str]) -> Outcome {
        self.home.run(&self.words(words))
    }

    /// Says one thing.
    pub(crate) fn once(&self, text: &str) -> Outcome {
        self.run(&["chat", "-m", text])
    }

    /// A chat that reads its lines from a pipe.
    pub(crate) fn pipe(&self, words: &[&str], lines: &str) -> Outcome {
        self.home.run_with_input(&self.words(&[&["chat"], words].concat()), lines)
    }

    pub(crate) fn talk(&self, words: &[&str]) -> Talking {
        Talking::start(self.home.command(&self.words(&[&["chat"], words].concat())))
    }
}

/// The id by which a chat says that one comes back.
#[track_caller]
pub(crate) fn session_of(outcome: &Outcome) -> String {
    let said = outcome.stderr.split_once("`switchboard chat --session ").unwrap().1;
    said.split_once('`').unwrap().0.to_owned()
}

/// A chat that runs. Dropping it kills it.
pub(crate) struct Talking {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: EventReceiver,
    stderr: EventReceiver,
}

/// What a stream has said so far, also of a line that has not ended.
#[derive(Clone, Default)]
struct EventReceiver(Arc<Mutex<String>>);

impl EventReceiver {
    fn of(mut stream: impl Read + Send + 'static) -> Self {
        let heard = Self::default();
        let text = heard.0.clone();
        thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = stream.read(&mut bytes) {
                text.lock().unwrap().push_str(&String::from_utf8_lossy(&bytes[..count]));
            }
        });
        heard
    }

    fn text(&self) -> String {
        self.0.lock().unwrap().clone()
    }
}

impl Drop for Talking {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

impl Talking {
    pub(crate) fn start(mut command: std::process::Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        let (stdout, stderr) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        let (stdout, stderr) = (EventReceiver::of(stdout), EventReceiver::of(stderr));
        Self { stdin: child.stdin.take(), child, stdout, stderr }
    }

    pub(crate) fn type_line(&mut self, line: &str) {
        writeln!(self.stdin.as_mut().unwrap(), "{line}").unwrap();
    }

    pub(crate) fn press_control_c(&self) {
        signal(self.child.id(), "INT");
    }

    pub(crate) fn stdout(&self) -> String {
        self.stdout.text()
    }

    pub(crate) fn stderr(&self) -> String {
        self.stderr.text()
    }

    pub(crate) async fn answers(&self, text: &str) {
        until(&self.stdout, text).await;
    }

    pub(crate) async fn says(&self, text: &str) {
        until(&self.stderr, text).await;
    }

    /// Waits until it ends by itself.
    pub(crate) async fn ended(&mut self) -> ExitStatus {
        let status = wait_until(PATIENCE, async || self.child.try_wait().unwrap()).await;
        for heard in [&self.stdout, &self.stderr] {
            wait_until(PATIENCE, async || (Arc::strong_count(&heard.0) == 1).then_some(())).await;
        }
        status
    }

    /// Nothing more is typed.
    pub(crate) async fn close(&mut self) -> ExitStatus {
        self.stdin = None;
        self.ended().await
    }
}

async fn until(heard: &EventReceiver, text: &str) {
    wait_until(PATIENCE, async || heard.text().contains(text).then_some(())).await;
}
