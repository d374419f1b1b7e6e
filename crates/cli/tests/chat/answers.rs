//! The output and the exit codes of a chat.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::program::{Program, session_of};
use crate::support::{Home, assert_says};

const CALL: &str = r#"/call shop__find {"text": "tea"}"#;

/// Without how long the turn took.
fn without_time(text: &str) -> String {
    let (head, _) = text.rsplit_once(", ").unwrap();
    format!("{head}, SECONDS]")
}

#[tokio::test]
async fn the_answer_alone_is_on_standard_output() {
    for program in Program::both().await {
        let said = program.once(&format!("/say Let me see.\n{CALL}\n/think hm")).expect(0);
        let way = program.way();
        assert_eq!(said.stdout, "Let me see.\nshop__find answered: {\"text\":\"tea\"}\n", "{way}");
        let (beside, _) = said.stderr.split_once("[session ").unwrap();
        insta::allow_duplicates! {
            assert_says!(without_time(beside), @r#"
            (thinking) hm
            -> shop__find {"text":"tea"}
            <- shop__find ok in MS: {"text":"tea"}
            [demo demo: 26 tokens in, 10 out, SECONDS]
            "#);
        }
    }
}

#[tokio::test]
async fn exit_codes_say_how_it_ended() {
    for program in Program::both().await {
        for (words, code, text) in [
            (&["-m", "hello"][..], 0, "you said “hello”"),
            (&["--message", "hello"], 0, "you said “hello”"),
            (&["--once", "/error quota"], 3, "hint: the account has used up its quota"),
            (&["-m", "/loop shop__find {\"text\": \"x\"}", "--max-rounds", "2"], 3, "hint: "),
            (&["-m", "hello", "--provider", "nobody"], 2, "there is no provider 'nobody'"),
            (&["-m", "hello", "--provider", "openai"], 2, "no model is named"),
            (&["-m", "hello", "--session", "nobodys"], 2, "nobodys"),
            (&["-m", "hello", "--max-rounds", "0"], 2, "--max-rounds"),
        ] {
            let said = program.run(&[&["chat"], words].concat());
            let way = program.way();
            assert_eq!(said.code, Some(code), "{way} {words:?}: {}", said.all());
            assert!(said.all().contains(text), "{way} {words:?}: {}", said.all());
        }
        let sessions = program.run(&["session", "list", "--json"]).expect(0).json();
        let count = sessions["sessions"].as_array().unwrap().len();
        assert_eq!(count, 4, "a chat in which nothing was said leaves no session");
    }
}

#[test]
fn nobody_who_could_answer_is_said_with_the_way_out() {
    let home = Home::empty();
    let said = home.run(&["chat", "-m", "hello", "--url", "http://127.0.0.1:1"]).expect(4);
    assert!(said.stderr.contains("is `switchboard serve` running there?"), "{}", said.stderr);
}

#[tokio::test]
async fn each_line_of_a_pipe_is_a_message_or_a_command() {
    for program in Program::both().await {
        let lines = "/say a\\\n/say b\n\n//say c\n/nonsense\n/toolset off shop\n/tools\n/toolset off x\n\
                     /toolset on shop\n/tools\n/help\n/provider x\n/provider demo\n/say d\n/quit\n/say e\n";
        let said = program.pipe(&[], lines).expect(0);
        let way = program.way();
        let expected = "a\nb\nc\nshop__find\nshop__order\nd\n";
        assert_eq!(said.stdout, expected, "{way}: {}", said.stderr);
        for text in [
            "there is no command /nonsense; /help lists the commands, and //nonsense sends it to the model",
            "toolset shop is off, the tools are at revision 2",
            "0 tools at revision 2; toolsets: -shop (2)",
            "there is no toolset 'x'; known are shop",
            "2 tools at revision 3; toolsets: +shop (2)",
            "/provider NAME [MODEL]  ",
            "there is no provider 'x'",
            "demo answers from now on",
        ] {
            assert!(said.stderr.contains(text), "{way}: {text} is not in {}", said.stderr);
        }
        assert!(!said.all().contains('\u{1b}') && !said.stderr.contains("> "), "{}", said.all());
        let session = session_of(&said);
        let history = program.run(&["session", "history", &session]).expect(0).stdout;
        assert_eq!(history, "> /say a\n> /say b\na\nb\n> /say c\nc\n> /say d\nd\n", "{way}");
        let list = program.run(&["session", "list"]).expect(0).stdout;
        assert!(list.contains("/say a /say b"), "the title is what was said first: {list}");
    }
}

#[tokio::test]
async fn with_json_every_event_is_a_line() {
    for program in Program::both().await {
        let said = program.run(&["chat", "--json", "-m", CALL]).expect(0);
        let read = |line| serde_json::from_str::<Value>(line).unwrap();
        let events: Vec<_> = said.stdout.lines().map(read).collect();
        let kinds: Vec<_> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
        assert_eq!(kinds.first(), Some(&"session"), "{}", said.stdout);
        assert_eq!(kinds.last(), Some(&"done"), "{}", said.stdout);
        let called = events.iter().find(|event| event["type"] == "tool_call").unwrap();
        assert_eq!(called["arguments"], json!({"text": "tea"}));
        assert_eq!(said.stderr, "");

        let refused = program.pipe(&["--json", "--provider", "openai"], "hello\n").expect(2);
        let last = refused.stdout.lines().last().unwrap();
        assert_eq!(read(last)["error"]["kind"], "bad_request", "{}", refused.stdout);
    }
}

#[tokio::test]
async fn what_was_void_is_marked_where_it_stood() {
    let program = Program::alone().await;
    let said = program.once("/say So\n/flaky 1").expect(0);
    assert_eq!(
        said.stdout,
        "So\n[the answer above is discarded]\nSo\nIt worked after 1 failures.\n"
    );
    assert!(said.stderr.contains("asking again in "), "{}", said.stderr);
}

#[tokio::test]
async fn the_message_can_be_piped_whole() {
    let program = Program::alone().await;
    let said = program.pipe(&["-m", "-"], "/say one\n/say two\n").expect(0);
    assert_eq!(said.stdout, "one\ntwo\n");
}
