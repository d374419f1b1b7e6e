//! The stream of a provider, whatever it speaks, as canonical events.

use serde::de::IgnoredAny;
use switchboard_chat::{FaultKind, ModelEvent, ModelFault};

use crate::refusal::presentable;
use crate::sse::{SseDecoder, TooLarge};

/// How much of an answer is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// One event of the stream.
    pub event_bytes: usize,
    /// Text, thoughts and arguments of one answer together.
    pub reply_bytes: usize,
    /// Calls of one answer.
    pub calls: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { event_bytes: 16 << 20, reply_bytes: 16 << 20, calls: 128 }
    }
}

/// One wire format: reads the events of a stream, one after the other.
pub(crate) trait Wire: Send + std::fmt::Debug {
    /// Reads one event. After a [`ModelEvent::Finished`] or [`ModelEvent::Failed`] it is not called again.
    fn event(&mut self, name: &[u8], data: &[u8], out: &mut Vec<ModelEvent>);

    /// The stream has ended, and nothing said so before. Must give the one last event.
    fn end(&mut self, out: &mut Vec<ModelEvent>);
}

/// Reads the stream of one answer, in pieces of any size. Every stream ends with exactly one
/// [`ModelEvent::Finished`] or [`ModelEvent::Failed`], whatever its bytes are.
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

    /// Reads more bytes and appends what they say.
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
            let text = "an event of the stream is larger than what is taken";
            out.push(failed(FaultKind::TooLarge, text));
        }
    }

    /// The stream has ended.
    pub fn finish(&mut self, out: &mut Vec<ModelEvent>) {
        if self.is_done {
            return;
        }
        let Self { decoder, wire, is_done } = self;
        decoder.finish(|name, data| {
            // What the stream broke off in says nothing.
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

    /// Whether the last event has come.
    pub fn is_done(&self) -> bool {
        self.is_done
    }
}

/// Whether the last event is among those from `first` on; none stays behind it, and a fault is one that can be shown.
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
