//! Turns of models without native tool calls, with the demo model.

use pretty_assertions::assert_eq;
use switchboard_chat::TurnStatus;
use switchboard_model::{Caller, Face, ModelRule, ProviderKind, ProviderPlan, ToolStrategy};
use switchboard_sessions::Change;
use switchboard_turns::{LiveTurn, NewTurn};

use crate::lifecycle::{bench, bench_with, said};

/// The names of the events of a turn, without deltas.
pub(crate) fn steps(turn: &LiveTurn) -> Vec<String> {
    let shown = |event: &switchboard_turns::Recorded| -> Option<String> {
        let data: serde_json::Value = serde_json::from_slice(&event.json).unwrap();
        let text = |key: &str| data[key].as_str().unwrap_or_default().to_owned();
        Some(match event.name {
            "thought" | "answer" => format!("{} {}", event.name, text("text")),
            "action" => format!("action {} {}", text("name"), data["arguments"]),
            "observation" => format!("observation {} {}", data["is_error"], text("text")),
            "state" => format!("state {}", text("state")),
            "started" => format!("started {}", data["strategy"].as_str().unwrap_or("native")),
            _ => return None,
        })
    };
    turn.events_after(0).iter().filter_map(shown).collect()
}

const THREE_STEPS: &str = "/call local__sum_numbers {\"a\": 1, \"b\": 2}\n/call local__multiply_numbers {\"a\": 3, \"b\": 4}\n/call local__sum_numbers {\"a\": \"x\"}";

#[tokio::test]
async fn the_demo_model_acts_in_three_steps_without_native_tool_calls() {
    let bench = bench().await;
    let wanted = NewTurn { strategy: Some(ToolStrategy::React), ..said(None, THREE_STEPS) };
    let turn = bench.turns.begin(&bench.session, Caller::local(Face::Http), wanted).await.unwrap();
    let end = turn.ended().await.unwrap();
    assert_eq!((end.status, end.messages.len()), (TurnStatus::Completed, 8));
    let steps = steps(&turn);
    assert_eq!(
        steps[..8],
        [
            "started react",
            "thought step 1 of 3: I call local__sum_numbers.",
            r#"action local__sum_numbers {"a":1,"b":2}"#,
            r#"observation false {"result":3}"#,
            "started react",
            "thought step 2 of 3: I call local__multiply_numbers.",
            r#"action local__multiply_numbers {"a":3,"b":4}"#,
            r#"observation false {"result":12}"#,
        ]
    );
    assert!(steps[11].starts_with("observation true "), "{steps:#?}");
    assert!(
        steps[11].contains("The arguments of local__sum_numbers are: a (number, required)"),
        "{}",
        steps[11]
    );
    assert!(
        end.text()
            .starts_with("local__sum_numbers answered: {\"result\":3}\nlocal__multiply_numbers answered: {\"result\":12}\n")
    );
    assert!(steps.last().unwrap().starts_with("answer local__sum_numbers answered: "));
    // A native turn goes on from there.
    let next = bench.say("/call local__sum_numbers {\"a\": 5, \"b\": 5}").await.unwrap();
    assert_eq!(next.ended().await.unwrap().text(), r#"local__sum_numbers answered: {"result":10}"#);
    bench.end().await;
}

#[tokio::test]
async fn the_strategy_of_a_message_stands_before_that_of_the_session_and_of_the_provider() {
    let react =
        ProviderPlan { has_native_tools: false, ..ProviderPlan::new("text", ProviderKind::Demo) };
    let bench = bench_with(vec![react]).await;
    let check = async |strategy: Option<ToolStrategy>, expected: &str| {
        let wanted = NewTurn { strategy, ..said(None, "/say x") };
        let turn =
            bench.turns.begin(&bench.session, Caller::local(Face::Http), wanted).await.unwrap();
        assert_eq!(turn.ended().await.unwrap().text(), "x");
        assert_eq!(steps(&turn)[0], format!("started {expected}"));
    };
    check(None, "react").await;
    check(Some(ToolStrategy::Native), "native").await;
    let change = Change { strategy: Some(Some("native".into())), ..Change::default() };
    bench.sessions.sessions().change(&bench.session, None, change).await.unwrap();
    check(None, "native").await;
    check(Some(ToolStrategy::React), "react").await;
    let change = Change { strategy: Some(Some("reactive".into())), ..Change::default() };
    let refused = bench.sessions.sessions().change(&bench.session, None, change).await.unwrap_err();
    assert!(refused.to_string().contains("there is no strategy `reactive`"), "{refused}");
    let change = Change { strategy: Some(None), ..Change::default() };
    bench.sessions.sessions().change(&bench.session, None, change).await.unwrap();
    check(None, "react").await;
    bench.end().await;
}

#[tokio::test]
async fn the_strategy_of_a_model_stands_before_that_of_its_provider() {
    let rule = ModelRule { pattern: "llama3*".into(), strategy: ToolStrategy::React };
    let plan = ProviderPlan { models: vec![rule], ..ProviderPlan::new("many", ProviderKind::Demo) };
    let bench = bench_with(vec![plan]).await;
    for (model, strategy, expected) in [
        ("llama3:8b", None, "react"),
        ("qwen3", None, "native"),
        ("llama3:8b", Some(ToolStrategy::Native), "native"),
    ] {
        let wanted = NewTurn { model: Some(model.into()), strategy, ..said(None, "/say x") };
        let turn =
            bench.turns.begin(&bench.session, Caller::local(Face::Http), wanted).await.unwrap();
        turn.ended().await.unwrap();
        assert_eq!(steps(&turn)[0], format!("started {expected}"), "{model}");
    }
    bench.end().await;
}
