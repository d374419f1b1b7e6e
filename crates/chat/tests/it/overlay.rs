//! Edits that apply to one turn only.

use pretty_assertions::assert_eq;
use switchboard_chat::{Edit, Message, Overlay, check};

use crate::{asking, result, said};

fn conversation() -> Vec<Message> {
    vec![
        Message::user("one"),
        asking(&["a", "b"]),
        result("a"),
        result("b"),
        said("done"),
        Message::user("two"),
    ]
}

fn insert(index: i64) -> Edit {
    Edit::InsertBefore { index, message: Message::user("note") }
}

fn delete(index: i64) -> Edit {
    Edit::DeleteAt { index }
}

#[track_caller]
fn refused(edits: Vec<Edit>, expected: &str) {
    let error = Overlay::new(&conversation(), edits).err();
    assert_eq!(error.map(|error| error.to_string()).as_deref(), Some(expected));
}

#[test]
fn changes_keep_their_places_and_touch_nothing_else() {
    let before = conversation();
    let edits = vec![
        Edit::InsertAfter { index: -1, message: Message::user("after") },
        insert(0),
        Edit::ReplaceAt { index: 4, message: said("well done") },
    ];
    let overlay = Overlay::new(&before, edits).unwrap();
    let view = overlay.lay_over(&before);
    let mut expected = conversation();
    expected[4] = said("well done");
    expected.insert(0, Message::user("note"));
    expected.push(Message::user("after"));
    assert_eq!(view, expected);

    let mut longer = before.clone();
    longer.push(asking(&["z"]));
    longer.push(result("z"));
    let view = overlay.lay_over(&longer);
    assert_eq!(view.len(), expected.len() + 2, "what comes later comes after them");
    check(&view).unwrap();
}

#[test]
fn nothing_comes_between_calls_and_their_results() {
    let together = "; a call and its results stay together, with nothing between them";
    for (edit, index) in [(insert(2), 2), (insert(3), 3)] {
        let id = if index == 2 { "a" } else { "b" };
        let reason = format!(
            "edits[0]: messages[{index}] comes between the calls of messages[1] and their results: `{id}` has none yet{together}"
        );
        refused(vec![edit], &reason);
    }
    refused(
        vec![delete(3)],
        &format!(
            "edits[0]: messages[3] comes between the calls of messages[1] and their results: `b` has none yet{together}"
        ),
    );
    refused(
        vec![insert(5), delete(1)],
        &format!(
            "edits[1]: messages[1] is the result of `a`, but no call of that id stands right before it{together}"
        ),
    );
}

#[test]
fn places_that_are_not_there_and_empty_conversations_are_refused() {
    refused(vec![insert(6)], "edits[0]: there is no message 6; the conversation has 6");
    refused(
        vec![insert(0), delete(-7)],
        "edits[1]: there is no message -7; the conversation has 6",
    );
    refused(vec![delete(0), delete(-6)], "edits[1]: message -6 is deleted or replaced twice");
    refused(vec![delete(0), delete(5)], "the conversation would have no message of a user");
    refused(
        vec![Edit::ReplaceAt { index: 5, message: Message::system("be kind") }],
        "the conversation would end with an answer; it must end with what the model is to answer",
    );
    refused((0..257).map(|_| insert(0)).collect(), "there are 257 edits; the maximum is 256");
    refused(
        vec![delete(5)],
        "the conversation would end with an answer; it must end with what the model is to answer",
    );
}
