//! The program stops in the middle of a turn and is started again.

use pretty_assertions::assert_eq;
use serde_json::json;
use switchboard_test_support::model_backends::Step;
use switchboard_test_support::{Reply, Tool};

use crate::lab::{ACCOUNTS, Lab, Plan, shop_tools};
use crate::talk::{until, until_event};

#[tokio::test]
async fn a_crash_while_a_tool_runs_leaves_a_conversation_that_goes_on() {
    let hangs = Tool::echo("hangs").replies(Reply::Hang);
    let tools = shop_tools().into_iter().chain([hangs]).collect();
    let mut lab = Lab::with(Plan { tools, ..Plan::default() }).await;
    let mut talks = Vec::new();
    for account in ACCOUNTS {
        let talk = lab.talk(json!({"provider": account.name})).await;
        talk.say(account.name, "think\ncall shop__find {\"n\": 1}").await;
        let message = "call shop__find {\"n\": 2}\ncall shop__hangs {}";
        let events = talk.begin(json!({"id": "t", "message": message})).await;
        until_event(&events, "tool_result").await;
        talks.push((account, talk, events));
    }
    until(async || lab.shop.stats().running_calls == ACCOUNTS.len()).await;
    lab.serve.signal("KILL");
    lab.serve.ended().await;
    lab.serve = lab.home.serve().await;
    for (account, talk, _) in &mut talks {
        let calls = lab.calls();
        talk.chat.moved_to(&lab.serve);
        let ids = talk.call_ids().await;
        assert_eq!(ids.len(), 3, "{}", account.name);
        let results = talk.results().await;
        // What came before the crash is there, and what had not come is answered.
        assert_eq!(results.iter().map(|it| it.1).collect::<Vec<_>>(), [false, false, true]);
        assert!(results[1].0.contains("\"n\":2"), "{results:?}");
        assert!(results[2].0.contains("not known"), "{results:?}");
        assert_eq!(lab.calls(), calls, "nothing runs by itself");
        talk.say(account.name, "call shop__find {\"n\": 3}").await;
        talk.say(account.other().name, "call shop__find {\"n\": 4}").await;
        assert_eq!(talk.call_ids().await[..3], ids);
        lab.is_clean();
    }
}

#[tokio::test]
async fn a_stop_while_a_model_answers_keeps_what_was_said() {
    for signal in ["TERM", "KILL"] {
        let mut lab = Lab::open().await;
        let mut talks = Vec::new();
        for account in ACCOUNTS {
            let talk = lab.talk(json!({"provider": account.name})).await;
            lab.fake.script(account.backend, [Step::text("I have just begun to").hang()]);
            let events = talk.begin(json!({"id": "t", "message": "go"})).await;
            until_event(&events, "content").await;
            talks.push((account, talk, events));
        }
        lab.serve.signal(signal);
        lab.serve.ended().await;
        lab.serve = lab.home.serve().await;
        for (account, talk, _) in &mut talks {
            talk.chat.moved_to(&lab.serve);
            let kept = talk.history().await.len();
            assert_eq!(kept, if signal == "TERM" { 2 } else { 1 }, "{}", account.name);
            // What was said last is answered without saying it again, or goes on.
            let body = match signal {
                "KILL" => json!({}),
                _ => json!({"message": "go on"}),
            };
            let turn = talk.turn(body).await;
            assert_eq!(turn["status"], "completed", "{}: {turn:#}", account.name);
            lab.is_clean();
        }
    }
}
