//! Groups and states of tools, which narrow turns of both strategies.

use pretty_assertions::assert_eq;
use switchboard_model::{Caller, Face, ToolEntry, ToolStrategy};
use switchboard_turns::NewTurn;

use crate::lifecycle::{bench_of, said};
use crate::react::steps;

/// `sum_numbers` opens, `multiply_numbers` is available when it is open and belongs to the group `more`.
fn grouped_tools() -> Vec<ToolEntry> {
    let mut tools = ["sum_numbers", "multiply_numbers"].map(ToolEntry::named);
    tools[0].grouping.state = Some("open".into());
    tools[1].grouping.group = Some(vec!["default".into(), "more".into()]);
    tools[1].grouping.applicable_states = Some(vec!["open".into()]);
    tools.to_vec()
}

const SUM: &str = "/call local__sum_numbers {\"a\": 1, \"b\": 2}";
const PRODUCT: &str = "/call local__multiply_numbers {\"a\": 3, \"b\": 4}";

#[tokio::test]
async fn a_call_opens_the_tools_of_the_next_state_in_react_turns() {
    let bench = bench_of(Vec::new(), grouped_tools()).await;
    let strategy = Some(ToolStrategy::React);
    let wanted = NewTurn { strategy, ..said(None, &format!("{PRODUCT}\n{SUM}\n{PRODUCT}")) };
    let turn = bench.turns.begin(&bench.session, Caller::local(Face::Http), wanted).await.unwrap();
    turn.ended().await.unwrap();
    let steps: Vec<_> = steps(&turn)
        .into_iter()
        .filter(|step| step.starts_with("obs") || step.starts_with("state"))
        .collect();
    assert!(
        steps[0].starts_with("observation true there is no tool 'local__multiply_numbers' here"),
        "{steps:#?}"
    );
    assert!(
        steps[0].ends_with("by its exact name: local__sum_numbers. Nothing was called."),
        "{steps:#?}"
    );
    assert_eq!(
        steps[1..],
        ["state open", r#"observation false {"result":3}"#, r#"observation false {"result":12}"#]
    );
    bench.end().await;
}

#[tokio::test]
async fn groups_and_states_narrow_native_turns_too() {
    let bench = bench_of(Vec::new(), grouped_tools()).await;
    let check =
        async |groups: Option<&[&str]>, state: Option<&str>, message: &str, expected: &str| {
            let groups =
                groups.map(|groups| groups.iter().map(|group| (*group).to_owned()).collect());
            let state = state.map(str::to_owned);
            let wanted = NewTurn { groups, state, ..said(None, message) };
            let turn =
                bench.turns.begin(&bench.session, Caller::local(Face::Http), wanted).await.unwrap();
            let text = turn.ended().await.unwrap().text();
            assert!(text.starts_with(expected), "{message}: {text}");
        };
    check(None, None, "/tools", "I see 1 tools:\n- `local__sum_numbers`").await;
    check(None, Some("open"), "/tools", "I see 2 tools:").await;
    check(Some(&["more"]), Some("open"), "/tools", "I see 1 tools:\n- `local__multiply_numbers`")
        .await;
    check(Some(&["*"]), None, "/tools", "I see 1 tools:\n- `local__sum_numbers`").await;
    check(Some(&[]), Some("open"), "/tools", "I see no tools").await;
    check(None, None, PRODUCT, "local__multiply_numbers failed: there is no tool").await;
    check(None, Some("open"), PRODUCT, r#"local__multiply_numbers answered: {"result":12}"#).await;
    check(Some(&["more"]), None, SUM, "local__sum_numbers failed: there is no tool").await;
    let wanted = NewTurn { state: Some("x".repeat(200)), ..said(None, "hi") };
    let refused =
        bench.turns.begin(&bench.session, Caller::local(Face::Http), wanted).await.unwrap_err();
    assert_eq!(refused.to_string(), "`state` must be at most 128 characters long");
    bench.end().await;
}
