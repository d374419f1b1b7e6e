//! For any bytes in any chunks: one final event, the same events, and no incomplete call.

use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Map, Value, json};
use switchboard_chat::{ModelEvent, Reply};
use switchboard_model::ProviderKind;
use switchboard_test_support::model_backends::{Backend, Quirk, Step, stream_of};
use switchboard_wire::{Limits, Parser};

use crate::mutation::Mutation;
use crate::{PROVIDERS, config, source};

type Call = (&'static str, Value);

/// An answer and its calls.
#[derive(Debug, Clone)]
struct Answer {
    step: Step,
    calls: Vec<Call>,
}

fn answer() -> impl Strategy<Value = Answer> {
    let arguments = prop_oneof![
        Just(json!({})),
        Just(json!({"a b": "\"quoted\"\n", "n": 1})),
        "[a-zé世\"\\\\{}\n]{0,12}".prop_map(|text| json!({"text": text, "list": [[], {}]})),
    ];
    let call = (proptest::sample::select(&["find", "drop", "a__b"][..]), arguments);
    let quirks = [Quirk::NoIndex, Quirk::RepeatedName, Quirk::NoId, Quirk::NullId, Quirk::NoType]
        .into_iter()
        .chain([Quirk::StopWithCalls, Quirk::WholeArguments, Quirk::WithIds, Quirk::NoEnd])
        .collect::<Vec<_>>();
    let said = ("[ a-zé世\"\\\\\n]{0,30}", proptest::option::of("[ a-zé\n]{1,20}"));
    let calls = proptest::collection::vec(call, 0..4);
    let ending = (0_u8..8, proptest::option::of(proptest::sample::select(quirks)));
    let travel = any::<[bool; 3]>();
    (said, calls, ending, travel).prop_map(|((text, thought), calls, (ending, quirk), travel)| {
        let mut step = thought.into_iter().fold(Step::new(), Step::thinking);
        step = if text.is_empty() { step } else { step.say(text) };
        for (name, arguments) in &calls {
            step = step.call(*name, arguments.clone());
        }
        step = quirk.into_iter().fold(step, Step::quirk);
        step = match ending {
            0 => step.truncated(),
            1 => step.refused(),
            2 => step.error_event("overloaded_error", "too much"),
            3 => step.without_usage(),
            _ => step,
        };
        let [crlf, comments, unknown] = travel;
        step = if crlf { step.crlf() } else { step };
        step = if comments { step.comments() } else { step };
        step = if unknown { step.unknown_events() } else { step };
        Answer { step, calls }
    })
}

fn parser(kind: ProviderKind) -> Parser {
    let limits = Limits { event_bytes: 8 << 10, reply_bytes: 8 << 10, calls: 8 };
    Parser::new(&source(kind, "model"), limits)
}

fn events<'a>(kind: ProviderKind, pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<ModelEvent> {
    let mut parser = parser(kind);
    let mut events = Vec::new();
    for piece in pieces {
        parser.feed(piece, &mut events);
    }
    parser.finish(&mut events);
    assert!(parser.is_done());
    // Bytes after the final event have no effect.
    let count = events.len();
    parser.feed(b"data: {}\n\n", &mut events);
    parser.finish(&mut events);
    assert_eq!(events.len(), count);
    events
}

fn pieces<'a>(bytes: &'a [u8], cuts: &[Index]) -> Vec<&'a [u8]> {
    let mut cuts: Vec<_> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
    cuts.extend([0, bytes.len()]);
    cuts.sort_unstable();
    cuts.windows(2).map(|ends| &bytes[ends[0]..ends[1]]).collect()
}

/// Parses a stream as a whole, in the given chunks and byte by byte, and returns the reply if there is one.
#[track_caller]
fn check(kind: ProviderKind, bytes: &[u8], cuts: &[Index]) -> Option<Reply> {
    let whole = events(kind, [bytes]);
    let name = kind.as_str();
    assert_eq!(events(kind, pieces(bytes, cuts)), whole, "{name}: in pieces");
    assert_eq!(events(kind, bytes.chunks(1)), whole, "{name}: byte by byte");
    let is_last =
        |event: &&ModelEvent| matches!(event, ModelEvent::Finished(_) | ModelEvent::Failed(_));
    assert_eq!(whole.iter().filter(is_last).count(), 1, "{name}: {whole:?}");
    match whole.last() {
        Some(ModelEvent::Finished(reply)) => {
            for call in reply.calls() {
                assert!(call.arguments.is_object(), "{name}: {call:?}");
                let is_empty = call.arguments.as_object().is_some_and(Map::is_empty);
                assert!(call.unreadable.is_none() || is_empty, "{name}: {call:?}");
            }
            Some((**reply).clone())
        }
        Some(ModelEvent::Failed(fault)) => {
            assert!(!fault.message.is_empty());
            None
        }
        other => panic!("{name}: {other:?} is the last event"),
    }
}

proptest! {
    #![proptest_config(config())]
    #[test]
    fn any_bytes_end_once(
        bytes in proptest::collection::vec(any::<u8>(), 0..300),
        cuts in proptest::collection::vec(any::<Index>(), 0..4),
    ) {
        for (kind, ..) in PROVIDERS {
            check(kind, &bytes, &cuts);
        }
    }

    #[test]
    fn streams_that_are_damaged_end_once(
        answer in answer(),
        mutations in proptest::collection::vec(Mutation::any(), 1..5),
        cuts in proptest::collection::vec(any::<Index>(), 0..4),
    ) {
        for (kind, backend, _) in PROVIDERS {
            let mut bytes = stream_of(backend, &answer.step);
            for mutation in &mutations {
                mutation.apply(&mut bytes);
            }
            check(kind, &bytes, &cuts);
        }
    }

    /// A stream that is cut anywhere gives its calls or fewer, each with its arguments unchanged.
    #[test]
    fn calls_of_a_stream_that_is_cut_are_whole(answer in answer(), cut in any::<Index>()) {
        for (kind, backend, _) in PROVIDERS {
            let bytes = stream_of(backend, &answer.step);
            for end in [bytes.len(), cut.index(bytes.len() + 1)] {
                let reply = check(kind, &bytes[..end], &[]);
                let made = reply.iter().flat_map(Reply::calls);
                let mut left = answer.calls.iter();
                for call in made {
                    let is_meant = left.any(|(name, arguments)| {
                        call.name == *name && call.arguments == *arguments
                    });
                    prop_assert!(
                        is_meant || call.unreadable.is_some(),
                        "{} was never called, or not so: {call:?}", backend.word()
                    );
                }
            }
        }
    }
}

/// The generator is useful: the parsers understand its streams.
#[test]
fn streams_that_nothing_happened_to_are_read() {
    let step = Step::new().thinking("hm").say("hello").call("find", json!({"a b": 1}));
    for (kind, backend, _) in PROVIDERS {
        let reply = check(kind, &stream_of(backend, &step), &[]).unwrap();
        let calls: Vec<_> = reply.calls().map(|call| (&*call.name, &call.arguments)).collect();
        assert_eq!(calls, [("find", &json!({"a b": 1}))], "{}", Backend::word(backend));
        assert_eq!(reply.text(), "hello");
    }
}
