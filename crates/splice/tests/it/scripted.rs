//! Plays a turn with the answers of a script.

use std::collections::HashMap;

use proptest::prelude::*;
use serde_json::{Value, json};
use switchboard_chat::{Part, ToolCall, ToolReturn};
use switchboard_model::{JsonText, ToolDescriptor};
use switchboard_render::{NamedTool, Rendering};
use switchboard_splice::{
    Api, AppRequest, InjectedTurn, NextStep, RecordKey, Refusal, RequestTarget, SessionTools,
    TurnOptions, TurnRecord,
};

/// The tools of the session in all tests.
pub(crate) const SESSION_TOOLS: [&str; 2] = ["files__read", "files__write"];

pub(crate) fn rendering(api: Api, names: &[&str]) -> Rendering {
    let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}});
    let tools: Vec<_> = names
        .iter()
        .map(|name| ToolDescriptor {
            description: Some(format!("does {name}")),
            input_schema: JsonText::from(&schema),
            ..ToolDescriptor::named(*name)
        })
        .collect();
    let named = tools.iter().map(|tool| NamedTool { name: &tool.name, descriptor: tool });
    Rendering::new(api.provider(), named)
}

pub(crate) fn options() -> TurnOptions {
    TurnOptions {
        shows_calls: None,
        seed: "seed".into(),
        max_rounds: 20,
        now: 1_700_000_000,
        server_label: "switchboard".into(),
    }
}

/// What an attempt of a round gives.
#[derive(Debug, Clone)]
pub(crate) enum Attempt {
    /// Events: name and data.
    Events(Vec<(String, String)>),
    /// Events, after which the connection is lost.
    Cut(Vec<(String, String)>),
    Whole(String),
}

/// A turn that has been played.
#[derive(Debug)]
pub(crate) struct Played {
    pub(crate) bodies: Vec<String>,
    /// The stream that the app got.
    pub(crate) stream: String,
    /// The body that the app got.
    pub(crate) whole: Option<String>,
    pub(crate) refusal: Option<Refusal>,
    pub(crate) records: HashMap<RecordKey, TurnRecord>,
}

/// The result of a session tool.
pub(crate) fn result(id: &str, tool: &str) -> ToolReturn {
    let call = ToolCall {
        id: id.into(),
        name: tool.into(),
        arguments: Value::Null,
        unreadable: None,
        origin: None,
        opaque: None,
    };
    let content = vec![Part::text(format!("result of {id}"))];
    ToolReturn { content, is_error: id.ends_with('9'), ..ToolReturn::failed(&call, "") }
}

pub(crate) fn read(
    api: Api,
    target: &RequestTarget,
    body: &Value,
    records: &HashMap<RecordKey, TurnRecord>,
) -> AppRequest {
    let mut request = AppRequest::read(api, target, body.to_string().as_bytes()).unwrap();
    let keys = request.record_keys();
    let found = records.iter().filter(|(key, _)| keys.contains(key));
    // Records are stored as text.
    let found = found.map(|(key, record)| (*key, TurnRecord::read(&record.to_json()).unwrap()));
    request.put_back(&found.collect()).unwrap();
    request
}

/// Plays a turn. Each round takes its attempts in order, as long as one fails and the round can be repeated.
pub(crate) fn play(
    request: AppRequest,
    options: &TurnOptions,
    rounds: &[Vec<Attempt>],
    records: &HashMap<RecordKey, TurnRecord>,
) -> Played {
    let tools = SessionTools::new(&request, &rendering(request.api(), &SESSION_TOOLS));
    let is_streamed = request.facts().is_streamed;
    let mut turn = InjectedTurn::new(request, tools, options).unwrap();
    let mut played = Played {
        bodies: Vec::new(),
        stream: String::new(),
        whole: None,
        refusal: None,
        records: records.clone(),
    };
    let mut out = Vec::new();
    for attempts in rounds {
        match play_round(&mut turn, attempts, &mut played.bodies, &mut out) {
            Ok(NextStep::Ask) => {}
            Ok(NextStep::Finish | NextStep::Run(_)) => {
                if let Some((keys, record)) = turn.record() {
                    played.records.extend(keys.into_iter().map(|key| (key, record.clone())));
                }
                if is_streamed {
                    turn.finish(&mut out);
                } else {
                    played.whole = Some(turn.finish_whole());
                }
                break;
            }
            Err(refusal) => {
                turn.fail(&refusal, &mut out);
                played.refusal = Some(refusal);
                break;
            }
        }
    }
    played.stream = String::from_utf8(out).unwrap();
    played
}

fn play_round(
    turn: &mut InjectedTurn,
    attempts: &[Attempt],
    bodies: &mut Vec<String>,
    out: &mut Vec<u8>,
) -> Result<NextStep, Refusal> {
    let mut outcome = Err(Refusal::new(switchboard_splice::RefusalKind::Upstream, "no attempt"));
    for attempt in attempts {
        bodies.push(String::from_utf8(turn.body().to_vec()).unwrap());
        outcome = match attempt {
            Attempt::Whole(body) => turn.whole_answer(body),
            Attempt::Events(events) | Attempt::Cut(events) => events
                .iter()
                .try_for_each(|(name, data)| turn.event(name, data, out))
                .and_then(|()| turn.end_round(out)),
        };
        if let Err(refusal) = &outcome {
            if !turn.can_repeat_round() {
                return Err(refusal.clone());
            }
            turn.abandon_round();
            continue;
        }
        break;
    }
    let NextStep::Run(calls) = outcome? else { return Ok(NextStep::Finish) };
    // Calls end in any order.
    for call in calls.iter().rev() {
        out.extend_from_slice(turn.keep_alive());
        turn.call_ended(&call.id, result(&call.id, &call.tool), out);
    }
    Ok(turn.after_calls())
}

/// Calls of session tools; in a last round followed by calls of the app's tool.
pub(crate) fn calls(is_last: bool) -> impl Strategy<Value = Vec<&'static str>> {
    let session = prop_oneof![Just("files__read"), Just("files__write")];
    let least = usize::from(!is_last);
    let app = usize::from(is_last)..(if is_last { 3 } else { 1 });
    let app = prop::collection::vec(Just("lookup"), app);
    (prop::collection::vec(session, least..4), app, any::<bool>()).prop_map(
        |(mut session, app, is_reversed)| {
            session.extend(app);
            if is_reversed {
                session.reverse();
            }
            session
        },
    )
}

/// The frames of a stream: name and data.
pub(crate) fn frames(stream: &str) -> Vec<(Option<String>, Value)> {
    let frames = stream.split("\n\n").filter(|frame| !frame.is_empty());
    frames
        .map(|frame| {
            let mut name = None;
            let mut data = None;
            for line in frame.lines() {
                match line.split_once(": ").unwrap() {
                    ("event", value) => name = Some(value.to_owned()),
                    ("data", value) => data = Some(serde_json::from_str(value).unwrap()),
                    (field, _) => panic!("unknown field {field}"),
                }
            }
            (name, data.unwrap())
        })
        .collect()
}
