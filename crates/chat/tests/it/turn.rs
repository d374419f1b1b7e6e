//! Tests of the turn state machine: inputs and the resulting actions.

use std::time::Duration;

use pretty_assertions::assert_eq;
use proptest::prelude::*;
use serde_json::json;
use switchboard_chat::{
    Action, Block, FaultKind, Message, ModelEvent, ModelFault, Part, Reply, Stop, ToolCall,
    ToolReturn, Turn, TurnEvent, TurnInput, TurnLimits, TurnStatus, Usage, check,
};

use crate::wire_call;

fn turn() -> Turn {
    limited(TurnLimits::default())
}

fn limited(limits: TurnLimits) -> Turn {
    let mut turn = Turn::new("t", vec![Message::user("go")], limits);
    assert_eq!(acts(&mut turn), ["keep", "ask"]);
    turn
}

/// The pending actions in a short notation.
fn acts(turn: &mut Turn) -> Vec<String> {
    std::iter::from_fn(|| turn.next_action()).map(word).collect()
}

fn word(action: Action) -> String {
    match action {
        Action::Ask => "ask".into(),
        Action::Drop => "drop".into(),
        Action::Wait(time) => format!("wait {}", time.as_millis()),
        Action::Call(call) => format!("call {}", call.id),
        Action::StopCalls => "stop".into(),
        Action::Keep => "keep".into(),
        Action::KeepResult(result) => format!("keep {}", result.call),
        Action::Emit(TurnEvent::Done { status, .. }) => format!("done {}", status.as_str()),
        Action::Emit(TurnEvent::Error { error }) => format!("error {}", error.kind),
        Action::Emit(event) => event.name().into(),
        Action::End => "end".into(),
    }
}

fn model(turn: &mut Turn, event: ModelEvent) -> Vec<String> {
    turn.on(TurnInput::Model(event));
    acts(turn)
}

fn finished(content: Vec<Block>) -> ModelEvent {
    let has_calls = content.iter().any(|block| matches!(block, Block::ToolCall(_)));
    let stop = if has_calls { Stop::ToolCalls } else { Stop::End };
    ModelEvent::Finished(Box::new(Reply { content, stop, ..Reply::default() }))
}

fn calls(count: usize) -> ModelEvent {
    let calls = (0..count).map(|n| wire_call("echo", json!({"n": n}), &format!("w{n}")));
    finished(calls.collect())
}

fn failed(kind: FaultKind) -> ModelEvent {
    ModelEvent::Failed(Box::new(ModelFault::new(kind, "no")))
}

fn answer(turn: &mut Turn, id: &str) -> Vec<String> {
    give(turn, id, id)
}

fn give(turn: &mut Turn, id: &str, text: &str) -> Vec<String> {
    let result = ToolReturn {
        call: id.into(),
        name: "echo".into(),
        content: vec![Part::text(text)],
        structured: None,
        is_error: false,
        latency_ms: None,
    };
    turn.on(TurnInput::Returned(result));
    acts(turn)
}

fn order(turn: &Turn) -> String {
    let words = turn.messages().iter().map(|message| match message {
        Message::User(_) => "user".to_owned(),
        Message::System(_) => "system".to_owned(),
        Message::Assistant(reply) if reply.calls().next().is_some() => "calls".to_owned(),
        Message::Assistant(reply) => reply.text(),
        Message::Tool(result) => {
            format!("{}{}", result.call, if result.is_error { "!" } else { "" })
        }
    });
    words.collect::<Vec<_>>().join(" ")
}

#[test]
fn an_answer_ends_the_turn() {
    let mut turn = turn();
    assert_eq!(model(&mut turn, ModelEvent::Text("hi".into())), ["content"]);
    let usage = Usage { input_tokens: 2, output_tokens: 1, ..Usage::default() };
    assert_eq!(model(&mut turn, ModelEvent::Usage(usage)), [""; 0]);
    let last = finished(vec![Block::text("hi")]);
    assert_eq!(model(&mut turn, last), ["usage", "keep", "done completed", "end"]);
    assert_eq!((order(&turn).as_str(), turn.usage()), ("user hi", usage));
    assert_eq!(model(&mut turn, ModelEvent::Text("late".into())), [""; 0]);
}

#[test]
fn calls_run_side_by_side_and_their_results_come_in_call_order() {
    let mut turn = turn();
    assert_eq!(
        model(&mut turn, calls(3)),
        [
            "keep",
            "tool_call",
            "call call_t_0",
            "tool_call",
            "call call_t_1",
            "tool_call",
            "call call_t_2"
        ]
    );
    assert_eq!(answer(&mut turn, "call_t_2"), ["keep call_t_2", "tool_result"]);
    assert_eq!(answer(&mut turn, "call_t_0"), ["keep call_t_0", "tool_result"]);
    assert_eq!(answer(&mut turn, "call_t_0"), [""; 0], "a second result of a call is nothing");
    assert_eq!(answer(&mut turn, "call_t_1"), ["keep", "tool_result", "ask"]);
    assert_eq!(order(&turn), "user calls call_t_0 call_t_1 call_t_2");
    check(turn.messages()).unwrap();
}

#[test]
fn the_same_call_brought_twice_by_a_stream_runs_once() {
    let mut turn = turn();
    let twice = vec![wire_call("echo", json!({}), "w"), wire_call("echo", json!({}), "w")];
    assert_eq!(model(&mut turn, finished(twice)), ["keep", "tool_call", "call call_t_0"]);
    assert_eq!(answer(&mut turn, "call_t_0"), ["keep", "tool_result", "ask"]);
    let alike = vec![wire_call("echo", json!({}), "x"), wire_call("echo", json!({}), "y")];
    assert_eq!(
        model(&mut turn, finished(alike)),
        ["keep", "tool_call", "call call_t_1", "tool_call", "call call_t_2"],
        "two calls that are alike are two"
    );
}

#[test]
fn what_cannot_be_read_is_answered_and_not_run() {
    let mut turn = turn();
    let mut call = wire_call("echo", json!({}), "w");
    if let Block::ToolCall(call) = &mut call {
        call.unreadable = Some("{\"a\":".into());
    }
    assert_eq!(
        model(&mut turn, finished(vec![call])),
        ["keep", "tool_call", "tool_result", "keep", "ask"]
    );
    assert_eq!(order(&turn), "user calls call_t_0!");

    let mut turn = super::turn::turn();
    let mut both = vec![wire_call("echo", json!({}), "v"), wire_call("echo", json!({}), "w")];
    if let Block::ToolCall(call) = &mut both[1] {
        call.unreadable = Some("{".into());
    }
    assert_eq!(
        model(&mut turn, finished(both)),
        ["keep", "tool_call", "call call_t_0", "tool_call", "keep call_t_1", "tool_result"],
        "it is stored while the other one runs"
    );
}

#[test]
fn rounds_same_results_and_tokens_have_limits() {
    let mut turn = limited(TurnLimits { rounds: 1, ..TurnLimits::default() });
    model(&mut turn, calls(1));
    answer(&mut turn, "call_t_0");
    assert_eq!(
        model(&mut turn, calls(1)),
        ["keep", "tool_call", "tool_result", "keep", "error limit", "done limited", "end"]
    );
    assert_eq!(order(&turn), "user calls call_t_0 calls call_t_1!");

    let mut turn = limited(TurnLimits { same_results: 2, ..TurnLimits::default() });
    for (round, text) in ["pending", "done", "pending", "pending"].into_iter().enumerate() {
        assert_eq!(model(&mut turn, calls(1)).last().unwrap(), &format!("call call_t_{round}"));
        give(&mut turn, &format!("call_t_{round}"), text);
    }
    assert_eq!(
        model(&mut turn, calls(1)),
        ["keep", "tool_call", "tool_result", "keep", "ask"],
        "twice the same, and it is not run again"
    );

    let mut turn = limited(TurnLimits { tokens: Some(10), ..TurnLimits::default() });
    let usage = Usage { input_tokens: 9, output_tokens: 1, ..Usage::default() };
    model(&mut turn, ModelEvent::Usage(usage));
    model(&mut turn, calls(1));
    assert_eq!(
        answer(&mut turn, "call_t_0"),
        ["keep", "tool_result", "error limit", "done limited", "end"]
    );

    let mut turn = limited(TurnLimits { calls: 2, ..TurnLimits::default() });
    let acts = model(&mut turn, calls(10_000));
    assert_eq!(acts.iter().filter(|act| act.starts_with("call ")).count(), 0);
    assert_eq!(acts.last().unwrap(), "end");
    check(turn.messages()).unwrap();
}

#[test]
fn faults_that_may_pass_are_tried_again_and_others_are_told() {
    let mut turn = turn();
    model(&mut turn, ModelEvent::Text("half".into()));
    assert_eq!(model(&mut turn, failed(FaultKind::Overloaded)), ["retrying", "wait 500"]);
    assert_eq!(model(&mut turn, ModelEvent::Text("late".into())), [""; 0]);
    turn.on(TurnInput::Waited);
    assert_eq!(acts(&mut turn), ["ask"]);
    assert_eq!(model(&mut turn, failed(FaultKind::Interrupted)), ["retrying", "wait 1000"]);
    turn.on(TurnInput::Waited);
    acts(&mut turn);
    let later = ModelFault {
        retry_after: Some(Duration::from_secs(7)),
        ..ModelFault::new(FaultKind::RateLimited, "wait")
    };
    assert_eq!(model(&mut turn, ModelEvent::Failed(Box::new(later))), ["retrying", "wait 7000"]);
    turn.on(TurnInput::Waited);
    acts(&mut turn);
    assert_eq!(
        model(&mut turn, failed(FaultKind::Overloaded)),
        ["error overloaded", "done failed", "end"],
        "four tries are enough"
    );
    assert_eq!(order(&turn), "user");
    let mut turn = super::turn::turn();
    assert_eq!(
        model(&mut turn, failed(FaultKind::Credentials)),
        ["error credentials", "done failed", "end"]
    );
}

#[test]
fn a_model_that_calls_wrongly_is_corrected_without_a_trace() {
    let mut turn = turn();
    assert_eq!(model(&mut turn, failed(FaultKind::UnexpectedCall)), ["retrying", "wait 0"]);
    turn.on(TurnInput::Waited);
    acts(&mut turn);
    assert!(matches!(turn.correction(), Some(Message::User(_))));
    model(&mut turn, finished(vec![Block::text("sorry")]));
    assert_eq!((order(&turn).as_str(), turn.correction()), ("user sorry", None));
}

#[test]
fn tools_that_change_now_restart_the_request_and_no_call() {
    let mut turn = turn();
    model(&mut turn, calls(1));
    turn.on(TurnInput::ToolsChanged { tools_revision: 2 });
    assert_eq!(acts(&mut turn), [""; 0], "calls go on; the next request shows the new tools");
    answer(&mut turn, "call_t_0");
    model(&mut turn, ModelEvent::Text("old".into()));
    turn.on(TurnInput::ToolsChanged { tools_revision: 3 });
    assert_eq!(acts(&mut turn), ["drop", "restarted", "wait 40"]);
    for _ in 0..20 {
        turn.on(TurnInput::ToolsChanged { tools_revision: 4 });
    }
    let waits = acts(&mut turn);
    assert!(waits.len() == 11 && waits.iter().all(|act| act == "wait 40"), "{waits:?}");
    turn.on(TurnInput::Waited);
    assert_eq!(acts(&mut turn), ["ask"], "many changes are one restart");
    assert_eq!(order(&turn), "user calls call_t_0");
    model(&mut turn, finished(vec![Block::text("new")]));
    assert_eq!(order(&turn), "user calls call_t_0 new");
}

#[test]
fn who_cancels_keeps_what_was_said_and_every_call_is_answered() {
    let mut turn = turn();
    model(&mut turn, ModelEvent::Text("half".into()));
    turn.on(TurnInput::Cancel);
    assert_eq!(acts(&mut turn), ["drop", "keep", "done cancelled", "end"]);
    assert_eq!(order(&turn), "user half");

    let mut turn = super::turn::turn();
    model(&mut turn, calls(2));
    answer(&mut turn, "call_t_1");
    turn.on(TurnInput::Cancel);
    assert_eq!(acts(&mut turn), ["stop", "tool_result", "keep", "done cancelled", "end"]);
    assert_eq!(order(&turn), "user calls call_t_0! call_t_1");
}

#[test]
fn a_model_that_says_nothing_is_asked_again() {
    let mut turn = turn();
    assert_eq!(model(&mut turn, finished(vec![])), ["retrying", "wait 500"]);
}

#[test]
fn a_model_that_pauses_for_ever_comes_to_an_end() {
    let mut turn = limited(TurnLimits { rounds: 3, ..TurnLimits::default() });
    let paused = || {
        let content = vec![Block::text("hm")];
        ModelEvent::Finished(Box::new(Reply { content, stop: Stop::Paused, ..Reply::default() }))
    };
    for _ in 0..3 {
        assert_eq!(model(&mut turn, paused()), ["keep", "ask"]);
    }
    assert_eq!(model(&mut turn, paused()), ["keep", "error limit", "done limited", "end"]);
}

#[test]
fn calls_of_a_refused_answer_are_not_run() {
    let mut turn = turn();
    let content = vec![Block::text("no"), wire_call("echo", json!({}), "w")];
    let refused = Reply { content, stop: Stop::Refused, ..Reply::default() };
    assert_eq!(
        model(&mut turn, ModelEvent::Finished(Box::new(refused))),
        ["keep", "error refused", "done failed", "end"]
    );
    assert_eq!(order(&turn), "user no");
}

#[test]
fn ids_that_the_conversation_has_are_not_given_again() {
    let before = vec![
        Message::user("1"),
        crate::asking(&["call_t_0", "call_t_2"]),
        crate::result("call_t_0"),
        crate::result("call_t_2"),
        Message::user("2"),
    ];
    let mut turn = Turn::new("t", before, TurnLimits::default());
    acts(&mut turn);
    let acts = model(&mut turn, calls(2));
    assert_eq!(acts, ["keep", "tool_call", "call call_t_1", "tool_call", "call call_t_3"]);
}

#[test]
fn what_is_given_up_costs_what_it_cost() {
    let mut turn = turn();
    let usage = Usage { input_tokens: 5, output_tokens: 1, ..Usage::default() };
    model(&mut turn, ModelEvent::Usage(usage));
    model(&mut turn, failed(FaultKind::Interrupted));
    turn.on(TurnInput::Waited);
    acts(&mut turn);
    model(&mut turn, ModelEvent::Usage(usage));
    turn.on(TurnInput::Cancel);
    assert_eq!(turn.usage().total(), 12);
}

#[test]
fn a_blocked_call_ends_the_turn_and_every_call_has_a_result() {
    let mut turn = turn();
    model(&mut turn, calls(3));
    assert_eq!(answer(&mut turn, "call_t_1"), ["keep call_t_1", "tool_result"]);
    let blocked = |id: &str| ToolReturn {
        call: id.into(),
        name: "echo".into(),
        content: vec![Part::text("not called")],
        structured: None,
        is_error: true,
        latency_ms: None,
    };
    turn.on(TurnInput::Blocked(blocked("call_t_9")));
    assert_eq!(acts(&mut turn), [""; 0], "an unknown call");
    turn.on(TurnInput::Blocked(blocked("call_t_0")));
    assert_eq!(
        acts(&mut turn),
        ["tool_result", "stop", "tool_result", "keep", "error blocked", "done failed", "end"]
    );
    assert_eq!(order(&turn), "user calls call_t_0! call_t_1 call_t_2!");
    check(turn.messages()).unwrap();
    turn.on(TurnInput::Blocked(blocked("call_t_2")));
    assert_eq!(answer(&mut turn, "call_t_2"), [""; 0]);
}

/// Random inputs in any order.
fn inputs() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(0_u8..13, 0..60)
}

fn input(kind: u8, running: &[ToolCall]) -> TurnInput {
    let call = running.first().cloned();
    match (kind, call) {
        (0, _) => TurnInput::Model(ModelEvent::Text("x".into())),
        (1, _) => TurnInput::Model(calls(1)),
        (2, _) => TurnInput::Model(calls(3)),
        (3, _) => TurnInput::Model(finished(vec![Block::text("x")])),
        (4, _) => TurnInput::Model(failed(FaultKind::Overloaded)),
        (5, _) => TurnInput::Model(failed(FaultKind::MalformedCall)),
        (6, _) => TurnInput::ToolsChanged { tools_revision: 1 },
        (7, _) => TurnInput::Waited,
        (8, _) => TurnInput::Cancel,
        (12, Some(call)) => TurnInput::Blocked(ToolReturn::failed(&call, "x")),
        (_, Some(call)) => TurnInput::Returned(ToolReturn::failed(&call, "x")),
        (_, None) => TurnInput::Model(ModelEvent::Thinking("x".into())),
    }
}

proptest! {
    #[test]
    fn whatever_happens_the_conversation_is_valid_where_it_is_kept(kinds in inputs()) {
        let mut turn = Turn::new("t", vec![Message::user("go")], TurnLimits::default());
        let (mut running, mut ends, mut dones) = (Vec::new(), 0, 0);
        for kind in kinds {
            while let Some(action) = turn.next_action() {
                prop_assert_eq!(ends, 0, "something is to be done after the end");
                match action {
                    Action::Call(call) => running.push(call),
                    Action::StopCalls => running.clear(),
                    Action::Ask => {
                        prop_assert!(running.is_empty(), "asked while calls run");
                        prop_assert!(check(turn.messages()).is_ok());
                    }
                    Action::Emit(TurnEvent::Done { status, messages, .. }) => {
                        dones += 1;
                        prop_assert_eq!(messages, turn.messages().len());
                        prop_assert!(status != TurnStatus::Completed || running.is_empty());
                        prop_assert!(check(turn.messages()).is_ok());
                    }
                    Action::End => ends += 1,
                    Action::Keep
                    | Action::KeepResult(_)
                    | Action::Drop
                    | Action::Wait(_)
                    | Action::Emit(_) => {}
                }
            }
            let input = input(kind, &running);
            if let TurnInput::Returned(_) | TurnInput::Blocked(_) = &input {
                running.remove(0);
            }
            turn.on(input);
        }
        prop_assert_eq!(ends, dones);
    }
}
