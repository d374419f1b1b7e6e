//! Tells how the turns of apps ended: a line in the log, metrics, and a list of the last ones.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use switchboard_splice::{Api, LeftOut};
use switchboard_telemetry::app_turn_ended;
use tokio::time::Instant;

use crate::Failure;
use crate::turn_records::now_ms;

/// How many ended turns are listed.
const LISTED: usize = 500;
/// How many tools that were left out are named for a turn.
const NAMED: usize = 50;

/// How a turn of an app ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AppTurnState {
    Completed,
    Failed,
    /// The app closed its connection.
    Cancelled,
}

impl AppTurnState {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

/// A turn of an app that has ended.
#[derive(Debug, Clone)]
pub struct AppTurnSummary {
    pub id: String,
    pub api: &'static str,
    pub session: Arc<str>,
    pub principal: Arc<str>,
    pub provider: String,
    pub model: String,
    pub state: AppTurnState,
    /// The word for the failure.
    pub error: Option<&'static str>,
    pub rounds: u32,
    /// The number of calls of session tools.
    pub calls: u32,
    /// The number of session tools that were declared.
    pub tools: usize,
    /// The number of session tools that were not declared.
    pub left_out: usize,
    /// Some of them, with the reasons.
    pub reasons: Vec<LeftOut>,
    pub ended_at_ms: i64,
    pub took_ms: u64,
}

/// The last turns that ended, oldest first.
#[derive(Debug, Default)]
pub(crate) struct EndedTurns(Mutex<VecDeque<AppTurnSummary>>);

impl EndedTurns {
    fn add(&self, turn: AppTurnSummary) {
        let mut turns = self.0.lock();
        if turns.len() == LISTED {
            turns.pop_front();
        }
        turns.push_back(turn);
    }

    pub(crate) fn of(&self, session: &str) -> Vec<AppTurnSummary> {
        self.0.lock().iter().filter(|turn| &*turn.session == session).cloned().collect()
    }

    /// Whether a turn of this session left out tools before.
    fn has_left_out(&self, session: &str) -> bool {
        self.0.lock().iter().any(|turn| &*turn.session == session && turn.left_out > 0)
    }
}

/// A running turn. Dropping it without an end means that the app went away.
#[derive(Debug)]
pub(crate) struct TurnLog {
    summary: AppTurnSummary,
    begun: Instant,
    ended: Arc<EndedTurns>,
}

impl TurnLog {
    pub(crate) fn begin(
        ended: Arc<EndedTurns>,
        id: &str,
        api: Api,
        session: Arc<str>,
        principal: Arc<str>,
        provider: &str,
        model: &str,
    ) -> Self {
        let summary = AppTurnSummary {
            id: id.to_owned(),
            api: api.as_str(),
            session,
            principal,
            provider: provider.to_owned(),
            model: model.to_owned(),
            state: AppTurnState::Cancelled,
            error: None,
            rounds: 0,
            calls: 0,
            tools: 0,
            left_out: 0,
            reasons: Vec::new(),
            ended_at_ms: 0,
            took_ms: 0,
        };
        Self { summary, begun: Instant::now(), ended }
    }

    /// Notes which session tools were declared. Tools that were left out are logged once for each session.
    pub(crate) fn declared(&mut self, tools: usize, left_out: &[LeftOut]) {
        let summary = &mut self.summary;
        if let Some(first) = left_out.first()
            && summary.left_out == 0
            && !self.ended.has_left_out(&summary.session)
        {
            tracing::warn!(
                session = &*summary.session,
                api = summary.api,
                left_out = left_out.len(),
                "some tools of the session are not declared to the model of an app, such as `{}`: {}",
                first.name,
                first.reason
            );
        }
        summary.tools = tools;
        summary.left_out = left_out.len();
        summary.reasons = left_out.iter().take(NAMED).cloned().collect();
    }

    pub(crate) fn round_ended(&mut self, rounds: u32) {
        self.summary.rounds = rounds;
    }

    pub(crate) fn call_began(&mut self) {
        self.summary.calls = self.summary.calls.saturating_add(1);
    }

    pub(crate) fn completed(&mut self) {
        self.summary.state = AppTurnState::Completed;
    }

    pub(crate) fn failed(&mut self, failure: &Failure) {
        self.summary.state = AppTurnState::Failed;
        self.summary.error = Some(failure.word());
    }
}

impl Drop for TurnLog {
    fn drop(&mut self) {
        let mut summary = self.summary.clone();
        summary.took_ms = u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        summary.ended_at_ms = now_ms();
        app_turn_ended(summary.api, summary.state.as_str(), summary.rounds);
        tracing::info!(
            turn = summary.id,
            session = &*summary.session,
            api = summary.api,
            provider = summary.provider,
            model = summary.model,
            state = summary.state.as_str(),
            error = summary.error,
            rounds = summary.rounds,
            calls = summary.calls,
            tools = summary.tools,
            took_ms = summary.took_ms,
            "a turn of an app has ended"
        );
        self.ended.add(summary);
    }
}
