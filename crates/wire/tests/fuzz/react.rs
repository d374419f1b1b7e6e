//! ReACT requests of random conversations, and random replies in random chunks.

use proptest::prelude::*;
use serde_json::json;
use switchboard_chat::{Block, History, Message, ModelEvent, Reply, Stop};
use switchboard_render::{NamedTool, Provider, Rendering};
use switchboard_wire::{ReactReader, react_messages};

use crate::conversations::messages;
use crate::{asking, config};

/// Replies made of what replies are made of.
fn replies() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        proptest::sample::select(
            &[
                "Thought: ",
                "\nAction: ",
                "\nArgs: ",
                "\nFinal Answer: ",
                "\nObservation: ",
                "find",
                "{\"a\": 1}",
                "{",
                "}",
                "\"",
                "\n",
                "```",
                "<think>",
                "</think>",
                "**",
                "None",
            ][..]
        )
        .prop_map(str::to_owned),
        "[ a-zé世\"\\\\\n]{0,12}",
    ];
    proptest::collection::vec(part, 0..24).prop_map(|parts| parts.concat())
}

/// Reads a reply in chunks of this many characters. Adjacent deltas are joined.
fn read(text: &str, size: usize) -> Vec<ModelEvent> {
    let (mut reader, mut all) = (ReactReader::default(), Vec::new());
    let chars: Vec<char> = text.chars().collect();
    for chunk in chars.chunks(size) {
        reader.read(ModelEvent::Text(chunk.iter().collect()), &mut all);
    }
    let content = if text.is_empty() { Vec::new() } else { vec![Block::text(text)] };
    let reply = Reply { content, ..Reply::default() };
    reader.read(ModelEvent::Finished(Box::new(reply)), &mut all);
    let mut joined: Vec<ModelEvent> = Vec::new();
    for event in all {
        match (joined.last_mut(), event) {
            (Some(ModelEvent::Text(text)), ModelEvent::Text(more))
            | (Some(ModelEvent::Thinking(text)), ModelEvent::Thinking(more)) => {
                text.push_str(&more);
            }
            (_, event) => joined.push(event),
        }
    }
    joined
}

proptest! {
    #![proptest_config(config())]
    #[test]
    fn a_history_becomes_text_that_every_provider_takes(messages in messages()) {
        let text = json!({"version": 1, "messages": messages}).to_string();
        if let Ok(history) = History::read(text.as_bytes()) {
            let tools = Rendering::new(Provider::React, std::iter::empty::<NamedTool<'_>>());
            let written = react_messages(&history.messages, &tools);
            for pair in written.windows(2) {
                let is_same = matches!(pair, [Message::User(_), Message::User(_)] | [Message::Assistant(_), Message::Assistant(_)]);
                prop_assert!(!is_same, "{written:#?}");
            }
            let has_calls = written.iter().any(|message| match message {
                Message::Assistant(reply) => reply.calls().next().is_some(),
                Message::Tool(_) => true,
                Message::System(_) | Message::User(_) => false,
            });
            prop_assert!(!has_calls, "{written:#?}");
            asking::check(&written);
        }
    }

    #[test]
    fn a_reply_is_read_the_same_in_chunks_of_any_size(text in replies(), size in 1_usize..20) {
        let whole = read(&text, usize::MAX);
        prop_assert_eq!(&read(&text, size), &whole);
        let Some(ModelEvent::Finished(reply)) = whole.last() else { panic!("{whole:?}") };
        let finals = whole.iter().filter(|event| matches!(event, ModelEvent::Finished(_)));
        prop_assert_eq!(finals.count(), 1);
        let begun = whole.iter().filter(|event| matches!(event, ModelEvent::CallBegun { .. }));
        prop_assert_eq!(begun.count(), reply.calls().count());
        let said: String = whole
            .iter()
            .filter_map(|event| match event {
                ModelEvent::Text(text) => Some(text.as_str()),
                _ => None,
            })
            .collect();
        if reply.stop != Stop::Paused {
            prop_assert_eq!(said, reply.text());
        }
    }

    #[test]
    fn what_was_read_from_a_reply_is_written_so_that_it_is_read_the_same(text in replies()) {
        let Some(ModelEvent::Finished(reply)) = read(&text, usize::MAX).pop() else { panic!("{text}") };
        let calls: Vec<_> = reply.calls().filter(|call| call.unreadable.is_none()).cloned().collect();
        prop_assume!(!calls.is_empty() && calls.len() == reply.calls().count());
        let tools = Rendering::new(Provider::React, std::iter::empty::<NamedTool<'_>>());
        let written = react_messages(&[Message::user("x"), Message::Assistant(*reply)], &tools);
        let Some(Message::Assistant(again)) = written.get(1) else { panic!("{written:?}") };
        let Some(ModelEvent::Finished(again)) = read(&again.text(), usize::MAX).pop() else { panic!("{again:?}") };
        let again: Vec<_> = again.calls().cloned().collect();
        prop_assert_eq!(again, calls);
    }
}
