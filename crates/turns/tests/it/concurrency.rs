//! Many turns at the same time: each session has one, and none disturbs another.

use std::sync::Arc;

use futures::future::join_all;
use pretty_assertions::assert_eq;
use switchboard_chat::{History, TurnStatus};
use switchboard_test_support::Tool;
use switchboard_test_support::model_backends::Account;
use switchboard_turns::{NewTurn, TurnError};

use crate::lab::{Lab, ended, said, shop_tools_and, until_event};

fn named(id: &str, text: &str) -> NewTurn {
    NewTurn { id: Some(id.into()), ..said(text) }
}

#[tokio::test]
async fn turns_of_many_sessions_run_at_the_same_time_and_get_their_own_results() {
    let lab = Lab::with("", shop_tools_and([Tool::echo("slow").waits_for_calls(6)])).await;
    let count = 35;
    let chats = (0..count).map(|number| {
        let account = Account::ALL[number % Account::ALL.len()];
        let lab = &lab;
        async move {
            let talk = lab.talk(account).await;
            let text = format!("call shop__slow {{\"n\": {number}}}");
            let answer = talk.say(account, &text).await;
            assert!(answer.contains(&format!("\"n\":{number}}}")), "{number}: {answer}");
            assert_eq!(talk.history().await.len(), 4);
        }
    });
    join_all(chats).await;
    assert_eq!(lab.calls(), count);
    lab.is_clean();
    lab.end().await;
}

#[tokio::test]
async fn a_session_has_one_turn_at_a_time_and_the_same_id_is_the_same_turn() {
    let lab = Lab::with("", shop_tools_and([Tool::echo("slow").sleeps(300)])).await;
    let talk = lab.talk(Account::OPENAI).await;
    let text = "call shop__slow {\"n\": 1}";
    let begun = join_all((0..10).map(|_| talk.try_begin(named("mine", text)))).await;
    let begun: Vec<_> = begun.into_iter().map(Result::unwrap).collect();
    assert!(begun.iter().all(|turn| Arc::ptr_eq(turn, &begun[0])));
    let busy = TurnError::Busy { turn: "mine".into() };
    assert_eq!(talk.try_begin(named("other", "me too")).await.unwrap_err(), busy);
    let nothing = History::new(Vec::new());
    assert_eq!(lab.turns.set_history(&talk.session, &nothing).await, Err(busy));
    assert_eq!(ended(&begun[0]).await.status, TurnStatus::Completed);
    let again = talk.try_begin(named("mine", text)).await.unwrap();
    assert!(Arc::ptr_eq(&again, &begun[0]), "also when it has ended");
    assert_eq!((lab.calls(), lab.fake.answers(Account::OPENAI).len()), (1, 2));
    // A caller that has seen the end can begin the next turn at once.
    for number in 0..25 {
        let turn = talk.begin(&format!("hello {number}")).await;
        assert_eq!(ended(&turn).await.text(), format!("echo: hello {number}"));
    }
    lab.is_clean();
    lab.end().await;
}

#[tokio::test]
async fn of_several_turns_that_begin_together_one_runs_and_the_others_name_it() {
    let lab = Lab::with("", shop_tools_and([Tool::echo("slow").sleeps(300)])).await;
    let talk = lab.talk(Account::ANTHROPIC).await;
    let ids: Vec<String> = (0..10).map(|number| format!("t{number}")).collect();
    let text = "call shop__slow {\"n\": 1}";
    let begun = join_all(ids.iter().map(|id| talk.try_begin(named(id, text)))).await;
    let (running, refused): (Vec<_>, Vec<_>) = begun.into_iter().partition(Result::is_ok);
    let [Ok(turn)] = &*running else { panic!("{} turns run", running.len()) };
    for refusal in refused {
        assert_eq!(refusal.unwrap_err(), TurnError::Busy { turn: turn.id.clone() });
    }
    until_event(turn, "tool_result").await;
    assert_eq!(ended(turn).await.status, TurnStatus::Completed);
    assert_eq!((lab.calls(), talk.history().await.len()), (1, 4));
    lab.is_clean();
    lab.end().await;
}
