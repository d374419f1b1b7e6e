//! Parsing speed of streams, for each format.

use std::hint::black_box;

use anyhow::ensure;
use switchboard_chat::{ModelEvent, Source};
use switchboard_model::ProviderKind;
use switchboard_wire::{Limits, Parser};

use super::streams::{FORMATS, stream};
use crate::Row;
use crate::render::cpu_time;

const DELTAS: usize = 40_000;
const ROUNDS: usize = 15;
/// Typical sizes of a socket read.
const PIECES: [usize; 2] = [4 << 10, 16 << 10];

pub(crate) fn measure() -> anyhow::Result<Vec<Row>> {
    let mut rows = Vec::new();
    for (kind, name) in FORMATS {
        let bytes = stream(kind, DELTAS);
        for piece in PIECES {
            let mut speeds = Vec::new();
            for _ in 0..ROUNDS {
                let start = cpu_time();
                let is_whole = read(kind, &bytes, piece);
                let took = cpu_time().saturating_sub(start).as_secs_f64();
                ensure!(is_whole, "the stream of {name} was not read to its end");
                #[expect(clippy::cast_precision_loss, reason = "a stream has some megabytes")]
                speeds.push(bytes.len() as f64 / 1e6 / took);
            }
            speeds.sort_by(f64::total_cmp);
            let median = speeds.get(ROUNDS / 2).copied().unwrap_or_default();
            rows.push(Row {
                what: format!("read {name}, {} KiB at a time, CPU", piece >> 10),
                measured: format!("{median:.0} MB/s"),
                aim: "> 300 MB/s",
            });
        }
    }
    Ok(rows)
}

/// Parses a stream as the program does; returns whether it ended with a complete reply.
fn read(kind: ProviderKind, bytes: &[u8], piece: usize) -> bool {
    let source = Source { kind, provider: "bench".into(), model: "bench".into(), credential: None };
    let mut parser = Parser::new(&source, Limits::default());
    let mut is_whole = false;
    let mut events = Vec::new();
    let mut hand_on = |events: &mut Vec<ModelEvent>| {
        is_whole |= matches!(events.last(), Some(ModelEvent::Finished(_)));
        black_box(&*events);
        events.clear();
    };
    for piece in bytes.chunks(piece) {
        parser.feed(piece, &mut events);
        hand_on(&mut events);
    }
    parser.finish(&mut events);
    hand_on(&mut events);
    is_whole
}
