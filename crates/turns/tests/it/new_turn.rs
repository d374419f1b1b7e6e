//! The request for a turn as JSON: what it accepts, and how it refuses the rest.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use switchboard_chat::Part;
use switchboard_turns::{NewTurn, Words};

#[track_caller]
fn check_message(message: &Value, expected: Words) {
    let read: NewTurn = serde_json::from_value(json!({ "message": message })).unwrap();
    assert_eq!(read.message, Some(expected), "{message}");
    let written = serde_json::to_value(&read).unwrap();
    assert_eq!(&written["message"], message);
}

#[test]
fn a_message_is_a_text_or_a_list_of_parts() {
    check_message(&json!("hello"), Words::Text("hello".into()));
    check_message(&json!(""), Words::Text(String::new()));
    check_message(&json!([]), Words::Parts(Vec::new()));
    let part = json!({"type": "text", "text": "hello"});
    check_message(&json!([part]), Words::Parts(vec![Part::text("hello")]));
    let read: NewTurn = serde_json::from_str(r#"{"message": null}"#).unwrap();
    assert_eq!(read, NewTurn::default());
}

#[track_caller]
fn check_refused(body: &str, expected: &str) {
    let error = serde_json::from_str::<NewTurn>(body).unwrap_err().to_string();
    assert!(error.contains(expected), "{body}: {error}");
    for word in ["untagged", " enum ", " struct ", "Words"] {
        assert!(!error.contains(word), "{body} is answered in words of the source: {error}");
    }
}

#[test]
fn a_request_that_cannot_be_read_is_refused_in_the_words_of_the_api() {
    check_refused(
        r#"{"message": 7}"#,
        "invalid type: integer `7`, expected a text or a list of parts",
    );
    check_refused(r#"{"message": {"text": "x"}}"#, "expected a text or a list of parts");
    check_refused(
        r#"{"message": [{"type": "video"}]}"#,
        "unknown variant `video`, expected one of `text`, `image`, `file`",
    );
    check_refused(r#"{"message": [{"type": "text"}]}"#, "missing field `text`");
    check_refused(r#"{"message": ["x"]}"#, "invalid type: string \"x\", expected a part such as");
    check_refused(
        r#"{"messages": "x"}"#,
        "unknown field `messages`, expected one of `id`, `message`",
    );
    check_refused(r#"{"effort": "max"}"#, "unknown variant `max`, expected one of `minimal`");
}
