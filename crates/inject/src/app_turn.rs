//! A turn of an app while it runs: reads answers of the provider, runs calls, asks again.
//!
//! Nothing runs beside the futures of a turn but its calls, which end with it. Dropping the turn cancels the
//! request to the provider and the calls.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use http::HeaderMap;
use switchboard_chat::{ToolCall, ToolReturn};
use switchboard_model::ProviderKind;
use switchboard_splice::{InjectedTurn, NextStep, Refusal, RefusalKind, SessionCall, SessionTools};
use switchboard_wire::SseDecoder;
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::{self, JoinError, JoinSet};
use tokio::time::Sleep;

use crate::Failure;
use crate::demo_answer::DemoRound;
use crate::model_check;
use crate::provider_choice::rendering_of;
use crate::repeated_requests::WholeAnswer;
use crate::round::{RoundAnswer, Upstream};
use crate::session_calls::{self, CallContext, EndedCall};
use crate::turn_log::TurnLog;
use crate::turn_records::TurnRecords;

/// How often a round is repeated after the first one.
const MAX_ATTEMPTS: u32 = 4;
/// The maximum size of one event of a provider, and of a whole answer.
const MAX_EVENT_BYTES: usize = 16 << 20;
/// The maximum size of all answers of a provider in one turn.
const MAX_TURN_BYTES: usize = 64 << 20;

/// What a turn needs to begin.
pub(crate) struct NewAppTurn {
    pub(crate) id: String,
    pub(crate) turn: InjectedTurn,
    pub(crate) upstream: Upstream,
    pub(crate) calls: CallContext,
    pub(crate) records: TurnRecords,
    pub(crate) log: TurnLog,
    pub(crate) place: OwnedSemaphorePermit,
}

/// A running turn.
pub(crate) struct AppTurn {
    id: String,
    turn: InjectedTurn,
    upstream: Arc<Upstream>,
    calls: CallContext,
    records: TurnRecords,
    log: TurnLog,
    stage: Stage,
    decoder: SseDecoder,
    /// What the app has to get.
    out: Vec<u8>,
    /// Headers of the provider's first response that the app gets.
    headers: HeaderMap,
    /// The number of bytes that the provider has sent.
    received: usize,
    /// How often the current round was repeated.
    attempt: u32,
    /// The running calls.
    running: HashMap<task::Id, ToolCall>,
    has_switched: bool,
    _place: OwnedSemaphorePermit,
}

/// What a turn waits for. Each of these can be waited for again after a wait was dropped.
enum Stage {
    Asking(BoxFuture<'static, Result<RoundAnswer, Failure>>),
    Reading(RoundAnswer),
    ReadingWhole(BoxFuture<'static, Result<Bytes, Failure>>),
    Calling(JoinSet<EndedCall>),
    Pausing(Pin<Box<Sleep>>),
    /// The record is being stored.
    Keeping(BoxFuture<'static, Result<(), Refusal>>),
    Over,
}

impl AppTurn {
    /// Prepares the first request. It is sent when the turn is waited for.
    pub(crate) fn new(new: NewAppTurn) -> Self {
        let NewAppTurn { id, turn, upstream, calls, records, log, place } = new;
        let mut this = Self {
            id,
            turn,
            upstream: Arc::new(upstream),
            calls,
            records,
            log,
            stage: Stage::Over,
            decoder: SseDecoder::new(MAX_EVENT_BYTES),
            out: Vec::new(),
            headers: HeaderMap::new(),
            received: 0,
            attempt: 0,
            running: HashMap::new(),
            has_switched: false,
            _place: place,
        };
        this.ask();
        this
    }

    /// Headers of the provider's first response that the app gets.
    pub(crate) fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    pub(crate) fn is_over(&self) -> bool {
        matches!(self.stage, Stage::Over)
    }

    /// The frames that the app has to get now; `None` if there are none.
    pub(crate) fn take_frames(&mut self) -> Option<Bytes> {
        (!self.out.is_empty()).then(|| std::mem::take(&mut self.out).into())
    }

    /// Waits for the first frames of a stream. A failure before them is sent as a response. If the calls of a round that the app
    /// does not see take longer than `patience`, the stream begins with a frame that keeps the connection open.
    pub(crate) async fn first_frames(&mut self, patience: Duration) -> Result<(), Failure> {
        let mut patience = std::pin::pin!(tokio::time::sleep(patience));
        while self.out.is_empty() && !self.is_over() {
            let has_run = self.turn.rounds() > 0;
            tokio::select! {
                biased;
                advanced = self.advance() => advanced.map_err(|failure| self.told(failure))?,
                () = &mut patience, if has_run => self.keep_alive(),
            }
        }
        Ok(())
    }

    /// A failure, for an app that gets it as a response. If the calls of earlier rounds have run, an SDK that tried again would
    /// let them run once more.
    fn told(&self, failure: Failure) -> Failure {
        if self.turn.rounds() > 0 { failure.final_for_sdk() } else { failure }
    }

    /// Waits until something happens to a stream that has begun. A failure is its last event.
    pub(crate) async fn advance_stream(&mut self) {
        if let Err(failure) = self.advance().await {
            self.turn.fail(&failure.refusal, &mut self.out);
        }
    }

    /// Adds a frame that keeps the connection open.
    pub(crate) fn keep_alive(&mut self) {
        self.out.extend_from_slice(self.turn.keep_alive());
    }

    /// Waits for the whole answer, for an app that asked for no stream.
    pub(crate) async fn whole(mut self) -> Result<WholeAnswer, Failure> {
        while !self.is_over() {
            self.advance().await.map_err(|failure| self.told(failure))?;
        }
        let (headers, rounds) = (std::mem::take(&mut self.headers), self.turn.rounds());
        Ok(WholeAnswer { body: self.turn.finish_whole().into(), headers, rounds })
    }

    /// Waits for the next thing that happens. A failure that may pass repeats the round; another one ends the turn.
    async fn advance(&mut self) -> Result<(), Failure> {
        let Err(failure) = self.step().await else { return Ok(()) };
        let is_refused = matches!(self.stage, Stage::Asking(_));
        if is_refused && self.turn.drop_thinking(&failure.refusal) {
            tracing::debug!(turn = self.id, error = %failure.refusal, "an app's request is sent again without sealed thinking");
            self.ask();
            return Ok(());
        }
        let is_later_round = self.turn.rounds() > 0;
        let wait = failure.wait_before_next(self.attempt).filter(|_| {
            is_later_round
                && self.attempt + 1 < MAX_ATTEMPTS
                && self.turn.can_repeat_round()
                && !matches!(self.stage, Stage::Keeping(_))
        });
        if let Some(wait) = wait {
            tracing::debug!(turn = self.id, error = %failure.refusal, "a round of an app's turn is repeated");
            self.turn.abandon_round();
            self.attempt += 1;
            self.stage = Stage::Pausing(Box::pin(tokio::time::sleep(wait)));
            return Ok(());
        }
        self.stage = Stage::Over;
        self.log.failed(&failure);
        Err(failure)
    }

    async fn step(&mut self) -> Result<(), Failure> {
        match &mut self.stage {
            Stage::Asking(asking) => {
                let response = asking.await?;
                if self.turn.rounds() == 0 {
                    self.headers = response.headers();
                }
                self.stage = if self.upstream.is_streamed {
                    Stage::Reading(response)
                } else {
                    Stage::ReadingWhole(response.whole(MAX_EVENT_BYTES).boxed())
                };
                Ok(())
            }
            Stage::Reading(response) => {
                if let Some(bytes) = response.chunk().await? {
                    return self.read(&bytes);
                }
                let next = self.turn.end_round(&mut self.out)?;
                self.go_on(next);
                Ok(())
            }
            Stage::ReadingWhole(reading) => {
                let body = reading.await?;
                self.received(body.len())?;
                let text = std::str::from_utf8(&body).map_err(|_| not_text())?;
                let next = self.turn.whole_answer(text)?;
                self.go_on(next);
                Ok(())
            }
            Stage::Calling(calls) => {
                match calls.join_next_with_id().await {
                    Some(ended) => self.ended(ended),
                    None => self.after_calls(),
                }
                Ok(())
            }
            Stage::Pausing(pause) => {
                pause.await;
                self.ask();
                Ok(())
            }
            Stage::Keeping(keeping) => {
                keeping.await?;
                self.finish();
                Ok(())
            }
            Stage::Over => Ok(()),
        }
    }

    /// Sends the next request.
    fn ask(&mut self) {
        self.decoder = SseDecoder::new(MAX_EVENT_BYTES);
        let (upstream, body) = (self.upstream.clone(), self.turn.body());
        let (sessions, session) = (self.calls.sessions.clone(), self.calls.session.clone());
        let id = self.id.clone();
        let is_checked = model_check::is_wanted(&sessions);
        let texts = is_checked.then(|| self.turn.conversation_texts());
        let demo = self.demo();
        let round = format!("{}r{}", self.id, self.turn.rounds());
        self.stage = Stage::Asking(
            async move {
                if let Some(texts) = texts {
                    model_check::pass(&sessions, &session, &id, &texts).await?;
                }
                upstream.ask(body, round, demo).await
            }
            .boxed(),
        );
    }

    /// The next request for the demo model, if it is the one that answers.
    fn demo(&self) -> Option<DemoRound> {
        let is_demo = self.upstream.endpoint.plan().kind == ProviderKind::Demo;
        is_demo.then(|| DemoRound {
            api: self.turn.api(),
            texts: self.turn.conversation_texts(),
            rendering: self.calls.view.rendering(self.turn.api().provider()),
            session: self.calls.session.id.clone(),
            turn: self.id.clone(),
            round: self.turn.rounds(),
        })
    }

    fn received(&mut self, bytes: usize) -> Result<(), Failure> {
        self.received = self.received.saturating_add(bytes);
        if self.received > MAX_TURN_BYTES {
            let text = format!("the answers of the provider exceed {MAX_TURN_BYTES} bytes");
            return Err(Refusal::new(RefusalKind::Upstream, text).into());
        }
        Ok(())
    }

    /// Reads a piece of the provider's stream.
    fn read(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.received(bytes.len())?;
        let Self { decoder, turn, out, .. } = self;
        let mut failed = None;
        let fed = decoder.feed(bytes, |name, data| {
            let event = std::str::from_utf8(name).ok().zip(std::str::from_utf8(data).ok());
            let read = match event {
                Some((name, data)) => turn.event(name, data, out),
                None => Err(not_text()),
            };
            failed = read.err();
            failed.is_none()
        });
        if let Some(refusal) = failed {
            return Err(refusal.into());
        }
        fed.map_err(|_| {
            let text = format!("an event of the provider exceeds {MAX_EVENT_BYTES} bytes");
            Refusal::new(RefusalKind::Upstream, text).into()
        })
    }

    fn go_on(&mut self, next: NextStep) {
        self.log.round_ended(self.turn.rounds());
        self.attempt = 0;
        match next {
            NextStep::Run(calls) => self.run(calls),
            NextStep::Ask => self.ask(),
            NextStep::Finish => match self.turn.record() {
                Some((keys, record)) => {
                    self.stage = Stage::Keeping(self.records.clone().keep(keys, record).boxed());
                }
                None => self.finish(),
            },
        }
    }

    /// Starts all calls of a round.
    fn run(&mut self, calls: Vec<SessionCall>) {
        let conversation = model_check::conversation(&self.calls.sessions, &self.id, &self.turn);
        let mut running = JoinSet::new();
        for call in calls {
            self.log.call_began();
            let known = session_calls::tool_call(&call);
            let run = session_calls::run(self.calls.clone(), call, conversation.clone());
            self.running.insert(running.spawn(run).id(), known);
        }
        self.stage = Stage::Calling(running);
    }

    fn ended(&mut self, ended: Result<(task::Id, EndedCall), JoinError>) {
        let result = match ended {
            Ok((id, ended)) => {
                self.running.remove(&id);
                self.has_switched |= ended.has_switched;
                ended.result
            }
            Err(error) => {
                let Some(call) = self.running.remove(&error.id()) else { return };
                tracing::error!(tool = call.name, "a call ended by an internal error");
                ToolReturn::failed(&call, "The call failed: an internal error of Switchboard.")
            }
        };
        let id = result.call.clone();
        self.turn.call_ended(&id, result, &mut self.out);
    }

    fn after_calls(&mut self) {
        if std::mem::take(&mut self.has_switched) {
            self.declare_again();
        }
        let next = self.turn.after_calls();
        self.go_on(next);
    }

    /// Declares the tools that the session has now, because a call changed them.
    fn declare_again(&mut self) {
        let calls = &mut self.calls;
        calls.view = calls.sessions.view_of(&calls.scope, Some(&calls.session));
        let provider = rendering_of(self.turn.api(), &self.upstream.endpoint);
        let tools = SessionTools::new(self.turn.request(), &calls.view.rendering(provider));
        self.log.declared(tools.len(), tools.left_out());
        self.turn.set_tools(tools);
    }

    fn finish(&mut self) {
        if self.upstream.is_streamed {
            self.turn.finish(&mut self.out);
        }
        self.log.completed();
        self.stage = Stage::Over;
    }
}

fn not_text() -> Refusal {
    Refusal::new(RefusalKind::Upstream, "the provider sent an answer that is not UTF-8")
}
