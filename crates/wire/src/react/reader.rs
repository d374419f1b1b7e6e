//! Finds thoughts, calls and the answer in the text of a ReACT reply as it arrives.

use serde_json::{Map, Value};
use switchboard_chat::{Block, ModelEvent, ReactStep, Reply, Stop, ToolCall, read_arguments};
use switchboard_react::{ReactCall, ReactParser, ReactPiece, strip_reasoning};

/// Turns the events of a text-only reply into those of a reply with tool calls. A thought becomes thinking, an action a
/// call, and the answer text. A reply that cannot be used is stored as it is and marked as paused; the model is asked
/// again, and told what was wrong.
#[derive(Debug, Default)]
pub struct ReactReader {
    parser: ReactParser,
    /// Number of bytes of the reply's text that were parsed.
    parsed: usize,
    content: Vec<Block>,
    /// The thought that is not complete yet.
    thought: String,
    has_thinking: bool,
    calls: usize,
}

impl ReactReader {
    /// Takes one event of the reply and appends those that it stands for.
    pub fn read(&mut self, event: ModelEvent, out: &mut Vec<ModelEvent>) {
        match event {
            ModelEvent::Text(delta) => {
                self.parsed += delta.len();
                self.parse(&delta, out);
            }
            ModelEvent::Finished(reply) if reply.stop != Stop::Refused => {
                let reply = self.finish(*reply, out);
                out.push(ModelEvent::Finished(Box::new(reply)));
            }
            // No tools are declared. A native call that a model makes all the same is in its reply.
            ModelEvent::CallBegun { .. } | ModelEvent::CallArguments { .. } => {}
            event @ (ModelEvent::Thinking(_)
            | ModelEvent::Step(_)
            | ModelEvent::Usage(_)
            | ModelEvent::Finished(_)
            | ModelEvent::Failed(_)) => out.push(event),
        }
    }

    fn parse(&mut self, text: &str, out: &mut Vec<ModelEvent>) {
        let mut pieces = Vec::new();
        self.parser.feed(text, &mut pieces);
        for piece in pieces {
            self.piece(piece, out);
        }
    }

    fn piece(&mut self, piece: ReactPiece, out: &mut Vec<ModelEvent>) {
        match piece {
            ReactPiece::Reasoning(text) => {
                if let Some(Block::Reasoning { text: last, opaque: None }) = self.content.last_mut()
                {
                    last.push_str(&text);
                } else {
                    self.content.push(Block::Reasoning { text: text.clone(), opaque: None });
                }
                self.has_thinking = true;
                out.push(ModelEvent::Thinking(text));
            }
            ReactPiece::Thought(text) => {
                if self.thought.is_empty() && self.has_thinking {
                    out.push(ModelEvent::Thinking("\n".into()));
                }
                self.has_thinking = true;
                self.thought.push_str(&text);
                out.push(ModelEvent::Thinking(text));
            }
            ReactPiece::ThoughtEnd => {
                let thought = std::mem::take(&mut self.thought);
                self.content.push(Block::thought(thought.clone()));
                out.push(ModelEvent::Step(ReactStep::Thought(thought)));
            }
            ReactPiece::CallBegun(name) => {
                out.push(ModelEvent::CallBegun { index: self.calls, name });
            }
            ReactPiece::Call(call) => self.call(call, out),
            ReactPiece::Answer(text) => {
                match self.content.last_mut() {
                    Some(Block::Text { text: last, .. }) => last.push_str(&text),
                    _ => self.content.push(Block::text(text.clone())),
                }
                out.push(ModelEvent::Text(text));
            }
        }
    }

    fn call(&mut self, call: ReactCall, out: &mut Vec<ModelEvent>) {
        let ReactCall { name, arguments } = call;
        let (arguments, unreadable) = match arguments {
            Ok(arguments) => read_arguments(Value::Object(arguments)),
            Err(text) => (Value::Object(Map::new()), Some(text)),
        };
        let delta = unreadable.clone().unwrap_or_else(|| arguments.to_string());
        out.push(ModelEvent::CallArguments { index: self.calls, delta });
        self.calls += 1;
        let id = String::new();
        let call = ToolCall { id, name, arguments, unreadable, origin: None, opaque: None };
        self.content.push(Block::ToolCall(Box::new(call)));
    }

    fn finish(&mut self, reply: Reply, out: &mut Vec<ModelEvent>) -> Reply {
        let text = reply.text();
        // Some backends send the whole text at the end only.
        if let Some(rest) = text.get(self.parsed..) {
            self.parse(rest, out);
        }
        let mut pieces = Vec::new();
        let end = self.parser.finish(&mut pieces);
        for piece in pieces {
            self.piece(piece, out);
        }
        let mut native = Vec::new();
        let mut content = Vec::new();
        for block in &reply.content {
            match block {
                Block::Text { .. } => {}
                // Encrypted reasoning belongs to the native form of the reply, which is not kept.
                Block::Reasoning { text, .. } if text.is_empty() => {}
                Block::Reasoning { text, .. } => {
                    content.push(Block::Reasoning { text: text.clone(), opaque: None });
                }
                Block::ToolCall(_) => native.push(block.clone()),
            }
        }
        let has_calls = self.calls > 0 || !native.is_empty();
        if let Some(problem) = end.problem.filter(|_| !has_calls) {
            out.push(ModelEvent::Step(ReactStep::Problem(problem.to_string())));
            content.push(Block::text(strip_reasoning(&text)));
            return Reply { content, stop: Stop::Paused, ..reply };
        }
        content.append(&mut self.content);
        content.append(&mut native);
        let stop = match reply.stop {
            Stop::End | Stop::ToolCalls if has_calls => Stop::ToolCalls,
            Stop::End | Stop::ToolCalls => Stop::End,
            stop @ (Stop::Length | Stop::Refused | Stop::Paused | Stop::Cancelled) => stop,
        };
        let reply = Reply { content, stop, ..reply };
        let answer = reply.text();
        if !has_calls && !answer.is_empty() {
            out.push(ModelEvent::Step(ReactStep::Answer(answer)));
        }
        reply
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    /// Reads a text in chunks of this size, and shows the events in a short notation.
    fn read(text: &str, size: usize, stop: Stop) -> (Vec<String>, Reply) {
        let (mut reader, mut out) = (ReactReader::default(), Vec::new());
        let chars: Vec<char> = text.chars().collect();
        for chunk in chars.chunks(size) {
            reader.read(ModelEvent::Text(chunk.iter().collect()), &mut out);
        }
        let reply = Reply { content: vec![Block::text(text)], stop, ..Reply::default() };
        reader.read(ModelEvent::Finished(Box::new(reply)), &mut out);
        let Some(ModelEvent::Finished(reply)) = out.pop() else { panic!() };
        let mut shown: Vec<String> = Vec::new();
        for event in out {
            let (kind, text) = match event {
                ModelEvent::Text(text) => ("text ", text),
                ModelEvent::Thinking(text) => ("thinking ", text),
                ModelEvent::CallBegun { index, name } => ("begun ", format!("{index} {name}")),
                ModelEvent::CallArguments { index, delta } => ("args ", format!("{index} {delta}")),
                ModelEvent::Step(step) => ("step ", format!("{step:?}")),
                other => panic!("{other:?}"),
            };
            match shown.last_mut() {
                Some(last) if last.starts_with(kind) && matches!(kind, "text " | "thinking ") => {
                    last.push_str(&text);
                }
                _ => shown.push(format!("{kind}{text}")),
            }
        }
        (shown, *reply)
    }

    #[track_caller]
    fn check(text: &str, events: &[&str], stop: Stop) {
        for size in [1, 3, 1000] {
            let (shown, reply) = read(text, size, Stop::End);
            assert_eq!(shown, events, "{text} by {size}");
            assert_eq!(reply.stop, stop, "{text}");
        }
    }

    #[test]
    fn steps_are_told_as_they_are_complete() {
        check(
            "Thought: I add.\nAction: add\nArgs: {\"a\": 1}",
            &["thinking I add.", r#"step Thought("I add.")"#, "begun 0 add", r#"args 0 {"a":1}"#],
            Stop::ToolCalls,
        );
        check(
            "Thought: I know.\nFinal Answer: 4",
            &["thinking I know.", r#"step Thought("I know.")"#, "text 4", r#"step Answer("4")"#],
            Stop::End,
        );
    }

    #[test]
    fn a_reply_without_use_is_kept_and_the_model_is_told() {
        let (shown, reply) = read("<think>x</think>Thought: hm", 2, Stop::End);
        assert!(shown.last().unwrap().contains("Problem(\"Error: your reply has a thought"));
        assert_eq!((reply.text().as_str(), reply.stop), ("Thought: hm", Stop::Paused));
    }

    #[test]
    fn what_only_the_whole_reply_has_is_read_too() {
        let (mut reader, mut out) = (ReactReader::default(), Vec::new());
        let content = vec![
            Block::Reasoning {
                text: "own".into(),
                opaque: Some(serde_json::json!({"signature": "s"})),
            },
            Block::text("Final Answer: 4"),
        ];
        let reply = Reply { content, ..Reply::default() };
        reader.read(ModelEvent::Finished(Box::new(reply)), &mut out);
        assert_eq!(out[0], ModelEvent::Text("4".into()));
        let Some(ModelEvent::Finished(reply)) = out.last() else { panic!() };
        let expected = [Block::Reasoning { text: "own".into(), opaque: None }, Block::text("4")];
        assert_eq!(reply.content, expected);
    }

    #[test]
    fn arguments_that_cannot_be_read_make_a_call_that_is_not_run() {
        let (_, reply) = read("Action: add\nArgs: {'a': 1}", 5, Stop::Length);
        let call = reply.calls().next().unwrap();
        assert_eq!(call.unreadable.as_deref(), Some("{'a': 1}"));
        assert_eq!(reply.stop, Stop::Length);
    }
}
