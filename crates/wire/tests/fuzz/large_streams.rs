//! Fifty megabytes of deltas: the size limit of a reply ends the parsing early, and memory stays small.

use switchboard_chat::{FaultKind, ModelEvent};
use switchboard_model::ProviderKind;
use switchboard_test_support::model_backends::{Backend, Step, stream_of};
use switchboard_wire::{Limits, Parser};

use crate::{PROVIDERS, source};

const ALL: usize = 50 << 20;
const DELTA: usize = 4 << 10;

/// The stream up to its first delta, and one delta, which is repeated.
fn opening_and_delta(backend: Backend) -> (String, String) {
    let step = Step::new().repeat_delta(2, "x".repeat(DELTA));
    let stream = String::from_utf8(stream_of(backend, &step)).unwrap();
    let end = if stream.contains("\r\n\r\n") { "\r\n\r\n" } else { "\n\n" };
    let events: Vec<&str> = stream.split_inclusive(end).collect();
    let first = events.windows(2).position(|pair| pair[0] == pair[1]).unwrap();
    (events[..first].concat(), events[first].to_owned())
}

#[test]
fn fifty_megabytes_of_deltas_end_at_the_limit() {
    let most = Limits::default().reply_bytes;
    // The other two use the same parsers.
    let own = [
        ProviderKind::OpenAi,
        ProviderKind::OpenAiChat,
        ProviderKind::Anthropic,
        ProviderKind::Gemini,
    ];
    for (kind, backend, model) in PROVIDERS.into_iter().filter(|(kind, ..)| own.contains(kind)) {
        let name = backend.word();
        let (opening, delta) = opening_and_delta(backend);
        let piece = delta.repeat(16);
        let mut parser = Parser::new(&source(kind, model), Limits::default());
        let mut events = Vec::new();
        parser.feed(opening.as_bytes(), &mut events);
        let (mut said, mut ended) = (0, Vec::new());
        for sent in (0..ALL).step_by(piece.len()) {
            parser.feed(piece.as_bytes(), &mut events);
            assert!(parser.is_done() || sent < 2 * most, "{name} goes on after {sent} bytes");
            for event in events.drain(..) {
                match event {
                    ModelEvent::Text(text) => said += text.len(),
                    ModelEvent::Failed(fault) => ended.push(fault.kind),
                    _ => {}
                }
            }
        }
        parser.finish(&mut events);
        assert_eq!((ended, events), (vec![FaultKind::TooLarge], vec![]), "{name}");
        assert!(said <= most && said > most - 2 * DELTA, "{name}: {said} bytes");
    }
}
