//! What a call owes to the records, paid even when its future is dropped.

use std::sync::Arc;
use std::time::Duration;

use switchboard_model::{
    CallError, CallErrorKind, CallId, CallOutcome, CallRecord, Caller, CanonicalName, Face,
};
use switchboard_telemetry::{CallFinished, ToolMeter, end_call_span};
use tokio::time::Instant;
use tracing::Span;

use crate::board::Board;
use crate::call::{CallFailed, RawAnswer, RawReport, ResultHandle};
use crate::call_log::{error_text, log_call};

/// Characters of a failure that a record keeps.
const MAX_RECORDED_MESSAGE: usize = 2000;

/// Characters of the name that was asked for.
const MAX_RECORDED_NAME: usize = 256;

/// What is kept of a failure. Arguments are not: a complaint may quote them.
fn recorded_message(error: &CallError) -> String {
    match error.kind {
        CallErrorKind::InvalidArguments => "the arguments do not fit the schema of the tool".into(),
        _ => error.message.chars().take(MAX_RECORDED_MESSAGE).collect(),
    }
}

/// A name as far as a record keeps it.
fn shortened(requested: &str) -> String {
    if requested.len() <= MAX_RECORDED_NAME {
        return requested.to_owned();
    }
    requested.chars().take(MAX_RECORDED_NAME).collect()
}

/// What a call owes to the records, paid even when its future is dropped.
pub(crate) struct Ledger<'a> {
    board: &'a Board,
    pub(crate) id: CallId,
    started_at_ms: i64,
    face: Face,
    pub(crate) caller: Caller,
    pub(crate) session: Option<Arc<str>>,
    pub(crate) requested: String,
    revision: u64,
    argument_digest: String,
    pub(crate) tool: Option<CanonicalName>,
    pub(crate) meter: Option<Arc<ToolMeter>>,
    pub(crate) span: Span,
    pub(crate) wait_started: Option<Instant>,
    pub(crate) run_started: Option<Instant>,
    pub(crate) run_ended: Option<Instant>,
    pub(crate) result_bytes: u64,
    pub(crate) whole_result: Option<ResultHandle>,
    is_closed: bool,
}

impl<'a> Ledger<'a> {
    pub(crate) fn open(
        board: &'a Board,
        requested: &str,
        arguments: &str,
        face: Face,
        revision: u64,
    ) -> Self {
        let digest = blake3::hash(arguments.as_bytes());
        let mut id = uuid::Uuid::encode_buffer();
        let id = uuid::Uuid::now_v7().hyphenated().encode_lower(&mut id).to_owned();
        Self {
            board,
            id: CallId(id),
            started_at_ms: jiff::Timestamp::now().as_millisecond(),
            face,
            caller: Caller::default(),
            session: None,
            requested: shortened(requested),
            revision,
            argument_digest: digest.to_hex().as_str().to_owned(),
            tool: None,
            meter: None,
            span: Span::none(),
            wait_started: None,
            run_started: None,
            run_ended: None,
            result_bytes: 0,
            whole_result: None,
            is_closed: false,
        }
    }

    pub(crate) fn face(&self) -> Face {
        self.face
    }

    pub(crate) async fn close(mut self, result: Result<RawAnswer, CallFailed>) -> RawReport {
        let (outcome, message) = match &result {
            Ok(answer) if answer.head.is_error => (CallOutcome::ToolError, error_text(answer)),
            Ok(_) => (CallOutcome::Ok, None),
            Err(CallFailed { error, .. }) => {
                (CallOutcome::Failed(error.kind), Some(recorded_message(error)))
            }
        };
        let record = self.record(outcome, message);
        self.is_closed = true;
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

    /// Makes the record and counts the call. What only the record needs is moved there.
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
        let record = CallRecord {
            id: self.id.clone(),
            started_at_ms: self.started_at_ms,
            face: self.face,
            caller: std::mem::take(&mut self.caller),
            session: self.session.as_deref().map(str::to_owned),
            tool: self.tool.clone(),
            requested: std::mem::take(&mut self.requested),
            revision: self.revision,
            argument_digest: std::mem::take(&mut self.argument_digest),
            outcome,
            message,
            wait,
            run,
            result_bytes: self.result_bytes,
            result_handle: self.whole_result.as_ref().map(|handle| handle.0.clone()),
        };
        log_call(&record);
        record
    }
}

impl Drop for Ledger<'_> {
    fn drop(&mut self) {
        if !self.is_closed {
            let cancelled = CallOutcome::Failed(CallErrorKind::Cancelled);
            let record = self.record(cancelled, Some("the caller no longer waited".into()));
            self.board.recorder.record_now(record);
        }
    }
}
