//! What joining the rounds of an answer to an app costs by itself, for each API: without sockets and without a provider.

use std::hint::black_box;

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use switchboard_model::{JsonText, ToolDescriptor};
use switchboard_render::{NamedTool, Rendering};
use switchboard_splice::{
    AnswerPart, Api, AppRequest, InjectedTurn, NextStep, ProviderAnswer, RequestTarget,
    SessionTools, TurnOptions,
};
use switchboard_wire::SseDecoder;

use crate::Row;
use crate::render::cpu_time;

const DELTAS: usize = 20_000;
const ROUNDS: usize = 15;
const REQUESTS: u32 = 200;
const TOOLS: usize = 100;
const MAX_EVENT_BYTES: usize = 64 << 20;
/// A typical socket read of a fast model.
const PIECE: usize = 4 << 10;

pub(crate) fn measure() -> anyhow::Result<Vec<Row>> {
    let mut rows = Vec::new();
    for api in Api::ALL {
        let rendering = rendering(api);
        let frames = answer().frames(api).concat();
        let (mut deltas, mut requests) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            let mut turn = begin(api, &rendering)?;
            let start = cpu_time();
            let written = read(&mut turn, frames.as_bytes())?;
            deltas.push(cpu_time().saturating_sub(start).as_secs_f64() * 1e6);
            ensure!(written >= frames.len() / 2, "{} bytes of {}", written, frames.len());
            let start = cpu_time();
            for _ in 0..REQUESTS {
                black_box(begin(api, &rendering)?.body());
            }
            requests.push(cpu_time().saturating_sub(start).as_secs_f64() * 1e6);
        }
        #[expect(clippy::cast_precision_loss, reason = "some thousands")]
        let each =
            [(deltas, DELTAS as f64), (requests, f64::from(REQUESTS))].map(|(mut all, of)| {
                all.sort_by(f64::total_cmp);
                all.get(ROUNDS / 2).copied().unwrap_or_default() / of
            });
        let row =
            |what: String, took: f64| Row { what, measured: format!("{took:.1} µs"), aim: "" };
        let name = api.as_str();
        rows.push(row(format!("{name}: a delta read and written, CPU"), each[0]));
        rows.push(row(format!("{name}: a request with {TOOLS} tools added, CPU"), each[1]));
    }
    Ok(rows)
}

/// An answer with small pieces of text.
fn answer() -> ProviderAnswer {
    let text = AnswerPart::Text((0..DELTAS).map(|number| format!(" word{number}")).collect());
    ProviderAnswer {
        id: "1".into(),
        model: "bench".into(),
        parts: vec![text],
        ..ProviderAnswer::default()
    }
}

fn begin(api: Api, rendering: &Rendering) -> anyhow::Result<InjectedTurn> {
    let target = RequestTarget {
        model: (api == Api::Gemini).then(|| "gemini-3.1-pro".to_owned()),
        is_streamed: (api == Api::Gemini).then_some(true),
        ..RequestTarget::default()
    };
    let request = AppRequest::read(api, &target, asked(api).to_string().as_bytes())?;
    let tools = SessionTools::new(&request, rendering);
    let options = TurnOptions {
        shows_calls: None,
        seed: "bench".into(),
        max_rounds: 25,
        now: 1_700_000_000,
        server_label: "switchboard".into(),
    };
    Ok(InjectedTurn::new(request, tools, &options)?)
}

fn asked(api: Api) -> Value {
    let said = json!([{"role": "user", "content": "go"}]);
    match api {
        Api::Responses => json!({"model": "bench", "stream": true, "store": false, "input": said}),
        Api::Chat => json!({"model": "bench", "stream": true, "messages": said}),
        Api::Messages => {
            json!({"model": "bench", "stream": true, "max_tokens": 1_000_000, "messages": said})
        }
        Api::Gemini => json!({"contents": [{"role": "user", "parts": [{"text": "go"}]}]}),
    }
}

fn rendering(api: Api) -> Rendering {
    let schema = json!({
        "type": "object", "required": ["path"],
        "properties": {"path": {"type": "string", "description": "Where"}, "lines": {"type": "integer"}},
    });
    let tools: Vec<_> = (0..TOOLS)
        .map(|number| ToolDescriptor {
            description: Some("Reads a part of a file, and says what is in it.".to_owned()),
            input_schema: JsonText::from(&schema),
            ..ToolDescriptor::named(format!("files__read_{number}"))
        })
        .collect();
    let named = tools.iter().map(|descriptor| NamedTool { name: &descriptor.name, descriptor });
    Rendering::new(api.provider(), named)
}

/// Reads an answer as a turn of an app does; returns how many bytes the app gets.
fn read(turn: &mut InjectedTurn, frames: &[u8]) -> anyhow::Result<usize> {
    let mut decoder = SseDecoder::new(MAX_EVENT_BYTES);
    let mut written = 0;
    let mut out = Vec::new();
    for piece in frames.chunks(PIECE) {
        let mut failed = None;
        let fed = decoder.feed(piece, |name, data| {
            let event = std::str::from_utf8(name).ok().zip(std::str::from_utf8(data).ok());
            let Some((name, data)) = event else { return false };
            failed = turn.event(name, data, &mut out).err();
            failed.is_none()
        });
        if let Some(refusal) = failed {
            return Err(refusal.into());
        }
        fed.ok().context("an event is too large")?;
        written += std::mem::take(&mut out).len();
    }
    ensure!(turn.end_round(&mut out)? == NextStep::Finish, "the answer has calls");
    turn.finish(&mut out);
    Ok(written + out.len())
}
