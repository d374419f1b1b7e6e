//! Random conversations as JSON: nearly valid ones, and ones with arbitrary values.

use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

/// Call ids; some occur twice, and some are invalid for every provider.
const IDS: [&str; 8] = ["c1", "c2", "c3", "c4", "call with blanks", "é", "", "toolu_1"];
const NAMES: [&str; 5] = [
    "find",
    "drop",
    "no.such tool!",
    "",
    "a_name_that_is_longer_than_any_provider_takes_it_and_then_some_more_of_it",
];
const KINDS: [&str; 6] = ["openai", "chatgpt", "openai-chat", "anthropic", "gemini", "code-assist"];

/// Arbitrary JSON of limited depth.
pub(crate) fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        // Numbers that survive a round trip: `serde_json` may lose the last bit of others.
        any::<i32>().prop_map(|number| json!(f64::from(number) / 2.0)),
        "[a-zé \"\\\\\n]{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::vec(("[a-z _]{0,6}", inner), 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn part() -> impl Strategy<Value = Value> {
    let media = select(&["image/png", "image/tiff", "text/plain", "application/pdf", "", "x"][..]);
    let place = prop_oneof![
        Just(("data", "aGVsbG8=")),
        Just(("data", "not base64!")),
        Just(("url", "https://example.com/a.png")),
        Just(("url", "file:///etc/passwd")),
    ];
    prop_oneof![
        4 => "[ a-z\n]{0,10}".prop_map(|text| json!({"type": "text", "text": text})),
        1 => (media, place, any::<bool>()).prop_map(|(media, (key, place), is_image)| {
            json!({"type": if is_image { "image" } else { "file" }, "media_type": media, key: place})
        }),
    ]
}

fn parts() -> impl Strategy<Value = Vec<Value>> {
    proptest::collection::vec(part(), 0..4)
}

/// The source of a reply is never the requested one, so opaque data is not sent back: it cannot be generated.
fn replier() -> impl Strategy<Value = Value> {
    let known = select(&KINDS[..])
        .prop_map(|kind| json!({"kind": kind, "provider": "other", "model": "m"}));
    prop_oneof![Just(Value::Null), known]
}

fn call() -> impl Strategy<Value = Value> {
    let arguments = prop_oneof![4 => Just(json!({"a b": "x", "n": 1})), 1 => any_json()];
    let unreadable = proptest::option::weighted(0.1, Just("{\"a\":"));
    (select(&IDS[..]), select(&NAMES[..]), arguments, unreadable).prop_map(
        |(id, name, arguments, unreadable)| {
            json!({"type": "tool_call", "id": id, "name": name, "arguments": arguments, "unreadable": unreadable})
        },
    )
}

/// A reply and its results, some of them missing or misplaced.
fn round() -> impl Strategy<Value = Vec<Value>> {
    let block = prop_oneof![
        2 => "[ a-z\n]{0,8}".prop_map(|text| json!({"type": "text", "text": text})),
        1 => ("[ a-z]{0,8}", proptest::option::of(any_json()))
            .prop_map(|(text, opaque)| json!({"type": "reasoning", "text": text, "opaque": opaque})),
        3 => call(),
    ];
    let results =
        proptest::collection::vec((parts(), any::<bool>(), proptest::option::of(any_json())), 4);
    let blocks = proptest::collection::vec(block, 0..4);
    (blocks, replier(), results, 0_usize..12).prop_map(|(blocks, source, results, missing)| {
        let calls: Vec<Value> =
            blocks.iter().filter(|block| block["type"] == "tool_call").cloned().collect();
        let mut round = vec![json!({"role": "assistant", "content": blocks, "source": source})];
        for (number, (call, (content, is_error, structured))) in
            calls.iter().zip(results).enumerate()
        {
            if number != missing {
                round.push(json!({
                    "role": "tool", "call": call["id"], "name": call["name"], "content": content,
                    "is_error": is_error, "structured": structured,
                }));
            }
        }
        round
    })
}

/// Messages that are mostly a valid conversation.
pub(crate) fn messages() -> impl Strategy<Value = Vec<Value>> {
    let said = |role: &'static str| {
        parts().prop_map(move |content| vec![json!({"role": role, "content": content})])
    };
    let stray = (select(&IDS[..]), parts()).prop_map(|(call, content)| {
        vec![json!({"role": "tool", "call": call, "name": "find", "content": content})]
    });
    let some = prop_oneof![
        8 => said("user"),
        2 => said("system"),
        8 => round(),
        1 => stray,
    ];
    proptest::collection::vec(some, 0..7).prop_map(|some| some.concat())
}

/// One message, for an edit.
pub(crate) fn message() -> impl Strategy<Value = Value> {
    messages().prop_filter_map("no message", |messages| messages.into_iter().next())
}
