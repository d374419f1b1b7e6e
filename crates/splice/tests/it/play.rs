//! Plays a turn: gives a scripted model's rounds to it, runs its calls, and keeps everything that was sent.

use std::collections::HashMap;

use serde_json::{Value, json};
use switchboard_chat::{Part, ToolReturn};
use switchboard_model::{JsonText, ToolDescriptor};
use switchboard_render::{NamedTool, Rendering};
use switchboard_splice::{
    Api, AppRequest, InjectedTurn, NextStep, RecordKey, Refusal, RequestTarget, SessionCall,
    SessionTools, TurnOptions, TurnRecord,
};

use crate::sse::Event;

/// What happened in a turn.
#[derive(Debug, Default)]
pub(crate) struct Played {
    /// The stream, or the body.
    pub(crate) out: String,
    /// The bodies that the provider got.
    pub(crate) bodies: Vec<String>,
    /// The calls that ran.
    pub(crate) ran: Vec<SessionCall>,
    pub(crate) record: Option<(Vec<RecordKey>, TurnRecord)>,
    pub(crate) failed: Option<Refusal>,
    pub(crate) answer_id: Option<String>,
}

impl Played {
    pub(crate) fn body(&self, index: usize) -> Value {
        serde_json::from_str(&self.bodies[index]).unwrap()
    }

    /// The records of this turn by their keys.
    pub(crate) fn records(&self) -> HashMap<RecordKey, TurnRecord> {
        let record = self.record.clone();
        record.map_or_else(HashMap::new, |(keys, record)| {
            // As they are stored.
            let stored = TurnRecord::read(&record.to_json()).unwrap();
            keys.into_iter().map(|key| (key, stored.clone())).collect()
        })
    }
}

/// How a turn is played.
#[derive(Debug, Clone)]
pub(crate) struct Stage {
    pub(crate) api: Api,
    pub(crate) shows_calls: Option<bool>,
    pub(crate) seed: &'static str,
    pub(crate) max_rounds: u32,
}

impl Stage {
    pub(crate) fn new(api: Api) -> Self {
        Self { api, shows_calls: None, seed: "seed", max_rounds: 8 }
    }

    pub(crate) fn request(&self, body: &Value) -> Result<AppRequest, Refusal> {
        AppRequest::read(self.api, &RequestTarget::default(), body.to_string().as_bytes())
    }

    fn turn(&self, request: AppRequest) -> InjectedTurn {
        let tools = SessionTools::new(&request, &rendering(self.api));
        let options = TurnOptions {
            shows_calls: self.shows_calls,
            seed: self.seed.to_owned(),
            max_rounds: self.max_rounds,
            now: 1_700_000_000,
            server_label: "switchboard".to_owned(),
        };
        InjectedTurn::new(request, tools, &options).unwrap()
    }

    /// Plays a streamed turn. A round that fails is repeated with the next one, as long as that is allowed.
    pub(crate) fn stream(&self, request: AppRequest, rounds: &[Vec<Event>]) -> Played {
        let mut turn = self.turn(request);
        let mut played = Played::default();
        let mut out = Vec::new();
        for events in rounds {
            played.bodies.push(text(&turn.body()));
            let mut read = Ok(());
            for (name, data) in events {
                read = turn.event(name, data, &mut out);
                if read.is_err() {
                    break;
                }
            }
            let step = read.and_then(|()| turn.end_round(&mut out));
            match step {
                Ok(step) => {
                    if finish(&mut turn, step, &mut played, &mut out) {
                        turn.finish(&mut out);
                        played.out = String::from_utf8(out).unwrap();
                        return played;
                    }
                }
                Err(_) if turn.can_repeat_round() => turn.abandon_round(),
                Err(refusal) => {
                    turn.fail(&refusal, &mut out);
                    played.failed = Some(refusal);
                    played.out = String::from_utf8(out).unwrap();
                    return played;
                }
            }
        }
        let refusal =
            Refusal::new(switchboard_splice::RefusalKind::Upstream, "the script has ended");
        turn.fail(&refusal, &mut out);
        played.failed = Some(refusal);
        played.out = String::from_utf8(out).unwrap();
        played
    }

    /// Plays a turn without a stream.
    pub(crate) fn whole(&self, request: AppRequest, rounds: &[String]) -> Played {
        let mut turn = self.turn(request);
        let mut played = Played::default();
        for body in rounds {
            played.bodies.push(text(&turn.body()));
            match turn.whole_answer(body) {
                Ok(step) => {
                    if finish(&mut turn, step, &mut played, &mut Vec::new()) {
                        played.out = turn.finish_whole();
                        return played;
                    }
                }
                Err(_) if turn.can_repeat_round() => turn.abandon_round(),
                Err(refusal) => {
                    played.failed = Some(refusal);
                    return played;
                }
            }
        }
        panic!("the script has ended before the answer");
    }
}

/// Does what comes after a round. Returns whether the answer ends.
fn finish(
    turn: &mut InjectedTurn,
    mut step: NextStep,
    played: &mut Played,
    out: &mut Vec<u8>,
) -> bool {
    loop {
        match step {
            NextStep::Run(calls) => {
                // The last call ends first.
                for call in calls.iter().rev() {
                    turn.call_ended(&call.id, result(call), out);
                }
                played.ran.extend(calls);
                step = turn.after_calls();
            }
            NextStep::Ask => return false,
            NextStep::Finish => {
                played.record = turn.record();
                played.answer_id = turn.answer_id().map(str::to_owned);
                return true;
            }
        }
    }
}

/// Results of session tools: `fail` fails, the others tell their arguments.
fn result(call: &SessionCall) -> ToolReturn {
    let is_error = call.tool == "fail" || call.is_over_limit || call.unreadable.is_some();
    let text = match &call.unreadable {
        Some(written) => format!("not an object: {written}"),
        None if call.is_over_limit => "limit reached".to_owned(),
        None => format!("{} of {}", call.tool, call.arguments),
    };
    ToolReturn {
        call: call.id.clone(),
        name: call.tool.clone(),
        content: vec![Part::text(text)],
        structured: None,
        is_error,
        latency_ms: None,
    }
}

/// The session's tools: `find`, `fail` and `weather`.
fn rendering(api: Api) -> Rendering {
    let tools = ["find", "fail", "weather"].map(|name| ToolDescriptor {
        description: Some(format!("Does {name}.")),
        input_schema: JsonText::from(
            &json!({"type": "object", "properties": {"q": {"type": "string"}}}),
        ),
        ..ToolDescriptor::named(name)
    });
    let named = tools.iter().map(|descriptor| NamedTool { name: &descriptor.name, descriptor });
    Rendering::new(api.provider(), named)
}

fn text(body: &[u8]) -> String {
    String::from_utf8(body.to_vec()).unwrap()
}
