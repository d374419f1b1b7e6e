//! The events of a turn as the frames that a client reads.

use serde_json::{Value, json};

use crate::error::TrustGraphError;

/// Converts the events of one turn.
#[derive(Debug)]
pub struct AgentStream {
    /// The id of the request.
    id: String,
    turn: String,
    is_streaming: bool,
    /// How many messages are complete.
    complete: u32,
    /// The kind of the message of which pieces were sent.
    open: Option<&'static str>,
    /// The text since the model was last asked, if it is not sent in pieces.
    unsent: String,
    model: Option<String>,
    error: Option<String>,
}

impl AgentStream {
    /// The stream of the answer to the request `id`, made by a turn.
    pub fn new(id: String, turn: String, is_streaming: bool) -> Self {
        Self {
            id,
            turn,
            is_streaming,
            complete: 0,
            open: None,
            unsent: String::new(),
            model: None,
            error: None,
        }
    }

    /// The frames for one event, given as the JSON that clients of the API get. The frames of the last event, `done`, end
    /// the answer.
    pub fn frames(&mut self, event: &Value) -> Vec<Value> {
        let text = |member: &str| event.get(member).and_then(Value::as_str).unwrap_or_default();
        match text("type") {
            "started" => {
                self.model = Some(text("model").to_owned());
                self.unsent.clear();
                Vec::new()
            }
            "thinking" => self.piece("thought", text("delta")),
            "content" => {
                if !self.is_streaming {
                    self.unsent.push_str(text("delta"));
                }
                self.piece("answer", text("delta"))
            }
            "thought" => self.whole("thought", text("text")),
            "observation" => self.whole("observation", text("text")),
            "answer" => {
                if self.open != Some("answer") {
                    text("text").clone_into(&mut self.unsent);
                }
                Vec::new()
            }
            "restarted" | "retrying" => self.begin_again(),
            "error" => {
                let message = event.pointer("/error/message").and_then(Value::as_str);
                self.error = message.map(str::to_owned);
                Vec::new()
            }
            "done" => self.last(event),
            _ => Vec::new(),
        }
    }

    /// A piece of a message, which ends the message before it.
    fn piece(&mut self, kind: &'static str, text: &str) -> Vec<Value> {
        if !self.is_streaming || text.is_empty() {
            return Vec::new();
        }
        let mut frames = self.close_other(kind);
        self.open = Some(kind);
        frames.push(self.frame(kind, text, false));
        frames
    }

    /// A message that is complete now.
    fn whole(&mut self, kind: &'static str, text: &str) -> Vec<Value> {
        let mut frames = self.close_other(kind);
        let text = if self.open.take() == Some(kind) { "" } else { text };
        frames.push(self.frame(kind, text, true));
        self.complete += 1;
        frames
    }

    fn close_other(&mut self, kind: &'static str) -> Vec<Value> {
        match self.open {
            Some(open) if open != kind => {
                self.open = None;
                let frame = self.frame(open, "", true);
                self.complete += 1;
                vec![frame]
            }
            _ => Vec::new(),
        }
    }

    /// The model is asked again. What was sent cannot be taken back, so the reader is told.
    fn begin_again(&mut self) -> Vec<Value> {
        self.unsent.clear();
        match self.open.take() {
            Some("answer") => vec![self.frame("answer", "\n[the answer begins again]\n", false)],
            Some(open) => vec![self.frame(open, "", true)],
            None => Vec::new(),
        }
    }

    fn last(&mut self, event: &Value) -> Vec<Value> {
        let status = event.get("status").and_then(Value::as_str).unwrap_or_default();
        if status != "completed" {
            let message = self.error.take();
            let message = message.unwrap_or_else(|| format!("the turn was {status}"));
            return vec![self.failure(&TrustGraphError::agent(message))];
        }
        let mut frames = self.close_other("answer");
        let text = std::mem::take(&mut self.unsent);
        let mut last = self.frame("answer", &text, true);
        last["complete"] = json!(true);
        if let Some(response) = last.get_mut("response").and_then(Value::as_object_mut) {
            response.insert("end_of_dialog".into(), json!(true));
            let usage = |member: &str| event.pointer(&format!("/usage/{member}")).cloned();
            response.insert("in_token".into(), usage("input_tokens").unwrap_or_default());
            response.insert("out_token".into(), usage("output_tokens").unwrap_or_default());
            response.insert("model".into(), json!(self.model));
        }
        frames.push(last);
        frames
    }

    /// The frame that ends the answer with an error.
    pub fn failure(&self, error: &TrustGraphError) -> Value {
        failure(&self.id, error)
    }

    fn frame(&self, kind: &str, content: &str, is_end: bool) -> Value {
        json!({
            "id": self.id,
            "response": {
                "message_type": kind,
                "content": content,
                "end_of_message": is_end,
                "end_of_dialog": false,
                "message_id": format!("{}-{}", self.turn, self.complete + 1),
            },
            "complete": false,
        })
    }
}

fn failure(id: &str, error: &TrustGraphError) -> Value {
    let mut frame = error.to_json();
    frame["id"] = json!(id);
    frame["complete"] = json!(true);
    frame
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    /// Each frame as kind, content, and the ends that it marks: `m`essage, `d`ialog, `c`omplete.
    fn run(is_streaming: bool, events: &[Value]) -> Vec<(String, String, String)> {
        let mut stream = AgentStream::new("req-1".into(), "t".into(), is_streaming);
        let frames = events.iter().flat_map(|event| stream.frames(event)).collect::<Vec<_>>();
        let summary = |frame: &Value| {
            assert_eq!(frame["id"], "req-1");
            if let Some(error) = frame.get("error") {
                assert_eq!(frame["complete"], true);
                return (text(&error["type"]), text(&error["message"]), "c".to_owned());
            }
            let response = &frame["response"];
            let marks = [
                (response["end_of_message"] == true, "m"),
                (response["end_of_dialog"] == true, "d"),
                (frame["complete"] == true, "c"),
            ];
            let marks = marks.iter().filter(|(is_set, _)| *is_set).map(|(_, mark)| *mark);
            (text(&response["message_type"]), text(&response["content"]), marks.collect())
        };
        frames.iter().map(summary).collect()
    }

    fn text(value: &Value) -> String {
        value.as_str().unwrap_or_default().to_owned()
    }

    fn events() -> Vec<Value> {
        vec![
            json!({"type": "started", "model": "demo"}),
            json!({"type": "thinking", "delta": "I "}),
            json!({"type": "thinking", "delta": "add"}),
            json!({"type": "thought", "text": "I add"}),
            json!({"type": "tool_call", "id": "c", "name": "sum", "arguments": {}}),
            json!({"type": "action", "id": "c", "name": "sum", "arguments": {}}),
            json!({"type": "observation", "id": "c", "is_error": false, "text": "3"}),
            json!({"type": "content", "delta": "It is "}),
            json!({"type": "content", "delta": "3"}),
            json!({"type": "answer", "text": "It is 3"}),
            json!({"type": "done", "status": "completed", "usage": {"input_tokens": 7, "output_tokens": 2}}),
        ]
    }

    #[track_caller]
    fn check(is_streaming: bool, events: &[Value], expected: &[(&str, &str, &str)]) {
        let expected: Vec<_> =
            expected.iter().map(|(a, b, c)| ((*a).into(), (*b).into(), (*c).into())).collect();
        assert_eq!(run(is_streaming, events), expected);
    }

    #[test]
    fn a_stream_has_pieces_and_their_ends() {
        check(
            true,
            &events(),
            &[
                ("thought", "I ", ""),
                ("thought", "add", ""),
                ("thought", "", "m"),
                ("observation", "3", "m"),
                ("answer", "It is ", ""),
                ("answer", "3", ""),
                ("answer", "", "mdc"),
            ],
        );
    }

    #[test]
    fn without_streaming_each_message_is_one_frame() {
        check(
            false,
            &events(),
            &[("thought", "I add", "m"), ("observation", "3", "m"), ("answer", "It is 3", "mdc")],
        );
    }

    #[test]
    fn the_last_frame_has_the_usage() {
        let mut stream = AgentStream::new("req-1".into(), "t".into(), false);
        let frames: Vec<_> = events().iter().flat_map(|event| stream.frames(event)).collect();
        let last = &frames.last().unwrap()["response"];
        assert_eq!(
            (&last["in_token"], &last["out_token"], &last["model"], &last["message_id"]),
            (&json!(7), &json!(2), &json!("demo"), &json!("t-3"))
        );
    }

    #[test]
    fn a_turn_that_fails_ends_with_its_error() {
        let failed = json!({"type": "done", "status": "failed", "usage": {}});
        let error = json!({"type": "error", "error": {"message": "no such model"}});
        check(true, &[error, failed.clone()], &[("agent-error", "no such model", "c")]);
        check(true, &[failed], &[("agent-error", "the turn was failed", "c")]);
    }

    #[test]
    fn an_answer_that_begins_again_says_so() {
        let mut events = events();
        events.insert(8, json!({"type": "retrying"}));
        check(
            true,
            events.get(7..).unwrap(),
            &[
                ("answer", "It is ", ""),
                ("answer", "\n[the answer begins again]\n", ""),
                ("answer", "3", ""),
                ("answer", "", "mdc"),
            ],
        );
    }
}
