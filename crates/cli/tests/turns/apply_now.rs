//! `apply=now`: the current answer is discarded, and the model is called again with the new tools.

use futures::future::join_all;
use pretty_assertions::assert_eq;
use reqwest::Method;
use serde_json::json;
use switchboard_test_support::Tool;
use switchboard_test_support::model_backends::Step;

use crate::lab::{ACCOUNTS, ANTHROPIC, CHAT, GEMINI, Lab, OPENAI, Plan, shop_tools};
use crate::support::server;
use crate::talk::{heard_out, until, until_event};

#[tokio::test]
async fn the_stream_is_closed_and_the_model_is_asked_again_with_the_new_tool() {
    let lab = Lab::open().await;
    for account in ACCOUNTS {
        let talk = lab.talk(json!({"provider": account.name, "toolsets": {"buy": false}})).await;
        let (calls, closed) = (lab.calls(), lab.fake.closed_by_client());
        let asked = lab.shown(account).len();
        lab.fake.script(
            account.backend,
            [
                Step::new().call("shop__find", json!({"n": 1})),
                Step::text("Now I will").hang(),
                Step::new().call("shop__order", json!({"n": 2})),
                Step::text("done"),
            ],
        );
        let events = talk.begin(json!({"message": "buy it"})).await;
        until_event(&events, "content").await;
        assert_eq!(lab.fake.open_streams(), 1);
        talk.apply_now(Method::PUT, "/toolsets/buy", json!({"enabled": true})).await;
        let heard = heard_out(events).await;
        assert_eq!(heard.status(), "completed", "{}: {:#?}", account.name, heard.0);
        assert_eq!(heard.count("restarted"), 1, "{}", account.name);
        assert_eq!(heard.text(), "done");
        until(async || lab.fake.closed_by_client() == closed + 1).await;
        let shown = lab.shown(account).split_off(asked);
        let has = |tools: &Vec<String>| tools.contains(&"shop__order".to_owned());
        assert_eq!(shown.iter().map(has).collect::<Vec<_>>(), [false, false, true, true]);
        // What had run did not run again, and what was half said is not kept.
        assert_eq!(lab.calls(), calls + 2, "{}", account.name);
        assert_eq!(talk.call_ids().await.len(), 2);
        let history = talk.chat.get("/history").await.to_string();
        assert!(!history.contains("Now I will"), "{history}");
        lab.is_clean();
    }
}

#[tokio::test]
async fn a_server_that_is_attached_now_is_there_when_the_model_is_asked_again() {
    let lab = Lab::open().await;
    let ctx = server([Tool::echo("search")]).await;
    for (round, account) in ACCOUNTS.into_iter().enumerate() {
        let talk = lab.talk(json!({"provider": account.name})).await;
        let asked = lab.shown(account).len();
        let call = Step::new().call("ctx__search", json!({"n": 1}));
        lab.fake.script(account.backend, [Step::text("Let me").hang(), call, Step::text("done")]);
        let events = talk.begin(json!({"message": "search for it"})).await;
        until_event(&events, "content").await;
        talk.apply_now(Method::PUT, "/servers/ctx", json!({"url": ctx.url()})).await;
        let heard = heard_out(events).await;
        assert_eq!((heard.status(), heard.text().as_str()), ("completed", "done"));
        let shown = lab.shown(account).split_off(asked);
        let has = |tools: &Vec<String>| tools.contains(&"ctx__search".to_owned());
        assert_eq!(shown.iter().map(has).collect::<Vec<_>>(), [false, true, true]);
        assert_eq!(ctx.stats().total_calls(), round + 1, "{}", account.name);
        lab.is_clean();
    }
}

#[tokio::test]
async fn a_patch_before_the_first_word_restarts_too() {
    let lab = Lab::open().await;
    for account in ACCOUNTS {
        let talk = lab.talk(json!({"provider": account.name, "toolsets": {"buy": false}})).await;
        let calls = lab.calls();
        let order = Step::new().call("shop__order", json!({"n": 1}));
        lab.fake.script(account.backend, [Step::new().silent(), order]);
        let events = talk.begin(json!({"message": "buy it"})).await;
        until(async || lab.fake.open_streams() == 1).await;
        talk.apply_now(Method::PATCH, "", json!({"toolsets": {"buy": true}})).await;
        let heard = heard_out(events).await;
        assert_eq!((heard.status(), heard.count("restarted")), ("completed", 1));
        assert_eq!(lab.calls(), calls + 1, "{}", account.name);
        lab.is_clean();
        until(async || lab.fake.open_streams() == 0).await;
    }
}

#[tokio::test]
async fn many_changes_at_once_are_few_restarts() {
    let lab = Lab::open().await;
    for account in ACCOUNTS {
        let talk = lab.talk(json!({"provider": account.name, "toolsets": {"buy": false}})).await;
        let asked = lab.shown(account).len();
        lab.fake.always(account.backend, Step::text("Well, let me").hang());
        let events = talk.begin(json!({"message": "buy it"})).await;
        until_event(&events, "content").await;
        let changes = (0..20).map(|number| {
            let (tool, is_on) = (if number % 2 == 0 { "find" } else { "price" }, number >= 18);
            let talk = talk.clone();
            async move {
                let tail = format!("/tools/shop.{tool}");
                talk.apply_now(Method::PUT, &tail, json!({"enabled": is_on})).await
            }
        });
        join_all(changes).await;
        lab.fake.always(account.backend, Step::text("done"));
        talk.apply_now(Method::PUT, "/toolsets/buy", json!({"enabled": true})).await;
        let heard = heard_out(events).await;
        assert_eq!((heard.status(), heard.text().as_str()), ("completed", "done"));
        let restarts = heard.count("restarted");
        assert!((1..=3).contains(&restarts), "{}: {restarts} restarts", account.name);
        let shown = lab.shown(account).split_off(asked);
        assert_eq!(shown.len(), restarts + 1);
        let mut last = shown.last().unwrap().clone();
        let mut now = talk.chat.names().await;
        last.sort();
        now.sort();
        assert_eq!(last, now, "{}: the end is right", account.name);
        assert_eq!(lab.calls(), 0);
        lab.is_clean();
        lab.fake.improvise(account.backend);
    }
}

#[tokio::test]
async fn a_change_while_tools_run_waits_for_them_and_shows_in_the_next_request() {
    let tools = shop_tools().into_iter().chain([Tool::echo("slow").sleeps(300)]).collect();
    let lab = Lab::with(Plan { tools, ..Plan::default() }).await;
    for account in [OPENAI, CHAT, ANTHROPIC, GEMINI] {
        let talk = lab.talk(json!({"provider": account.name, "toolsets": {"buy": false}})).await;
        let (calls, asked) = (lab.calls(), lab.shown(account).len());
        let events =
            talk.begin(json!({"message": "call shop__slow {\"n\": 1}\ncall shop__find {}"})).await;
        until_event(&events, "tool_result").await;
        talk.apply_now(Method::PUT, "/toolsets/buy", json!({"enabled": true})).await;
        let heard = heard_out(events).await;
        assert_eq!((heard.status(), heard.count("tool_result")), ("completed", 2));
        assert_eq!(lab.calls(), calls + 2, "{}", account.name);
        let shown = lab.shown(account).split_off(asked);
        let has = |tools: &Vec<String>| tools.contains(&"shop__order".to_owned());
        assert_eq!(shown.iter().map(has).collect::<Vec<_>>(), [false, true], "{}", account.name);
        lab.is_clean();
    }
}
