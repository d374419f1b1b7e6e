//! Size limits of one answer while its stream is parsed.

use serde_json::Value;
use switchboard_chat::{Block, FaultKind, ModelEvent, Reply, Stop, Usage, read_arguments};

use crate::Limits;
use crate::parser::failed;

/// Bytes counted for a block in addition to its text, so that a stream of empty blocks reaches the limit too.
const PER_BLOCK: usize = 256;

/// Counts the bytes and calls of an answer.
#[derive(Debug)]
pub(crate) struct Gathered {
    limits: Limits,
    bytes: usize,
    calls: usize,
}

/// The limit that an answer exceeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Full {
    Bytes(usize),
    Calls(usize),
}

impl Gathered {
    pub(crate) fn new(limits: Limits) -> Self {
        Self { limits, bytes: 0, calls: 0 }
    }

    /// Counts more bytes; fails if the limit is exceeded.
    pub(crate) fn take(&mut self, bytes: usize) -> Result<(), Full> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > self.limits.reply_bytes {
            return Err(Full::Bytes(self.limits.reply_bytes));
        }
        Ok(())
    }

    /// Subtracts bytes that are no longer kept.
    pub(crate) fn give_back(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_sub(bytes);
    }

    /// Counts one more block.
    pub(crate) fn take_block(&mut self) -> Result<(), Full> {
        self.take(PER_BLOCK)
    }

    /// Counts one more call and returns its index.
    pub(crate) fn take_call(&mut self) -> Result<usize, Full> {
        if self.calls >= self.limits.calls {
            return Err(Full::Calls(self.limits.calls));
        }
        self.calls += 1;
        Ok(self.calls - 1)
    }
}

impl From<Full> for ModelEvent {
    fn from(full: Full) -> Self {
        let message = match full {
            Full::Bytes(most) => {
                format!("the answer exceeds the limit of {most} bytes")
            }
            Full::Calls(most) => {
                format!("the answer exceeds the limit of {most} calls")
            }
        };
        failed(FaultKind::TooLarge, message)
    }
}

/// Parses the arguments of a call. Text that is not a JSON object is returned as the second value.
pub(crate) fn arguments(text: &str) -> (Value, Option<String>) {
    read_arguments(Value::String(text.to_owned()))
}

/// Builds the reply of a complete answer. Calls in an answer that a content filter stopped are removed. The stop reason
/// follows from the presence of calls, because not every provider reports one for them.
pub(crate) fn reply(mut content: Vec<Block>, stop: Stop, usage: Option<Usage>) -> Reply {
    let is_call = |block: &Block| matches!(block, Block::ToolCall(_));
    if stop == Stop::Refused {
        content.retain(|block| !is_call(block));
    }
    let stop = match stop {
        Stop::End | Stop::ToolCalls if content.iter().any(is_call) => Stop::ToolCalls,
        Stop::End | Stop::ToolCalls => Stop::End,
        Stop::Length | Stop::Refused | Stop::Paused | Stop::Cancelled => stop,
    };
    Reply { content, stop, usage, ..Reply::default() }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use serde_json::json;

    use super::*;
    use crate::samples::{call, calls};

    #[test]
    fn arguments_are_an_object_or_unreadable() {
        assert_eq!(arguments(" "), (json!({}), None));
        assert_eq!(arguments(r#"{"a":1}"#), (json!({"a": 1}), None));
        for text in ["[1]", "null", r#"{"a":"#, "7"] {
            assert_eq!(arguments(text), (json!({}), Some(text.to_owned())));
        }
    }

    #[test]
    fn calls_decide_what_an_answer_waits_for_and_a_refused_one_has_none() {
        let calls = || vec![Block::text("a"), calls(call("c", "find", json!({})))];
        let check = |content: Vec<Block>, said, stop, blocks: usize| {
            let reply = reply(content, said, None);
            assert_eq!((reply.stop, reply.content.len()), (stop, blocks));
        };
        check(calls(), Stop::End, Stop::ToolCalls, 2);
        check(vec![Block::text("a")], Stop::ToolCalls, Stop::End, 1);
        check(calls(), Stop::Length, Stop::Length, 2);
        check(calls(), Stop::Refused, Stop::Refused, 1);
    }

    #[test]
    fn limits_are_reached_and_not_passed() {
        let mut gathered = Gathered::new(Limits { event_bytes: 9, reply_bytes: 100, calls: 1 });
        assert_eq!((gathered.take(100), gathered.take_call()), (Ok(()), Ok(0)));
        assert_eq!(gathered.take(1), Err(Full::Bytes(100)));
        assert_eq!(gathered.take_call(), Err(Full::Calls(1)));
        gathered.give_back(1);
        assert_eq!((gathered.take(0), gathered.take(1)), (Ok(()), Err(Full::Bytes(100))));
    }
}
