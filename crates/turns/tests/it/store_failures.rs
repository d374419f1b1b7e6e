//! A store that fails before or during a turn: nothing is announced that is not stored, and each turn ends once.

use pretty_assertions::assert_eq;
use serde_json::json;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{ConnectOptions, Executor};
use switchboard_chat::{History, Message, TurnStatus};
use switchboard_test_support::model_backends::{Account, Step};
use switchboard_test_support::{Reply, Tool};
use switchboard_turns::TurnError;

use crate::lab::{Lab, count, ended, said, shop_tools_and, until, until_event};

const OPENAI: Account = Account::OPENAI;

/// Another process that holds the lock of the database.
struct Lock(SqliteConnection);

impl Lock {
    async fn take(lab: &Lab) -> Self {
        let database = lab.directory.path().join("switchboard.db");
        let mut other = SqliteConnectOptions::new().filename(database).connect().await.unwrap();
        other.execute("BEGIN IMMEDIATE").await.unwrap();
        Self(other)
    }

    /// Releases the lock, and waits until the store takes writes again.
    async fn release(mut self, lab: &Lab) {
        self.0.execute("ROLLBACK").await.unwrap();
        let mut outages = lab.board.store().outages();
        outages.wait_for(Option::is_none).await.unwrap();
    }
}

fn assert_not_stored(error: &TurnError) {
    let TurnError::NotStored(failure) = error else { panic!("{error:?}") };
    assert!(failure.is_outage, "{error}");
    assert_eq!(failure.reason, "its database was locked for too long");
    assert_eq!(error.kind(), "store");
}

#[tokio::test]
async fn a_turn_whose_message_cannot_be_stored_does_not_begin() {
    let lab = Lab::open().await;
    let talk = lab.talk(OPENAI).await;
    talk.say(OPENAI, "before").await;
    let asked = lab.fake.answers(OPENAI).len();
    let lock = Lock::take(&lab).await;
    assert_not_stored(&talk.try_begin(said("lost")).await.unwrap_err());
    let import = lab.turns.set_history(&talk.session, &History::new(Vec::new())).await;
    assert_not_stored(&import.unwrap_err());
    assert_eq!(lab.fake.answers(OPENAI).len(), asked, "the model is not asked");
    assert!(lab.turns.running(&talk.session.id).is_none());
    lock.release(&lab).await;
    assert_eq!(talk.history().await.len(), 2, "nothing was stored or deleted");
    assert_eq!(talk.say(OPENAI, "after").await, "echo: after");
    lab.is_clean();
    lab.end().await;
}

#[tokio::test]
async fn an_answer_that_cannot_be_stored_fails_the_turn_once() {
    let lab = Lab::open().await;
    let talk = lab.talk(OPENAI).await;
    lab.fake.script(OPENAI.backend, [Step::text("I was never stored").hang()]);
    let turn = talk.begin("go").await;
    until_event(&turn, "content").await;
    let lock = Lock::take(&lab).await;
    turn.cancel();
    let end = ended(&turn).await;
    assert_eq!((end.status, count(&turn, "error")), (TurnStatus::Failed, 1));
    let error = end.error.unwrap();
    assert_eq!((error.kind, error.blame), ("not_kept", "switchboard"), "{error:?}");
    assert!(error.message.contains("its database was locked for too long"), "{error:?}");
    lock.release(&lab).await;
    let history = talk.history().await;
    assert!(matches!(*history, [Message::User(_)]), "{history:?}");
    assert_eq!(talk.say(OPENAI, "again").await, "echo: again");
    lab.is_clean();
    lab.end().await;
}

#[tokio::test]
async fn a_call_that_cannot_be_stored_is_not_run() {
    let lab = Lab::open().await;
    let talk = lab.talk(OPENAI).await;
    let call = Step::text("I will order").call("shop__order", json!({"n": 1}));
    lab.fake.script(OPENAI.backend, [call.pace(std::time::Duration::from_millis(60))]);
    let turn = talk.begin("go").await;
    until_event(&turn, "content").await;
    let lock = Lock::take(&lab).await;
    assert_eq!(ended(&turn).await.status, TurnStatus::Failed);
    assert_eq!(lab.calls(), 0, "a call is stored before it runs");
    lock.release(&lab).await;
    assert_eq!(talk.history().await.len(), 1);
    lab.is_clean();
    lab.end().await;
}

#[tokio::test]
async fn calls_that_run_while_the_store_fails_are_cancelled_and_answered_later() {
    let hangs = Tool::echo("hangs").replies(Reply::Hang);
    let slow = Tool::echo("slow").sleeps(200);
    let lab = Lab::with("", shop_tools_and([hangs, slow])).await;
    let talk = lab.talk(OPENAI).await;
    let turn = talk.begin("call shop__hangs {}\ncall shop__slow {\"n\": 1}").await;
    until(|| lab.shop.stats().running_calls == 2).await;
    let lock = Lock::take(&lab).await;
    assert_eq!(ended(&turn).await.status, TurnStatus::Failed);
    until(|| lab.shop.stats().running_calls == 0).await;
    lock.release(&lab).await;
    // Both calls have an answer, so that every provider accepts the conversation; none runs again.
    let results = talk.results().await;
    assert_eq!(results.len(), 2, "{results:?}");
    assert!(results[0].1 && results[0].0.contains("not known"), "{results:?}");
    talk.say(OPENAI.other(), "and now?").await;
    assert_eq!(lab.calls(), 2);
    lab.is_clean();
    lab.end().await;
}

#[tokio::test]
async fn a_session_cannot_end_while_its_end_cannot_be_stored_and_its_turn_goes_on() {
    let lab = Lab::open().await;
    let talk = lab.talk(OPENAI).await;
    lab.fake.script(OPENAI.backend, [Step::text("I go on").hang()]);
    let turn = talk.begin("go").await;
    until_event(&turn, "content").await;
    let lock = Lock::take(&lab).await;
    assert_not_stored(&lab.turns.end_of(&talk.session.id).await.unwrap_err());
    assert!(turn.end().is_none(), "the turn goes on");
    lock.release(&lab).await;
    lab.turns.end_of(&talk.session.id).await.unwrap();
    assert_eq!(ended(&turn).await.status, TurnStatus::Cancelled);
    lab.end().await;
}
