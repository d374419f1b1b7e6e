//! What an answer has used up of what is taken of one.

use switchboard_chat::{FaultKind, ModelEvent};

use crate::parser::{Limits, failed};

/// Counts bytes and calls.
#[derive(Debug)]
pub(super) struct Measure {
    limits: Limits,
    bytes: usize,
    calls: usize,
}

impl Measure {
    pub(super) fn new(limits: Limits) -> Self {
        Self { limits, bytes: 0, calls: 0 }
    }

    /// Counts more bytes, or says that they are too many.
    pub(super) fn add(&mut self, bytes: usize) -> Result<(), ModelEvent> {
        self.bytes = self.bytes.saturating_add(bytes);
        let most = self.limits.reply_bytes;
        if self.bytes <= most {
            return Ok(());
        }
        Err(failed(FaultKind::TooLarge, format!("the answer is larger than {most} bytes")))
    }

    /// Something that was counted is not kept after all.
    pub(super) fn give_back(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_sub(bytes);
    }

    /// Counts one more call and gives its number, counted from 0.
    pub(super) fn call(&mut self) -> Result<usize, ModelEvent> {
        let (index, most) = (self.calls, self.limits.calls);
        self.calls += 1;
        if self.calls <= most {
            return Ok(index);
        }
        let text =
            format!("the model made {} calls in one answer, and {most} are taken", self.calls);
        Err(failed(FaultKind::TooLarge, text))
    }
}
