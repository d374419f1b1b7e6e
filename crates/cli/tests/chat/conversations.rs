//! Stored conversations, their export and import, and the choice of the provider.

use pretty_assertions::assert_eq;
use serde_json::Value;

use crate::program::{Program, session_of};

const TWO_PROVIDERS: &str = "  providers:\n    \
    - {name: first, kind: demo}\n    \
    - {name: second, kind: demo}\n    \
    - {name: mine, kind: openai-chat, base_url: \"http://127.0.0.1:9/v1\", api_key: s3cret-key, model: m}\n";

#[tokio::test]
async fn a_conversation_goes_on_after_a_restart() {
    for mut program in Program::both().await {
        let session = session_of(&program.once("/say one").expect(0));
        if let Some(mut serve) = program.serve.take() {
            serve.signal("TERM");
            serve.ended().await;
            program = program.served().await;
        }
        let said = program.pipe(&["--session", &session], "/say two\n/history\n").expect(0);
        let way = program.way();
        assert_eq!(said.stdout, "two\n> /say one\none\n> /say two\ntwo\n", "{way}");
        assert_eq!(session_of(&said), session, "{way}");
    }
}

#[tokio::test]
async fn a_conversation_is_written_to_a_file_and_read_again() {
    for program in Program::both().await {
        let said = program.once(r#"/call shop__find {"text": "tea"}"#).expect(0);
        let session = session_of(&said);
        let file = program.home.path().join("talk.json");
        let file = file.to_str().unwrap();
        program.run(&["session", "history", &session, "--export", file]).expect(0);
        let printed = program.run(&["session", "history", &session, "--export", "-"]).expect(0);
        let written = std::fs::read_to_string(file).unwrap();
        assert_eq!(printed.stdout, written, "{}", program.way());
        program.run(&["session", "new", "other"]).expect(0);
        program.run(&["session", "history", "other", "--import", file]).expect(0);
        let other = program.run(&["session", "history", "other", "--json"]).expect(0).json();
        assert_eq!(other, serde_json::from_str::<Value>(&written).unwrap(), "{}", program.way());
        assert_eq!(other["messages"].as_array().unwrap().len(), 4);

        let bad = program.home.file("bad.json", r#"{"version": 7, "messages": []}"#);
        let bad = bad.to_str().unwrap();
        let refused = program.run(&["session", "history", "other", "--import", bad]).expect(2);
        assert!(refused.stderr.contains("version 7"), "{}", refused.stderr);
        program.run(&["session", "history", "other", "--import", "nowhere"]).expect(2);
        let kept = program.run(&["session", "history", "other", "--json"]).expect(0).json();
        assert_eq!(kept, other, "what cannot be read changes nothing");
        program.run(&["session", "history", "nobodys"]).expect(2);
        let view = program.run(&["session", "show", &session, "--json"]).expect(0).json();
        assert_eq!(view["tools_revision"], 1, "who reads a conversation changes no tools");
    }
}

#[tokio::test]
async fn another_provider_answers_from_then_on() {
    let program = Program::with(TWO_PROVIDERS).await;
    let said = program.pipe(&[], "/say a\n/provider second\n/say b\n/provider openai\n").expect(0);
    let session = session_of(&said);
    assert!(said.stderr.contains("[first demo: ") && said.stderr.contains("[second demo: "));
    let refused = program.run(&["chat", "--session", &session, "-m", "/say c"]).expect(2);
    assert!(
        refused.stderr.contains("no model is named"),
        "the session kept it: {}",
        refused.stderr
    );
    let words = ["chat", "--session", &session, "--provider", "first", "-m", "/say c"];
    program.run(&words).expect(0);
    let history = program.run(&["session", "history", &session, "--json"]).expect(0).json();
    let replies = history["messages"].as_array().unwrap().iter();
    let sources: Vec<_> =
        replies.filter_map(|reply| reply["source"]["provider"].as_str()).collect();
    assert_eq!(sources, ["first", "second", "first"]);
}

#[tokio::test]
async fn providers_are_listed_without_their_keys() {
    let alone = Program::with(TWO_PROVIDERS).await;
    let served = Program::with(TWO_PROVIDERS).await.served().await;
    let lists = [&alone, &served].map(|program| {
        let said = program.run(&["provider", "list"]).expect(0);
        assert!(!said.all().contains("s3cret"), "{}", said.all());
        said.stdout
    });
    assert_eq!(lists[0], lists[1]);
    insta::assert_snapshot!(lists[0], @"
    PROVIDER   KIND         MODEL  STRATEGY  CREDENTIALS  FROM           ADDRESS
    first      demo         demo   native    yes          configuration  -
    second     demo         demo   native    yes          configuration  -
    mine       openai-chat  m      native    yes          configuration  http://127.0.0.1:9/v1
    demo       demo         demo   native    yes          built-in       -
    openai     openai       -      native    no           built-in       https://api.openai.com/v1
    anthropic  anthropic    -      native    no           built-in       https://api.anthropic.com/
    gemini     gemini       -      native    no           built-in       https://generativelanguage.googleapis.com/
    ollama     openai-chat  -      native    yes          built-in       http://127.0.0.1:11434/v1
    ");
    let list = alone.run(&["provider", "list", "--json"]).expect(0).json();
    assert_eq!(list["providers"].as_array().unwrap().len(), 8);
    let doctor = alone.run(&["doctor"]).expect(0).stdout;
    assert!(doctor.contains("ok   provider mine: ready, with model m"), "{doctor}");
    assert!(!doctor.contains("s3cret"), "{doctor}");
}
