//! The accounting of a call: its record, metrics and log line, written even if the call's future is dropped.

use std::sync::Arc;
use std::time::Duration;

use switchboard_model::{
    CallError, CallErrorKind, CallId, CallOutcome, CallRecord, Caller, CanonicalName, Plan,
    RecordedCaller, RecordedContents, RecordedPolicy,
};
use switchboard_registry::CatalogTool;
use switchboard_telemetry::{CallFinished, ToolMeter, end_call_span};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::Span;

use crate::activity::BoardActivity;
use crate::board::Board;
use crate::call_log::{error_text, log_call};
use crate::call_result::{CallFailed, RawCallResult, RawReport, ResultHandle};
use crate::running_calls::RunningCall;
use crate::snapshot::Snapshot;

/// Maximum number of characters of an error message in a record.
const MAX_RECORDED_MESSAGE: usize = 2000;

/// Maximum number of characters of a requested name in a record.
const MAX_RECORDED_NAME: usize = 256;

/// The message of a failure as a record keeps it.
fn recorded_message(error: &CallError, without_values: Option<&str>) -> String {
    let message = match (error.kind, without_values) {
        (_, Some(message)) => message,
        // The caller's message may quote arguments, which records never keep.
        (CallErrorKind::InvalidArguments, None) => {
            "the arguments do not fit the schema of the tool"
        }
        (_, None) => &error.message,
    };
    message.chars().take(MAX_RECORDED_MESSAGE).collect()
}

/// A requested name as a record keeps it: on one line, with unprintable characters escaped, and cut at
/// [`MAX_RECORDED_NAME`]. Callers may send anything as a name.
fn recorded_name(requested: &str) -> String {
    let is_plain = |byte: u8| byte == b' ' || byte.is_ascii_graphic();
    if requested.len() <= MAX_RECORDED_NAME && requested.bytes().all(is_plain) {
        return requested.to_owned();
    }
    let mut name = String::new();
    for c in requested.chars().take(MAX_RECORDED_NAME) {
        match c {
            '\'' | '"' | '\\' => name.push(c),
            c => name.extend(c.escape_debug()),
        }
    }
    // Cut again: escapes are longer than the characters that they replace.
    name.chars().take(MAX_RECORDED_NAME).collect()
}

/// Collects what the record of a call needs, and writes it at the end of the call or when its future is dropped.
pub(crate) struct CallAccounting<'a> {
    board: &'a Board,
    pub(crate) id: CallId,
    started_at_ms: i64,
    pub(crate) caller: Arc<Caller>,
    pub(crate) requested: String,
    plan: Arc<Plan>,
    policy: RecordedPolicy,
    revision: u64,
    argument_digest: String,
    /// Which contents of the call are recorded.
    keeps: RecordedContents,
    /// The arguments as the caller gave them, if they are recorded.
    arguments: Option<String>,
    pub(crate) tool: Option<CanonicalName>,
    pub(crate) meter: Option<Arc<ToolMeter>>,
    pub(crate) span: Span,
    pub(crate) wait_started: Option<Instant>,
    pub(crate) run_started: Option<Instant>,
    pub(crate) run_ended: Option<Instant>,
    pub(crate) result_bytes: u64,
    pub(crate) whole_result: Option<ResultHandle>,
    /// What is wrong with the arguments, without their values.
    pub(crate) refused_arguments: Option<String>,
    is_closed: bool,
    /// Cancels the call from outside.
    pub(crate) cancel: CancellationToken,
    /// Its entry among the running calls, once its tool is known.
    entered: Option<Arc<RunningCall>>,
}

impl<'a> CallAccounting<'a> {
    pub(crate) fn open(
        board: &'a Board,
        requested: &str,
        arguments: &str,
        caller: Arc<Caller>,
        snapshot: &Snapshot,
    ) -> Self {
        let digest = blake3::hash(arguments.as_bytes());
        let mut id = uuid::Uuid::encode_buffer();
        let id = uuid::Uuid::now_v7().hyphenated().encode_lower(&mut id).to_owned();
        Self {
            board,
            id: CallId(id),
            started_at_ms: jiff::Timestamp::now().as_millisecond(),
            caller,
            requested: recorded_name(requested),
            plan: snapshot.plan().clone(),
            policy: RecordedPolicy {
                configured: None,
                mode: None,
                digest: snapshot.policy_digest().clone(),
            },
            revision: snapshot.catalog().revision(),
            argument_digest: digest.to_hex().as_str().to_owned(),
            keeps: RecordedContents::default(),
            arguments: None,
            tool: None,
            meter: None,
            span: Span::none(),
            wait_started: None,
            run_started: None,
            run_ended: None,
            result_bytes: 0,
            whole_result: None,
            refused_arguments: None,
            is_closed: false,
            cancel: CancellationToken::new(),
            entered: None,
        }
    }

    /// Enters the call among the running ones and announces its beginning.
    pub(crate) fn begin(&mut self, tool: &CanonicalName) {
        let (board, cancel) = (self.board, self.cancel.clone());
        let call = board.running.enter(&self.id, tool, &self.caller, self.started_at_ms, cancel);
        board.around.activity.send(|| BoardActivity::CallStarted(call.clone()));
        self.entered = Some(call);
    }

    /// Notes that the call has its slots.
    pub(crate) fn runs(&mut self) {
        self.run_started = Some(Instant::now());
        if let Some(call) = &self.entered {
            call.note_slots();
        }
    }

    /// Why the board cancelled the call, if it did.
    pub(crate) fn cut_reason(&self) -> Option<&'static str> {
        self.entered.as_ref()?.cut_reason()
    }

    /// Takes the call from the running ones and announces its end.
    fn announce_end(&mut self, record: &CallRecord) {
        if self.entered.take().is_some() {
            self.board.running.leave(&record.id);
        }
        self.board.around.activity.send(|| BoardActivity::CallEnded(Arc::new(record.clone())));
    }

    /// Notes the tool that the call was resolved to. `arguments` are those of the caller.
    pub(crate) fn resolved(&mut self, tool: &CatalogTool, arguments: &str) {
        self.tool = Some(tool.name.clone());
        self.policy.configured = Some(tool.configured.as_str().into());
        self.policy.mode = Some(tool.mode.as_str().into());
        self.keeps = tool.record;
        self.arguments = tool.record.arguments.then(|| arguments.to_owned());
    }

    pub(crate) async fn close(mut self, result: Result<RawCallResult, CallFailed>) -> RawReport {
        let (outcome, message) = match &result {
            Ok(answer) if answer.head.is_error => (CallOutcome::ToolError, error_text(answer)),
            Ok(_) => (CallOutcome::Ok, None),
            Err(CallFailed { error, .. }) => {
                let message = recorded_message(error, self.refused_arguments.as_deref());
                (CallOutcome::Failed(error.kind), Some(message))
            }
        };
        let mut record = self.record(outcome, message);
        if let Some(answer) = result.as_ref().ok().filter(|_| self.keeps.results) {
            let redaction = &self.board.record_redaction;
            record.result = Some(redaction.content(&self.plan, answer.as_str()));
        }
        self.is_closed = true;
        self.announce_end(&record);
        let (wait, run) = (record.wait, record.run);
        self.board.recorder.record(record).await;
        RawReport {
            id: CallId(std::mem::take(&mut self.id.0)),
            tool: self.tool.take(),
            revision: self.revision,
            result,
            wait,
            run,
            whole_result: self.whole_result.take(),
        }
    }

    /// Builds the record and counts the call. Fields that only the record needs are moved out of `self`.
    fn record(&mut self, outcome: CallOutcome, message: Option<String>) -> CallRecord {
        let now = Instant::now();
        let between = |start: Option<Instant>, end: Option<Instant>| {
            start.map_or(Duration::ZERO, |start| end.unwrap_or(now) - start)
        };
        let wait = between(self.wait_started, self.run_started);
        let run = between(self.run_started, self.run_ended);
        end_call_span(&self.span, outcome.as_str(), outcome == CallOutcome::Ok);
        if let Some(meter) = &self.meter {
            let wait = self.wait_started.map(|_| wait);
            let run = self.run_started.map(|_| run);
            meter.count(&CallFinished { outcome: outcome.as_str(), wait, run });
        }
        let redaction = &self.board.record_redaction;
        let message = message.map(|message| redaction.message(&self.plan, &message));
        let arguments = self.arguments.take();
        let caller = &self.caller;
        let record = CallRecord {
            id: self.id.clone(),
            started_at_ms: self.started_at_ms,
            face: caller.face,
            caller: RecordedCaller {
                principal: Some(caller.principal.clone()),
                person: Some(caller.person().clone()),
                owner: Some(caller.owner.clone()),
                key: caller.identity.key.clone(),
                client: caller.client.name.clone(),
                client_version: caller.client.version.clone(),
                agent: caller.agent.clone(),
            },
            session: self.caller.session.clone(),
            tool: self.tool.clone(),
            requested: std::mem::take(&mut self.requested),
            revision: self.revision,
            policy: Some(self.policy.clone()),
            argument_digest: std::mem::take(&mut self.argument_digest),
            outcome,
            message,
            wait,
            run,
            result_bytes: self.result_bytes,
            result_handle: self.whole_result.as_ref().map(|handle| handle.0.clone()),
            arguments: arguments.map(|json| redaction.content(&self.plan, &json)),
            result: None,
        };
        log_call(&record);
        record
    }
}

impl Drop for CallAccounting<'_> {
    fn drop(&mut self) {
        if !self.is_closed {
            let cancelled = CallOutcome::Failed(CallErrorKind::Cancelled);
            let record = self.record(cancelled, Some("the caller no longer waited".into()));
            self.announce_end(&record);
            self.board.recorder.record_now(record);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_record_is_printable_and_bounded() {
        #[track_caller]
        fn check(requested: &str, expected: &str) {
            assert_eq!(recorded_name(requested), expected);
        }
        check("demo.echo", "demo.echo");
        check("it's \"so\" \\ ü", "it's \"so\" \\ ü");
        check("a\nb\u{1b}[31mc\0", "a\\nb\\u{1b}[31mc\\0");
        check("a\u{202e}b", "a\\u{202e}b");
        check(&"x".repeat(1000), &"x".repeat(MAX_RECORDED_NAME));
        assert_eq!(recorded_name(&"\u{1b}".repeat(1000)).chars().count(), MAX_RECORDED_NAME);
    }
}
