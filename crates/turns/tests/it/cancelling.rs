//! Cancelled turns: the model's stream and the running calls end, and the conversation stays valid.

use pretty_assertions::assert_eq;
use switchboard_chat::TurnStatus;
use switchboard_test_support::model_backends::{Account, Step};
use switchboard_test_support::{Reply, Tool};

use crate::lab::{Lab, count, ended, shop_tools_and, toolset, until, until_event, until_text};

#[tokio::test]
async fn a_cancelled_turn_closes_the_model_stream_and_keeps_the_text_so_far() {
    let lab = Lab::open().await;
    for account in Account::ALL {
        let talk = lab.talk(account).await;
        let closed = lab.fake.closed_by_client();
        lab.fake.script(account.backend, [Step::text("I have just begun to").hang()]);
        let turn = talk.begin("go").await;
        until_text(&turn, "I have just begun to").await;
        turn.cancel();
        let end = ended(&turn).await;
        assert_eq!((end.status, &*end.text()), (TurnStatus::Cancelled, "I have just begun to"));
        assert_eq!(count(&turn, "error"), 0, "{}", account.name);
        until(|| lab.fake.closed_by_client() == closed + 1).await;
        // A second request to cancel changes nothing.
        turn.cancel();
        assert_eq!(ended(&turn).await, end);
        assert_eq!(talk.say(account.other(), "and now?").await, "echo: and now?");
        assert_eq!(talk.history().await.len(), 4);
        lab.is_clean();
    }
    lab.end().await;
}

#[tokio::test]
async fn a_cancelled_turn_cancels_its_calls_upstream_and_answers_them() {
    let hangs = Tool::echo("hangs").replies(Reply::Hang);
    let lab = Lab::with("", shop_tools_and([hangs])).await;
    for account in Account::ALL {
        let talk = lab.talk(account).await;
        let turn = talk.begin("call shop__hangs {}\ncall shop__find {\"n\": 1}").await;
        until_event(&turn, "tool_result").await;
        until(|| lab.shop.stats().running_calls == 1).await;
        turn.cancel();
        assert_eq!(ended(&turn).await.status, TurnStatus::Cancelled);
        until(|| lab.shop.stats().running_calls == 0).await;
        assert_eq!(count(&turn, "tool_result"), 2, "{}", account.name);
        let results = talk.results().await;
        let errors: Vec<_> = results.iter().map(|(_, is_error)| *is_error).collect();
        assert_eq!(errors, [true, false], "{}", account.name);
        assert!(results[0].0.contains("cancelled"), "{results:?}");
        talk.say(account, "and now?").await;
        talk.say(account.other(), "and now?").await;
        lab.is_clean();
    }
    lab.end().await;
}

#[tokio::test]
async fn a_turn_that_waits_to_retry_can_be_cancelled_and_sees_changed_tools() {
    let lab = Lab::open().await;
    let limited = |seconds| Step::new().status(429, &[("retry-after", seconds)], "{}");
    // Google says in the body how long to wait.
    for account in Account::ALL.into_iter().filter(|account| !account.is_google()) {
        let talk = lab.talk_without_buy(account).await;
        lab.fake.script(account.backend, [limited("30")]);
        let turn = talk.begin("go").await;
        until_event(&turn, "retrying").await;
        turn.cancel();
        assert_eq!(ended(&turn).await.status, TurnStatus::Cancelled, "{}", account.name);

        let before = lab.calls();
        lab.fake.script(account.backend, [limited("1")]);
        let turn = talk.begin("call shop__order {}").await;
        until_event(&turn, "retrying").await;
        talk.apply_now(toolset("buy", true)).await;
        assert_eq!(ended(&turn).await.status, TurnStatus::Completed, "{}", account.name);
        assert_eq!((count(&turn, "restarted"), lab.calls()), (0, before + 1), "{}", account.name);
        lab.is_clean();
    }
    lab.end().await;
}

#[tokio::test]
async fn a_session_that_is_about_to_end_ends_its_turn() {
    let hangs = Tool::echo("hangs").replies(Reply::Hang);
    let lab = Lab::with("", shop_tools_and([hangs])).await;
    let (openai, backend) = (Account::OPENAI, Account::OPENAI.backend);
    for (message, event) in [("go", "content"), ("call shop__hangs {}", "tool_call")] {
        let talk = lab.talk(openai).await;
        if event == "content" {
            lab.fake.script(backend, [Step::text("I have just").hang()]);
        }
        let turn = talk.begin(message).await;
        until_event(&turn, event).await;
        lab.turns.end_of(&talk.session.id).await.unwrap();
        assert_eq!(ended(&turn).await.status, TurnStatus::Cancelled);
        until(|| lab.fake.open_streams() == 0 && lab.shop.stats().running_calls == 0).await;
        assert!(lab.turns.find(&talk.session.id, &turn.id).is_some(), "it can still be read");
        lab.turns.forget(&talk.session.id);
        assert!(lab.turns.find(&talk.session.id, &turn.id).is_none());
    }
    lab.is_clean();
    lab.end().await;
}
