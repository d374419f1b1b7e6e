//! A stdio server: a child process that speaks over its standard input and output.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use switchboard_model::{ConnectError, ConnectErrorKind, Secret};
use tokio::io::AsyncReadExt;
use tokio::process::{Child, ChildStderr, ChildStdout, Command};
use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;

use crate::bounds::KEPT_STDERR_BYTES;
use crate::flow_limit::FlowLimit;
use crate::guard::GUARD_FAILED;
use crate::pending_requests::PendingRequests;
use crate::stdio_messages::{LineFault, QueuedLines, TappedLines, queued_lines};

/// How long a child may take to exit after its input was closed, and again after SIGTERM.
const GRACE: Duration = Duration::from_secs(2);

/// How long to wait for the rest of a child's standard error after it exited.
const LAST_WORDS: Duration = Duration::from_millis(100);

const START_HINT: &str = "`command` is looked up in PATH; give a full path or check `cwd`";

/// The environment variables that a child inherits. Others may hold credentials of Switchboard.
const INHERITED: &[&str] = &[
    "HOME",
    "LANG",
    "LOGNAME",
    "PATH",
    "SHELL",
    "TERM",
    "TMPDIR",
    "TZ",
    "USER",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "NODE_EXTRA_CA_CERTS",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_RUNTIME_DIR",
];

/// The command of a stdio server.
pub(crate) struct StdioCommand<'a> {
    pub(crate) command: &'a str,
    pub(crate) args: &'a [String],
    pub(crate) env: &'a BTreeMap<String, Secret>,
    pub(crate) cwd: Option<&'a PathBuf>,
}

/// The streams of a child: its output, rmcp's writer to its input, and the writer for callers' requests.
pub(crate) struct ChildStreams {
    pub(crate) output: TappedLines<ChildStdout>,
    pub(crate) input: QueuedLines,
    pub(crate) lines: mpsc::Sender<Bytes>,
}

/// A running child. Dropping it ends the child.
#[derive(Debug)]
pub(crate) struct ChildProcess {
    stderr: StderrTail,
    terminate: Arc<Notify>,
    exited: CancellationToken,
    status: Arc<Mutex<Option<ExitStatus>>>,
    fault: LineFault,
}

impl ChildProcess {
    /// Starts the command, through `guard` if there is one.
    pub(crate) fn spawn(
        line: &StdioCommand<'_>,
        guard: Option<&Path>,
        pending: &Arc<PendingRequests>,
    ) -> Result<(ChildStreams, Self), ConnectError> {
        let tasks = pending.tasks();
        let mut command = command_for(line, guard);
        let mut child = command.spawn().map_err(|error| cannot_start(line, &error))?;
        let streams = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = streams else {
            return Err(ConnectError::new(ConnectErrorKind::Process, "the child has no streams"));
        };
        let fault = LineFault::default();
        let process = Self {
            stderr: StderrTail::default(),
            terminate: Arc::default(),
            exited: CancellationToken::new(),
            status: Arc::default(),
            fault: fault.clone(),
        };
        let reading = process.stderr.clone().fill(stderr);
        let exited = process.exited.clone();
        tasks.spawn(async move {
            // A grandchild may hold the stream open forever; the output of the child itself arrives at once.
            let ended = async {
                exited.cancelled().await;
                tokio::time::sleep(LAST_WORDS).await;
            };
            tokio::select! {
                () = reading => {}
                () = ended => {}
            }
        });
        tasks.spawn(watch(
            child,
            process.terminate.clone(),
            process.status.clone(),
            process.exited.clone(),
        ));
        let (input, lines, writing) = queued_lines(stdin, pending.clone());
        tasks.spawn(writing);
        let output = TappedLines::new(stdout, pending.clone(), fault);
        Ok((ChildStreams { output, input, lines }, process))
    }

    pub(crate) fn stderr_tail(&self) -> &StderrTail {
        &self.stderr
    }

    /// The end of the child's standard error.
    pub(crate) fn stderr(&self) -> String {
        self.stderr.text()
    }

    /// Why the child's output ended, as far as it is known.
    pub(crate) fn reason(&self) -> String {
        if let Some(fault) = self.fault.get() {
            return fault;
        }
        match *self.status.lock() {
            Some(status) => format!("the process ended ({status})"),
            None => "the process closed its output".into(),
        }
    }

    /// The error of a guard that could not start the command; the same as without a guard.
    pub(crate) fn start_failure(&self) -> Option<ConnectError> {
        let status = *self.status.lock();
        let said = self.stderr();
        let is_ours = status.is_some_and(|status| status.code() == Some(i32::from(GUARD_FAILED)))
            && said.starts_with("cannot start `");
        is_ours.then(|| {
            ConnectError::new(ConnectErrorKind::Process, said).with_operator_hint(START_HINT)
        })
    }

    /// Whether it exited or was cut off.
    pub(crate) fn is_gone(&self) -> bool {
        self.fault.get().is_some() || self.exited.is_cancelled()
    }

    /// Whether it exited without being asked to, and without a fault in its output.
    pub(crate) fn ended_by_itself(&self) -> bool {
        self.fault.get().is_none() && self.exited.is_cancelled()
    }

    /// Waits for the child to exit after its input was closed, then sends SIGTERM.
    pub(crate) async fn end(&self) {
        if tokio::time::timeout(GRACE, self.exited.cancelled()).await.is_err() {
            self.terminate.notify_one();
            self.exited.cancelled().await;
        }
    }

    /// Waits a moment for the exit status and the rest of the error output.
    pub(crate) async fn settle(&self) {
        let _still_running =
            tokio::time::timeout(Duration::from_millis(300), self.exited.cancelled()).await;
        self.stderr.settle().await;
    }
}

impl Drop for ChildProcess {
    fn drop(&mut self) {
        self.terminate.notify_one();
    }
}

fn command_for(line: &StdioCommand<'_>, guard: Option<&Path>) -> Command {
    let mut command = if let Some(guard) = guard {
        let mut command = Command::new(guard);
        command.arg("guard").arg(std::process::id().to_string()).arg("--").arg(line.command);
        command
    } else {
        Command::new(line.command)
    };
    let inherited = INHERITED.iter().filter_map(|key| Some((key, std::env::var_os(key)?)));
    command
        .args(line.args)
        .env_clear()
        .envs(inherited)
        .envs(line.env.iter().map(|(key, value)| (key, value.expose())))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // A kill would only hit the guard. The guard gets SIGTERM instead, and ends the process tree.
        .kill_on_drop(guard.is_none());
    if let Some(cwd) = line.cwd {
        command.current_dir(cwd);
    }
    command
}

fn cannot_start(line: &StdioCommand<'_>, error: &io::Error) -> ConnectError {
    let reason = match line.cwd {
        Some(cwd) if !cwd.is_dir() => format!("there is no directory {}", cwd.display()),
        Some(_) | None => error.to_string(),
    };
    let message = format!("cannot start `{}`: {reason}", line.command);
    ConnectError::new(ConnectErrorKind::Process, message).with_operator_hint(START_HINT)
}

async fn watch(
    mut child: Child,
    terminate: Arc<Notify>,
    status: Arc<Mutex<Option<ExitStatus>>>,
    exited: CancellationToken,
) {
    let ended = tokio::select! {
        ended = child.wait() => ended.ok(),
        () = terminate.notified() => terminate_child(&mut child).await,
    };
    *status.lock() = ended;
    exited.cancel();
}

#[cfg(target_os = "linux")]
async fn terminate_child(child: &mut Child) -> Option<ExitStatus> {
    let pid = child.id().and_then(|id| i32::try_from(id).ok());
    if let Some(pid) = pid.and_then(rustix::process::Pid::from_raw) {
        // It may just have exited.
        let _gone = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
    }
    if let Ok(ended) = tokio::time::timeout(GRACE, child.wait()).await {
        return ended.ok();
    }
    child.kill().await.ok()?;
    child.wait().await.ok()
}

#[cfg(not(target_os = "linux"))]
async fn terminate_child(child: &mut Child) -> Option<ExitStatus> {
    child.kill().await.ok()?;
    child.wait().await.ok()
}

/// The last bytes of an unbounded output.
#[derive(Debug, Clone, Default)]
pub(crate) struct StderrTail {
    kept: Arc<Mutex<VecDeque<u8>>>,
    closed: CancellationToken,
}

impl StderrTail {
    async fn fill(self, mut stderr: ChildStderr) {
        let mut buffer = [0; 4096];
        let mut limit = FlowLimit::bytes();
        while let Ok(length @ 1..) = stderr.read(&mut buffer).await {
            limit.pass(length).await;
            let mut kept = self.kept.lock();
            kept.extend(buffer.iter().take(length));
            let excess = kept.len().saturating_sub(KEPT_STDERR_BYTES);
            kept.drain(..excess);
        }
        self.closed.cancel();
    }

    async fn settle(&self) {
        let _still_open = tokio::time::timeout(LAST_WORDS, self.closed.cancelled()).await;
    }

    pub(crate) fn text(&self) -> String {
        let kept = self.kept.lock();
        let (front, back) = kept.as_slices();
        let text = [front, back].concat();
        let text = String::from_utf8_lossy(&text);
        // If the beginning was cut, the first word may be the end of a secret, which redaction would not recognize.
        let is_cut = kept.len() == KEPT_STDERR_BYTES;
        let rest = text.split_once(char::is_whitespace).filter(|_| is_cut);
        rest.map_or(&*text, |(_, rest)| rest).trim().to_owned()
    }
}
