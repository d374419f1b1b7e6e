//! An agent whose model is the board: it has its own tools, and those of the session beside them.

use serde_json::{Value, json};
use switchboard_test_support::model_backends::{DrivenModel, ModelTurn, Step};

use super::conversation::Conversation;
use super::program::{Agent, Link};
use super::{Home, dynamic, tools, upstream};

const NOTE: &str = "the kettle is blue";

/// The tools of the session, as the model is shown them.
const OURS: [&str; 3] = ["demo__echo", "demo__refuse", "demo__picture"];

async fn an_agent_has_its_own_tools_and_those_of_the_session(agent: Agent) {
    let server = upstream(tools()).await;
    let model = DrivenModel::start().await;
    let (path, kind) = agent.model_at_board();
    let base = match agent {
        Agent::Codex => format!("{}/v1", model.root_url()),
        Agent::Claude | Agent::Gemini => model.root_url(),
    };
    let home = Home::new(format!(
        "switchboard:\n  providers:\n    - {{name: test, kind: {kind}, base_url: '{base}', api_key: secret}}\n  \
         toolbox:\n    mcps:\n      - {}\n",
        dynamic("demo", &server.url())
    ));
    let note = home.path().join("agent/work/note.txt");
    std::fs::create_dir_all(note.parent().unwrap()).unwrap();
    std::fs::write(&note, NOTE).unwrap();
    let serve = home.serve().await;
    let address = serve.at(path);
    let mut talk =
        Conversation::with_model(agent, &home, &Link::AsModel, model, &address).beside(serve);

    let first = talk.turn().await;
    let (reader, file) = agent.reader(&note);
    let (own, ours) = first.tools.split_at(first.tools.len().saturating_sub(OURS.len()));
    assert_eq!(ours, OURS, "{:?}", first.tools);
    assert!(own.iter().any(|tool| tool == reader), "{:?}", first.tools);
    let (tools, asked) = declared_and_said(agent, &first);

    // A round of the session's tools only, which the agent does not see.
    first.answer(Step::new().thinking("hm").call("demo__echo", json!({"text": "unseen"})));
    let second = talk.turn().await;
    assert!(!second.result().is_error, "{:?}", second.results);
    assert_eq!(server.stats().total_calls(), 1);
    let (same_tools, went_on) = declared_and_said(agent, &second);
    assert_eq!(same_tools, tools);
    assert_eq!(went_on[..asked.len()], asked);
    assert!(is_told(&went_on[asked.len()..], "unseen"), "{went_on:#?}");
    // Both in one round.
    let both = Step::new().call(reader, file).call("demo__echo", json!({"text": "beside"}));
    second.answer(both);
    let third = talk.turn().await;
    assert_eq!(third.results.len(), 2, "{:#?}", third.results);
    assert_eq!(server.stats().total_calls(), 2);
    // The round that the agent did not see is there again, and nothing before it has changed.
    let (same_tools, later) = declared_and_said(agent, &third);
    assert_eq!(same_tools, tools);
    assert_eq!(later[..went_on.len()], went_on);
    for word in [NOTE, "beside"] {
        assert!(is_told(&later[went_on.len()..], word), "{word}: {later:#?}");
    }

    talk.finish(third).await;
    assert_eq!(server.stats().total_calls(), 2);
}

fn is_told(said: &[Value], word: &str) -> bool {
    said.iter().any(|part| part.to_string().contains(word))
}

/// The declared tools and the conversation of a request, without the marks by which an agent tells what is to be cached.
fn declared_and_said(agent: Agent, turn: &ModelTurn) -> (Value, Vec<Value>) {
    let name = match agent {
        Agent::Codex => "input",
        Agent::Claude => "messages",
        Agent::Gemini => "contents",
    };
    let mut body = turn.body.clone();
    without_marks(&mut body);
    let said = body[name].as_array().unwrap().clone();
    (body["tools"].take(), said)
}

fn without_marks(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.remove("cache_control");
            // A text has to be a block where it has a mark.
            if let Some(text @ Value::String(_)) = members.get_mut("content") {
                *text = json!([{"type": "text", "text": text.take()}]);
            }
            members.values_mut().for_each(without_marks);
        }
        Value::Array(items) => items.iter_mut().for_each(without_marks),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[tokio::test]
async fn codex_has_its_own_tools_and_those_of_the_session() {
    an_agent_has_its_own_tools_and_those_of_the_session(Agent::Codex).await;
}

#[tokio::test]
async fn claude_code_has_its_own_tools_and_those_of_the_session() {
    an_agent_has_its_own_tools_and_those_of_the_session(Agent::Claude).await;
}

#[tokio::test]
async fn gemini_cli_has_its_own_tools_and_those_of_the_session() {
    an_agent_has_its_own_tools_and_those_of_the_session(Agent::Gemini).await;
}
