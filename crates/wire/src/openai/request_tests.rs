//! Golden files of request bodies for each kind of provider, and rules that no schema states. `UPDATE_GOLDEN=1`
//! rewrites the files; `tests/openai_official.rs` validates them with OpenAI's own types.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use switchboard_chat::{
    Block, CallOrigin, FaultKind, Media, Message, Part, Place, Reply, Said, Source, Stop, ToolCall,
    ToolReturn,
};
use switchboard_model::{Effort, JsonText, ModelSettings, ProviderKind, ToolDescriptor};
use switchboard_render::{Delta, NamedTool, Provider, Rendering};

use super::{chat_request, responses_request};
use crate::{ModelRequest, ToolChange, Tools, WireRequest};

const KINDS: [ProviderKind; 3] =
    [ProviderKind::OpenAi, ProviderKind::ChatGpt, ProviderKind::OpenAiChat];

fn source(kind: ProviderKind) -> Source {
    Source {
        kind,
        provider: kind.as_str().to_owned(),
        model: "gpt-5.1".to_owned(),
        credential: None,
    }
}

fn descriptor(name: &str) -> ToolDescriptor {
    let properties = json!({"city": {"type": "string"}, "first name": {"type": "string"}});
    let schema = json!({"type": "object", "properties": properties});
    ToolDescriptor {
        description: Some(format!("Does {name}")),
        input_schema: JsonText::from(&schema),
        ..ToolDescriptor::named(name)
    }
}

fn rendering(kind: ProviderKind, names: &[&str]) -> Arc<Rendering> {
    let provider = match kind {
        ProviderKind::OpenAiChat => Provider::OpenAiChat,
        _ => Provider::OpenAi,
    };
    let tools: Vec<ToolDescriptor> = names.iter().map(|name| descriptor(name)).collect();
    let declared = tools.iter().map(|tool| NamedTool { name: &tool.name, descriptor: tool });
    Arc::new(Rendering::new(provider, declared))
}

/// The input of a request.
struct Case {
    kind: ProviderKind,
    messages: Vec<Message>,
    tools: Tools,
    settings: ModelSettings,
    session: String,
}

impl Case {
    fn new(kind: ProviderKind, messages: Vec<Message>) -> Self {
        let tools = Tools::only(rendering(kind, &["weather", "files__read"]));
        let settings = ModelSettings::default();
        Self { kind, messages, tools, settings, session: "s-1".to_owned() }
    }

    fn ask<'a>(&'a self, source: &'a Source) -> ModelRequest<'a> {
        ModelRequest {
            source,
            messages: &self.messages,
            replay: 0..self.messages.len(),
            tools: &self.tools,
            settings: &self.settings,
            stop: None,
            session: &self.session,
            turn: "t-1",
            project: None,
            is_bearer: false,
        }
    }

    fn request(&self) -> Result<WireRequest, switchboard_chat::ModelFault> {
        let source = source(self.kind);
        let ask = self.ask(&source);
        match self.kind {
            ProviderKind::OpenAiChat => chat_request(&ask),
            _ => responses_request(&ask),
        }
    }

    fn body(&self) -> Value {
        serde_json::from_slice(&self.request().unwrap().body).unwrap()
    }
}

fn call(id: &str, name: &str, arguments: Value) -> ToolCall {
    ToolCall {
        id: id.into(),
        name: name.into(),
        arguments,
        unreadable: None,
        origin: None,
        opaque: None,
    }
}

/// A call of a reply, with the provider's ids.
fn made(id: &str, there: &str, item: Option<&str>, name: &str, arguments: Value) -> Block {
    let item = item.map(str::to_owned);
    let origin = CallOrigin { id: Some(there.into()), item, arguments: None };
    Block::ToolCall(Box::new(ToolCall { origin: Some(origin), ..call(id, name, arguments) }))
}

fn thought(id: &str, seal: Option<&str>) -> Block {
    let item = json!({"type": "reasoning", "id": id, "summary": [], "encrypted_content": seal});
    Block::Reasoning { text: "hm".into(), opaque: Some(item) }
}

fn reply(source: Option<Source>, content: Vec<Block>) -> Message {
    let has_calls = content.iter().any(|block| matches!(block, Block::ToolCall(_)));
    let stop = if has_calls { Stop::ToolCalls } else { Stop::End };
    Message::Assistant(Reply { content, source, stop, ..Reply::default() })
}

fn result(call: &str, name: &str, content: Vec<Part>) -> ToolReturn {
    ToolReturn {
        call: call.into(),
        name: name.into(),
        content,
        structured: None,
        is_error: false,
        latency_ms: None,
    }
}

fn image() -> Part {
    let place = Place::Data("iVBORw0KGgo=".into());
    Part::Image(Media { media_type: "image/png".into(), place })
}

fn file(name: &str, kind: &str, place: Place) -> Part {
    Part::File { name: Some(name.into()), media: Media { media_type: kind.into(), place } }
}

fn anthropic() -> Source {
    let (provider, model) = ("anthropic".to_owned(), "claude".to_owned());
    Source { kind: ProviderKind::Anthropic, provider, model, credential: None }
}

fn own_text() -> Block {
    Block::Text {
        text: "Let me look.".into(),
        opaque: Some(json!({"id": "msg_1", "phase": "commentary"})),
    }
}

fn hello(kind: ProviderKind) -> Case {
    let messages =
        vec![Message::system("Be brief."), Message::user("Hello"), Message::user("Anybody?")];
    let settings = ModelSettings {
        instructions: Some("You help with the weather.".into()),
        max_output_tokens: Some(2048),
        temperature: Some(0.5),
        top_p: Some(0.9),
        effort: Some(Effort::Low),
        show_thinking: true,
        ..ModelSettings::default()
    };
    Case { settings, ..Case::new(kind, messages) }
}

fn single_call(kind: ProviderKind) -> Case {
    let made = made("c1", "call_abc", Some("fc_1"), "weather", json!({"city": "Graz"}));
    let answer = reply(Some(source(kind)), vec![thought("rs_1", Some("SEAL")), own_text(), made]);
    let result = ToolReturn {
        structured: Some(json!({"degrees": 21})),
        ..result("c1", "weather", vec![Part::text("21 degrees")])
    };
    Case::new(kind, vec![Message::user("Weather?"), answer, Message::Tool(result)])
}

fn parallel_calls(kind: ProviderKind) -> Case {
    let calls = vec![
        made("c1", "call_1", Some("fc_1"), "weather", json!({})),
        made("c2", "call_2", Some("fc_2"), "files__read", json!({"city": "Graz"})),
        made("c3", "call_3", Some("fc_3"), "gone", json!({})),
        made("c4", "call_4", Some("fc_4"), "weather", json!({})),
    ];
    let pdf = file("a.pdf", "application/pdf", Place::Data("JVBERi0=".into()));
    let failed = ToolReturn {
        is_error: true,
        ..result("c3", "gone", vec![Part::text("there is no tool `gone`")])
    };
    let silent = ToolReturn { is_error: true, ..result("c4", "weather", vec![image()]) };
    Case::new(
        kind,
        vec![
            Message::user("All of it"),
            reply(Some(source(kind)), calls),
            Message::Tool(result("c1", "weather", vec![])),
            Message::Tool(result("c2", "files__read", vec![Part::text("a picture"), image(), pdf])),
            Message::Tool(failed),
            Message::Tool(silent),
            Message::user("Thanks, go on"),
        ],
    )
}

fn foreign(kind: ProviderKind) -> Case {
    let seal = Block::Reasoning {
        text: "hm".into(),
        opaque: Some(json!({"type": "thinking", "signature": "S"})),
    };
    let renamed = json!({"city": "Graz", "first name": "A"});
    let calls = vec![
        seal,
        Block::Text { text: "I look.".into(), opaque: Some(json!({"id": "msg_9"})) },
        made("c1", "toolu_1", Some("fc_9"), "weather", renamed),
    ];
    let unreadable =
        ToolCall { unreadable: Some("{\"a\":".into()), ..call("c2", "weather", json!({})) };
    let other = Source { model: "another".into(), ..source(kind) };
    Case::new(
        kind,
        vec![
            Message::user("Weather?"),
            reply(Some(anthropic()), calls),
            Message::Tool(result("c1", "weather", vec![Part::text("21")])),
            reply(
                Some(other),
                vec![thought("rs_1", Some("SEAL")), Block::ToolCall(Box::new(unreadable))],
            ),
            Message::Tool(ToolReturn {
                is_error: true,
                ..result("c2", "weather", vec![Part::text("Error: no JSON")])
            }),
        ],
    )
}

fn imported(kind: ProviderKind) -> Case {
    let long = "x".repeat(80);
    let calls = vec![
        Block::ToolCall(Box::new(call("call|1", "context7.search", json!([1])))),
        Block::ToolCall(Box::new(call(&long, "", json!({"a": 1})))),
    ];
    Case::new(
        kind,
        vec![
            Message::user("Find"),
            reply(None, calls),
            Message::Tool(result("call|1", "context7.search", vec![Part::text("1")])),
            Message::Tool(result(&long, "", vec![Part::text("2")])),
            reply(None, vec![Block::text("Found."), Block::text("Twice.")]),
            Message::user("Good"),
        ],
    )
}

fn media(kind: ProviderKind) -> Case {
    let url =
        |kind: &str, url: &str| Media { media_type: kind.into(), place: Place::Url(url.into()) };
    let parts = vec![
        Part::text("Look"),
        image(),
        Part::Image(url("image/jpeg", "https://example.com/a.jpg")),
        Part::Image(url("image/jpeg", "mem://a")),
        file("notes.md", "text/markdown", Place::Data("IyBoaQ==".into())),
        file("a.pdf", "application/pdf", Place::Data("JVBERi0=".into())),
        file("b.pdf", "application/pdf", Place::Url("https://example.com/b.pdf".into())),
        file("c.wav", "audio/wav", Place::Data("UklGRg==".into())),
    ];
    let cancelled = Message::Assistant(Reply {
        stop: Stop::Cancelled,
        source: Some(source(kind)),
        ..Reply::default()
    });
    let only_thought =
        reply(Some(source(kind)), vec![thought("rs_1", Some("SEAL")), Block::text("")]);
    Case::new(
        kind,
        vec![
            Message::User(Said { content: parts }),
            cancelled,
            only_thought,
            Message::system("From now on in German."),
            Message::User(Said { content: vec![] }),
            Message::user("Go on"),
        ],
    )
}

/// Tools that were added within the conversation, for models that accept that.
fn changes(kind: ProviderKind) -> Case {
    let (old, new) = (rendering(kind, &["weather"]), rendering(kind, &["weather", "late"]));
    let newer = rendering(kind, &["weather", "late", "last"]);
    let change = |before, from: &Rendering, to: &Rendering| ToolChange {
        before,
        delta: Arc::new(Delta::between(from, to)),
    };
    let changes = vec![change(1, &old, &new), change(2, &new, &newer)];
    let tools = Tools { base: old, changes, newest: newer };
    Case { tools, ..Case::new(kind, vec![Message::user("Hello"), Message::user("And now?")]) }
}

type Make = fn(ProviderKind) -> Case;
const CASES: [(&str, Make); 7] = [
    ("hello", hello),
    ("single-call", single_call),
    ("parallel-calls", parallel_calls),
    ("foreign", foreign),
    ("imported", imported),
    ("media", media),
    ("changes", changes),
];

#[test]
fn bodies_are_as_they_were() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    for (name, make) in CASES {
        for kind in KINDS {
            let request = make(kind).request().unwrap();
            let body: Value = serde_json::from_slice(&request.body).unwrap();
            let text = format!("{}\n", serde_json::to_string_pretty(&body).unwrap());
            let file = directory.join(format!("openai-{name}.{}.json", kind.as_str()));
            if std::env::var_os("UPDATE_GOLDEN").is_some() {
                fs::create_dir_all(&directory).unwrap();
                fs::write(&file, &text).unwrap();
            }
            let known = fs::read_to_string(&file).unwrap_or_default();
            assert_eq!(known, text, "{}: UPDATE_GOLDEN=1 writes it anew", file.display());
        }
    }
}

/// The types of the items of `input`, or the roles of `messages`.
fn order(body: &Value) -> Vec<&str> {
    let key = if body["input"].is_array() { "input" } else { "messages" };
    let word = |item: &Value| item.get("type").or(item.get("role")).cloned().unwrap_or_default();
    let known = [
        "message",
        "reasoning",
        "function_call",
        "function_call_output",
        "additional_tools",
        "system",
        "user",
        "assistant",
        "tool",
    ];
    let items = body[key].as_array().unwrap().iter();
    items.map(|item| *known.iter().find(|known| word(item) == **known).unwrap()).collect()
}

#[test]
fn a_thought_goes_back_before_its_call_and_only_to_who_thought_it() {
    let own = single_call(ProviderKind::OpenAi).body();
    assert_eq!(
        order(&own),
        ["message", "reasoning", "message", "function_call", "function_call_output"]
    );
    assert_eq!(own["input"][1]["encrypted_content"], "SEAL");
    assert_eq!(
        (&own["input"][2]["id"], &own["input"][2]["phase"]),
        (&json!("msg_1"), &json!("commentary"))
    );
    assert_eq!(
        (&own["input"][3]["id"], &own["input"][3]["call_id"]),
        (&json!("fc_1"), &json!("call_abc"))
    );

    let foreign = foreign(ProviderKind::OpenAi).body();
    let expected = [
        "message",
        "message",
        "function_call",
        "function_call_output",
        "function_call",
        "function_call_output",
    ];
    assert_eq!(order(&foreign), expected);
    assert_eq!(
        foreign["input"][1],
        json!({"type": "message", "role": "assistant", "content": "I look."})
    );
    assert_eq!(
        (&foreign["input"][2]["id"], &foreign["input"][2]["call_id"]),
        (&Value::Null, &json!("c1"))
    );
    assert_eq!(foreign["input"][4]["arguments"], "{}");
    let text = foreign.to_string();
    assert!(!text.contains("SEAL") && !text.contains("toolu_1"), "{text}");
}

#[test]
fn thoughts_that_the_provider_would_miss_or_refuse_stay_here() {
    let kind = ProviderKind::OpenAi;
    let ask = |content: Vec<Block>| {
        let own = reply(Some(source(kind)), content);
        Case::new(kind, vec![Message::user("a"), own, Message::user("b")]).body()
    };
    // A reasoning item without content is only an id, which OpenAI does not store; then later items have no id either.
    let body = ask(vec![thought("rs_1", None), own_text()]);
    assert_eq!(order(&body), ["message", "message", "message"]);
    assert_eq!(body["input"][1]["id"], Value::Null);
    // Reasoning at the end is dropped.
    let body = ask(vec![own_text(), thought("rs_1", Some("SEAL"))]);
    assert_eq!(order(&body), ["message", "message", "message"]);
    // Unencrypted reasoning of a compatible server.
    let open = json!({"type": "reasoning", "id": "rs_1", "summary": [], "content": [{"type": "reasoning_text", "text": "hm"}]});
    let open = Block::Reasoning { text: "hm".into(), opaque: Some(open) };
    assert_eq!(order(&ask(vec![open, own_text()])), ["message", "reasoning", "message", "message"]);
}

#[test]
fn own_arguments_go_back_as_they_were_written_and_foreign_ones_are_renamed() {
    let kind = ProviderKind::OpenAi;
    let shown = rendering(kind, &["weather"]).tool("weather").unwrap().arguments.clone().unwrap();
    let renamed = shown.rename(json!({"first name": "A"}));
    assert_ne!(renamed, json!({"first name": "A"}), "the test needs a key that is refused");
    for kind in KINDS {
        let written = CallOrigin { id: None, item: None, arguments: Some(json!({"written": 1})) };
        let own =
            ToolCall { origin: Some(written), ..call("c1", "weather", json!({"first name": "A"})) };
        let broken =
            ToolCall { unreadable: Some("{\"a\"".into()), ..call("c2", "weather", json!({})) };
        let calls = |is_own: bool| {
            let blocks = [own.clone(), broken.clone()].map(|call| Block::ToolCall(Box::new(call)));
            let from = if is_own { source(kind) } else { anthropic() };
            let results = ["c1", "c2"].map(|id| Message::Tool(result(id, "weather", vec![])));
            let mut messages = vec![Message::user("a"), reply(Some(from), blocks.to_vec())];
            messages.extend(results);
            let body = Case::new(kind, messages).body();
            match kind {
                ProviderKind::OpenAiChat => [0, 1].map(|at| {
                    body["messages"][1]["tool_calls"][at]["function"]["arguments"].clone()
                }),
                _ => [1, 2].map(|at| body["input"][at]["arguments"].clone()),
            }
        };
        let sent_back = if kind == ProviderKind::OpenAiChat { "{}" } else { "{\"a\"" };
        assert_eq!(calls(true), [json!("{\"written\":1}"), json!(sent_back)], "{kind:?}");
        assert_eq!(calls(false), [json!(renamed.to_string()), json!("{}")], "{kind:?}");
    }
}

#[test]
fn every_call_has_one_output_under_a_legal_id_and_name() {
    for (_, make) in CASES {
        for kind in [ProviderKind::OpenAi, ProviderKind::ChatGpt] {
            let body = make(kind).body();
            let items = body["input"].as_array().unwrap();
            let of = |kind: &str| -> Vec<&Value> {
                items.iter().filter(|item| item["type"] == kind).collect()
            };
            let ids = |items: Vec<&Value>| -> Vec<String> {
                items.iter().map(|item| item["call_id"].as_str().unwrap().to_owned()).collect()
            };
            assert_eq!(ids(of("function_call")), ids(of("function_call_output")));
            for item in of("function_call") {
                let (id, name) =
                    (item["call_id"].as_str().unwrap(), item["name"].as_str().unwrap());
                assert!((1..=64).contains(&id.len()) && (1..=64).contains(&name.len()), "{item}");
                assert!(
                    name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-'),
                    "{item}"
                );
                assert!(
                    serde_json::from_str::<Value>(item["arguments"].as_str().unwrap())
                        .unwrap()
                        .is_object()
                );
            }
        }
        let body = make(ProviderKind::OpenAiChat).body();
        let mut open: Vec<Value> = Vec::new();
        for line in body["messages"].as_array().unwrap() {
            if line["role"] == "tool" {
                assert_eq!(
                    open.remove(0),
                    line["tool_call_id"],
                    "results come in the order of the calls"
                );
                continue;
            }
            assert_eq!(open, Vec::<Value>::new(), "results come right after their calls");
            open.extend(
                line["tool_calls"].as_array().into_iter().flatten().map(|call| call["id"].clone()),
            );
        }
        assert_eq!(open, Vec::<Value>::new());
    }
}

#[test]
fn results_say_that_they_failed_and_show_their_images() {
    let body = parallel_calls(ProviderKind::OpenAi).body();
    let outputs: Vec<&Value> =
        body["input"].as_array().unwrap().iter().filter_map(|item| item.get("output")).collect();
    assert_eq!(outputs[0], "");
    assert_eq!(outputs[2], "Error: there is no tool `gone`");
    assert_eq!(outputs[3][0]["text"], "Error: the tool failed and did not say why");
    assert_eq!(outputs[3][1]["type"], "input_image");

    let body = parallel_calls(ProviderKind::OpenAiChat).body();
    assert_eq!(order(&body), ["user", "assistant", "tool", "tool", "tool", "tool", "user", "user"]);
    assert_eq!(body["messages"][1]["content"], Value::Null);
    let shown = body["messages"][6]["content"].as_array().unwrap();
    let kinds: Vec<&str> = shown.iter().map(|part| part["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["text", "image_url", "text", "image_url"]);
}

#[test]
fn images_of_the_last_results_are_shown_too() {
    let mut case = parallel_calls(ProviderKind::OpenAiChat);
    case.messages.pop();
    assert_eq!(order(&case.body()), ["user", "assistant", "tool", "tool", "tool", "tool", "user"]);
}

#[test]
fn a_chatgpt_account_gets_instructions_and_no_limits() {
    let plain = |kind| Case::new(kind, vec![Message::user("a")]).body();
    assert_eq!(plain(ProviderKind::OpenAi)["instructions"], Value::Null);
    assert_eq!(
        plain(ProviderKind::ChatGpt)["instructions"],
        "Answer the user. Use the tools where they help."
    );
    let (public, account) =
        (hello(ProviderKind::OpenAi).body(), hello(ProviderKind::ChatGpt).body());
    for key in ["max_output_tokens", "temperature", "top_p"] {
        assert!(public.get(key).is_some() && account.get(key).is_none(), "{key}");
    }
    for body in [public, account] {
        assert_eq!(body["instructions"], "You help with the weather.\n\nBe brief.");
        assert_eq!(body["reasoning"], json!({"effort": "low", "summary": "auto"}));
        assert_eq!((&body["store"], &body["stream"]), (&json!(false), &json!(true)));
        assert_eq!(body["include"], json!(["reasoning.encrypted_content"]));
    }
    let parallel = |case: Case| case.body()["parallel_tool_calls"].clone();
    assert_eq!(parallel(hello(ProviderKind::ChatGpt)), true);
    assert_eq!(parallel(single_call(ProviderKind::ChatGpt)), false);
    assert_eq!(parallel(single_call(ProviderKind::OpenAi)), true);
    let request = hello(ProviderKind::ChatGpt).request().unwrap();
    assert_eq!(request.headers, ["session-id", "thread-id"].map(|name| (name, "s-1".to_owned())));
    assert_eq!(hello(ProviderKind::OpenAi).request().unwrap().headers, []);
}

#[test]
fn what_was_not_asked_for_is_not_said() {
    let bare = |kind| {
        let tools = Tools::only(rendering(kind, &[]));
        let session = "é".repeat(100);
        Case { tools, session, ..Case::new(kind, vec![Message::user("a")]) }
    };
    let keys = |kind| bare(kind).body().as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(
        keys(ProviderKind::OpenAi),
        ["model", "input", "store", "stream", "include", "prompt_cache_key"]
    );
    assert_eq!(keys(ProviderKind::OpenAiChat), ["model", "messages", "stream", "stream_options"]);
    let account = bare(ProviderKind::ChatGpt);
    assert_eq!(account.body()["prompt_cache_key"].as_str().unwrap().chars().count(), 64);
    assert_eq!(account.request().unwrap().headers, [], "a header takes no such text");
}

#[test]
fn tools_stand_as_they_were_rendered_and_later_ones_at_their_place() {
    for kind in KINDS {
        let case = Case::new(kind, vec![Message::user("a")]);
        let body = String::from_utf8(case.request().unwrap().body.to_vec()).unwrap();
        let tools = String::from_utf8(case.tools.base.json().to_vec()).unwrap();
        assert!(body.contains(&format!("\"tools\":{tools}")), "{body}");
    }
    let body = changes(ProviderKind::OpenAi).body();
    assert_eq!(order(&body), ["message", "additional_tools", "message", "additional_tools"]);
    assert_eq!(body["tools"].as_array().unwrap().len(), 1);
    let only_later = Case {
        tools: Tools {
            base: rendering(ProviderKind::OpenAi, &[]),
            ..changes(ProviderKind::OpenAi).tools
        },
        ..changes(ProviderKind::OpenAi)
    };
    assert_eq!(only_later.body()["tool_choice"], "auto");
}

#[test]
fn nothing_to_answer_is_said_here_and_not_there() {
    for kind in KINDS {
        for messages in [vec![], vec![Message::system("Be brief.")], vec![reply(None, vec![])]] {
            let fault = Case::new(kind, messages).request().unwrap_err();
            assert_eq!(fault.kind, FaultKind::BadRequest);
            assert!(fault.message.contains("send a message first"), "{fault}");
        }
    }
}

#[test]
fn a_chat_shows_the_pictures_of_users_only() {
    let system = Message::System(Said { content: vec![Part::text("Look"), image()] });
    let messages = vec![Message::user("hi"), system];
    let body = Case::new(ProviderKind::OpenAiChat, messages).body();
    let expected = "Look\n\n[A file of type image/png is not shown]";
    assert_eq!(body["messages"][1], json!({"role": "system", "content": expected}));
}

#[test]
fn older_models_are_not_told_how_to_think() {
    for (model, thinks) in [("gpt-5.1", true), ("gpt-4.1", false)] {
        let case = hello(ProviderKind::OpenAi);
        let source = Source { model: model.into(), ..source(ProviderKind::OpenAi) };
        let body = responses_request(&case.ask(&source)).unwrap().body;
        let body: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(body.get("reasoning").is_some(), thinks, "{model}");
        assert_eq!(body.get("include").is_some(), thinks, "{model}");
    }
}

#[test]
fn what_cannot_be_read_or_is_not_taken_is_only_mentioned() {
    let part = |kind: &str, place: Place| Part::Image(Media { media_type: kind.into(), place });
    let (data, url) = (|data: &str| Place::Data(data.into()), |url: &str| Place::Url(url.into()));
    for kind in KINDS {
        let check = |part: Part, expected: Option<&str>| {
            let said = Message::User(Said { content: vec![part] });
            let body = Case::new(kind, vec![said]).body();
            let at = if kind == ProviderKind::OpenAiChat { "messages" } else { "input" };
            let content = &body[at][0]["content"];
            assert_eq!(content.as_str(), expected, "{content}");
        };
        check(part("image/JPG", data("AA==")), None);
        check(part("image/webp", url("https://a/b")), None);
        check(part("image/png", data("")), Some("[A file of type image/png is not shown]"));
        check(part("image/png", data("A")), Some("[A file of type image/png is not shown]"));
        check(part("image/bmp", data("AA==")), Some("[A file of type image/bmp is not shown]"));
        let elsewhere = "[A file of type image/png at file:///a is not shown]";
        check(part("image/png", url("file:///a")), Some(elsewhere));
    }
}
