//! Turns of models without native tool calls: with real servers, at every backend, and when a backend refuses tools.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use switchboard_chat::Message;
use switchboard_test_support::model_backends::{Backend, FakeBackends, Step};
use switchboard_test_support::peers;

use crate::chat::Api;
use crate::lab::{ACCOUNTS, ANTHROPIC, CHAT, Lab, Plan, SECRET, assert_clean};
use crate::support::{Home, stdio, with};
use crate::talk::Talk;

/// The texts that a text-only model was sent: role and text of each message of a Chat Completions request.
fn texts(body: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let messages = body["messages"].as_array().into_iter().flatten();
    messages.map(|message| (text(&message["role"]), text(&message["content"]))).collect()
}

/// A model that knows nothing but its prompt. It solves a task in three steps: it reads a number from a file, adds to it,
/// and stores the sum. On the way it forgets the action once and names an argument wrongly once, and it corrects itself
/// only if the observation says how.
fn small_model(body: &Value, file: &str) -> Step {
    let texts = texts(body);
    let prompt = &texts[0].1;
    let (_, last) = texts.last().unwrap();
    let knows = |tool: &str| prompt.contains(&format!("- {tool}"));
    assert!(knows("files__read_text_file") && knows("all__get-sum"), "{prompt}");
    let rounds = texts.iter().filter(|(role, _)| role == "assistant").count();
    let say = |text: String| Step::text(text).split(11);
    let Some(observed) = last.strip_prefix("Observation: ") else {
        return say("Thought: I have to read the file first.".into());
    };
    if observed.starts_with("Error: your reply has a thought") && observed.contains("`Action:`") {
        return say(format!("Action: files__read_text_file\nArgs: {{\"file\": \"{file}\"}}"));
    }
    if observed.starts_with("Error:") && observed.contains("path (string, required)") {
        return say(format!(
            "Thought: it is called path.\n**Action:** `files__read_text_file`\n**Args:**\n```json\n{{\n  \"path\": \"{file}\"\n}}\n```\nObservation: 99\nFinal Answer: 99"
        ));
    }
    if rounds == 3 {
        let number: u32 = text_of(observed).trim().parse().unwrap();
        return say(format!(
            "Thought: I add.\nAction: all__get-sum\nArgs: {{\"a\": {number}, \"b\": 2}}"
        ));
    }
    if rounds == 4 {
        assert!(observed.contains("42"), "{observed}");
        return say(
            "Action: memory__create_entities\nAction Input: {\"entities\": [{\"name\": \"sum\", \"entityType\": \"number\", \"observations\": [\"42\"]}]}".into(),
        );
    }
    say("Thought: all is done.\nFinal Answer: The sum is **42**.".into())
}

/// The text of a result, which may be structured.
fn text_of(observed: &str) -> String {
    let parsed: Option<Value> = serde_json::from_str(observed).ok();
    let content = parsed.and_then(|value| value["content"].as_str().map(str::to_owned));
    content.unwrap_or_else(|| observed.to_owned())
}

#[tokio::test]
async fn a_text_only_model_solves_a_task_in_three_steps_with_real_servers() {
    let fake = FakeBackends::start().await;
    let home = Home::empty();
    let place = home.path().join("files");
    std::fs::create_dir(&place).unwrap();
    std::fs::write(place.join("number.txt"), "40").unwrap();
    let memory = home.path().join("memory.json");
    let servers = [
        stdio("files", &peers::npm_bin("mcp-server-filesystem"), &[place.to_str().unwrap()]),
        stdio("all", &peers::npm_bin("mcp-server-everything"), &["stdio"]),
        with(
            &stdio("memory", &peers::npm_bin("mcp-server-memory"), &[]),
            &format!("env: {{MEMORY_FILE_PATH: {memory:?}}}"),
        ),
    ];
    let provider = CHAT.entry("small", &fake, "native_tools: false, instructions: Be brief.");
    home.rewrite(format!(
        "switchboard:\n  providers:\n    - {provider}\n  toolbox:\n    mcps:\n      - {}\n",
        servers.join("\n      - ")
    ));
    let serve = home.serve().await;
    let file = place.join("number.txt").to_str().unwrap().to_owned();
    fake.decide(Backend::Chat, move |body| small_model(body, &file));

    let talk = Talk { chat: Api::of(&serve).new_chat(json!({})).await };
    let heard =
        talk.hear(json!({"message": "Add 2 to the number in number.txt and store it."})).await;
    assert_eq!(heard.status(), "completed", "{heard:#?}");
    assert_eq!(heard.text(), "The sum is **42**.");
    assert!(std::fs::read_to_string(&memory).unwrap().contains("42"));

    let named = |name: &'static str| -> Vec<Value> { heard.all(name).cloned().collect() };
    let thoughts: Vec<_> = named("thought").iter().map(|event| event["text"].clone()).collect();
    assert_eq!(
        thoughts,
        ["I have to read the file first.", "it is called path.", "I add.", "all is done."]
    );
    let actions: Vec<_> = named("action").iter().map(|event| event["name"].clone()).collect();
    assert_eq!(
        actions,
        [
            "files__read_text_file",
            "files__read_text_file",
            "all__get-sum",
            "memory__create_entities"
        ]
    );
    let observations = named("observation");
    assert_eq!(observations.len(), 5, "one for each action and one for the reply without one");
    assert_eq!(observations.iter().filter(|event| event["is_error"] == true).count(), 2);
    assert_eq!(named("answer")[0]["text"], "The sum is **42**.");
    assert_eq!(named("started")[0]["strategy"], "react");

    let bodies = fake.answers(CHAT);
    assert!(bodies.iter().all(|request| request.tools.is_empty()), "no tools are declared");
    for request in &bodies {
        let texts = texts(&request.body);
        assert!(texts[0].1.starts_with("Be brief.\n\nYou can use tools."), "{}", texts[0].1);
        let roles: Vec<_> = texts.iter().skip(1).map(|(role, _)| role.as_str()).collect();
        let in_turns = roles.iter().enumerate();
        assert!(
            in_turns.clone().all(|(at, role)| *role == ["user", "assistant"][at % 2]),
            "{roles:?}"
        );
    }
    let prompts: Vec<_> = bodies.iter().map(|it| texts(&it.body)[0].1.clone()).collect();
    assert!(prompts.iter().all(|prompt| *prompt == prompts[0]), "the prompt does not change");

    // What is stored is what a native turn stores.
    let messages = talk.history().await;
    let calls = talk.call_ids().await;
    assert_eq!(calls.len(), 4);
    assert!(
        matches!(messages.last(), Some(Message::Assistant(reply)) if reply.text() == "The sum is **42**.")
    );
    assert_clean(&fake, &serve);
}

#[tokio::test]
async fn react_turns_work_at_every_backend_and_native_ones_follow_in_the_same_session() {
    let lab = Lab::open().await;
    for account in ACCOUNTS {
        let talk = lab.talk(json!({"provider": account.name, "strategy": "react"})).await;
        assert_eq!(talk.chat.get("").await["strategy"], "react");
        lab.fake.script(
            account.backend,
            [
                Step::text("Thought: I look.\nAction: shop__find\nArgs: {\"n\": 7}"),
                Step::text("Thought: found.\nFinal Answer: seven"),
            ],
        );
        let heard = talk.hear(json!({"message": "find it"})).await;
        assert_eq!((heard.status(), heard.text().as_str()), ("completed", "seven"), "{heard:#?}");
        assert_eq!((heard.count("action"), heard.count("observation")), (1, 1), "{}", account.name);
        assert!(lab.shown(account).iter().rev().take(2).all(Vec::is_empty), "{}", account.name);
        let text = talk
            .turn(json!({"message": "call shop__price {\"n\": 8}", "strategy": "native"}))
            .await;
        assert_eq!(text["status"], "completed", "{}: {text:#}", account.name);
        assert!(!lab.shown(account).last().unwrap().is_empty(), "{}", account.name);
        let again = account.other();
        talk.say(again.name, "hello").await;
        lab.is_clean();
    }
}

#[tokio::test]
async fn a_model_whose_backend_refuses_tools_goes_on_with_react_and_is_remembered() {
    let lab = Lab::open().await;
    let refusal = json!({"error": {"message": "registry.ollama.ai/library/llama does not support tools", "type": "api_error"}});
    let refused = || Step::new().status(400, &[], refusal.to_string());
    lab.fake.script(CHAT.backend, [refused(), Step::text("Final Answer: hello")]);
    let talk = lab.talk(json!({"provider": CHAT.name})).await;
    let heard = talk.hear(json!({"message": "hi"})).await;
    assert_eq!((heard.status(), heard.text().as_str()), ("completed", "hello"), "{heard:#?}");
    let strategy = heard.all("strategy").next().unwrap();
    assert_eq!(strategy["strategy"], "react");
    assert!(strategy["reason"].as_str().unwrap().contains("does not support tools"), "{strategy}");
    lab.serve.said("native_tools: false").await; // how to avoid it

    let before = lab.bodies(CHAT).len();
    lab.fake.script(CHAT.backend, [Step::text("Final Answer: again")]);
    assert_eq!(talk.say(CHAT.name, "hi").await, "again");
    assert_eq!(lab.bodies(CHAT).len(), before + 1, "tools are not tried again");

    // A turn that insists on native tool calls gets the refusal.
    lab.fake.script(CHAT.backend, [refused()]);
    let turn = talk.turn(json!({"message": "hi", "strategy": "native"})).await;
    assert_eq!(turn["status"], "failed", "{turn:#}");
    assert!(turn["error"]["message"].as_str().unwrap().contains("does not support tools"));
    assert_eq!(
        (&turn["error"]["kind"], &turn["error"]["blame"]),
        (&json!("no_native_tools"), &json!("you"))
    );
    assert!(turn["error"]["advice"].as_str().unwrap().contains("`strategy: react`"), "{turn}");
    assert!(!lab.serve.stderr().contains(SECRET));
}

#[tokio::test]
async fn wrong_arguments_and_unknown_tools_never_reach_a_server_and_say_how_to_do_it_right() {
    let schema = json!({"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}, "additionalProperties": false});
    let tool = switchboard_test_support::Tool::echo("find").schema(schema);
    let lab = Lab::with(Plan { tools: vec![tool], ..Plan::default() }).await;
    let talk = lab.talk(json!({"provider": CHAT.name, "strategy": "react"})).await;
    lab.fake.script(
        CHAT.backend,
        [
            Step::text("Action: look\nArgs: {}"),
            Step::text("Action: shop__find\nArgs: {\"m\": 1}"),
            Step::text("Action: shop__find\nArgs: {'n': 1}"),
            Step::text("Action: shop__find\nArgs: {\"n\": 1}"),
            Step::text("Final Answer: done"),
        ],
    );
    let heard = talk.hear(json!({"message": "go"})).await;
    assert_eq!((heard.status(), heard.text().as_str()), ("completed", "done"), "{heard:#?}");
    assert_eq!(lab.calls(), 1, "only the good call reached the server");
    let results = talk.results().await;
    let check = |at: usize, part: &str| assert!(results[at].0.contains(part), "{:?}", results[at]);
    check(0, "there is no tool 'look' here");
    check(0, "Use one of these, by its exact name: shop__find.");
    check(1, "unknown argument `m`");
    check(1, "The arguments of shop__find are: n (integer, required).");
    check(2, "not a JSON object");
    assert!(!results[3].1, "{:?}", results[3]);
    lab.is_clean();
}

#[tokio::test]
async fn replies_without_use_count_as_rounds() {
    let lab = Lab::open().await;
    let talk = lab.talk(json!({"provider": ANTHROPIC.name, "strategy": "react"})).await;
    lab.fake.always(ANTHROPIC.backend, Step::text("Thought: hm"));
    let turn = talk.turn(json!({"message": "go", "max_rounds": 3})).await;
    assert_eq!(turn["status"], "limited", "{turn:#}");
    assert_eq!(lab.bodies(ANTHROPIC).len(), 4);
    lab.is_clean();
}
