use std::sync::Arc;

use pretty_assertions::assert_eq;
use serde_json::json;
use switchboard_chat::Source;
use switchboard_model::{ModelSettings, ProviderKind, ToolDescriptor};
use switchboard_render::{NamedTool, Provider, Rendering};

use super::*;
use crate::Tools;

fn played(messages: &[Message], failed_before: u32) -> Vec<Beat> {
    let source = Source {
        kind: ProviderKind::Demo,
        provider: "demo".into(),
        model: "demo".into(),
        credential: None,
    };
    let descriptors = ["echo", "add", "wait", "search"].map(|name| ToolDescriptor {
        description: Some(format!("Does {name}\nand more")),
        ..ToolDescriptor::named(name)
    });
    let declared =
        descriptors.iter().map(|descriptor| NamedTool { name: &descriptor.name, descriptor });
    let tools = Tools::only(Arc::new(Rendering::new(Provider::OpenAiChat, declared)));
    let settings = ModelSettings::default();
    let ask = ModelRequest {
        source: &source,
        messages,
        replay: 0..messages.len(),
        tools: &tools,
        settings: &settings,
        stop: None,
        session: "s",
        turn: "t",
        project: None,
        is_bearer: false,
    };
    demo(&ask, failed_before).collect()
}

fn last(beats: &[Beat]) -> &ModelEvent {
    match beats.last() {
        Some(Beat::Event(event)) => event,
        other => panic!("{other:?}"),
    }
}

fn reply(messages: &[Message]) -> Reply {
    match last(&played(messages, 0)) {
        ModelEvent::Finished(reply) => (**reply).clone(),
        other => panic!("{other:?}"),
    }
}

fn said(text: &str) -> Reply {
    reply(&[Message::user(text)])
}

/// The content of a reply in a short notation.
fn shown(reply: &Reply) -> Vec<String> {
    let show = |block: &Block| match block {
        Block::Text { text, .. } => format!("text {text}"),
        Block::Reasoning { text, .. } => format!("thought {text}"),
        Block::ToolCall(call) => match &call.unreadable {
            Some(written) => format!("unreadable {} {written}", call.name),
            None => format!("call {} {}", call.name, call.arguments),
        },
    };
    reply.content.iter().map(show).collect()
}

#[track_caller]
fn check(text: &str, expected: &[&str]) {
    assert_eq!(shown(&said(text)), expected, "{text}");
}

#[test]
fn lines_are_followed_in_their_order() {
    check("/say hi there\n/say you", &["text hi there\nyou"]);
    check(
        "/think hm\nplease\n/call add {\"a\": 1}\n/call echo\n/say bye",
        &["thought hm", r#"call add {"a":1}"#, "call echo {}", "text bye"],
    );
    check("/call add {\"a\":\n", &["unreadable add {\"a\":"]);
    check("/call add [1]", &["unreadable add [1]"]);
    assert_eq!(said("/call add").stop, Stop::ToolCalls);
    assert_eq!(said("/say x").stop, Stop::End);
}

#[test]
fn words_get_a_friendly_answer_that_names_tools() {
    insta::assert_snapshot!(said("hello").text(), @"Hello! I am the demo model; you said “hello”, but I only do what I am told. I see 4 tools, such as `echo`, `add`, `wait`. Write `/call echo {}` and I call it, or `/help` for all that I can do.");
    insta::assert_snapshot!(said("/tools").text(), @r"
    I see 4 tools:
    - `echo`: Does echo
    - `add`: Does add
    - `wait`: Does wait
    - `search`: Does search
    ");
    assert!(said("/nonsense").text().starts_with("I do not know `/nonsense`.\nI know these"));
    assert!(reply(&[]).text().contains("you said nothing"));
}

#[test]
fn calls_that_are_answered_are_told_of() {
    let asked = said("/call add {}\n/call echo");
    let calls: Vec<_> = asked.calls().cloned().collect();
    let good = ToolReturn {
        is_error: false,
        structured: Some(json!({"sum": 3})),
        ..ToolReturn::failed(&calls[0], "3")
    };
    let bad = ToolReturn::failed(&calls[1], "no such thing");
    let history = [
        Message::user("/call add {}\n/call echo"),
        Message::Assistant(asked),
        Message::Tool(good),
        Message::Tool(bad),
    ];
    let answer = reply(&history);
    assert_eq!(shown(&answer), ["text add answered: {\"sum\":3}\necho failed: no such thing"]);
    assert_eq!(answer.stop, Stop::End);
    let more = [history.as_slice(), &[Message::Assistant(answer), Message::user("/say next")]];
    assert_eq!(shown(&reply(&more.concat())), ["text next"], "a new turn is a new script");
}

#[test]
fn a_loop_never_ends_by_itself() {
    let mut history = vec![Message::user("/loop echo {\"n\": 1}")];
    for round in 0..3 {
        let answer = reply(&history);
        let calls: Vec<_> = answer.calls().cloned().collect();
        assert_eq!((calls.len(), answer.stop), (1, Stop::ToolCalls), "round {round}");
        history.push(Message::Assistant(answer));
        history.push(Message::Tool(ToolReturn::failed(&calls[0], "x")));
    }
}

#[test]
fn faults_are_the_ones_that_were_asked_for() {
    let beats = played(&[Message::user("/say first\n/error quota 5\n/say never")], 0);
    let ModelEvent::Failed(fault) = last(&beats) else { panic!("{beats:?}") };
    assert_eq!((fault.kind, fault.retry_after), (FaultKind::Quota, Some(Duration::from_secs(5))));
    assert!(beats.contains(&Beat::Event(ModelEvent::Text("first".into()))));
    let flaky = [Message::user("/flaky 2")];
    for failed in 0..2 {
        assert!(matches!(last(&played(&flaky, failed)), ModelEvent::Failed(_)), "{failed}");
    }
    assert!(matches!(last(&played(&flaky, 2)), ModelEvent::Finished(_)));
}

#[test]
fn texts_come_word_by_word_and_long_ones_take_no_longer() {
    let pauses = |text: &str| -> Duration {
        let beats = played(&[Message::user(text)], 0);
        let pause = |beat| match beat {
            Beat::Pause(pause) => pause,
            Beat::Event(_) => Duration::ZERO,
        };
        beats.into_iter().map(pause).sum()
    };
    assert_eq!(pauses("/say a b c"), PAUSE * 3);
    assert!(pauses(&format!("/say {}", "word ".repeat(5000))) <= Duration::from_secs(2));
    assert_eq!(pauses("/slow 3"), Duration::from_secs(3));
    let reply = said("/slow 3");
    assert!(reply.text().ends_with("14 done."), "{}", reply.text());
}

#[test]
fn what_it_costs_is_words() {
    let usage = said("/think a b\n/say c").usage.unwrap();
    assert_eq!((usage.input_tokens, usage.output_tokens, usage.reasoning_tokens), (5, 3, 2));
    let beats = played(&[Message::user("/say c")], 0);
    assert!(matches!(beats[beats.len() - 2], Beat::Event(ModelEvent::Usage(_))));
}

/// The replies of the demo model in a ReACT turn, until it answers. `results` are the texts of the observations.
fn acted(message: &str, results: &[&str]) -> Vec<String> {
    acted_after(vec![Message::user(message)], results)
}

fn acted_after(mut messages: Vec<Message>, results: &[&str]) -> Vec<String> {
    let source = Source {
        kind: ProviderKind::Demo,
        provider: "demo".into(),
        model: "demo".into(),
        credential: None,
    };
    let none = Rendering::new(Provider::OpenAi, std::iter::empty::<NamedTool<'_>>());
    let tools = Tools::only(Arc::new(none));
    let prompt = "Tools:\n- a__b: does\n  - x (string)\n- c__d\n\nFinal Answer: the answer";
    let settings = ModelSettings { instructions: Some(prompt.into()), ..ModelSettings::default() };
    let mut said = Vec::new();
    for result in results.iter().map(Some).chain([None]) {
        let ask = ModelRequest {
            source: &source,
            messages: &messages,
            replay: 0..0,
            tools: &tools,
            settings: &settings,
            stop: None,
            session: "s",
            turn: "t",
            project: None,
            is_bearer: false,
        };
        let beats: Vec<_> = demo(&ask, 0).collect();
        let ModelEvent::Finished(reply) = last(&beats) else { panic!("{beats:?}") };
        said.push(reply.text());
        messages.push(Message::Assistant((**reply).clone()));
        messages.extend(result.map(|result| Message::user(format!("Observation: {result}"))));
    }
    said
}

#[test]
fn in_a_react_turn_it_acts_step_by_step_and_then_answers() {
    assert_eq!(
        acted("/call a__b {\"x\": 1}\n/call c__d\n/say bye", &["3", "Error: no"]),
        [
            "Thought: step 1 of 2: I call a__b.\nAction: a__b\nArgs: {\"x\": 1}",
            "Thought: step 2 of 2: I call c__d.\nAction: c__d\nArgs: {}",
            "Final Answer: a__b answered: 3\nc__d failed: no\nbye",
        ]
    );
    assert_eq!(
        acted("/think hm\n/tools", &[]),
        ["Thought: hm\nFinal Answer: My prompt lists a__b, c__d."]
    );
    assert!(acted("hello", &[])[0].starts_with("Final Answer: Hello! I am the demo model"));
    let looped = acted("/loop a__b", &["1", "2"]);
    assert!(looped.iter().all(|reply| reply.contains("Action: a__b")), "{looped:?}");
}

#[test]
fn after_a_react_turn_that_was_cancelled_it_does_what_is_asked_next() {
    let action = Reply { content: vec![Block::text("Action: c__d\nArgs: {}")], ..Reply::default() };
    let next = Said {
        content: vec![
            Part::text("Observation: Error: cancelled by the user"),
            Part::text("/call a__b"),
        ],
    };
    let messages =
        vec![Message::user("/call c__d"), Message::Assistant(action), Message::User(next)];
    assert_eq!(
        acted_after(messages, &["3"]),
        [
            "Thought: step 1 of 1: I call a__b.\nAction: a__b\nArgs: {}",
            "Final Answer: a__b answered: 3",
        ]
    );
}
