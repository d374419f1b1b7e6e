//! One conversation with several providers.

use pretty_assertions::assert_eq;
use reqwest::Method;
use serde_json::json;
use switchboard_test_support::Tool;
use switchboard_test_support::model_backends::Backend;

use crate::lab::{
    ACCOUNTS, ANTHROPIC, Account, CHAT, CHATGPT, CODE_ASSIST, GEMINI, Lab, OPENAI, Plan, shop_tools,
};
use crate::talk::{heard_out, until_event};

/// A walk over all ordered pairs of these, each once: it begins and ends with the first.
pub(crate) fn all_pairs(of: &[Account]) -> Vec<Account> {
    let count = of.len();
    let (mut walk, mut at) = (vec![of[0]], 0);
    let mut used = vec![vec![false; count]; count];
    for _ in 0..count * (count - 1) {
        // Hierholzer is not needed: taking the farthest unused one first never gets stuck here.
        let next = (0..count).rev().find(|next| *next != at && !used[at][*next]).unwrap();
        used[at][next] = true;
        at = next;
        walk.push(of[at]);
    }
    walk
}

/// Talks with one after the other, with thinking, parallel calls, errors and plain words by turns. Gives the ids of calls.
pub(crate) async fn walk(lab: &Lab, steps: &[Account]) {
    let talk = lab.talk(json!({})).await;
    let mut ids: Vec<String> = Vec::new();
    for (number, account) in steps.iter().enumerate() {
        let calls = match number % 3 {
            0 => format!("call shop__find {{\"n\": {number}}}"),
            1 => format!(
                "call shop__find {{\"n\": {number}}}\ncall shop__price {{\"n\": {number}}}\ncall shop__fails {{}}"
            ),
            _ => format!("call shop__order {{\"text\": \"\u{1F642} {number}\"}}"),
        };
        let text = talk.say(account.name, &format!("think about it {number}\n{calls}")).await;
        assert!(text.contains("results: "), "{number} {}: {text}", account.name);
        let now = talk.call_ids().await;
        assert_eq!(now[..ids.len()], ids, "ids are as they were");
        assert!(now.len() > ids.len());
        ids = now;
        lab.is_clean();
    }
    let unique: std::collections::BTreeSet<_> = ids.iter().collect();
    assert_eq!(unique.len(), ids.len());
    assert_eq!(lab.calls(), ids.len());
}

fn tools() -> Vec<Tool> {
    use switchboard_test_support::Reply;
    let fails = Tool::echo("fails").replies(Reply::ToolError("no".into()));
    shop_tools().into_iter().chain([fails]).collect()
}

#[tokio::test]
async fn twelve_turns_go_through_all_ordered_pairs_of_four_providers() {
    let steps = all_pairs(&[OPENAI, CHAT, ANTHROPIC, GEMINI]);
    assert_eq!(steps.len(), 13);
    let show = Plan { tools: tools(), provider: "show_thinking: true", ..Plan::default() };
    walk(&Lab::with(show).await, &steps).await;
}

#[tokio::test]
async fn a_conversation_goes_through_all_pairs_of_six_providers() {
    let steps = all_pairs(&[OPENAI, CHATGPT, CHAT, ANTHROPIC, GEMINI, CODE_ASSIST]);
    assert_eq!(steps.len(), 31);
    let show = Plan { tools: tools(), provider: "show_thinking: true", ..Plan::default() };
    walk(&Lab::with(show).await, &steps).await;
}

#[tokio::test]
async fn the_provider_changes_in_the_middle_of_tool_use() {
    let tools = shop_tools().into_iter().chain([Tool::echo("slow").sleeps(250)]).collect();
    let lab = Lab::with(Plan { tools, ..Plan::default() }).await;
    for first in ACCOUNTS {
        for second in [OPENAI, CHAT, ANTHROPIC, GEMINI] {
            if first.backend == second.backend {
                continue;
            }
            let talk = lab.talk(json!({"provider": first.name})).await;
            let calls = lab.calls();
            let message = "think first\ncall shop__slow {\"n\": 1}\ncall shop__find {\"n\": 2}";
            let events = talk.begin(json!({"message": message, "show_thinking": true})).await;
            until_event(&events, "tool_call").await;
            talk.apply_now(Method::PATCH, "", json!({"provider": second.name})).await;
            let heard = heard_out(events).await;
            let pair = format!("{} to {}", first.name, second.name);
            assert_eq!(heard.status(), "completed", "{pair}: {:#?}", heard.0);
            let asked: Vec<_> = heard.all("started").map(|data| &data["provider"]).collect();
            assert_eq!(asked, [first.name, second.name]);
            assert_eq!(lab.calls(), calls + 2, "{pair}");
            // And back, with what the other one has said in between.
            talk.say(first.name, "call shop__find {\"n\": 3}").await;
            lab.is_clean();
        }
    }
}

#[tokio::test]
async fn a_model_of_the_same_provider_is_another_one() {
    let lab = Lab::with(Plan { provider: "show_thinking: true", ..Plan::default() }).await;
    for (account, models) in [
        (OPENAI, ["gpt-5.5", "gpt-5.4"]),
        (CHATGPT, ["gpt-5.5", "gpt-5.4"]),
        (ANTHROPIC, ["claude-opus-5-5", "claude-haiku-4-5-20251001"]),
        (ANTHROPIC, ["claude-opus-4-8", "claude-sonnet-5-5"]),
        (GEMINI, ["gemini-3.1-pro-preview", "gemini-2.5-pro"]),
        (CODE_ASSIST, ["gemini-3.1-pro-preview", "gemini-2.5-pro"]),
    ] {
        let talk = lab.talk(json!({"provider": account.name})).await;
        for number in 0..4 {
            let message = format!("think {number}\ncall shop__find {{\"n\": {number}}}");
            let model = models[number % 2];
            let turn = talk.turn(json!({"model": model, "message": message})).await;
            assert_eq!(turn["status"], "completed", "{model}: {turn:#}");
            lab.is_clean();
        }
    }
    assert!(lab.fake.request_count(Backend::Anthropic) >= 16);
}
