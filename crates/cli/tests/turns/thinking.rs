//! Claude models that bind thinking to the conversation before it: tools change only by additions, and thinking is sent
//! back.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::lab::{ANTHROPIC, CLAUDE_BEARER, Lab, Plan};

/// How many thoughts the last request sends back.
fn thoughts(lab: &Lab) -> usize {
    let body = lab.bodies(ANTHROPIC).pop().unwrap().body;
    let messages = body["messages"].as_array().unwrap().iter();
    let blocks = messages.filter_map(|message| message["content"].as_array()).flatten();
    blocks.filter(|block| block["type"] == "thinking").count()
}

/// The declared tools of the last request, as they are.
fn declared(lab: &Lab) -> Value {
    lab.bodies(ANTHROPIC).pop().unwrap().body["tools"].clone()
}

#[tokio::test]
async fn thoughts_are_sent_back_over_changes_of_tools_and_dropped_after_an_overlay() {
    let lab = Lab::with(Plan { provider: "show_thinking: true", ..Plan::default() }).await;
    for account in [ANTHROPIC, CLAUDE_BEARER] {
        let talk = lab.talk(json!({"provider": account.name, "toolsets": {"buy": false}})).await;
        talk.say(account.name, "think one\ncall shop__find {\"n\": 1}").await;
        assert_eq!(thoughts(&lab), 1);
        let first = declared(&lab);
        for (number, is_on) in [true, false, true].into_iter().enumerate() {
            talk.chat.put("/toolsets/buy", json!({ "enabled": is_on })).await;
            talk.say(account.name, &format!("think {number}\ncall shop__find {{\"n\": {number}}}"))
                .await;
            let shown = lab.shown(account).pop().unwrap();
            assert_eq!(shown.contains(&"shop__order".to_owned()), is_on, "{shown:?}");
            lab.is_clean();
        }
        let prefix = first.as_array().unwrap();
        assert_eq!(declared(&lab).as_array().unwrap()[..prefix.len()], prefix[..]);
        // Each turn thought twice: before its call and after it.
        assert!(thoughts(&lab) >= 4, "{} thoughts", thoughts(&lab));

        let edit = json!({"op": "replace_at", "index": 0, "message": {"role": "user", "content": [{"type": "text", "text": "other"}]}});
        let turn =
            talk.turn(json!({"message": "think over\ncall shop__find {}", "edits": [edit]})).await;
        assert_eq!(turn["status"], "completed", "{turn:#}");
        assert_eq!(thoughts(&lab), 0, "they were thought over another conversation");
        talk.say(account.name, "think again\ncall shop__order {}").await;
        lab.is_clean();
    }
}

#[tokio::test]
async fn models_that_take_no_changes_get_the_list_anew() {
    let lab = Lab::with(Plan { provider: "show_thinking: true", ..Plan::default() }).await;
    for model in
        ["claude-haiku-4-5-20251001", "claude-sonnet-5", "claude-opus-4-7", "claude-opus-4-8"]
    {
        let talk = lab
            .talk(json!({"provider": "anthropic", "model": model, "toolsets": {"buy": false}}))
            .await;
        for is_on in [false, true, false] {
            talk.chat.put("/toolsets/buy", json!({ "enabled": is_on })).await;
            let message = "think\ncall shop__find {\"n\": 1}";
            let turn = talk.turn(json!({ "message": message })).await;
            assert_eq!(turn["status"], "completed", "{model}: {turn:#}");
            let shown = lab.shown(ANTHROPIC).pop().unwrap();
            assert_eq!(shown.contains(&"shop__order".to_owned()), is_on, "{model}: {shown:?}");
            lab.is_clean();
        }
    }
}

#[tokio::test]
async fn thoughts_survive_a_restart_of_the_board_or_are_dropped() {
    let mut lab = Lab::with(Plan { provider: "show_thinking: true", ..Plan::default() }).await;
    let mut talk = lab.talk(json!({"provider": "anthropic"})).await;
    talk.say("anthropic", "think one\ncall shop__find {\"n\": 1}").await;
    lab.serve.signal("KILL");
    lab.serve.ended().await;
    lab.serve = lab.home.serve().await;
    talk.chat.moved_to(&lab.serve);
    talk.chat.put("/toolsets/buy", json!({"enabled": false})).await;
    talk.say("anthropic", "think two\ncall shop__find {\"n\": 2}").await;
    lab.is_clean();
}
