//! Tests with providers that answer well, badly and not at all, over real sockets.

use std::convert::Infallible;
use std::io::{Read as _, Write as _};
use std::thread;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use futures::{StreamExt as _, future, stream};
use pretty_assertions::assert_eq;
use serde_json::json;
use switchboard_chat::{FaultKind, ModelEvent, ModelFault};
use switchboard_model::{ProviderKind, ProviderPlan};
use switchboard_wire::WireRequest;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::asked_by::AskedBy;
use crate::test_support::{
    KEY, Plain, Question, Server, all, endpoint, endpoints, fault, plan, reply,
};
use crate::{ModelStream, ProviderEndpoint, Providers};

fn event_stream(pieces: Vec<&'static str>) -> Response {
    let pieces = stream::iter(pieces).then(|piece| async move {
        // Without a pause they would arrive as one piece.
        tokio::time::sleep(Duration::from_millis(20)).await;
        Ok::<_, Infallible>(Bytes::from_static(piece.as_bytes()))
    });
    ([("content-type", "text/event-stream; charset=utf-8")], Body::from_stream(pieces))
        .into_response()
}

fn answers(path: &str, _: usize) -> Response {
    match path {
        "/good" => event_stream(vec!["one ", "two ", "END", "never"]),
        "/cut-short" => event_stream(vec!["one "]),
        "/repeats" => event_stream(vec!["FAIL your key hunter2-s3cret is bad"]),
        "/hangs" => {
            let pieces = stream::iter([Ok::<_, Infallible>(Bytes::from_static(b"one "))]);
            let body = Body::from_stream(pieces.chain(stream::pending()));
            ([("content-type", "text/event-stream")], body).into_response()
        }
        "/drips" => {
            let pieces = stream::repeat(()).then(|()| async {
                tokio::time::sleep(Duration::from_millis(20)).await;
                Ok::<_, Infallible>(Bytes::from_static(b"drip "))
            });
            ([("content-type", "text/event-stream")], Body::from_stream(pieces)).into_response()
        }
        "/html" => {
            let page = format!("<html>\n<title>Welcome {KEY}</title>{}", "x".repeat(1 << 20));
            ([("content-type", "text/html; charset=utf-8")], page).into_response()
        }
        "/json" => axum::Json(json!({"id": "resp_1"})).into_response(),
        "/nameless" => {
            let mut response = event_stream(vec!["END"]);
            response.headers_mut().remove("content-type");
            response
        }
        "/limited" => {
            let headers = [("retry-after", "7"), ("content-type", "application/json")];
            let body = format!(r#"{{"error": "too much for {KEY}"}}"#);
            (StatusCode::TOO_MANY_REQUESTS, headers, body).into_response()
        }
        "/moved" => {
            let place = "https://elsewhere.example/v1?key=hunter2-s3cret";
            (StatusCode::TEMPORARY_REDIRECT, [("location", place)]).into_response()
        }
        "/endless-error" => {
            let pieces = stream::repeat(Ok::<_, Infallible>(Bytes::from_static(b"no no no ")));
            (StatusCode::INTERNAL_SERVER_ERROR, Body::from_stream(pieces)).into_response()
        }
        _ => StatusCode::NOT_FOUND.into_response(),
    }
}

async fn open(endpoint: &ProviderEndpoint, path: &str) -> Result<ModelStream, ModelFault> {
    let wire = WireRequest {
        path: path.into(),
        headers: vec![("x-format", "1".into())],
        body: Bytes::from_static(b"{}"),
    };
    endpoint.open(AskedBy::default(), wire, Box::new(Plain::default())).await
}

/// Sends a request to a path whose response is not a stream.
async fn refused(path: &str) -> ModelFault {
    let server = Server::start(answers).await;
    let [loopback, remote] = endpoints(&plan(ProviderKind::OpenAi, &server.base));
    let fault = open(&loopback, path).await.unwrap_err();
    assert!(!format!("{fault} {fault:?}").contains("s3cret"), "{fault:?}");
    assert_eq!(open(&remote, path).await.unwrap_err(), fault, "over reqwest");
    fault
}

fn texts(events: &[ModelEvent]) -> String {
    let text = |event: &ModelEvent| match event {
        ModelEvent::Text(text) => text.clone(),
        _ => String::new(),
    };
    events.iter().map(text).collect()
}

#[tokio::test]
async fn a_stream_is_read_to_its_end_and_no_further() {
    let server = Server::start(answers).await;
    for endpoint in endpoints(&plan(ProviderKind::ChatGpt, &format!("{}/", server.base))) {
        let mut stream = open(&endpoint, "/good").await.unwrap();
        let first = stream.next().await.unwrap();
        assert_eq!(
            first,
            [ModelEvent::Text("one ".into())],
            "it comes while the rest is on its way"
        );
        let rest = all(stream).await;
        assert_eq!(texts(&rest), "two END");
        reply(&rest);
        let seen = server.seen().pop().unwrap();
        assert_eq!((seen.path.as_str(), seen.body.as_str()), ("/good", "{}"));
        let header = |name: &str| seen.headers[name].to_str().unwrap();
        assert_eq!(header("authorization"), format!("Bearer {KEY}"));
        assert_eq!((header("accept"), header("x-format")), ("text/event-stream", "1"));
        assert_eq!(header("originator"), "switchboard");
        assert_eq!(header("host"), server.base.trim_start_matches("http://"));
        assert!(header("user-agent").starts_with("switchboard/"));
        reply(&all(open(&endpoint, "/nameless").await.unwrap()).await);
    }
}

/// Answers two requests on the first connection, and accepts no other.
#[tokio::test]
async fn a_connection_is_used_again_after_a_stream_was_read_to_its_end() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let plan = plan(ProviderKind::OpenAi, &format!("http://{}", listener.local_addr().unwrap()));
    for endpoint in endpoints(&plan) {
        let asking = async {
            for _ in 0..2 {
                reply(&all(open(&endpoint, "/x").await.unwrap()).await);
            }
        };
        let serving = async {
            let (mut socket, _) = listener.accept().await.unwrap();
            for _ in 0..2 {
                assert!(socket.read(&mut [0; 4096]).await.unwrap() > 0);
                let answer = "HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nEND";
                socket.write_all(answer.as_bytes()).await.unwrap();
            }
        };
        let both = timeout(Duration::from_secs(10), future::join(asking, serving)).await;
        both.expect("the second request came on another connection");
    }
}

#[tokio::test]
async fn what_is_no_stream_is_told_in_a_line() {
    let fault = refused("/html").await;
    assert_eq!((fault.kind, fault.status), (FaultKind::Unreadable, Some(200)));
    assert!(fault.message.contains("text/html instead of a stream: <html> <title>Welcome ***"));
    assert!(fault.message.len() < 400, "{fault}");
    let fault = refused("/json").await;
    insta::assert_snapshot!(fault, @r#"unreadable: the provider `test` answered with application/json instead of a stream: {"id":"resp_1"}"#);
}

#[tokio::test]
async fn refusals_say_why_and_for_how_long() {
    let fault = refused("/limited").await;
    assert_eq!((fault.kind, fault.status), (FaultKind::RateLimited, Some(429)));
    assert_eq!(fault.retry_after, Some(Duration::from_secs(7)));
    assert!(fault.message.contains("too much for ***"), "{fault}");
    assert_eq!(refused("/nowhere").await.kind, FaultKind::NotFound);
    assert_eq!(refused("/endless-error").await.kind, FaultKind::Provider);
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let fault = refused("/moved").await;
    assert_eq!((fault.kind, fault.status), (FaultKind::NotFound, Some(307)));
    insta::assert_snapshot!(fault, @"not_found: the provider `test` answered with a redirect (307) to https://elsewhere.example/v1?key=***, which is not followed: set `base_url` to the final address");
}

#[tokio::test]
async fn silence_and_slowness_end_in_a_timeout() {
    let server = Server::start(answers).await;
    let short = Duration::from_secs(1);
    let impatient =
        ProviderPlan { idle_timeout: short, ..plan(ProviderKind::OpenAi, &server.base) };
    let busy = ProviderPlan { total_timeout: short, ..plan(ProviderKind::OpenAi, &server.base) };
    for (impatient, busy) in endpoints(&impatient).into_iter().zip(endpoints(&busy)) {
        let events = all(open(&impatient, "/hangs").await.unwrap()).await;
        assert_eq!((texts(&events).as_str(), fault(&events).kind), ("one ", FaultKind::Timeout));
        let said = fault(&events).to_string();
        assert_eq!(said, "timeout: the provider `test` was silent for 1s (`idle_timeout`)");
        let events = all(open(&busy, "/drips").await.unwrap()).await;
        assert!(texts(&events).contains("drip drip"), "{events:?}");
        let said = fault(&events).to_string();
        assert_eq!(said, "timeout: the provider `test` did not finish within 1s (`total_timeout`)");
    }
}

/// A provider that sends continuously never lets a timer fire.
#[tokio::test]
async fn a_flood_of_nothing_ends_in_a_timeout() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    // Ends with the connections, which is after this test.
    thread::spawn(move || {
        for _ in 0..2 {
            let (mut socket, _) = listener.accept().unwrap();
            assert!(socket.read(&mut [0; 4096]).unwrap() > 0);
            let mut bytes = b"HTTP/1.1 200 OK\r\n\r\n".to_vec();
            while socket.write_all(&bytes).is_ok() {
                bytes = vec![0; 1 << 20];
            }
        }
    });
    let total_timeout = Duration::from_millis(300);
    let short = ProviderPlan { total_timeout, ..plan(ProviderKind::OpenAi, &base) };
    for endpoint in endpoints(&short) {
        let events = all(open(&endpoint, "/x").await.unwrap()).await;
        assert!(fault(&events).message.contains("`total_timeout`"), "{events:?}");
    }
}

#[tokio::test]
async fn silence_is_counted_over_waits_that_are_given_up() {
    let server = Server::start(answers).await;
    let idle_timeout = Duration::from_secs(1);
    let plan = ProviderPlan { idle_timeout, ..plan(ProviderKind::OpenAi, &server.base) };
    let mut stream = open(&endpoint(plan), "/hangs").await.unwrap();
    assert_eq!(stream.next().await.unwrap().len(), 1);
    let mut waits = 0;
    let events = loop {
        match timeout(Duration::from_millis(20), stream.next()).await {
            Ok(events) => break events.unwrap(),
            Err(_) => waits += 1,
        }
        assert!(waits < 500, "the silence is counted anew by each wait");
    };
    assert_eq!(fault(&events).kind, FaultKind::Timeout);
}

#[tokio::test]
async fn a_server_that_takes_the_request_and_says_nothing_times_out() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let idle_timeout = Duration::from_millis(100);
    let plan = ProviderPlan { idle_timeout, ..plan(ProviderKind::OpenAi, &base) };
    let fault = open(&endpoint(plan), "/x").await.unwrap_err();
    assert_eq!(fault.kind, FaultKind::Timeout, "{fault}");
}

#[tokio::test]
async fn a_stream_that_breaks_is_an_interrupted_answer() {
    let server = Server::start(answers).await;
    for ended in endpoints(&plan(ProviderKind::OpenAi, &server.base)) {
        let events = all(open(&ended, "/cut-short").await.unwrap()).await;
        let (said, kind) = (texts(&events), fault(&events).kind);
        assert_eq!((said.as_str(), kind), ("one ", FaultKind::Interrupted));
    }
    // In the middle of a chunk, without an end.
    let (base, _tasks) = raw(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n\
         4\r\none \r\nff\r\ntwo",
    )
    .await;
    for broken in endpoints(&plan(ProviderKind::OpenAi, &base)) {
        let events = all(open(&broken, "/x").await.unwrap()).await;
        assert!(texts(&events).starts_with("one "), "{events:?}");
        assert_eq!(fault(&events).kind, FaultKind::Interrupted);
    }
    for answer in ["", "SSH-2.0-nonsense\r\n\r\n"] {
        let (base, _tasks) = raw(answer).await;
        for nonsense in endpoints(&plan(ProviderKind::OpenAi, &base)) {
            let fault = open(&nonsense, "/x").await.unwrap_err();
            assert_eq!(fault.kind, FaultKind::Interrupted, "{fault}");
        }
    }
}

/// Reads a request, writes these bytes and closes the connection.
async fn raw(answer: &'static str) -> (String, JoinSet<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let mut buffer = [0; 4096];
            let _read = socket.read(&mut buffer).await;
            let _written = socket.write_all(answer.as_bytes()).await;
        }
    });
    (base, tasks)
}

#[tokio::test]
async fn what_cannot_be_reached_is_named_by_host_and_port() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let base = format!("http://127.0.0.1:{port}/v1");
    for endpoint in endpoints(&plan(ProviderKind::OpenAi, &base)) {
        let fault = open(&endpoint, "/x?key=hunter2-s3cret").await.unwrap_err();
        assert_eq!(fault.kind, FaultKind::Unreachable);
        let shown = fault.to_string().replace(&port.to_string(), "PORT");
        let refused =
            "unreachable: 127.0.0.1:PORT cannot be reached: Connection refused (os error 111)";
        assert_eq!(shown, refused);
    }
    let nowhere = plan(ProviderKind::OpenAi, "https://no-such-host.invalid/v1");
    let fault = open(&endpoint(nowhere), "/x").await.unwrap_err();
    assert_eq!(fault.kind, FaultKind::Unreachable, "{fault}");
    assert!(fault.message.starts_with("no-such-host.invalid:443 cannot be reached: "), "{fault}");
}

#[tokio::test]
async fn dropping_a_stream_closes_its_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    for endpoint in endpoints(&plan(ProviderKind::OpenAi, &base)) {
        let opening = open(&endpoint, "/x");
        let serving = async {
            let (mut socket, _) = listener.accept().await.unwrap();
            let mut buffer = [0; 4096];
            assert!(socket.read(&mut buffer).await.unwrap() > 0);
            let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
            socket.write_all(head.as_bytes()).await.unwrap();
            socket
        };
        let (stream, mut socket) = future::join(opening, serving).await;
        drop(stream.unwrap());
        let read = timeout(Duration::from_secs(5), socket.read(&mut [0; 16])).await;
        assert!(matches!(read, Ok(Ok(0) | Err(_))), "{read:?}");
    }
}

#[tokio::test]
async fn no_event_shows_a_key_that_a_provider_repeats() {
    let server = Server::start(answers).await;
    let endpoint = endpoint(plan(ProviderKind::OpenAi, &server.base));
    let stream = open(&endpoint, "/repeats").await.unwrap();
    assert!(!format!("{stream:?} {endpoint:?}").contains("s3cret"));
    assert_eq!(fault(&all(stream).await).message, "your key *** is bad");
}

#[tokio::test]
async fn who_has_no_key_or_model_is_told_where_to_put_them() {
    let providers = Providers::new(&[], &|name| {
        (name == "ANTHROPIC_BASE_URL").then(|| "anthropic.example".to_owned())
    });
    let question = Question::new(ProviderKind::OpenAi, "hi");
    let openai = providers.find("openai").unwrap();
    let fault = openai.ask(&question.ask()).await.unwrap_err();
    insta::assert_snapshot!(fault, @"credentials: the provider `openai` has no key: set OPENAI_API_KEY, or `api_key` in its entry of `providers`");
    let fault = providers.find("anthropic").unwrap().ask(&question.ask()).await.unwrap_err();
    insta::assert_snapshot!(fault, @"not_found: ANTHROPIC_BASE_URL is not a valid address for the provider `anthropic`: set one such as `https://proxy.example/v1`");
    insta::assert_snapshot!(openai.source(None, None).unwrap_err(), @"not_found: no model is named for the provider `openai`: name one with the message, or set `model` in its entry of `providers`, or OPENAI_MODEL");
    assert_eq!(openai.source(Some("gpt-5"), None).unwrap().model, "gpt-5");
    assert_eq!(providers.find("demo").unwrap().source(None, None).unwrap().model, "demo");
    let configured =
        ProviderPlan { model: Some("m".into()), ..ProviderPlan::new("test", ProviderKind::Gemini) };
    let source = endpoint(configured).source(Some(" "), None).unwrap();
    assert_eq!((source.model.as_str(), source.provider.as_str()), ("m", "test"));
}

#[tokio::test(start_paused = true)]
async fn the_demo_model_takes_its_time_and_remembers_its_failures() {
    let endpoint = Providers::new(&[], &|_| None).find("demo").unwrap();
    let begin = tokio::time::Instant::now();
    let question = Question::new(ProviderKind::Demo, "/slow 3\n/call t {\"a\": 1}");
    let events = all(endpoint.ask(&question.ask()).await.unwrap()).await;
    assert!(begin.elapsed() >= Duration::from_secs(3), "{:?}", begin.elapsed());
    assert_eq!(reply(&events).calls().count(), 1);
    let flaky = Question::new(ProviderKind::Demo, "/flaky 2");
    for _ in 0..2 {
        let events = all(endpoint.ask(&flaky.ask()).await.unwrap()).await;
        assert_eq!(fault(&events).kind, FaultKind::Overloaded);
    }
    reply(&all(endpoint.ask(&flaky.ask()).await.unwrap()).await);
    let long = Question::new(ProviderKind::Demo, "/slow 3600");
    let events = all(endpoint.ask(&long.ask()).await.unwrap()).await;
    assert_eq!(fault(&events).kind, FaultKind::Timeout, "it has a total timeout, too");
}

#[tokio::test(start_paused = true)]
async fn the_demo_model_loses_nothing_when_waits_are_given_up() {
    let endpoint = Providers::new(&[], &|_| None).find("demo").unwrap();
    let question = Question::new(ProviderKind::Demo, "/slow 2\n/say bye now");
    let whole = all(endpoint.ask(&question.ask()).await.unwrap()).await;
    let mut stream = endpoint.ask(&question.ask()).await.unwrap();
    let begin = tokio::time::Instant::now();
    let mut pieces = Vec::new();
    loop {
        match timeout(Duration::from_millis(7), stream.next()).await {
            Ok(Some(events)) => pieces.extend(events),
            Ok(None) => break,
            Err(_) => {}
        }
    }
    assert_eq!(pieces, whole);
    assert!(begin.elapsed() >= Duration::from_secs(2), "{:?}", begin.elapsed());
}
