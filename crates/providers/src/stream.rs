//! The response of a model, as a stream of events.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures::FutureExt as _;
use switchboard_chat::{FaultKind, ModelEvent, ModelFault};
use switchboard_model::{ProviderPlan, render_duration};
use switchboard_wire::{Beat, Parser};
use tokio::time::{Instant, Sleep, sleep_until};

use crate::http_answer::ProviderResponse;
use crate::request_headers;

/// Parses bytes into events. A trait, so that the transport can be tested without a wire format.
pub(crate) trait Reads: Send + fmt::Debug {
    fn feed(&mut self, bytes: &[u8], out: &mut Vec<ModelEvent>);
    fn finish(&mut self, out: &mut Vec<ModelEvent>);
    fn is_done(&self) -> bool;
}

impl Reads for Parser {
    fn feed(&mut self, bytes: &[u8], out: &mut Vec<ModelEvent>) {
        Self::feed(self, bytes, out);
    }

    fn finish(&mut self, out: &mut Vec<ModelEvent>) {
        Self::finish(self, out);
    }

    fn is_done(&self) -> bool {
        Self::is_done(self)
    }
}

/// The time limits of one response.
#[derive(Debug, Clone)]
pub(crate) struct Clock {
    idle: Duration,
    total: Duration,
    /// When data last arrived.
    heard: Instant,
    end: Instant,
}

impl Clock {
    pub(crate) fn start(plan: &ProviderPlan) -> Self {
        let now = Instant::now();
        let (idle, total) = (plan.idle_timeout, plan.total_timeout);
        // A time beyond the range of the clock never comes.
        let end = now.checked_add(total).unwrap_or_else(|| now + NEVER);
        Self { idle, total, heard: now, end }
    }

    /// The limits of a response that arrives as a whole: the provider is silent until it has finished.
    pub(crate) fn of_whole(plan: &ProviderPlan) -> Self {
        let clock = Self::start(plan);
        Self { idle: clock.total, ..clock }
    }

    pub(crate) fn hear(&mut self) {
        self.heard = Instant::now();
    }

    /// Whether the total time limit has passed. Needed because a provider that sends continuously never lets a timer
    /// fire.
    fn is_over(&self) -> bool {
        self.heard >= self.end
    }

    pub(crate) fn next_deadline(&self) -> Instant {
        let silent = self.heard.checked_add(self.idle).unwrap_or(self.end);
        silent.min(self.end)
    }

    /// The fault for an exceeded deadline.
    pub(crate) fn fault(&self, who: &str) -> ModelFault {
        let text = if Instant::now() >= self.end {
            let total = render_duration(self.total);
            format!("{who} did not finish within {total} (`total_timeout`)")
        } else {
            let idle = render_duration(self.idle);
            format!("{who} was silent for {idle} (`idle_timeout`)")
        };
        ModelFault::new(FaultKind::Timeout, text)
    }
}

/// A timer for a deadline that moves with every piece of data. The timer itself is reset only when it fires too early,
/// because resetting it would cost more than reading the piece.
#[derive(Debug)]
pub(crate) struct Alarm(Pin<Box<Sleep>>);

impl Alarm {
    pub(crate) fn new(clock: &Clock) -> Self {
        Self(Box::pin(sleep_until(clock.next_deadline())))
    }

    /// The output of the future, or `None` if the deadline passes first.
    pub(crate) async fn unless_late<F: Future>(
        &mut self,
        clock: &Clock,
        awaited: F,
    ) -> Option<F::Output> {
        if clock.is_over() {
            return None;
        }
        let mut awaited = std::pin::pin!(awaited);
        std::future::poll_fn(|context| {
            if let Poll::Ready(there) = awaited.as_mut().poll(context) {
                return Poll::Ready(Some(there));
            }
            while self.0.as_mut().poll(context).is_ready() {
                let deadline = clock.next_deadline();
                if Instant::now() >= deadline {
                    return Poll::Ready(None);
                }
                self.0.as_mut().reset(deadline);
            }
            Poll::Pending
        })
        .await
    }
}

const NEVER: Duration = Duration::from_hours(24 * 365);

/// The response of a model, event by event. Dropping it closes the connection, or resets the stream on a shared one, so
/// that the provider stops.
#[derive(Debug)]
pub struct ModelStream {
    source: StreamInput,
    clock: Clock,
    plan: Arc<ProviderPlan>,
}

enum StreamInput {
    Http { answer: Box<ProviderResponse>, reader: Box<dyn Reads>, alarm: Alarm },
    Demo { beats: std::vec::IntoIter<Beat>, wake: Option<Instant> },
    Ended,
}

impl fmt::Debug for StreamInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The response would show its URL and headers.
        f.write_str(match self {
            Self::Http { .. } => "Http",
            Self::Demo { .. } => "Demo",
            Self::Ended => "Ended",
        })
    }
}

impl ModelStream {
    pub(crate) fn reading(
        answer: ProviderResponse,
        reader: Box<dyn Reads>,
        clock: Clock,
        plan: Arc<ProviderPlan>,
    ) -> Self {
        let alarm = Alarm::new(&clock);
        Self { source: StreamInput::Http { answer: Box::new(answer), reader, alarm }, clock, plan }
    }

    pub(crate) fn playing(
        beats: std::vec::IntoIter<Beat>,
        clock: Clock,
        plan: Arc<ProviderPlan>,
    ) -> Self {
        Self { source: StreamInput::Demo { beats, wake: None }, clock, plan }
    }

    /// The next events, at least one; `None` after the last. The last event is always a [`ModelEvent::Finished`] or a
    /// [`ModelEvent::Failed`].
    ///
    /// Cancel-safe: events that were not returned are returned by the next call, and the idle time keeps counting.
    pub async fn next(&mut self) -> Option<Vec<ModelEvent>> {
        let mut events = match &mut self.source {
            StreamInput::Ended => return None,
            StreamInput::Http { answer, reader, alarm } => {
                read(answer, &mut **reader, alarm, &mut self.clock, &self.plan.name).await
            }
            StreamInput::Demo { beats, wake } => play(beats, wake, &self.clock).await,
        };
        for event in &mut events {
            if let ModelEvent::Failed(fault) = event {
                **fault = request_headers::scrubbed(&self.plan, (**fault).clone());
            }
        }
        let is_last =
            |event: &ModelEvent| matches!(event, ModelEvent::Finished(_) | ModelEvent::Failed(_));
        if events.last().is_none_or(is_last) {
            self.end();
        }
        (!events.is_empty()).then_some(events)
    }

    fn end(&mut self) {
        if let StreamInput::Http { answer, .. } = &mut self.source {
            // If the body has already ended, reading its end makes the connection reusable.
            let _ended = answer.chunk().now_or_never();
        }
        self.source = StreamInput::Ended;
    }
}

/// Reads until there is an event. Awaits nothing after it has consumed bytes.
async fn read(
    answer: &mut ProviderResponse,
    reader: &mut dyn Reads,
    alarm: &mut Alarm,
    clock: &mut Clock,
    name: &str,
) -> Vec<ModelEvent> {
    let mut events = Vec::new();
    while events.is_empty() && !reader.is_done() {
        match alarm.unless_late(clock, answer.chunk()).await {
            Some(Ok(Some(bytes))) => {
                clock.hear();
                reader.feed(&bytes, &mut events);
            }
            Some(Ok(None)) => reader.finish(&mut events),
            Some(Err(cause)) => {
                tracing::debug!(provider = name, cause, "the stream of a model broke");
                reader.finish(&mut events);
            }
            None => {
                let fault = clock.fault(&format!("the provider `{name}`"));
                events.push(ModelEvent::Failed(Box::new(fault)));
            }
        }
    }
    events
}

/// Plays the script up to its next pause.
async fn play(
    beats: &mut std::vec::IntoIter<Beat>,
    wake: &mut Option<Instant>,
    clock: &Clock,
) -> Vec<ModelEvent> {
    let mut events = Vec::new();
    loop {
        if let Some(until) = *wake {
            sleep_until(until.min(clock.end)).await;
            if Instant::now() >= clock.end {
                return vec![ModelEvent::Failed(Box::new(clock.fault("the demo model")))];
            }
            *wake = None;
        }
        // A pause is started only after all events before it were returned.
        while let Some(beat) = beats.as_slice().first() {
            if matches!(beat, Beat::Pause(_)) && !events.is_empty() {
                return events;
            }
            match beats.next() {
                Some(Beat::Event(event)) => events.push(event),
                Some(Beat::Pause(pause)) => {
                    *wake = Instant::now().checked_add(pause);
                    break;
                }
                None => {}
            }
        }
        if wake.is_none() {
            return events;
        }
    }
}

#[cfg(test)]
mod tests {
    use switchboard_model::ProviderKind;
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_alarm_rings_when_nothing_was_heard_for_long_or_the_end_has_come() {
        let plan = ProviderPlan {
            idle_timeout: Duration::from_secs(10),
            total_timeout: Duration::from_secs(25),
            ..ProviderPlan::new("p", ProviderKind::OpenAi)
        };
        let mut clock = Clock::start(&plan);
        let mut alarm = Alarm::new(&clock);
        let began = Instant::now();
        // The timer was set for 10 s, and is not moved when data arrives.
        advance(Duration::from_secs(6)).await;
        assert_eq!(alarm.unless_late(&clock, async { 7 }).await, Some(7));
        clock.hear();
        assert_eq!(alarm.unless_late(&clock, std::future::pending::<()>()).await, None);
        assert_eq!(began.elapsed().as_secs(), 16, "10 s after it was heard");
        assert!(clock.fault("it").message.contains("idle_timeout"));
        clock.hear();
        assert_eq!(alarm.unless_late(&clock, std::future::pending::<()>()).await, None);
        assert_eq!(began.elapsed().as_secs(), 25);
        assert!(clock.fault("it").message.contains("total_timeout"));
        assert_eq!(alarm.unless_late(&clock, async { 7 }).await, Some(7), "what is there is given");
        clock.hear();
        assert_eq!(alarm.unless_late(&clock, async { 7 }).await, None, "but not for ever");
    }
}
