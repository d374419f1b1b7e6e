//! A minimal MCP server of both eras: `/echo` has one tool, `/tools/N` has N. `/echo-events` answers calls with event
//! streams, as servers made with the official SDKs do in the session era.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Either, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use switchboard_test_support::demo_catalogue;

use super::lists::SIZES;
use super::server::{self, serve};
use super::wire::STATELESS_VERSION;

/// The session id of every session-era client; no state is kept for it.
const SESSION: HeaderValue = HeaderValue::from_static("bench-session");

pub(crate) const ECHO: &str = "/echo";
pub(crate) const ECHO_EVENTS: &str = "/echo-events";

/// A body of known length, or one event, whose length is not announced.
type AnswerBody = Either<Full<Bytes>, StreamBody<futures::stream::Iter<Events>>>;
type Events = std::array::IntoIter<Result<Frame<Bytes>, std::convert::Infallible>, 1>;

/// The `tools` of each path, as JSON.
type Catalogues = HashMap<String, String>;

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    method: &'a str,
    params: Option<Params<'a>>,
}

#[derive(Deserialize)]
struct Params<'a> {
    #[serde(borrow)]
    arguments: Option<Arguments<'a>>,
}

#[derive(Deserialize)]
struct Arguments<'a> {
    #[serde(borrow)]
    text: Option<&'a RawValue>,
}

pub(crate) async fn run() -> anyhow::Result<()> {
    let catalogues = Arc::new(catalogues());
    serve(move |request| answer(catalogues.clone(), request)).await
}

fn catalogues() -> Catalogues {
    let echo = json!([{
        "name": "echo",
        "description": "Says what it hears",
        "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}},
    }]);
    let many = SIZES.map(|size| (format!("/tools/{size}"), catalogue(size).to_string()));
    let one = [ECHO, ECHO_EVENTS].map(|path| (path.to_owned(), echo.to_string()));
    many.into_iter().chain(one).collect()
}

fn catalogue(size: usize) -> Value {
    let tools = demo_catalogue(size).into_iter().map(|tool| {
        let mut written = json!({
            "name": tool.name,
            "description": tool.description,
            "inputSchema": tool.input_schema,
        });
        if let Some(members) = written.as_object_mut() {
            members.extend(tool.members);
        }
        written
    });
    tools.collect()
}

async fn answer(catalogues: Arc<Catalogues>, request: Request<Incoming>) -> Response<AnswerBody> {
    let is_eventful = request.uri().path() == ECHO_EVENTS;
    let response = answer_in_json(&catalogues, request).await;
    if !is_eventful || response.status() != StatusCode::OK {
        return response.map(Either::Left);
    }
    let (mut head, body) = response.into_parts();
    head.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    let body = body.collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    let event = [b"event: message\ndata: ", &*body, b"\n\n"].concat();
    let frames = [Ok(Frame::data(Bytes::from(event)))];
    Response::from_parts(head, Either::Right(StreamBody::new(futures::stream::iter(frames))))
}

async fn answer_in_json(
    catalogues: &Catalogues,
    request: Request<Incoming>,
) -> Response<Full<Bytes>> {
    let Some(tools) = catalogues.get(request.uri().path()) else {
        return server::json(StatusCode::NOT_FOUND, "");
    };
    if request.method() != Method::POST {
        return server::json(StatusCode::METHOD_NOT_ALLOWED, "");
    }
    let version = request.headers().get("mcp-protocol-version");
    let is_stateless = version.is_some_and(|version| version == STATELESS_VERSION);
    let Ok(body) = request.into_body().collect().await else {
        return server::json(StatusCode::BAD_REQUEST, "");
    };
    let body = body.to_bytes();
    let Ok(message) = serde_json::from_slice::<Message<'_>>(&body) else {
        return server::json(StatusCode::BAD_REQUEST, "");
    };
    let Some(id) = message.id else { return server::json(StatusCode::ACCEPTED, "") };
    let Some(result) = result(&message, tools, is_stateless) else {
        let status = if is_stateless { StatusCode::NOT_FOUND } else { StatusCode::OK };
        let error = r#"{"code":-32601,"message":"unknown method"}"#;
        return server::json(status, format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#));
    };
    let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#);
    let mut response = server::json(StatusCode::OK, text);
    if message.method == "initialize" {
        response.headers_mut().insert("mcp-session-id", SESSION);
    }
    response
}

fn result(message: &Message<'_>, tools: &str, is_stateless: bool) -> Option<String> {
    let info = r#"{"name":"bench","version":"1"}"#;
    Some(match (message.method, is_stateless) {
        ("tools/call", _) => {
            let arguments = message.params.as_ref().and_then(|params| params.arguments.as_ref());
            let text = arguments.and_then(|arguments| arguments.text)?;
            let kind = if is_stateless { r#","resultType":"complete""# } else { "" };
            format!(r#"{{"content":[{{"type":"text","text":{text}}}],"isError":false{kind}}}"#)
        }
        ("tools/list", false) => format!(r#"{{"tools":{tools}}}"#),
        ("tools/list", true) => format!(
            r#"{{"resultType":"complete","ttlMs":3600000,"cacheScope":"public","tools":{tools}}}"#
        ),
        ("initialize", false) => format!(
            r#"{{"protocolVersion":"2025-11-25","capabilities":{{"tools":{{}}}},"serverInfo":{info}}}"#
        ),
        ("server/discover", true) => format!(
            r#"{{"resultType":"complete","supportedVersions":["{STATELESS_VERSION}"],"capabilities":{{"tools":{{}}}},"ttlMs":3600000,"cacheScope":"public","_meta":{{"io.modelcontextprotocol/serverInfo":{info}}}}}"#
        ),
        ("ping", false) => "{}".to_owned(),
        _ => return None,
    })
}
