//! Tools that change between turns, and during a turn without `apply=now`.

use pretty_assertions::assert_eq;
use serde_json::json;
use switchboard_test_support::Tool;
use switchboard_test_support::model_backends::{Backend, Step};

use crate::lab::{ACCOUNTS, Lab, Plan, shop_tools};
use crate::talk::{heard_out, until, until_event};

#[tokio::test]
async fn a_tool_that_comes_is_in_the_very_next_request_and_one_that_goes_is_not() {
    let lab = Lab::open().await;
    until(async || lab.shop.open_streams() > 0).await;
    for (number, account) in ACCOUNTS.into_iter().enumerate() {
        let talk = lab.talk(json!({"provider": account.name})).await;
        assert_eq!(talk.say(account.name, "hello").await, "echo: hello");
        let added = format!("added_{number}");
        let name = format!("shop__{added}");
        let with = || shop_tools().into_iter().chain([Tool::echo(&added)]);
        lab.shop.set_tools_and_notify(with()).await;
        talk.chat.until_has(&name).await;
        let before = lab.calls();
        talk.say(account.name, &format!("call {name} {{\"n\": 1}}")).await;
        assert_eq!(lab.calls(), before + 1, "{}", account.name);
        let shown = lab.shown(account);
        let of_turn = &shown[shown.len() - 2..];
        assert!(of_turn.iter().all(|tools| tools.contains(&name)), "{}: {shown:?}", account.name);

        lab.shop.set_tools_and_notify(shop_tools()).await;
        until(async || !talk.chat.names().await.contains(&name)).await;
        talk.say(account.name, "and now?").await;
        let shown = lab.shown(account).pop().unwrap();
        assert!(!shown.contains(&name), "{}: {shown:?}", account.name);
        let mut sorted = shown;
        sorted.sort();
        assert_eq!(sorted, ["shop__find", "shop__order", "shop__price"], "{}", account.name);
        // A model that calls it anyway is told, and nothing is called. Gemini does not let it.
        if !matches!(account.backend, Backend::Gemini | Backend::CodeAssist) {
            talk.say(account.name, &format!("call {name} {{}}")).await;
            let (text, is_error) = talk.results().await.pop().unwrap();
            assert!(is_error && text.contains(&name), "{}: {text}", account.name);
        }
        assert_eq!(lab.calls(), before + 1);
        lab.is_clean();
    }
}

#[tokio::test]
async fn a_running_turn_keeps_its_tools_unless_somebody_wants_otherwise() {
    let lab = Lab::with(Plan {
        tools: shop_tools().into_iter().chain([Tool::echo("slow").sleeps(400)]).collect(),
        ..Plan::default()
    })
    .await;
    for account in ACCOUNTS {
        let talk = lab.talk(json!({"provider": account.name, "toolsets": {"buy": false}})).await;
        let before = lab.shown(account).len();
        let events = talk.begin(json!({"message": "call shop__slow {\"n\": 1}"})).await;
        until_event(&events, "tool_call").await;
        talk.chat.put("/toolsets/buy", json!({"enabled": true})).await;
        let heard = heard_out(events).await;
        assert_eq!((heard.status(), heard.count("restarted")), ("completed", 0));
        talk.say(account.name, "next").await;
        let shown: Vec<_> = lab.shown(account).split_off(before);
        let has = |tools: &Vec<String>| tools.contains(&"shop__order".to_owned());
        assert_eq!(shown.iter().map(has).collect::<Vec<_>>(), [false, false, true]);
        lab.is_clean();
    }
}

#[tokio::test]
async fn a_tool_that_went_while_the_model_answered_is_answered_with_an_error() {
    let lab = Lab::open().await;
    for account in ACCOUNTS {
        let talk = lab.talk(json!({"provider": account.name})).await;
        let before = lab.calls();
        // It is switched off after the request went out and before the call is complete.
        let step = Step::text("wait for it, wait for it").call("shop__order", json!({"n": 1}));
        let paced = step.pace(std::time::Duration::from_millis(40));
        lab.fake.script(account.backend, [paced]);
        let events = talk.begin(json!({"message": "go"})).await;
        until_event(&events, "content").await;
        talk.chat.put("/toolsets/buy", json!({"enabled": false})).await;
        let heard = heard_out(events).await;
        assert_eq!(heard.status(), "completed", "{}: {:#?}", account.name, heard.0);
        let results = talk.results().await;
        assert!(results.len() == 1 && results[0].1, "{}: {results:?}", account.name);
        assert_eq!(lab.calls(), before, "{}", account.name);
        lab.is_clean();
    }
}

#[tokio::test]
async fn a_model_that_switches_tools_on_sees_them_in_the_next_request_of_its_turn() {
    let lab = Lab::with(Plan { gateway: "exposure: dynamic", ..Plan::default() }).await;
    for account in ACCOUNTS {
        let talk = lab.talk(json!({"provider": account.name})).await;
        let (calls, asked) = (lab.calls(), lab.shown(account).len());
        let enable = Step::new().call("enable_toolset", json!({"toolsetName": "buy"}));
        let order = Step::new().call("shop__order", json!({"n": 1}));
        lab.fake.script(account.backend, [enable, order]);
        let heard = talk.hear(json!({"message": "buy it"})).await;
        assert_eq!(heard.status(), "completed", "{}: {:#?}", account.name, heard.0);
        assert_eq!(heard.count("retrying"), 0, "{}", account.name);
        let shown = lab.shown(account).split_off(asked);
        let has = |tools: &Vec<String>| tools.contains(&"shop__order".to_owned());
        assert_eq!(shown.iter().map(has).collect::<Vec<_>>(), [false, true, true]);
        assert_eq!(lab.calls(), calls + 1, "{}", account.name);
        lab.is_clean();
    }
}
