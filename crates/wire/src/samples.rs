//! Sample conversations for the tests of all wire formats.

use std::sync::Arc;

use serde_json::{Value, json};
use switchboard_chat::{
    Block, CallOrigin, Media, Message, ModelEvent, ModelFault, Part, Place, Reply, Said, Source,
    Stop, ToolCall, ToolReturn,
};
use switchboard_model::{JsonText, ModelSettings, ProviderKind, ToolDescriptor};
use switchboard_render::{NamedTool, Provider, Rendering};

use crate::{ModelRequest, Parser, Tools, WireRequest};

pub(crate) fn source(kind: ProviderKind, model: &str) -> Source {
    Source { kind, provider: kind.as_str().into(), model: model.into(), credential: None }
}

/// Tools with one argument, `a b`, which no provider accepts under this name.
pub(crate) fn rendering(provider: Provider, names: &[&str]) -> Arc<Rendering> {
    let schema = json!({"type": "object", "properties": {"a b": {"type": "string"}, "n": {"type": "number"}}});
    let tools: Vec<_> = names
        .iter()
        .map(|name| ToolDescriptor {
            description: Some(format!("does {name}")),
            input_schema: JsonText::from(&schema),
            ..ToolDescriptor::named(*name)
        })
        .collect();
    let declared = tools.iter().map(|tool| NamedTool { name: &tool.name, descriptor: tool });
    Arc::new(Rendering::new(provider, declared))
}

/// Builds requests for a conversation whose encrypted thinking is all valid.
pub(crate) struct Asking<'a> {
    pub(crate) source: Source,
    pub(crate) messages: &'a [Message],
    pub(crate) tools: Tools,
    pub(crate) settings: ModelSettings,
    pub(crate) replay: std::ops::Range<usize>,
    pub(crate) project: Option<&'a str>,
    pub(crate) stop: Option<&'static str>,
    pub(crate) is_bearer: bool,
}

impl<'a> Asking<'a> {
    pub(crate) fn new(source: Source, tools: Tools, messages: &'a [Message]) -> Self {
        let (settings, replay) = (ModelSettings::default(), 0..messages.len());
        let project = Some("project-1");
        Self { source, messages, tools, settings, replay, project, stop: None, is_bearer: false }
    }

    pub(crate) fn send(
        &self,
        request: fn(&ModelRequest<'_>) -> Result<WireRequest, ModelFault>,
    ) -> (WireRequest, Value) {
        let sent = request(&self.ask()).unwrap();
        let body = serde_json::from_slice(&sent.body).unwrap();
        (sent, body)
    }

    pub(crate) fn ask(&self) -> ModelRequest<'_> {
        ModelRequest {
            source: &self.source,
            messages: self.messages,
            replay: self.replay.clone(),
            tools: &self.tools,
            settings: &self.settings,
            stop: self.stop,
            session: "session-1",
            turn: "turn-1",
            project: self.project,
            is_bearer: self.is_bearer,
        }
    }
}

pub(crate) fn call(id: &str, name: &str, arguments: Value) -> ToolCall {
    let (name, id) = (name.into(), id.into());
    ToolCall { id, name, arguments, unreadable: None, origin: None, opaque: None }
}

pub(crate) fn calls(call: ToolCall) -> Block {
    Block::ToolCall(Box::new(call))
}

pub(crate) fn reply(source: &Source, content: Vec<Block>) -> Message {
    let source = Some(source.clone());
    Message::Assistant(Reply { content, source, ..Reply::default() })
}

pub(crate) fn thought(text: &str, opaque: Value) -> Block {
    Block::Reasoning { text: text.into(), opaque: Some(opaque) }
}

pub(crate) fn result(call: &str, content: Vec<Part>) -> ToolReturn {
    let (call, name) = (call.into(), "find".into());
    ToolReturn { call, name, content, structured: None, is_error: false, latency_ms: None }
}

pub(crate) fn media(media_type: &str, data: &str) -> Media {
    Media { media_type: media_type.into(), place: Place::Data(data.into()) }
}

pub(crate) fn said(content: Vec<Part>) -> Message {
    Message::User(Said { content })
}

/// Conversations that every provider must accept, by name.
pub(crate) fn conversations(own: &Source) -> Vec<(&'static str, Vec<Message>)> {
    let foreign = source(ProviderKind::OpenAi, "gpt-6");
    let signed = |mut call: ToolCall| {
        call.opaque = Some(json!({"thoughtSignature": "c2ln"}));
        call.origin = Some(CallOrigin { id: Some("own_1".into()), ..CallOrigin::default() });
        call
    };
    let seal = json!({"signature": "c2ln", "thoughtSignature": "c2ln"});
    vec![
        ("text", vec![Message::system("Be short."), Message::user("hello")]),
        (
            "single_call",
            vec![
                Message::user("find it"),
                reply(
                    own,
                    vec![
                        thought("hm", seal.clone()),
                        Block::text("I look."),
                        calls(signed(call("c1", "find", json!({"n": 1})))),
                    ],
                ),
                Message::Tool(result("c1", vec![Part::text("found")])),
            ],
        ),
        ("parallel_calls", parallel(own)),
        (
            "images",
            vec![
                said(vec![
                    Part::text("look"),
                    Part::Image(media("image/png", "iVBORw0=")),
                    Part::File {
                        name: Some("a.pdf".into()),
                        media: media("application/pdf", "JVBERi0="),
                    },
                    Part::File { name: Some("a.txt".into()), media: media("text/plain", "aGk=") },
                    Part::File { name: None, media: media("application/zip", "UEs=") },
                    Part::Image(Media {
                        media_type: "image/jpeg".into(),
                        place: Place::Url("https://e.x/i.jpg".into()),
                    }),
                ]),
                reply(own, vec![calls(call("c1", "find", json!({})))]),
                Message::Tool(result(
                    "c1",
                    vec![Part::text("here"), Part::Image(media("image/png", "iVBORw0="))],
                )),
            ],
        ),
        ("foreign", foreign_history(own, &foreign)),
        ("imported", imported()),
        (
            "begins_with_the_model",
            vec![reply(&foreign, vec![Block::text("Welcome.")]), Message::user("hello")],
        ),
        (
            "merged",
            vec![
                Message::user("one"),
                reply(&foreign, vec![thought("only thoughts", json!({"encrypted_content": "x"}))]),
                Message::user("two"),
                Message::user(" "),
                reply(own, vec![calls(signed(call("c1", "find", json!({}))))]),
                Message::Tool(result("c1", vec![])),
                Message::user("three"),
                Message::user("four"),
                Message::system("Now be long."),
            ],
        ),
    ]
}

/// Three calls with results out of order; one failed, one result is blank.
fn parallel(own: &Source) -> Vec<Message> {
    let failed = ToolReturn { is_error: true, ..result("c2", vec![]) };
    let structured = ToolReturn {
        structured: Some(json!({"found": [1, 2]})),
        ..result("c3", vec![Part::text("x")])
    };
    vec![
        Message::user("find them"),
        reply(
            own,
            vec![
                calls(call("c1", "find", json!({}))),
                calls(call("c2", "find", json!({"n": 2}))),
                calls(call("c3", "drop", json!({}))),
            ],
        ),
        Message::Tool(structured),
        Message::Tool(failed),
        Message::Tool(result("c1", vec![Part::text("one")])),
        Message::user("and now?"),
    ]
}

/// A conversation that moves between providers in the middle of tool use.
fn foreign_history(own: &Source, foreign: &Source) -> Vec<Message> {
    let mut first = call("c1", "find", json!({"a b": "x"}));
    first.origin = Some(CallOrigin {
        id: Some("call_theirs".into()),
        item: Some("fc_1".into()),
        arguments: Some(json!({"a_b": "x"})),
    });
    let mut second = call("c2", "find", json!({"a b": "y"}));
    second.origin = Some(CallOrigin {
        id: Some("own_2".into()),
        item: None,
        arguments: Some(json!({"own_a_b": "y"})),
    });
    let other = Source { model: "an-older-one".into(), ..own.clone() };
    let third = call("c3", "find", json!({"a b": "z"}));
    vec![
        Message::user("start"),
        reply(foreign, vec![thought("theirs", json!({"encrypted_content": "x"})), calls(first)]),
        Message::Tool(result("c1", vec![Part::text("1")])),
        reply(
            own,
            vec![
                thought("ours", json!({"signature": "b3du", "thoughtSignature": "b3du"})),
                calls(second),
            ],
        ),
        Message::Tool(result("c2", vec![Part::text("2")])),
        reply(
            &other,
            vec![
                thought("not quite ours", json!({"signature": "b3RoZXI="})),
                Block::Text {
                    text: "so".into(),
                    opaque: Some(json!({"thoughtSignature": "b3RoZXI="})),
                },
                calls(third),
            ],
        ),
        Message::Tool(result("c3", vec![Part::text("3")])),
    ]
}

/// A conversation with ids, names and arguments that no provider accepts.
fn imported() -> Vec<Message> {
    let broken = ToolCall {
        unreadable: Some("{\"a\":".into()),
        ..call("id with blanks", "no.such tool!", json!({}))
    };
    let content = vec![
        Block::text(""),
        calls(broken),
        calls(call(&"x".repeat(80), "find", json!([1]))),
        calls(call("never-answered", "find", json!({}))),
    ];
    vec![
        Message::user("hello"),
        Message::Assistant(Reply { content, stop: Stop::ToolCalls, ..Reply::default() }),
        Message::Tool(ToolReturn {
            is_error: true,
            ..result("id with blanks", vec![Part::text("bad")])
        }),
        Message::Tool(result(&"x".repeat(80), vec![Part::text("ok")])),
        Message::user("go on"),
    ]
}

/// All events of a stream that arrives in these chunks.
pub(crate) fn events(mut parser: Parser, pieces: &[&[u8]]) -> Vec<ModelEvent> {
    let mut out = Vec::new();
    for piece in pieces {
        parser.feed(piece, &mut out);
    }
    parser.finish(&mut out);
    out
}

/// The final event of a stream; there must be exactly one, at the end.
#[track_caller]
pub(crate) fn last(events: &[ModelEvent]) -> Result<Reply, ModelFault> {
    let is_last =
        |event: &&ModelEvent| matches!(event, ModelEvent::Finished(_) | ModelEvent::Failed(_));
    assert_eq!(events.iter().filter(is_last).count(), 1, "{events:?}");
    match events.last().unwrap() {
        ModelEvent::Finished(reply) => Ok((**reply).clone()),
        ModelEvent::Failed(fault) => Err((**fault).clone()),
        other => panic!("{other:?} comes after the end"),
    }
}

/// Parses every prefix of a stream.
#[track_caller]
pub(crate) fn check_cuts(
    parser: impl Fn() -> Parser,
    whole: &str,
    check: impl Fn(usize, Result<Reply, ModelFault>),
) {
    for cut in 0..=whole.len() {
        check(cut, last(&events(parser(), &[&whole.as_bytes()[..cut]])));
    }
    assert!(last(&events(parser(), &[whole.as_bytes()])).is_ok());
}
