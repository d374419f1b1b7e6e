//! The stored conversation: interrupted calls, damaged messages, imports, and writers from outside.

use pretty_assertions::assert_eq;
use serde_json::json;
use switchboard_chat::{Block, History, Message, Reply, ToolCall, ToolReturn, TurnStatus};
use switchboard_model::ToolResult;
use switchboard_test_support::model_backends::{Account, Step};
use switchboard_turns::{NewTurn, TurnError};

use crate::lab::{Lab, ended, said, until_event};

const OPENAI: Account = Account::OPENAI;

fn call(id: &str) -> ToolCall {
    let (id, name) = (id.to_owned(), "shop__find".to_owned());
    ToolCall { id, name, arguments: json!({}), unreadable: None, origin: None, opaque: None }
}

/// A reply with these calls.
fn reply(calls: &[&ToolCall]) -> Message {
    let content = calls.iter().map(|call| Block::ToolCall(Box::new((*call).clone()))).collect();
    Message::Assistant(Reply { content, ..Reply::default() })
}

fn texts(messages: &[Message]) -> Vec<String> {
    messages.iter().map(|message| serde_json::to_string(message).unwrap()).collect()
}

#[tokio::test]
async fn calls_that_a_crash_interrupted_are_answered_and_never_repeated() {
    let lab = Lab::open().await;
    for account in Account::ALL {
        let talk = lab.talk(account).await;
        // What a process leaves behind that ends while two calls run, one of which has returned.
        let (id, store) = (&*talk.session.id, lab.board.store());
        let (lost, done) = (call("call_a"), call("call_b"));
        let messages = [Message::user("find it"), reply(&[&lost, &done])];
        assert!(store.append_messages(id, 0, &texts(&messages)).await.unwrap());
        let returned = ToolReturn::of(&done, ToolResult::text("found"), None);
        let returned = serde_json::to_string(&returned).unwrap();
        store.keep_call_result(id, &done.id, &returned).await.unwrap();

        let results = talk.results().await;
        assert_eq!(results.iter().map(|it| it.1).collect::<Vec<_>>(), [true, false]);
        assert!(results[0].0.contains("not known"), "{results:?}");
        assert!(results[1].0.contains("found"), "{results:?}");
        talk.say(account, "and now?").await;
        assert_eq!(talk.history().await.len(), 6, "{}", account.name);
        assert_eq!(lab.calls(), 0, "{}: nothing runs by itself", account.name);
        lab.is_clean();
    }
    lab.end().await;
}

#[tokio::test]
async fn a_conversation_that_another_writer_continued_is_not_overwritten() {
    let lab = Lab::open().await;
    let talk = lab.talk(OPENAI).await;
    lab.fake.script(OPENAI.backend, [Step::text("I have just").hang()]);
    let turn = talk.begin("go").await;
    until_event(&turn, "content").await;
    let theirs = texts(&[Message::user("I was here first")]);
    assert!(lab.board.store().append_messages(&talk.session.id, 1, &theirs).await.unwrap());
    turn.cancel();
    let end = ended(&turn).await;
    assert_eq!(end.status, TurnStatus::Failed);
    assert_eq!(end.error.unwrap().message, TurnError::Raced.to_string());
    let stored = lab.board.store().messages(&talk.session.id).await.unwrap();
    assert_eq!(stored.last(), theirs.first());
    lab.end().await;
}

#[tokio::test]
async fn a_damaged_message_is_named_and_the_conversation_can_be_replaced() {
    let lab = Lab::open().await;
    let talk = lab.talk(OPENAI).await;
    talk.say(OPENAI, "hello").await;
    assert!(lab.board.store().append_messages(&talk.session.id, 2, &["{".into()]).await.unwrap());
    let error = talk.try_begin(said("x")).await.unwrap_err();
    assert!(matches!(error, TurnError::Damaged { index: 2, .. }), "{error}");
    assert!(lab.turns.history(&talk.session).await.is_err());
    let imported = History::new(vec![Message::user("What was I?")]);
    lab.turns.set_history(&talk.session, &imported).await.unwrap();
    // Without a message, the model answers the last one of the conversation.
    let turn = talk.try_begin(NewTurn::default()).await.unwrap();
    assert_eq!(ended(&turn).await.text(), "echo: What was I?");
    let nothing_said = talk.try_begin(NewTurn::default()).await.unwrap_err();
    assert_eq!(nothing_said, TurnError::NothingSaid);
    lab.is_clean();
    lab.end().await;
}

#[tokio::test]
async fn a_turn_that_is_refused_stores_nothing() {
    let lab = Lab::open().await;
    let talk = lab.talk(OPENAI).await;
    let of = |provider: &str| NewTurn { provider: Some(provider.into()), ..said("x") };
    for (wanted, message) in [
        (said(" \n\t"), "a turn needs a message: `message` is empty"),
        (of("nobody"), "there is no provider `nobody`"),
        (NewTurn { id: Some("a b".into()), ..said("x") }, "'a b' is not a valid turn id"),
        (NewTurn { id: Some("x".repeat(49)), ..said("x") }, "is not a valid turn id"),
        (NewTurn { max_rounds: Some(0), ..said("x") }, "`max_rounds` must be from 1 to 1000"),
        (NewTurn { top_p: Some(1.5), ..said("x") }, "`top_p` must be from 0 to 1"),
        (
            NewTurn { max_output_tokens: Some(0), ..said("x") },
            "`max_output_tokens` must be at least 1",
        ),
        (
            NewTurn { max_tokens_total: Some(0), ..said("x") },
            "`max_tokens_total` must be at least 1",
        ),
    ] {
        let error = talk.try_begin(wanted).await.unwrap_err();
        assert!(error.to_string().contains(message), "{error}");
        assert_eq!(error.kind(), "bad_request", "{error}");
        assert!(lab.turns.of(&talk.session.id).is_empty(), "{error}");
        assert_eq!(talk.history().await, [], "{error}");
    }
    assert_eq!(lab.fake.answers(OPENAI).len(), 0);
    lab.end().await;
}
