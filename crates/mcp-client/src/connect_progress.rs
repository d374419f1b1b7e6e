//! The progress of a connection attempt, for error messages and progress displays.

use parking_lot::Mutex;
use switchboard_model::{ConnectError, ConnectErrorKind, Endpoint, ServerSpec};
use switchboard_outbound::Redactor;

use crate::stdio::StderrTail;

/// Maximum number of bytes of an output line that are shown.
const MAX_SHOWN_LINE: usize = 200;

/// Programs that download what they run.
const LAUNCHERS: [&str; 13] = [
    "bunx", "deno", "dnx", "docker", "go", "npm", "npx", "pipx", "pnpm", "podman", "uv", "uvx",
    "yarn",
];

/// Shared between the connection attempt and the display of its progress.
#[derive(Debug, Default)]
pub struct ConnectProgress(Mutex<ProgressState>);

#[derive(Debug, Default)]
struct ProgressState {
    step: Option<&'static str>,
    stderr: Option<StderrTail>,
    redactor: Redactor,
}

impl ConnectProgress {
    /// The awaited message or event.
    pub fn step(&self) -> &'static str {
        self.state(|state| state.step).unwrap_or("the connection")
    }

    /// The last line of the child's standard error, without secrets.
    pub fn last_output(&self) -> Option<String> {
        let text = self.output();
        let line = text.lines().rev().map(str::trim).find(|line| !line.is_empty())?;
        let end = line.floor_char_boundary(MAX_SHOWN_LINE);
        // The text goes to terminals and logs and is untrusted, so control characters are replaced.
        let plain = |c: char| if c.is_control() { ' ' } else { c };
        let shown: String = line.get(..end).unwrap_or_default().chars().map(plain).collect();
        Some(if end < line.len() { format!("{shown}…") } else { shown })
    }

    /// The kept part of the child's standard error, without secrets.
    pub(crate) fn output(&self) -> String {
        self.state(|state| {
            let text = state.stderr.as_ref().map(StderrTail::text).unwrap_or_default();
            state.redactor.redact_text(&text)
        })
    }

    pub(crate) fn begin(&self, redactor: Redactor) {
        self.state(|state| *state = ProgressState { redactor, ..ProgressState::default() });
    }

    pub(crate) fn set_step(&self, step: &'static str) {
        self.state(|state| state.step = Some(step));
    }

    pub(crate) fn set_stderr(&self, stderr: StderrTail) {
        self.state(|state| state.stderr = Some(stderr));
    }

    fn state<T>(&self, look: impl FnOnce(&mut ProgressState) -> T) -> T {
        look(&mut self.0.lock())
    }

    /// The error of a server that did not answer in time.
    pub(crate) fn timed_out(&self, spec: &ServerSpec) -> ConnectError {
        let limit = switchboard_model::render_duration(spec.connect_timeout);
        let said = self.last_output();
        let said = said.map(|line| format!("; the last line of its error output: {line}"));
        let message =
            format!("no answer to {} within {limit}{}", self.step(), said.unwrap_or_default());
        ConnectError::new(ConnectErrorKind::Timeout, message).with_operator_hint(timeout_hint(spec))
    }
}

fn timeout_hint(spec: &ServerSpec) -> String {
    let Endpoint::Stdio { command, .. } = &spec.endpoint else {
        return "raise `connect_timeout` for a server that needs longer to start".into();
    };
    let program = command.rsplit(['/', '\\']).next().unwrap_or_default();
    let program = program.strip_suffix(".exe").or(program.strip_suffix(".cmd")).unwrap_or(program);
    if LAUNCHERS.contains(&program) {
        format!(
            "`{program}` may have been downloading: run the command once by hand, which fills its cache, or set a larger `connect_timeout`"
        )
    } else {
        "the process runs and does not answer: check that the command serves MCP on its standard output, or set a larger `connect_timeout` if it needs longer to start".into()
    }
}
