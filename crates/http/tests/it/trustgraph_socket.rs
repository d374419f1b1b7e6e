//! The WebSocket of TrustGraph's clients: its first frame, its requests, its limits.

use futures::{SinkExt, StreamExt};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use switchboard_auth::Role;
use switchboard_test_support::{ScriptedServer, Tool, wait_until};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use crate::api_server::{ApiServer, PATIENCE, scripted, yaml};

const PATH: &str = "/trustgraph/api/v1/socket";

struct Socket(WebSocketStream<MaybeTlsStream<TcpStream>>);

impl Socket {
    async fn open(server: &ApiServer) -> Self {
        Self::try_open(server, None).await.unwrap()
    }

    async fn try_open(server: &ApiServer, origin: Option<&str>) -> Result<Self, Error> {
        let mut request = format!("ws://{}{PATH}", server.address).into_client_request()?;
        if let Some(origin) = origin {
            request.headers_mut().insert("origin", origin.parse().unwrap());
        }
        Ok(Self(connect_async(request).await?.0))
    }

    /// Opens a socket and shows a token.
    async fn with_token(server: &ApiServer, token: &str) -> (Self, Value) {
        let mut socket = Self::open(server).await;
        socket.say(&json!({"type": "auth", "token": token})).await;
        let answer = socket.hear().await.unwrap();
        (socket, answer)
    }

    async fn say(&mut self, frame: &Value) {
        self.0.send(Message::text(frame.to_string())).await.unwrap();
    }

    /// The next frame with a text; `None` after the end.
    async fn hear(&mut self) -> Option<Value> {
        loop {
            match tokio::time::timeout(PATIENCE, self.0.next()).await.unwrap() {
                Some(Ok(Message::Text(text))) => return Some(serde_json::from_str(&text).unwrap()),
                Some(Ok(Message::Close(_)) | Err(_)) | None => return None,
                Some(Ok(_)) => {}
            }
        }
    }

    async fn asks(&mut self, request: &Value) -> Value {
        self.say(request).await;
        self.hear().await.unwrap()
    }
}

async fn shop() -> (ScriptedServer, ApiServer) {
    let shop = scripted([Tool::echo("find")]).await;
    let text = format!("{}  gateway: {{trustgraph: true}}\n", yaml(&[], &[("shop", &shop)]));
    let server = ApiServer::start(&text).await;
    (shop, server)
}

fn call(name: &str) -> Value {
    let request = json!({"name": name, "parameters": {"a": 1}});
    json!({"id": "req-1", "workspace": "default", "service": "mcp-tool", "flow": "default", "request": request})
}

#[tokio::test]
async fn a_tool_is_called_over_the_socket() {
    let (_shop, server) = shop().await;
    let (mut socket, answer) = Socket::with_token(&server, "").await;
    assert_eq!(answer, json!({"type": "auth-ok", "default_workspace": "default"}));
    for name in ["shop.find", "shop__find", "find"] {
        let expected = json!({"id": "req-1", "response": {"object": {"a": 1}}, "complete": true});
        assert_eq!(socket.asks(&call(name)).await, expected, "{name}");
    }
}

#[tokio::test]
async fn a_request_that_cannot_be_answered_says_why() {
    let (_shop, server) = shop().await;
    let (mut socket, _) = Socket::with_token(&server, "").await;
    let error = |kind: &str, message: &str| json!({"type": kind, "message": message});
    let unknown = socket.asks(&call("nowhere")).await;
    assert_eq!(unknown["id"], "req-1");
    assert_eq!(unknown["error"]["type"], "tool-error");
    let rag = socket.asks(&json!({"id": "a", "service": "graph-rag", "request": {}})).await;
    assert_eq!(
        rag,
        json!({"id": "a", "complete": true, "error": error("request-error",
            "there is no service 'graph-rag' here; Switchboard has agent, mcp-tool and config")})
    );
    let other = json!({"id": "a", "service": "mcp-tool", "workspace": "sales", "request": {}});
    let message =
        "there is no workspace 'sales': Switchboard has one configuration, the workspace 'default'";
    assert_eq!(socket.asks(&other).await["error"], error("request-error", message));
    let nameless = socket.asks(&json!({"service": "agent"})).await;
    let message = nameless["error"]["message"].as_str().unwrap();
    assert!(
        message.starts_with("a request is an object with id, service and request"),
        "{message}"
    );
    // The socket still answers.
    assert_eq!(socket.asks(&call("find")).await["complete"], true);
}

#[tokio::test]
async fn the_first_frame_must_have_a_valid_token() {
    let (_shop, server) = shop().await;
    let key = server.api_of("client", Role::Client).await;
    for token in ["", "sbk_s3cret", "line\nbreak"] {
        let (mut socket, answer) = Socket::with_token(&server, token).await;
        assert_eq!(answer["type"], "auth-failed", "{token}");
        assert!(!answer.to_string().contains("s3cret"), "{answer}");
        assert_eq!(socket.hear().await, None, "{token}");
    }
    let mut socket = Socket::open(&server).await;
    let answer = socket.asks(&call("find")).await;
    assert_eq!(answer["type"], "auth-failed");
    let (mut socket, answer) = Socket::with_token(&server, key.key().unwrap()).await;
    assert_eq!(answer["type"], "auth-ok");
    assert_eq!(socket.asks(&call("find")).await["response"], json!({"object": {"a": 1}}));
    let config = json!({"id": "a", "service": "config", "request": {"operation": "config"}});
    let refused = "this needs the role operator, and the token has client";
    assert_eq!(socket.asks(&config).await["error"]["message"], refused);
}

#[tokio::test]
async fn a_frame_that_is_too_large_ends_the_socket_and_nothing_else() {
    let (_shop, server) = shop().await;
    let (mut socket, _) = Socket::with_token(&server, "").await;
    let (mut other, _) = Socket::with_token(&server, "").await;
    let large = json!({"id": "a", "service": "x".repeat(2 << 20)});
    // The board may close before it has read everything.
    let _reset = socket.0.send(Message::text(large.to_string())).await;
    assert_eq!(socket.hear().await, None);
    assert_eq!(other.asks(&call("find")).await["complete"], true);
}

#[tokio::test]
async fn the_socket_exists_only_with_the_setting_and_for_its_own_pages() {
    let (_shop, server) = shop().await;
    let foreign = Socket::try_open(&server, Some("https://evil.example")).await;
    assert!(matches!(foreign, Err(Error::Http(response)) if response.status() == 403));
    let plain = server.api().get(PATH).await;
    assert_eq!(
        plain.problem(400, "bad_request"),
        "this is a WebSocket: connect to it with a WebSocket client"
    );
    let off = ApiServer::start(&yaml(&[], &[])).await;
    let refused = Socket::try_open(&off, None).await;
    assert!(matches!(refused, Err(Error::Http(response)) if response.status() == 404));
    for path in ["/trustgraph/api/v1/config", "/trustgraph/api/v1/flow/f/service/mcp-tool"] {
        let detail = off.api().post(path, json!({})).await.problem(404, "not_found");
        assert!(detail.contains("gateway.trustgraph: true"), "{detail}");
    }
}

#[tokio::test]
async fn the_agent_answers_and_leaves_no_session() {
    let (_shop, server) = shop().await;
    let (mut socket, _) = Socket::with_token(&server, "").await;
    let request = json!({"question": "hello", "streaming": false});
    socket.say(&json!({"id": "q", "service": "agent", "request": request})).await;
    let mut kinds = Vec::new();
    loop {
        let frame = socket.hear().await.unwrap();
        assert_eq!(frame["id"], "q", "{frame}");
        kinds.push(frame["response"]["message_type"].as_str().unwrap_or("error").to_owned());
        if frame["complete"] == true {
            assert_eq!(frame["response"]["end_of_dialog"], true, "{frame}");
            break;
        }
    }
    assert_eq!(kinds.last().map(String::as_str), Some("answer"));
    let api = server.api();
    let sessions = async || api.get("/api/v1/sessions").await.good()["sessions"].clone();
    wait_until(PATIENCE, async || (sessions().await == json!([])).then_some(())).await;
}
