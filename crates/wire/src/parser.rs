//! Parses the response stream of any provider into canonical events.

use serde::de::IgnoredAny;
use switchboard_chat::{FaultKind, ModelEvent, ModelFault};

use crate::refusal::presentable;
use crate::sse::{SseDecoder, TooLarge};

/// Size limits of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Maximum size of one event of the stream.
    pub event_bytes: usize,
    /// Maximum size of text, thinking and arguments of one answer together.
    pub reply_bytes: usize,
    /// Maximum number of calls in one answer.
    pub calls: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { event_bytes: 16 << 20, reply_bytes: 16 << 20, calls: 128 }
    }
}

/// A wire format: parses the events of one stream.
pub(crate) trait Wire: Send + std::fmt::Debug {
    /// Parses one event. It is not called again after a [`ModelEvent::Finished`] or [`ModelEvent::Failed`].
    fn event(&mut self, name: &[u8], data: &[u8], out: &mut Vec<ModelEvent>);

    /// Called if the stream ends without a final event. Must emit the final event.
    fn end(&mut self, out: &mut Vec<ModelEvent>);
}

/// Parses the stream of one answer in chunks of any size. For any bytes, it emits exactly one [`ModelEvent::Finished`]
/// or [`ModelEvent::Failed`], as the last event.
#[derive(Debug)]
pub struct Parser {
    decoder: SseDecoder,
    wire: Box<dyn Wire>,
    is_done: bool,
}

impl Parser {
    pub(crate) fn over(wire: Box<dyn Wire>, limits: Limits) -> Self {
        Self { decoder: SseDecoder::new(limits.event_bytes), wire, is_done: false }
    }

    /// Parses more bytes and appends their events.
    pub fn feed(&mut self, bytes: &[u8], out: &mut Vec<ModelEvent>) {
        if self.is_done {
            return;
        }
        let Self { decoder, wire, is_done } = self;
        let fed = decoder.feed(bytes, |name, data| {
            let first = out.len();
            wire.event(name, data, out);
            *is_done = cut_after_last(out, first);
            !*is_done
        });
        if fed == Err(TooLarge) {
            self.is_done = true;
            let text = "an event of the stream exceeds the size limit";
            out.push(failed(FaultKind::TooLarge, text));
        }
    }

    /// Ends the stream.
    pub fn finish(&mut self, out: &mut Vec<ModelEvent>) {
        if self.is_done {
            return;
        }
        let Self { decoder, wire, is_done } = self;
        decoder.finish(|name, data| {
            // An incomplete last event is ignored.
            let is_whole = data == b"[DONE]" || serde_json::from_slice::<IgnoredAny>(data).is_ok();
            if is_whole {
                let first = out.len();
                wire.event(name, data, out);
                *is_done = cut_after_last(out, first);
            }
            false
        });
        if !self.is_done {
            let first = out.len();
            self.wire.end(out);
            if !cut_after_last(out, first) {
                out.push(failed(FaultKind::Interrupted, "the stream ended before the answer did"));
            }
            self.is_done = true;
        }
    }

    /// Whether the final event was emitted.
    pub fn is_done(&self) -> bool {
        self.is_done
    }
}

/// Whether the final event is among those from `first` on. Drops events after it, and makes its fault presentable.
fn cut_after_last(out: &mut Vec<ModelEvent>, first: usize) -> bool {
    for (index, event) in out.iter_mut().enumerate().skip(first) {
        match event {
            ModelEvent::Failed(fault) => **fault = presentable((**fault).clone()),
            ModelEvent::Finished(_) => {}
            _ => continue,
        }
        out.truncate(index + 1);
        return true;
    }
    false
}

pub(crate) fn failed(kind: FaultKind, message: impl Into<String>) -> ModelEvent {
    ModelEvent::Failed(Box::new(ModelFault::new(kind, message)))
}
