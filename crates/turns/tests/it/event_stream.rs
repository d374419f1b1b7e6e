//! The recorded events of a turn: complete for every reader, from any position.

use std::sync::Arc;
use std::time::Duration;

use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use switchboard_chat::TurnStatus;
use switchboard_test_support::model_backends::{Account, Step};
use switchboard_turns::{LiveTurn, Recorded};

use crate::lab::{Lab, PATIENCE, count, ended};

/// Reads a turn to its end in pieces of at least one event, as a client that reconnects after each.
async fn read_in_pieces(turn: &LiveTurn) -> (Vec<Recorded>, usize) {
    let (mut all, mut pieces, mut told) = (Vec::<Recorded>::new(), 0, turn.follow());
    let reading = async {
        while all.last().is_none_or(|event| event.name != "done") {
            told.borrow_and_update();
            let new = turn.events_after(all.last().map_or(0, |event| event.id));
            if new.is_empty() {
                told.changed().await.unwrap();
            } else {
                pieces += 1;
                all.extend(new);
            }
        }
    };
    tokio::time::timeout(PATIENCE, reading).await.unwrap();
    (all, pieces)
}

#[tokio::test]
async fn a_reader_that_comes_back_with_the_last_id_misses_nothing() {
    let lab = Lab::open().await;
    let pace = Duration::from_millis(10);
    for account in Account::ALL {
        let talk = lab.talk(account).await;
        let call = Step::text("one two three four five").call("shop__find", json!({"n": 1}));
        let last = Step::text("six seven eight nine ten");
        lab.fake.script(account.backend, [call.pace(pace), last.pace(pace)]);
        let turn = talk.begin("go").await;
        let (read, pieces) = read_in_pieces(&turn).await;
        let end = ended(&turn).await;
        assert!(pieces > 2, "{}: all came at once", account.name);
        assert_eq!(read, turn.events_after(0), "{}", account.name);
        assert_eq!((end.status, &*end.text()), (TurnStatus::Completed, "six seven eight nine ten"));
        assert_eq!(turn.events_after(read.len() as u64), []);
        assert_eq!(turn.events_after(u64::MAX), [], "{}", account.name);
        lab.is_clean();
    }
    lab.end().await;
}

#[tokio::test]
async fn events_and_the_result_of_a_turn_tell_the_same() {
    let lab = Lab::open().await;
    for account in Account::ALL {
        let talk = lab.talk(account).await;
        let turn = talk.begin("think\ncall shop__find {\"n\": 1}").await;
        let end = ended(&turn).await;
        let events: Vec<Value> = turn.events_after(0).iter().map(|it| read(&it.json)).collect();
        let done = events.last().unwrap();
        assert_eq!(done["status"], end.status.as_str());
        assert_eq!((&done["usage"], &done["messages"]), (&json!(end.usage), &json!(4)));
        let last = events.iter().rposition(|event| event["type"] == "started").unwrap();
        let said = events[last..].iter().filter(|event| event["type"] == "content");
        let said: String = said.map(|event| event["delta"].as_str().unwrap()).collect();
        assert_eq!(said, end.text(), "{}", account.name);
        for (name, expected) in [("started", 2), ("usage", 2), ("tool_call", 1), ("tool_result", 1)]
        {
            assert_eq!(count(&turn, name), expected, "{}: {name}", account.name);
        }
        assert_eq!(end.messages, talk.history().await, "{}", account.name);
        let kept = lab.turns.of(&talk.session.id);
        assert!(matches!(&*kept, [one] if Arc::ptr_eq(one, &turn)), "{kept:?}");
        lab.is_clean();
    }
    lab.end().await;
}

fn read(json: &[u8]) -> Value {
    serde_json::from_slice(json).unwrap()
}
