//! Changes that apply at once: the current answer is discarded, and the model is asked again with the new tools.

use std::collections::{BTreeMap, BTreeSet};

use futures::future::join_all;
use pretty_assertions::assert_eq;
use serde_json::json;
use switchboard_chat::{Message, TurnStatus};
use switchboard_sessions::{Change, OwnServer};
use switchboard_test_support::model_backends::{Account, Step};
use switchboard_test_support::{ScriptedServer, Tool};

use crate::lab::{Lab, count, ended, shop_tools_and, toolset, until, until_event};

#[tokio::test]
async fn the_stream_is_closed_and_the_model_is_asked_again_with_the_new_tool() {
    let lab = Lab::open().await;
    for account in Account::ALL {
        let talk = lab.talk_without_buy(account).await;
        let (calls, closed) = (lab.calls(), lab.fake.closed_by_client());
        let asked = lab.fake.answers(account).len();
        lab.fake.script(
            account.backend,
            [
                Step::new().call("shop__find", json!({"n": 1})),
                Step::text("Now I will").hang(),
                Step::new().call("shop__order", json!({"n": 2})),
                Step::text("done"),
            ],
        );
        let turn = talk.begin("buy it").await;
        until_event(&turn, "content").await;
        talk.apply_now(toolset("buy", true)).await;
        let end = ended(&turn).await;
        assert_eq!((end.status, &*end.text()), (TurnStatus::Completed, "done"), "{}", account.name);
        assert_eq!(count(&turn, "restarted"), 1, "{}", account.name);
        until(|| lab.fake.closed_by_client() == closed + 1).await;
        let shown = lab.declares(account, asked, "shop__order");
        assert_eq!(shown, [false, false, true, true], "{}", account.name);
        // The first call is not repeated, and the discarded text is not stored.
        assert_eq!(lab.calls(), calls + 2, "{}", account.name);
        let history = talk.history().await;
        assert_eq!(history.iter().filter(|it| matches!(it, Message::Tool(_))).count(), 2);
        assert!(!format!("{history:?}").contains("Now I will"), "{history:#?}");
        lab.is_clean();
    }
    lab.end().await;
}

#[tokio::test]
async fn a_change_before_the_first_byte_of_the_answer_restarts_too() {
    let lab = Lab::open().await;
    for account in Account::ALL {
        let talk = lab.talk_without_buy(account).await;
        let calls = lab.calls();
        let order = Step::new().call("shop__order", json!({"n": 1}));
        lab.fake.script(account.backend, [Step::new().silent(), order]);
        let turn = talk.begin("buy it").await;
        until(|| lab.fake.open_streams() == 1).await;
        talk.apply_now(toolset("buy", true)).await;
        assert_eq!(ended(&turn).await.status, TurnStatus::Completed, "{}", account.name);
        assert_eq!((count(&turn, "restarted"), lab.calls()), (1, calls + 1), "{}", account.name);
        lab.is_clean();
        until(|| lab.fake.open_streams() == 0).await;
    }
    lab.end().await;
}

#[tokio::test]
async fn many_changes_at_once_are_few_restarts_and_the_last_one_counts() {
    let lab = Lab::open().await;
    for account in Account::ALL {
        let talk = lab.talk_without_buy(account).await;
        let asked = lab.fake.answers(account).len();
        lab.fake.always(account.backend, Step::text("Well, let me").hang());
        let turn = talk.begin("buy it").await;
        until_event(&turn, "content").await;
        let switch = |number: u32| {
            let tool = if number.is_multiple_of(2) { "shop.find" } else { "shop.price" };
            let tools = [(tool.to_owned(), Some(number >= 18))].into();
            Change { tools, ..Change::default() }
        };
        join_all((0..20).map(|number| talk.apply_now(switch(number)))).await;
        lab.fake.always(account.backend, Step::text("done"));
        talk.apply_now(toolset("buy", true)).await;
        let end = ended(&turn).await;
        assert_eq!((end.status, &*end.text()), (TurnStatus::Completed, "done"), "{}", account.name);
        let restarts = count(&turn, "restarted");
        assert!((1..=3).contains(&restarts), "{}: {restarts} restarts", account.name);
        let requests = lab.fake.answers(account).split_off(asked);
        let last: BTreeSet<_> = requests.last().unwrap().tools.iter().cloned().collect();
        let now = talk.session.now().cached;
        let now = now.view.tools().filter_map(|entry| entry.name.as_deref().map(str::to_owned));
        assert_eq!(last, now.collect(), "{}", account.name);
        lab.is_clean();
        lab.fake.improvise(account.backend);
    }
    lab.end().await;
}

#[tokio::test]
async fn a_change_while_tools_run_waits_for_them_and_is_in_the_next_request() {
    let lab = Lab::with("", shop_tools_and([Tool::echo("slow").sleeps(300)])).await;
    for account in Account::ALL {
        let talk = lab.talk_without_buy(account).await;
        let (calls, asked) = (lab.calls(), lab.fake.answers(account).len());
        let turn = talk.begin("call shop__slow {\"n\": 1}\ncall shop__find {}").await;
        until_event(&turn, "tool_result").await;
        talk.apply_now(toolset("buy", true)).await;
        assert_eq!(ended(&turn).await.status, TurnStatus::Completed, "{}", account.name);
        assert_eq!((count(&turn, "tool_result"), lab.calls()), (2, calls + 2), "{}", account.name);
        let shown = lab.declares(account, asked, "shop__order");
        assert_eq!(shown, [false, true], "{}", account.name);
        lab.is_clean();
    }
    lab.end().await;
}

#[tokio::test]
async fn a_server_that_is_attached_now_is_there_when_the_model_is_asked_again() {
    let lab = Lab::open().await;
    let search = ScriptedServer::builder().tools([Tool::echo("search")]).start().await;
    for (round, account) in Account::ALL.into_iter().enumerate() {
        let talk = lab.talk(account).await;
        let asked = lab.fake.answers(account).len();
        let call = Step::new().call("ctx__search", json!({"n": 1}));
        lab.fake.script(account.backend, [Step::text("Let me").hang(), call, Step::text("done")]);
        let turn = talk.begin("search for it").await;
        until_event(&turn, "content").await;
        let own = OwnServer { url: search.url(), is_sse: false, headers: BTreeMap::new() };
        let own_servers = [("ctx".to_owned(), Some(own))].into();
        talk.apply_now(Change { own_servers, ..Change::default() }).await;
        let end = ended(&turn).await;
        assert_eq!((end.status, &*end.text()), (TurnStatus::Completed, "done"), "{}", account.name);
        let shown = lab.declares(account, asked, "ctx__search");
        assert_eq!(shown, [false, true, true], "{}", account.name);
        assert_eq!(search.stats().total_calls(), round + 1, "{}", account.name);
        lab.is_clean();
    }
    lab.end().await;
}

#[tokio::test]
async fn a_changed_provider_goes_on_with_the_running_turn() {
    let lab = Lab::open().await;
    for account in Account::ALL {
        let (talk, other) = (lab.talk(account).await, account.other());
        let find = Step::new().call("shop__find", json!({"n": 1}));
        lab.fake.script(account.backend, [find, Step::text("half a").hang()]);
        let turn = talk.begin("go").await;
        until_event(&turn, "content").await;
        let provider = Some(Some(other.name.to_owned()));
        talk.apply_now(Change { provider, ..Change::default() }).await;
        let end = ended(&turn).await;
        assert_eq!(end.status, TurnStatus::Completed, "{}: {end:#?}", account.name);
        assert!(end.text().starts_with("results: "), "{}: {}", account.name, end.text());
        let Some(Message::Assistant(reply)) = end.messages.last() else { panic!("{end:?}") };
        assert_eq!(reply.source.as_ref().map(|source| &*source.provider), Some(other.name));
        lab.is_clean();
    }
    assert_eq!(lab.calls(), Account::ALL.len(), "no call runs twice");
    lab.end().await;
}
