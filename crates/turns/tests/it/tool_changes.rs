//! Tools that change between turns, and during a turn without `apply=now`.

use std::time::Duration;

use pretty_assertions::assert_eq;
use serde_json::json;
use switchboard_chat::TurnStatus;
use switchboard_sessions::Session;
use switchboard_test_support::Tool;
use switchboard_test_support::model_backends::{Account, Step};

use crate::lab::{Lab, count, ended, shop_tools, shop_tools_and, toolset, until, until_event};

fn sees(lab: &Lab, session: &std::sync::Arc<Session>, tool: &str) -> bool {
    let cached = lab.sessions.sessions().view_of(session);
    cached.view.tools().any(|entry| entry.name.as_deref() == Some(tool))
}

#[tokio::test]
async fn a_tool_that_appears_is_in_the_very_next_request_and_one_that_vanishes_is_not() {
    let lab = Lab::open().await;
    until(|| lab.shop.open_streams() > 0).await;
    for (number, account) in Account::ALL.into_iter().enumerate() {
        let talk = lab.talk(account).await;
        assert_eq!(talk.say(account, "hello").await, "echo: hello");
        let added = format!("added_{number}");
        let name = format!("shop__{added}");
        lab.shop.set_tools_and_notify(shop_tools_and([Tool::echo(&added)])).await;
        until(|| sees(&lab, &talk.session, &name)).await;
        let (before, asked) = (lab.calls(), lab.fake.answers(account).len());
        talk.say(account, &format!("call {name} {{\"n\": 1}}")).await;
        assert_eq!(lab.calls(), before + 1, "{}", account.name);
        assert_eq!(lab.declares(account, asked, &name), [true, true], "{}", account.name);

        lab.shop.set_tools_and_notify(shop_tools()).await;
        until(|| !sees(&lab, &talk.session, &name)).await;
        talk.say(account, "and now?").await;
        let mut shown = lab.fake.answers(account).pop().unwrap().tools;
        shown.sort();
        assert_eq!(shown, ["shop__find", "shop__order", "shop__price"], "{}", account.name);
        // A model that calls it all the same gets an error. Google's backends do not let it.
        if !account.is_google() {
            talk.say(account, &format!("call {name} {{}}")).await;
            let (text, is_error) = talk.results().await.pop().unwrap();
            assert!(is_error && text.contains(&name), "{}: {text}", account.name);
        }
        assert_eq!(lab.calls(), before + 1);
        lab.is_clean();
    }
    lab.end().await;
}

#[tokio::test]
async fn a_running_turn_keeps_its_tools() {
    let lab = Lab::with("", shop_tools_and([Tool::echo("slow").sleeps(400)])).await;
    for account in Account::ALL {
        let talk = lab.talk_without_buy(account).await;
        let asked = lab.fake.answers(account).len();
        let turn = talk.begin("call shop__slow {\"n\": 1}").await;
        until_event(&turn, "tool_call").await;
        talk.change(toolset("buy", true)).await;
        assert_eq!(ended(&turn).await.status, TurnStatus::Completed);
        assert_eq!(count(&turn, "restarted"), 0, "{}", account.name);
        talk.say(account, "next").await;
        let shown = lab.declares(account, asked, "shop__order");
        assert_eq!(shown, [false, false, true], "{}", account.name);
        lab.is_clean();
    }
    lab.end().await;
}

#[tokio::test]
async fn a_call_of_a_tool_that_was_disabled_during_the_answer_is_an_error() {
    let lab = Lab::open().await;
    for account in Account::ALL {
        let talk = lab.talk(account).await;
        let before = lab.calls();
        // The tool is disabled after the request was sent and before the call is complete.
        let step = Step::text("wait for it, wait for it").call("shop__order", json!({"n": 1}));
        lab.fake.script(account.backend, [step.pace(Duration::from_millis(40))]);
        let turn = talk.begin("go").await;
        until_event(&turn, "content").await;
        talk.change(toolset("buy", false)).await;
        assert_eq!(ended(&turn).await.status, TurnStatus::Completed, "{}", account.name);
        let results = talk.results().await;
        assert!(results.len() == 1 && results[0].1, "{}: {results:?}", account.name);
        assert!(
            results[0].0.contains("was removed from this session"),
            "{}: {results:?}",
            account.name
        );
        assert_eq!(lab.calls(), before, "{}", account.name);
        lab.is_clean();
    }
    lab.end().await;
}

#[tokio::test]
async fn a_model_that_enables_a_toolset_gets_its_tools_in_the_next_request_of_the_turn() {
    let lab = Lab::with("exposure: dynamic", shop_tools()).await;
    for account in Account::ALL {
        let talk = lab.talk(account).await;
        let (calls, asked) = (lab.calls(), lab.fake.answers(account).len());
        let enable = Step::new().call("enable_toolset", json!({"toolsetName": "buy"}));
        let order = Step::new().call("shop__order", json!({"n": 1}));
        lab.fake.script(account.backend, [enable, order]);
        let turn = talk.begin("buy it").await;
        assert_eq!(ended(&turn).await.status, TurnStatus::Completed, "{}", account.name);
        assert_eq!(count(&turn, "retrying"), 0, "{}", account.name);
        let shown = lab.declares(account, asked, "shop__order");
        assert_eq!(shown, [false, true, true], "{}", account.name);
        assert_eq!(lab.calls(), calls + 1, "{}", account.name);
        lab.is_clean();
    }
    lab.end().await;
}
