//! Random edits of random conversations are refused with a reason, or valid for every provider.

use proptest::prelude::*;
use serde_json::{Value, json};
use switchboard_chat::{Edit, History, Message, Overlay, check};

use crate::conversations::{message, messages};
use crate::{asking, config};

fn edit() -> impl Strategy<Value = Value> {
    let places = -9_i64..9;
    let of = |op: &'static str| move |(index, message): (i64, Value)| json!({"op": op, "index": index, "message": message});
    prop_oneof![
        2 => (places.clone(), message()).prop_map(of("insert_before")),
        2 => (places.clone(), message()).prop_map(of("insert_after")),
        2 => (places.clone(), message()).prop_map(of("replace_at")),
        3 => places.prop_map(|index| json!({"op": "delete_at", "index": index})),
    ]
}

proptest! {
    #![proptest_config(config())]
    #[test]
    fn edits_are_refused_or_valid_for_every_provider(
        messages in messages(),
        edits in proptest::collection::vec(edit(), 0..4),
    ) {
        let Ok(history) = History::of_value(json!({"version": 1, "messages": messages})) else { return Ok(()) };
        let Ok(edits) = serde_json::from_value::<Vec<Edit>>(Value::from(edits)) else { return Ok(()) };
        let stored = history.messages;
        match Overlay::new(&stored, edits.clone()) {
            Err(reason) => prop_assert!(!reason.to_string().is_empty()),
            Ok(overlay) => {
                prop_assert_eq!(overlay.is_empty(), edits.is_empty());
                let view = overlay.lay_over(&stored);
                prop_assert_eq!(check(&view), Ok(()));
                prop_assert!(!matches!(view.last(), Some(Message::Assistant(_))));
                asking::check(&view);
                // Messages that are added later follow all edits.
                let mut later = stored.clone();
                later.push(Message::user("more"));
                let longer = overlay.lay_over(&later);
                prop_assert_eq!(&longer[..longer.len() - 1], &view[..]);
            }
        }
    }
}
