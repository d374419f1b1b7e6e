//! An MCP client on one connection that repeats one request and checks every response.

use anyhow::{Context, bail, ensure};
use bytes::Bytes;
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri, header,
};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

pub(crate) const STATELESS_VERSION: &str = "2026-07-28";
const SESSION_VERSION: &str = "2025-11-25";

/// The era of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Era {
    Session,
    Stateless,
}

/// The address that a client connects to.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) address: String,
    pub(crate) path: String,
}

/// One connection; it closes when this is dropped.
pub(crate) struct Connection {
    sender: SendRequest<Full<Bytes>>,
    uri: Uri,
    headers: HeaderMap,
    _driver: JoinSet<()>,
}

impl Connection {
    pub(crate) async fn open(place: &Place) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(&place.address).await.context("cannot connect")?;
        stream.set_nodelay(true)?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        let mut driver = JoinSet::new();
        driver.spawn(async move {
            // The next request on the connection reports the error.
            let _ended = connection.await;
        });
        let headers = HeaderMap::from_iter([
            (header::HOST, HeaderValue::from_str(&place.address)?),
            (header::ACCEPT, HeaderValue::from_static("application/json, text/event-stream")),
            (header::CONTENT_TYPE, HeaderValue::from_static("application/json")),
        ]);
        Ok(Self { sender, uri: place.path.parse()?, headers, _driver: driver })
    }

    async fn send(&mut self, method: Method, body: Bytes) -> anyhow::Result<Response<Incoming>> {
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = method;
        *request.uri_mut() = self.uri.clone();
        *request.headers_mut() = self.headers.clone();
        self.sender.ready().await?;
        self.sender.send_request(request).await.context("no answer")
    }

    async fn post(&mut self, body: Bytes) -> anyhow::Result<(StatusCode, HeaderMap, Bytes)> {
        let (parts, body) = self.send(Method::POST, body).await?.into_parts();
        Ok((parts.status, parts.headers, body.collect().await?.to_bytes()))
    }

    async fn get(&mut self) -> anyhow::Result<(StatusCode, HeaderMap, Bytes)> {
        let (parts, body) = self.send(Method::GET, Bytes::new()).await?.into_parts();
        Ok((parts.status, parts.headers, body.collect().await?.to_bytes()))
    }

    /// Opens a session, adds its headers to later requests and returns its id.
    pub(crate) async fn initialize(&mut self) -> anyhow::Result<HeaderValue> {
        let session = HeaderName::from_static("mcp-session-id");
        let version = HeaderName::from_static("mcp-protocol-version");
        self.headers.remove(&session);
        self.headers.remove(&version);
        let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": SESSION_VERSION,
            // As editors declare them. For such a client the gateway opens a session with a server of both eras, because
            // only there the server can ask it something.
            "capabilities": {"roots": {"listChanged": true}, "sampling": {}, "elicitation": {}},
            "clientInfo": {"name": "bench", "version": "1"},
        }});
        let (status, headers, body) = self.post(hello.to_string().into()).await?;
        let data = body.strip_prefix(b"event: message\ndata: ").unwrap_or(&body);
        let answer: Value = serde_json::from_slice(data).unwrap_or_default();
        let agreed = answer.pointer("/result/protocolVersion");
        ensure!(
            status == StatusCode::OK && agreed.is_some_and(|agreed| agreed == SESSION_VERSION),
            "initialize was answered with {status}: {}",
            String::from_utf8_lossy(&body)
        );
        let id = headers.get(&session).context("initialize gave no session")?.clone();
        self.headers.insert(session, id.clone());
        self.headers.insert(version, HeaderValue::from_static(SESSION_VERSION));
        let done = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        let (status, ..) = self.post(Bytes::from_static(done.as_bytes())).await?;
        ensure!(status == StatusCode::ACCEPTED, "initialized was answered with {status}");
        Ok(id)
    }

    /// Opens the event stream of a session; it stays open while the returned value is kept.
    pub(crate) async fn listen(
        &mut self,
        session: HeaderValue,
    ) -> anyhow::Result<Response<Incoming>> {
        self.headers.remove(header::CONTENT_TYPE);
        self.headers.insert("mcp-session-id", session);
        self.headers.insert("mcp-protocol-version", HeaderValue::from_static(SESSION_VERSION));
        let answer = self.send(Method::GET, Bytes::new()).await?;
        ensure!(answer.status() == StatusCode::OK, "GET was answered with {}", answer.status());
        Ok(answer)
    }
}

/// A repeated request and the check of its responses.
#[derive(Debug, Clone)]
pub(crate) enum Question {
    Call {
        tool: String,
        text: String,
    },
    List {
        size: usize,
    },
    /// `GET` of a path of the API, whose response has a list of this length.
    Get {
        list: &'static str,
        size: usize,
    },
}

impl Question {
    fn method(&self) -> &'static str {
        match self {
            Self::Call { .. } => "tools/call",
            Self::List { .. } => "tools/list",
            Self::Get { .. } => "GET",
        }
    }

    fn message(&self, era: Era) -> Value {
        let mut params = match self {
            Self::Call { tool, text } => json!({"name": tool, "arguments": {"text": text}}),
            Self::List { .. } | Self::Get { .. } => json!({}),
        };
        if era == Era::Stateless {
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": STATELESS_VERSION,
                "io.modelcontextprotocol/clientCapabilities": {},
                "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
            });
        }
        json!({"jsonrpc": "2.0", "id": 7, "method": self.method(), "params": params})
    }

    fn check(&self, era: Era, answer: &Value) -> Result<(), String> {
        let wrong = || {
            let start: String = answer.to_string().chars().take(400).collect();
            format!("wrong answer to {self:?}: {start}")
        };
        if let Self::Get { list, size } = self {
            let length = answer[list].as_array().map(Vec::len);
            return if length == Some(*size) { Ok(()) } else { Err(wrong()) };
        }
        let result = answer.get("result").filter(|_| answer["id"] == 7).ok_or_else(wrong)?;
        let is_finished = era == Era::Session || result["resultType"] == "complete";
        let is_right = match self {
            Self::Call { text, .. } => {
                result["isError"] != true && result["content"][0]["text"] == text.as_str()
            }
            Self::List { size } => {
                result["tools"].as_array().is_some_and(|tools| tools.len() == *size)
            }
            Self::Get { .. } => false,
        };
        if is_finished && is_right { Ok(()) } else { Err(wrong()) }
    }
}

/// A connection with its request, in a session if the era has sessions.
pub(crate) struct Client {
    connection: Connection,
    era: Era,
    question: Question,
    body: Bytes,
    /// A response that passed the check; equal bytes are not parsed again.
    right: Bytes,
}

impl Client {
    pub(crate) async fn open(place: &Place, era: Era, question: Question) -> anyhow::Result<Self> {
        let mut connection = Connection::open(place).await?;
        match era {
            Era::Session => drop(connection.initialize().await?),
            Era::Stateless => {
                let headers = &mut connection.headers;
                headers.insert("mcp-protocol-version", HeaderValue::from_static(STATELESS_VERSION));
                headers.insert("mcp-method", HeaderValue::from_static(question.method()));
                if let Question::Call { tool, .. } = &question {
                    headers.insert("mcp-name", HeaderValue::from_str(tool)?);
                }
            }
        }
        let body = question.message(era).to_string().into();
        let mut client = Self { connection, era, question, body, right: Bytes::new() };
        client.ask().await?;
        Ok(client)
    }

    /// A client for a server with fixed responses and without sessions.
    pub(crate) async fn of_fixed(place: &Place, question: Question) -> anyhow::Result<Self> {
        let connection = Connection::open(place).await?;
        let body = question.message(Era::Session).to_string().into();
        let mut client =
            Self { connection, era: Era::Session, question, body, right: Bytes::new() };
        client.ask().await?;
        Ok(client)
    }

    /// Sends one request that creates something over the API.
    pub(crate) async fn create(place: &Place, body: &'static str) -> anyhow::Result<()> {
        let mut connection = Connection::open(place).await?;
        let (status, _, answer) = connection.post(Bytes::from_static(body.as_bytes())).await?;
        ensure!(
            status == StatusCode::CREATED,
            "POST {} was answered with {status}: {}",
            place.path,
            String::from_utf8_lossy(&answer)
        );
        Ok(())
    }

    /// Sends the request once and checks the response.
    pub(crate) async fn ask(&mut self) -> anyhow::Result<()> {
        let (status, _, body) = match self.question {
            Question::Get { .. } => self.connection.get().await?,
            Question::Call { .. } | Question::List { .. } => {
                self.connection.post(self.body.clone()).await?
            }
        };
        if status == StatusCode::OK && body == self.right {
            return Ok(());
        }
        let data = body.strip_prefix(b"event: message\ndata: ").unwrap_or(&body);
        let answer = serde_json::from_slice(data).unwrap_or_default();
        if status != StatusCode::OK {
            bail!("{} was answered with {status}: {answer}", self.question.method());
        }
        self.question.check(self.era, &answer).map_err(anyhow::Error::msg)?;
        self.right = body;
        Ok(())
    }

    /// The last response that passed the check.
    pub(crate) fn answer(&self) -> &Bytes {
        &self.right
    }
}
