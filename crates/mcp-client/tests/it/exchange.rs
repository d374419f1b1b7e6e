//! Tests of forwarded requests: results byte for byte, and the attribution of server messages to callers.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};
use switchboard_mcp_client::{
    ConnectOptions, Connection, ConnectionClient, EventReceiver, Listed, RequestFailure,
    UpstreamEvent, UpstreamNews, UpstreamRequest, event_channel,
};
use switchboard_model::{JsonText, ServerSpec};
use switchboard_test_support::{Reply, ScriptedServer, Tool, wait_until};

use crate::support::{PATIENCE, command, connect, helper, http, open, peer, sse};
use crate::talker::{MOMENT, Talker};

fn ask(tool: &str, arguments: &str, origin: &str) -> UpstreamRequest {
    UpstreamRequest {
        method: "tools/call",
        name: Some(tool.to_owned()),
        params: format!(r#""name":"{tool}","arguments":{arguments}"#),
        wants_progress: true,
        origin: Some(origin.into()),
        ..UpstreamRequest::default()
    }
}

async fn talking() -> (Talker, Arc<Connection>) {
    let talker = Talker::start().await;
    let connection = open(&http(&talker.url)).await.unwrap().0;
    (talker, connection)
}

/// The stdio server that talks.
fn talking_child() -> ServerSpec {
    command(helper().to_str().unwrap(), &["talk"])
}

/// Answers every question with `reply`, and tells what was heard.
async fn answering(mut events: EventReceiver, reply: &str) -> Vec<String> {
    let mut heard = Vec::new();
    while let Some(event) = events.next().await {
        match event {
            UpstreamEvent::Progress(params) => heard.push(format!("progress {}", params.as_str())),
            UpstreamEvent::Log(params) => heard.push(format!("log {}", params.as_str())),
            UpstreamEvent::ElicitationComplete(params) => {
                heard.push(format!("complete {}", params.as_str()));
            }
            UpstreamEvent::Question { method, params, reply: sender } => {
                heard.push(format!("{method} {}", params.unwrap().as_str()));
                sender.send(Ok(JsonText::from_text(reply).unwrap())).unwrap();
            }
        }
    }
    heard
}

fn value(result: &switchboard_mcp_client::RawResult) -> Value {
    serde_json::from_str(result.as_str()).unwrap()
}

#[tokio::test]
async fn a_result_comes_back_byte_for_byte() {
    let (_talker, connection) = talking().await;
    for text in [
        r#"{ "content" : [ {"type":"hologram", "beams":3.0} ], "later": [1e400, "\u00e9"] }"#,
        r#"{"content":[{"type":"text","text":"ü","unknown":{"b":1,"a":2}}],"isError":false}"#,
        "7",
    ] {
        let arguments = json!({ "text": text }).to_string();
        let result = connection.ask(ask("exact", &arguments, "a"), None).await.unwrap();
        assert_eq!(result.as_str(), text);
    }
}

#[tokio::test]
async fn every_kind_of_server_passes_unknown_members_through() {
    let odd = json!({"content": [{"type": "hologram", "beams": 3}], "structuredContent": 7, "weather": {"k": null}});
    let tools = || [Tool::new("odd").replies(Reply::Result(odd.clone()))];
    for server in [
        ScriptedServer::builder().legacy(),
        ScriptedServer::builder().legacy().answers_as_events(),
        ScriptedServer::builder().modern(),
        ScriptedServer::builder().modern().answers_as_events(),
        ScriptedServer::builder().sse_transport(),
    ] {
        let server = server.tools(tools()).start().await;
        let url = server.url();
        let spec = if url.ends_with("/sse") { sse(&url) } else { http(&url) };
        let connection = open(&spec).await.unwrap().0;
        let result = connection.ask(ask("odd", "{}", "a"), None).await.unwrap();
        // A modern server adds a few words of its own at the end.
        let (text, odd) = (result.as_str(), odd.to_string());
        assert!(text.starts_with(odd.strip_suffix('}').unwrap()), "{url}: {text}");
        let unknown = connection.ask(ask("none", "{}", "a"), None).await.unwrap_err();
        let RequestFailure::Rpc(error) = unknown else { panic!("{unknown:?}") };
        assert_eq!((error.code, error.message.as_str()), (-32602, "Unknown tool: none"));
    }
}

#[tokio::test]
async fn words_on_the_stream_of_a_call_are_those_of_its_caller() {
    let (_talker, connection) = talking().await;
    let one = async |origin: &str| {
        let (events, heard) = event_channel(16);
        let reply = format!(r#"{{"action":"accept","content":{{"who":"{origin}"}}}}"#);
        let asking = connection.ask(ask("ask", "{}", origin), Some(events));
        let (result, heard) = tokio::join!(asking, answering(heard, &reply));
        (value(&result.unwrap()), heard)
    };
    // At the same time, and each hears only what is its own.
    let ((a, heard_a), (b, heard_b)) = tokio::join!(one("a"), one("b"));
    for (result, heard, origin) in [(a, heard_a, "a"), (b, heard_b, "b")] {
        assert_eq!(result["answer"]["result"]["content"]["who"], origin);
        let question = result["answer"]["id"].as_str().unwrap();
        let id = question.strip_prefix("q-").unwrap();
        assert_eq!(
            heard,
            [
                format!(r#"log {{"level":"info","data":{{"for":"{id}"}}}}"#),
                format!(r#"progress {{"progressToken":"{id}","progress":1,"unheard":"of"}}"#),
                format!(r#"elicitation/create {{"message":"{question}"}}"#),
            ]
        );
    }
    let result = connection.ask(ask("ask", "{}", "c"), None).await;
    let error = value(&result.unwrap())["answer"]["error"].clone();
    assert_eq!(
        error,
        json!({"code": -32603, "message": "the client does not answer requests of servers"})
    );
}

#[tokio::test]
async fn a_connection_of_one_session_asks_its_client_at_any_time() {
    let talker = Talker::start().await;
    let (events, mut heard) = event_channel(4);
    let capabilities = json!({"roots": {"listChanged": true}});
    let session = ConnectionClient {
        capabilities: Some(capabilities.to_string().into()),
        events: Some(events),
    };
    let options = ConnectOptions { session: Some(session), ..ConnectOptions::default() };
    let (connection, _) = Connection::open(&http(&talker.url), &options).await.unwrap();
    let of_method = |method: &str| {
        talker.look(|talk| talk.requests.iter().find(|it| it["method"] == method).cloned())
    };
    let declared = of_method("initialize").unwrap()["params"]["capabilities"].clone();
    assert_eq!(declared, capabilities, "the server knows what this client can do");
    wait_until(PATIENCE, async || talker.is_heard().then_some(())).await;
    let roots = r#"{"roots":[{"uri":"file:///a"}]}"#;
    let answer = async {
        let Some(UpstreamEvent::Question { method, reply, .. }) = heard.next().await else {
            panic!("a question");
        };
        assert_eq!(method, "roots/list");
        reply.send(Ok(JsonText::from_text(roots).unwrap())).unwrap();
    };
    let (answered, ()) = tokio::join!(talker.ask("q1", "roots/list"), answer);
    assert_eq!(answered["result"].to_string(), roots);
    connection.roots_changed().await;
    assert!(of_method("notifications/roots/list_changed").is_some());
    connection.close().await;
}

#[tokio::test]
async fn a_question_beside_the_calls_needs_one_origin() {
    let (talker, connection) = talking().await;
    wait_until(PATIENCE, async || talker.is_heard().then_some(())).await;
    let nobody = talker.ask("q1", "sampling/createMessage").await;
    let said = "no client is calling this server at the moment, so its request cannot be answered";
    assert_eq!(nobody["error"], json!({"code": -32603, "message": said}));
    assert_eq!(talker.ask("q2", "roots/list").await["result"], json!({"roots": []}));
    let calls = |origins: &'static [&'static str], id: &'static str| {
        let (talker, connection) = (talker.clone(), connection.clone());
        async move {
            let (events, heard) = event_channel(16);
            let calls = origins.iter().map(|origin| {
                let events = events.clone();
                connection.ask(ask("hang", "{}", origin), Some(events))
            });
            let before = talker.calls();
            let question = async {
                wait_until(PATIENCE, async || {
                    (talker.calls() == before + origins.len()).then_some(())
                })
                .await;
                talker.ask(id, "elicitation/create").await
            };
            tokio::select! {
                _ = futures::future::join_all(calls) => panic!("they hang"),
                _ = answering(heard, r#"{"action":"decline"}"#) => panic!("they go on"),
                answer = question => answer,
            }
        }
    };
    assert_eq!(calls(&["a", "a"], "q3").await["result"], json!({"action": "decline"}));
    let several = calls(&["a", "b"], "q4").await["error"]["message"].clone();
    assert_eq!(
        several,
        "several clients use this server at the same time, and the request cannot be attributed to one of them; ask again when the other \
         calls are done, reach the server over streamable HTTP, or give each session a connection of its own with \
         `connection: per_session`"
    );
}

#[tokio::test]
async fn a_question_that_is_withdrawn_is_answered_by_nobody() {
    let (talker, connection) = talking().await;
    wait_until(PATIENCE, async || talker.is_heard().then_some(())).await;
    let (events, mut heard) = event_channel(16);
    let calling = connection.ask(ask("hang", "{}", "a"), Some(events));
    let talking = async {
        let asked = |event: UpstreamEvent| match event {
            UpstreamEvent::Question { reply, .. } => Some(reply),
            _ => None,
        };
        wait_until(PATIENCE, async || (talker.calls() == 1).then_some(())).await;
        let mut unanswered = std::pin::pin!(talker.ask("q1", "elicitation/create"));
        let mut reply = loop {
            tokio::select! {
                answer = &mut unanswered => panic!("{answer}"),
                event = heard.next() => if let Some(reply) = asked(event.unwrap()) { break reply },
            }
        };
        let cancelled = json!({"requestId": "q1", "reason": "never mind"});
        let of_another = json!({"requestId": "q0"});
        for params in [of_another, cancelled] {
            let message =
                json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
            talker.say(&message).await;
        }
        reply.closed().await;
        assert!(reply.send(Ok(JsonText::from_text("{}").unwrap())).is_err());
        let params = json!({"elicitationId": "e-1"});
        let complete = json!({"jsonrpc": "2.0", "method": "notifications/elicitation/complete", "params": params});
        talker.say(&complete).await;
        let said = loop {
            match heard.next().await {
                Some(UpstreamEvent::ElicitationComplete(said)) => break said,
                Some(UpstreamEvent::Log(_)) => {}
                event => panic!("{event:?}"),
            }
        };
        assert_eq!(said.as_str(), params.to_string());
        assert!(tokio::time::timeout(MOMENT, unanswered).await.is_err(), "it was answered");
    };
    tokio::select! {
        answer = calling => panic!("{answer:?}"),
        () = talking => {}
    }
}

#[tokio::test]
async fn what_a_child_asks_reaches_the_only_origin_and_no_other() {
    let (connection, _) = open(&talking_child()).await.unwrap();
    let (events, heard) = event_channel(16);
    let asking = connection.ask(ask("ask", "{}", "a"), Some(events));
    let (result, heard) = tokio::join!(asking, answering(heard, r#"{"action":"accept"}"#));
    assert_eq!(value(&result.unwrap())["answer"]["result"], json!({"action": "accept"}));
    let words: Vec<_> = heard.iter().map(|word| word.split(' ').next().unwrap()).collect();
    assert_eq!(words, ["log", "progress", "elicitation/create"]);

    // Another client's call is under way.
    let mut other = std::pin::pin!(connection.ask(ask("hang", "{}", "b"), None));
    assert!(tokio::time::timeout(MOMENT, &mut other).await.is_err());
    let mut news = connection.take_news().unwrap();
    assert!(connection.take_news().is_none());
    let (events, mut heard) = event_channel(16);
    let refused = connection.ask(ask("ask", "{}", "a"), Some(events)).await.unwrap();
    let message = value(&refused)["answer"]["error"]["message"].clone();
    assert_eq!(
        message,
        "several clients use this server at the same time, and the request cannot be attributed to one of them; ask again when the other \
         calls are done, reach the server over streamable HTTP, or give each session a connection of its own with \
         `connection: per_session`"
    );
    assert!(matches!(heard.next().await, Some(UpstreamEvent::Progress(_))), "progress has a sign");
    assert!(heard.next().await.is_none());
    assert!(matches!(news.recv().await, Some(UpstreamNews::Log(_))), "the log is nobody's");
    connection.close().await;
}

#[tokio::test]
async fn a_call_that_is_given_up_is_cancelled_by_its_id() {
    let (talker, connection) = talking().await;
    let asking = connection.ask(ask("hang", "{}", "a"), None);
    assert!(tokio::time::timeout(MOMENT, asking).await.is_err());
    wait_until(PATIENCE, async || {
        talker.look(|talk| {
            let call = talk.requests.iter().find(|request| request["method"] == "tools/call")?;
            let is_cancel = |request: &&Value| request["method"] == "notifications/cancelled";
            let cancel = talk.requests.iter().find(is_cancel)?;
            assert_eq!(cancel["params"]["requestId"], call["id"]);
            Some(())
        })
    })
    .await;
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_resumed_from_its_bookmark() {
    let (talker, connection) = talking().await;
    let result = connection.ask(ask("break", "{}", "a"), None).await.unwrap();
    assert_eq!(value(&result), json!({"resumed": true, "content": []}));
    let from = talker.look(|talk| talk.resumed_from.clone());
    assert_eq!((from.len(), &from[0]), (2, &from[1]));
}

#[tokio::test]
async fn a_lost_session_is_healed_once_and_told_what_the_old_one_knew() {
    let (talker, connection) = talking().await;
    connection.set_log_level("warning").await.unwrap();
    let watched = BTreeSet::from(["file:///a".to_owned(), "file:///b".to_owned()]);
    connection.watch_resources(&watched).await.unwrap();
    talker.look(|talk| {
        talk.sessions.clear();
        talk.requests.clear();
    });
    let calls = (0..5).map(|_| connection.ask(ask("plain", "{}", "a"), None));
    for answer in futures::future::join_all(calls).await {
        answer.unwrap();
    }
    assert_eq!(talker.look(|talk| talk.opened), 2);
    wait_until(PATIENCE, async || {
        let said = talker.look(|talk| talk.requests.clone());
        let said: BTreeSet<_> = said
            .iter()
            .filter_map(|request| {
                let params = &request["params"];
                params["uri"].as_str().or(params["level"].as_str()).map(str::to_owned)
            })
            .collect();
        (said == ["file:///a", "file:///b", "warning"].map(str::to_owned).into()).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_server_that_forgets_every_session_is_not_asked_for_ever() {
    let (talker, connection) = talking().await;
    talker.look(|talk| {
        talk.sessions.clear();
        talk.forgets = true;
    });
    let asking = connection.ask(ask("plain", "{}", "a"), None);
    let failure = tokio::time::timeout(PATIENCE, asking).await.unwrap().unwrap_err();
    let expected = "HTTP 404 Not Found within a session that the server had just opened";
    assert_eq!(failure, RequestFailure::BadAnswer(expected.into()));
    assert!(talker.look(|talk| talk.opened) <= 3);
}

#[tokio::test]
async fn resources_are_watched_by_the_difference() {
    let (talker, connection) = talking().await;
    let watch = async |uris: &[&str]| {
        talker.look(|talk| talk.requests.clear());
        let uris = uris.iter().map(|uri| (*uri).to_owned()).collect();
        connection.watch_resources(&uris).await.unwrap();
        let requests = talker.look(|talk| talk.requests.clone());
        let shown = |request: &Value| {
            format!(
                "{} {}",
                request["method"].as_str().unwrap(),
                request["params"]["uri"].as_str().unwrap()
            )
        };
        requests.iter().map(shown).collect::<Vec<_>>()
    };
    assert_eq!(
        watch(&["u:a", "u:b"]).await,
        ["resources/subscribe u:a", "resources/subscribe u:b"]
    );
    assert_eq!(
        watch(&["u:b", "u:c"]).await,
        ["resources/subscribe u:c", "resources/unsubscribe u:a"]
    );
    assert!(watch(&["u:b", "u:c"]).await.is_empty());
    wait_until(PATIENCE, async || talker.is_heard().then_some(())).await;
    let mut news = connection.take_news().unwrap();
    for (method, params) in [
        ("notifications/resources/updated", json!({"uri": "u:b", "new": 1})),
        ("notifications/resources/list_changed", json!({})),
        ("notifications/prompts/list_changed", json!({})),
        ("notifications/message", json!({"level": "info", "data": 1})),
    ] {
        talker.say(&json!({"jsonrpc": "2.0", "method": method, "params": params})).await;
    }
    let text = |text: &str| JsonText::from_text(text).unwrap();
    let updated = text(r#"{"uri":"u:b","new":1}"#);
    for expected in [
        UpstreamNews::ResourceUpdated { uri: "u:b".into(), params: updated },
        UpstreamNews::ResourcesChanged,
        UpstreamNews::PromptsChanged,
        UpstreamNews::Log(text(r#"{"level":"info","data":1}"#)),
    ] {
        assert_eq!(news.recv().await, Some(expected));
    }
}

#[tokio::test]
async fn what_a_server_has_besides_tools_is_listed_as_it_is() {
    let (talker, connection) = talking().await;
    let features = connection.features();
    assert!(features.prompts && features.resources && features.subscribe);
    assert!(features.completions && features.logging);
    assert_eq!(features.instructions.as_deref(), Some("Talk."));
    let twice = |key: &str, json: &str| {
        vec![Listed { key: key.into(), json: JsonText::from_text(json).unwrap() }; 2]
    };
    let prompts = connection.list_prompts().await.unwrap();
    assert_eq!(prompts.entries, twice("p", r#"{"name":"p","later":1.0}"#));
    let resources = connection.list_resources().await.unwrap();
    // Strict clients want a name.
    let named = r#"{"uri":"file:///a","name":"file:///a"}"#;
    assert_eq!(resources.entries, twice("file:///a", named));
    let templates = connection.list_templates().await.unwrap();
    let named = r#"{"uriTemplate":"file:///{p}","name":"file:///{p}"}"#;
    assert_eq!(templates.entries, twice("file:///{p}", named));
    assert_eq!(
        (prompts.repairs.len(), &prompts.left_out[..]),
        (0, &["it has no `name`".to_owned(), "it has no `name`".to_owned()][..])
    );
    assert_eq!(resources.repairs, [r#""file:///a": `name` became its `uri`"#; 2]);
    // What we declare in the handshake.
    let declared = talker.look(|talk| talk.requests[0]["params"]["capabilities"].clone());
    let expected = json!({"roots": {}, "sampling": {}, "elicitation": {"form": {}, "url": {}}});
    assert_eq!(declared, expected);
}

#[tokio::test]
async fn a_modern_request_says_what_its_caller_can() {
    let server = ScriptedServer::builder().modern().tools([Tool::echo("écho")]).start().await;
    let connection = connect(&server).await;
    let ask = UpstreamRequest {
        capabilities: Some(r#"{"sampling":{}}"#.into()),
        log_level: Some("debug".into()),
        meta: r#""traceparent":"00-1""#.into(),
        ..ask("écho", "{}", "a")
    };
    connection.ask(ask, None).await.unwrap();
    let stats = server.stats();
    let is_call = |method: &Option<String>| method.as_deref() == Some("tools/call");
    let request = stats.requests.iter().find(|request| is_call(&request.method)).unwrap();
    assert_eq!(request.headers["mcp-name"], "=?base64?w6ljaG8=?=");
    let meta = &stats.calls[0].params["_meta"];
    assert_eq!(meta["io.modelcontextprotocol/clientCapabilities"], json!({"sampling": {}}));
    assert_eq!(meta["io.modelcontextprotocol/logLevel"], "debug");
    assert_eq!(meta["traceparent"], "00-1");
    assert_eq!(meta["progressToken"], stats.calls[0].id);
}

#[tokio::test]
async fn a_modern_child_is_asked_in_its_own_words() {
    let (connection, _) = open(&peer(&["--modern"])).await.unwrap();
    let result = connection.ask(ask("echo", r#"{"n": 1.0}"#, "a"), None).await.unwrap();
    assert_eq!(value(&result)["content"][0]["text"], r#"{"n":1.0}"#);
    connection.close().await;
}

#[tokio::test]
async fn a_modern_server_is_listened_to_for_other_resources_without_a_gap() {
    let server = ScriptedServer::builder().modern().tools([Tool::echo("echo")]).start().await;
    let connection = connect(&server).await;
    let listens = || {
        let is_listen = |method: &Option<String>| method.as_deref() == Some("subscriptions/listen");
        server.stats().requests.iter().filter(|request| is_listen(&request.method)).count()
    };
    wait_until(PATIENCE, async || (server.open_streams() == 1).then_some(())).await;
    let watched = BTreeSet::from(["file:///a".to_owned()]);
    for expected in [2, 2] {
        connection.watch_resources(&watched).await.unwrap();
        assert_eq!(listens(), expected);
    }
    wait_until(PATIENCE, async || (server.open_streams() == 1).then_some(())).await;
    server.set_tools_and_notify([Tool::echo("new")]).await;
    tokio::time::timeout(PATIENCE, connection.changed()).await.expect("a change is noticed");
    connection.watch_resources(&BTreeSet::new()).await.unwrap();
    assert_eq!(listens(), 3);
    connection.close().await;
}
