//! Writes a conversation as text: earlier calls as actions, their results as observations.

use std::borrow::Cow;

use serde_json::{Map, Value};
use switchboard_chat::{Block, Message, Part, Reply, Said, Stop, ToolCall, ToolReturn, pieces};
use switchboard_react::{
    ReactParser, action_text, answer_text, observation_text, strip_reasoning, thought_text,
};
use switchboard_render::Rendering;

use crate::tool_results::{UNKNOWN, answered};

/// The messages of a ReACT request. They contain no calls and no results, and user and assistant take turns: the chat
/// templates of many small models refuse anything else. `tools` is the list that the prompt shows.
pub fn react_messages(messages: &[Message], tools: &Rendering) -> Vec<Message> {
    let mut written = Vec::with_capacity(messages.len());
    for (index, message) in messages.iter().enumerate() {
        match message {
            Message::System(_) => written.push(message.clone()),
            Message::User(said) => push_user(&mut written, said.content.clone()),
            Message::Assistant(reply) => {
                push_reply(&mut written, reply, tools);
                let results = answered(messages, index, reply);
                if !results.is_empty() {
                    push_user(&mut written, observations(&results));
                }
            }
            // Written with their reply.
            Message::Tool(_) => {}
        }
    }
    written
}

fn push_user(written: &mut Vec<Message>, content: Vec<Part>) {
    match written.last_mut() {
        Some(Message::User(said)) => said.content.extend(content),
        _ => written.push(Message::User(Said { content })),
    }
}

fn push_assistant(written: &mut Vec<Message>, text: String) {
    if let Some(Message::Assistant(reply)) = written.last_mut() {
        reply.content.push(Block::text(format!("\n{text}")));
    } else {
        let content = vec![Block::text(text)];
        written.push(Message::Assistant(Reply { content, ..Reply::default() }));
    }
}

fn push_reply(written: &mut Vec<Message>, reply: &Reply, tools: &Rendering) {
    let has_calls = reply.calls().next().is_some();
    if !has_calls && reply.stop == Stop::Paused {
        let text = strip_reasoning(&reply.text());
        if let Some(problem) = ReactParser::parse(&text).1.problem {
            push_assistant(written, text);
            let observation = observation_text(None, true, &problem.to_string());
            return push_user(written, vec![Part::text(observation)]);
        }
    }
    let mut steps = Vec::new();
    for block in &reply.content {
        match block {
            Block::ToolCall(call) => steps.push(action_text(&call.name, &arguments(call, tools))),
            Block::Text { text, .. } if has_calls && !text.trim().is_empty() => {
                steps.push(thought_text(text));
            }
            Block::Text { .. } => {}
            Block::Reasoning { .. } => steps.extend(block.as_thought().map(thought_text)),
        }
    }
    let answer = reply.text();
    if !has_calls && !answer.trim().is_empty() {
        steps.push(answer_text(&answer));
    }
    if !steps.is_empty() {
        push_assistant(written, steps.join("\n"));
    }
}

/// The arguments of a call, with the names that the prompt shows. Arguments that were no JSON object are an empty one:
/// their observation says what was wrong.
fn arguments<'a>(call: &'a ToolCall, tools: &Rendering) -> Cow<'a, Value> {
    let map = tools.tool(&call.name).and_then(|tool| tool.arguments.as_ref());
    match map {
        _ if call.unreadable.is_some() => Cow::Owned(Value::Object(Map::new())),
        Some(map) => Cow::Owned(map.rename(call.arguments.clone())),
        None => Cow::Borrowed(&call.arguments),
    }
}

fn observations(results: &[(&ToolCall, Option<&ToolReturn>)]) -> Vec<Part> {
    let is_only = results.len() == 1;
    let mut texts = Vec::new();
    let mut media = Vec::new();
    for (call, result) in results {
        let tool = (!is_only).then_some(call.name.as_str());
        let text = match result {
            Some(result) => {
                let (text, more) = pieces(result);
                media.extend(more.into_iter().cloned());
                observation_text(tool, result.is_error, &text)
            }
            None => observation_text(tool, true, UNKNOWN),
        };
        texts.push(text);
    }
    let mut parts = vec![Part::text(texts.join("\n"))];
    parts.append(&mut media);
    parts
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use serde_json::json;
    use switchboard_chat::{Media, Place};
    use switchboard_render::{NamedTool, Provider};

    use super::*;
    use crate::samples::{call, calls};

    fn shown(messages: &[Message]) -> Vec<String> {
        let tools = Rendering::new(Provider::React, std::iter::empty::<NamedTool<'_>>());
        let show = |message: Message| match message {
            Message::System(said) => format!("system {:?}", said.content),
            Message::User(said) => {
                let texts = said.content.iter().map(|part| match part {
                    Part::Text { text } => text.as_str(),
                    Part::Image(_) | Part::File { .. } => "(media)",
                });
                format!("user {}", texts.collect::<Vec<_>>().join(" | "))
            }
            Message::Assistant(reply) => format!("assistant {}", reply.text()),
            Message::Tool(result) => format!("tool {}", result.name),
        };
        react_messages(messages, &tools).into_iter().map(show).collect()
    }

    fn reply(content: Vec<Block>, stop: Stop) -> Message {
        Message::Assistant(Reply { content, stop, ..Reply::default() })
    }

    fn returned(id: &str, is_error: bool, text: &str) -> Message {
        let made = ToolReturn::failed(&call(id, "find", json!({})), text);
        Message::Tool(ToolReturn { is_error, ..made })
    }

    #[test]
    fn calls_and_results_become_actions_and_observations() {
        let one = calls(call("a", "find", json!({"q": ["x", 1]})));
        let messages = [
            Message::user("find x"),
            reply(vec![Block::thought("I look."), one], Stop::ToolCalls),
            returned("a", false, "3 things"),
            reply(vec![Block::text("Three.")], Stop::End),
            Message::user("more"),
        ];
        assert_eq!(
            shown(&messages),
            [
                "user find x",
                "assistant Thought: I look.\nAction: find\nArgs: {\"q\":[\"x\",1]}",
                "user Observation: 3 things",
                "assistant Final Answer: Three.",
                "user more",
            ]
        );
    }

    #[test]
    fn several_results_are_one_message_and_name_their_tools() {
        let two =
            vec![calls(call("a", "find", json!({}))), calls(call("b", "find", json!({"n": 1})))];
        let image =
            Part::Image(Media { media_type: "image/png".into(), place: Place::Data("AA".into()) });
        let mut second = ToolReturn::failed(&call("b", "find", json!({})), "no");
        second.content.push(image);
        let messages = [
            Message::user("x"),
            reply(two, Stop::ToolCalls),
            returned("a", false, "yes"),
            Message::Tool(second),
            Message::user("go on"),
        ];
        assert_eq!(
            shown(&messages)[1..],
            [
                "assistant Action: find\nArgs: {}\nAction: find\nArgs: {\"n\":1}",
                "user Observation: [find] yes\nObservation: [find] Error: no | (media) | go on",
            ]
        );
    }

    #[test]
    fn the_text_of_a_native_reply_is_a_thought_and_its_reasoning_stays_away() {
        let native = Block::Reasoning { text: "long".into(), opaque: None };
        let content = vec![native, Block::text("I look."), calls(call("a", "find", json!({})))];
        let messages =
            [Message::user("x"), reply(content, Stop::ToolCalls), returned("a", false, "")];
        assert_eq!(
            shown(&messages)[1..],
            ["assistant Thought: I look.\nAction: find\nArgs: {}", "user Observation: (no output)"]
        );
    }

    #[test]
    fn a_reply_that_could_not_be_used_is_followed_by_what_was_wrong() {
        let messages = [
            Message::user("x"),
            reply(vec![Block::text("<think>a</think>Thought: hm")], Stop::Paused),
            reply(vec![Block::text("Done.")], Stop::End),
        ];
        let shown = shown(&messages);
        assert_eq!(shown[1], "assistant Thought: hm");
        assert!(shown[2].starts_with("user Observation: Error: your reply has a thought, but"));
        assert_eq!(shown[3], "assistant Final Answer: Done.");
    }

    #[test]
    fn arguments_that_were_no_object_are_sent_as_an_empty_one() {
        let mut broken = call("a", "find", json!({}));
        broken.unreadable = Some("{'a'".into());
        let messages = [
            Message::user("x"),
            reply(vec![calls(broken)], Stop::ToolCalls),
            returned("a", true, "no"),
        ];
        assert_eq!(
            shown(&messages)[1..],
            ["assistant Action: find\nArgs: {}", "user Observation: Error: no"]
        );
    }
}
