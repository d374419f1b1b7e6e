//! Limits of a turn: rounds, tokens, and the time of a shutdown.

use std::time::Duration;

use pretty_assertions::assert_eq;
use serde_json::json;
use switchboard_chat::{Message, TurnStatus};
use switchboard_test_support::Tool;
use switchboard_test_support::model_backends::{Account, Step};
use switchboard_turns::{NewTurn, TurnError};

use crate::lab::{Lab, count, ended, said, shop_tools_and, until_event};

#[tokio::test]
async fn a_turn_ends_after_its_rounds_with_every_call_answered() {
    let lab = Lab::open().await;
    for account in Account::ALL {
        let talk = lab.talk(account).await;
        let before = lab.calls();
        let call = |number: usize| Step::new().call("shop__find", json!({ "n": number }));
        lab.fake.script(account.backend, (0..4).map(call));
        let turn = talk.try_begin(NewTurn { max_rounds: Some(3), ..said("go") }).await.unwrap();
        let end = ended(&turn).await;
        assert_eq!(end.status, TurnStatus::Limited, "{}: {end:#?}", account.name);
        assert_eq!(end.error.as_ref().unwrap().kind, "limit");
        assert_eq!((lab.calls() - before, count(&turn, "tool_result")), (3, 4), "{}", account.name);
        let calls = end.messages.iter().filter(|it| matches!(it, Message::Tool(_))).count();
        assert_eq!(calls, 4, "{}: the last call is answered, but not run", account.name);
        talk.say(account.other(), "call shop__find {}").await;
        lab.is_clean();
    }
    lab.end().await;
}

#[tokio::test]
async fn a_call_that_gives_the_same_result_again_and_again_ends_the_turn() {
    let lab = Lab::open().await;
    for account in Account::ALL {
        let talk = lab.talk(account).await;
        let before = lab.calls();
        lab.fake.always(account.backend, Step::new().call("shop__find", json!({"n": 7})));
        let turn = talk.begin("go").await;
        let end = ended(&turn).await;
        assert_eq!(end.status, TurnStatus::Limited, "{}: {end:#?}", account.name);
        assert_eq!(end.error.unwrap().kind, "limit");
        assert_eq!(lab.calls(), before + 8, "{}", account.name);
        lab.fake.improvise(account.backend);
        talk.say(account, "enough").await;
        lab.is_clean();
    }
    lab.end().await;
}

#[tokio::test]
async fn a_turn_ends_when_its_tokens_are_used_up() {
    let lab = Lab::open().await;
    for account in Account::ALL {
        let talk = lab.talk(account).await;
        let asked = lab.fake.answers(account).len();
        let wanted = NewTurn { max_tokens_total: Some(1), ..said("call shop__find {}") };
        let turn = talk.try_begin(wanted).await.unwrap();
        let end = ended(&turn).await;
        assert_eq!(end.status, TurnStatus::Limited, "{}: {end:#?}", account.name);
        assert_eq!(end.error.unwrap().kind, "limit");
        assert_eq!(lab.fake.answers(account).len(), asked + 1, "{}", account.name);
        assert_eq!(count(&turn, "tool_result"), 1, "{}: its call is answered", account.name);
        talk.say(account, "enough").await;
        lab.is_clean();
    }
    lab.end().await;
}

#[tokio::test]
async fn a_shutdown_waits_for_running_turns_and_begins_no_other() {
    let lab = Lab::with("", shop_tools_and([Tool::echo("slow").sleeps(400)])).await;
    let talk = lab.talk(Account::GEMINI).await;
    let turn = talk.begin("call shop__slow {\"n\": 1}").await;
    until_event(&turn, "tool_call").await;
    let begin_late = async {
        // The shutdown is polled first, so it has closed the turns when this runs.
        tokio::task::yield_now().await;
        talk.try_begin(said("too late")).await.unwrap_err()
    };
    let shutdown = lab.turns.shutdown(Duration::from_secs(20));
    let ((), late) = tokio::join!(biased; shutdown, begin_late);
    assert_eq!(late, TurnError::Stopping);
    assert_eq!(turn.end().unwrap().status, TurnStatus::Completed);
    assert_eq!(talk.history().await.len(), 4);
    lab.end().await;
}
