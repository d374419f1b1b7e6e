//! Tests of connections over real sockets. Time is the number of looks, which the tests make themselves.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, Response};
use axum::response::IntoResponse as _;
use axum::routing::{get, post};
use futures::{StreamExt as _, stream};
use http_body_util::Empty;
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo};
use switchboard_auth::{Gatekeeper, GatekeeperOptions};
use switchboard_store::Store;
use switchboard_telemetry::install_metrics;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::board_place::BoardPlace;
use crate::connections::{ConnectionLimits, ConnectionState, Connections};
use crate::dispatch::{Dispatcher, ResponseBody, TrackedBody};
use crate::mcp::{BodyChunk, McpEndpoint, McpRequest};
use crate::origin_check::HostPolicy;
use crate::request_body::{Unread, read_watched};
use crate::server::{accept, bound_bodies};
use crate::server_state::{ServeOptions, Shared};

/// The timeout of steps that are expected to succeed.
const PATIENCE: Duration = Duration::from_secs(20);
const FIRST_BYTE_LOOKS: usize = 10;
const HEAD_LOOKS: usize = 30;
const BODY_LOOKS: usize = 60;
/// More looks than any limit allows.
const AGES: usize = 1000;

struct House {
    address: std::net::SocketAddr,
    connections: Arc<Connections>,
    /// Sends a text on all open streams.
    news: broadcast::Sender<&'static str>,
    _ending: tokio_util::sync::DropGuard,
}

impl House {
    async fn open(most: usize) -> Self {
        let limits = ConnectionLimits {
            most,
            first_byte_within: Duration::from_secs(10),
            head_within: Duration::from_secs(30),
            body_within: Duration::from_mins(1),
            take_within: Duration::from_mins(1),
            look_every: Duration::from_secs(1),
        };
        Self::with(limits).await
    }

    async fn with(limits: ConnectionLimits) -> Self {
        let store = Store::in_memory().await.unwrap();
        let options = ServeOptions {
            board: BoardPlace::default(),
            metrics: install_metrics(),
            hosts: HostPolicy::default(),
            gatekeeper: Gatekeeper::new(store, GatekeeperOptions::default()).await.unwrap(),
            tls: None,
            drain: Duration::ZERO,
        };
        let shared = Shared::new(&options, &limits);
        let (news, _) = broadcast::channel(4);
        let router = routes(&shared, &news);
        let dispatcher = Arc::new(Dispatcher { router, mcp: Arc::new(NoMcp), shared });
        let connections = Connections::new(limits);
        let ending = CancellationToken::new();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (all, end) = (connections.clone(), ending.clone());
        TaskTracker::new().spawn(async move {
            let answer = move |connection, request| answer(dispatcher.clone(), connection, request);
            accept(listener, None, &all, &end, answer).await;
        });
        Self { address, connections, news, _ending: ending.drop_guard() }
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    fn look(&self, times: usize) {
        for _ in 0..times {
            self.connections.look();
        }
    }

    /// Waits until this many connections are open.
    async fn until_count(&self, count: usize) {
        let waiting = async {
            while self.connections.all().len() != count {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(PATIENCE, waiting).await.unwrap();
    }

    /// Waits until this many connections have sent something.
    async fn until_spoken(&self, count: usize) {
        let spoken =
            || self.connections.all().iter().filter(|connection| connection.has_spoken()).count();
        let waiting = async {
            while spoken() != count {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(PATIENCE, waiting).await.unwrap();
    }

    /// Waits until this many connections are open, and until all or none of them are awaited.
    async fn until(&self, count: usize, are_awaited: bool) {
        let is_so = || {
            let states = self.connections.all();
            states.len() == count
                && states.iter().all(|connection| connection.is_awaited() == are_awaited)
        };
        let waiting = async {
            while !is_so() {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(PATIENCE, waiting).await.unwrap();
    }
}

fn routes(shared: &Shared, news: &broadcast::Sender<&'static str>) -> Router {
    let bounded = axum::middleware::from_fn_with_state(shared.clone(), bound_bodies);
    let news = news.clone();
    let listen = move || {
        let news = news.subscribe();
        let news = stream::unfold(news, |mut news| async move {
            let said = news.recv().await.ok()?;
            Some((Ok::<_, Infallible>(said), news))
        });
        async { Body::from_stream(news) }
    };
    let flood = async || {
        let piece = Bytes::from(vec![b'x'; 64 * 1024]);
        Body::from_stream(stream::repeat(piece).map(Ok::<_, Infallible>))
    };
    Router::new()
        .route("/", get(async || "here"))
        .route("/stream", get(listen))
        .route("/flood", get(flood))
        .route("/timed", post(async |_: Bytes| "read").layer(bounded))
}

/// An MCP server that gets no requests.
#[derive(Debug)]
struct NoMcp;

impl McpEndpoint for NoMcp {
    type Body = Empty<BodyChunk>;

    fn max_body_bytes(&self) -> usize {
        0
    }

    async fn post(&self, _: McpRequest, _: Bytes) -> Response<Self::Body> {
        Response::default()
    }

    async fn get(&self, _: McpRequest) -> Response<Self::Body> {
        Response::default()
    }

    async fn delete(&self, _: McpRequest) -> Response<Self::Body> {
        Response::default()
    }
}

/// Responds as the program does; at `/watched` the body is read as that of a call is.
async fn answer(
    dispatcher: Arc<Dispatcher<NoMcp>>,
    connection: Arc<ConnectionState>,
    request: hyper::Request<Incoming>,
) -> Result<Response<TrackedBody<Empty<BodyChunk>>>, Infallible> {
    if request.uri().path() != "/watched" {
        return dispatcher.answer(connection, request).await;
    }
    let asking = connection.begin_request(request.version());
    let read = read_watched(request.into_body(), &HeaderMap::new(), 100, asking.connection()).await;
    let answer = read.map_or_else(Unread::into_response, |_| "read".into_response());
    Ok(answer.map(|body| TrackedBody::new(ResponseBody::Other(body), asking)))
}

async fn say(stream: &mut TcpStream, text: &str) {
    stream.write_all(text.as_bytes()).await.unwrap();
}

async fn ask(stream: &mut TcpStream, path: &str) {
    say(stream, &format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")).await;
}

/// Reads until `wanted` was received; returns everything that was.
async fn hear(stream: &mut TcpStream, wanted: &str) -> String {
    let mut heard = Vec::new();
    let hearing = async {
        while !String::from_utf8_lossy(&heard).contains(wanted) {
            assert_ne!(stream.read_buf(&mut heard).await.unwrap(), 0, "it was closed");
        }
    };
    tokio::time::timeout(PATIENCE, hearing).await.unwrap();
    String::from_utf8(heard).unwrap()
}

/// Waits for the end of the connection, without any byte before it.
async fn is_closed(stream: &mut TcpStream) {
    let end = tokio::time::timeout(PATIENCE, stream.read(&mut [0; 100])).await.unwrap();
    assert!(matches!(end, Ok(0) | Err(_)), "{end:?}");
}

#[tokio::test]
async fn who_does_not_say_what_it_wants_is_cut_off() {
    let house = House::open(10).await;
    let mut silent = house.connect().await;
    let mut slow = house.connect().await;
    say(&mut slow, "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n").await;
    house.until_spoken(1).await;
    house.until(2, true).await;
    house.look(FIRST_BYTE_LOOKS + 1);
    is_closed(&mut silent).await;
    house.until(1, true).await;
    house.look(HEAD_LOOKS - FIRST_BYTE_LOOKS - 1);
    say(&mut slow, "X-More: 1\r\n").await;
    house.until(1, true).await;
    house.look(1);
    is_closed(&mut slow).await;
    house.until(0, false).await;
}

#[tokio::test]
async fn who_was_answered_may_be_idle_for_ages_but_not_stop_amid_the_next_head() {
    let house = House::open(10).await;
    let mut stream = house.connect().await;
    for _ in 0..3 {
        ask(&mut stream, "/").await;
        hear(&mut stream, "here").await;
        house.until(1, false).await;
        house.look(AGES);
    }
    say(&mut stream, "GE").await;
    house.until(1, true).await;
    house.look(HEAD_LOOKS + 1);
    is_closed(&mut stream).await;
}

#[tokio::test]
async fn a_body_that_does_not_come_is_answered_with_408() {
    let house = House::open(10).await;
    let mut stream = house.connect().await;
    let head = "POST /watched HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 4\r\n\r\n";
    say(&mut stream, &format!("{head}whol")).await;
    hear(&mut stream, "read").await;
    house.until(1, false).await;
    say(&mut stream, &format!("{head}ha")).await;
    house.until(1, true).await;
    house.look(BODY_LOOKS);
    say(&mut stream, "l").await;
    house.until(1, true).await;
    house.look(1);
    let heard = hear(&mut stream, "the body did not arrive in time").await;
    assert!(heard.starts_with("HTTP/1.1 408 "), "{heard}");
    is_closed(&mut stream).await;
}

#[tokio::test]
async fn the_api_answers_a_body_that_does_not_come_with_408_too() {
    let limits =
        ConnectionLimits { body_within: Duration::from_millis(20), ..ConnectionLimits::default() };
    let house = House::with(limits).await;
    let mut stream = house.connect().await;
    let head = "POST /timed HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 4\r\n\r\n";
    say(&mut stream, &format!("{head}ha")).await;
    let heard = hear(&mut stream, "the body did not arrive in time").await;
    assert!(heard.starts_with("HTTP/1.1 408 "), "{heard}");
    assert!(heard.contains("application/problem+json"), "{heard}");
}

#[tokio::test]
async fn who_listens_may_do_so_for_ages() {
    let house = House::open(10).await;
    let mut stream = house.connect().await;
    ask(&mut stream, "/stream").await;
    hear(&mut stream, "\r\n\r\n").await;
    house.until(1, false).await;
    house.look(AGES);
    house.news.send("something new").unwrap();
    hear(&mut stream, "something new").await;
}

#[tokio::test]
async fn who_does_not_take_its_answer_is_cut_off() {
    let house = House::open(10).await;
    let mut stream = house.connect().await;
    ask(&mut stream, "/flood").await;
    house.until(1, true).await;
    house.look(BODY_LOOKS + 1);
    house.until(0, false).await;
}

#[tokio::test]
async fn in_a_crowd_silent_connections_leave_first_and_a_new_client_is_served_at_once() {
    let house = House::open(100).await;
    let mut good = house.connect().await;
    ask(&mut good, "/").await;
    hear(&mut good, "here").await;
    house.until(1, false).await;
    house.look(1);
    let mut silent = Vec::new();
    for _ in 0..98 {
        silent.push(house.connect().await);
    }
    let mut slow = house.connect().await;
    say(&mut slow, "GET / HTTP/1.1\r\n").await;
    house.until_spoken(2).await;
    // No look is made, so no connection is late: all places are taken, and room is made for each new one.
    let mut newcomers = Vec::new();
    for _ in 0..50 {
        let mut newcomer = house.connect().await;
        ask(&mut newcomer, "/").await;
        hear(&mut newcomer, "here").await;
        newcomers.push(newcomer);
    }
    is_closed(&mut silent[0]).await;
    say(&mut slow, "Host: 127.0.0.1\r\n\r\n").await;
    hear(&mut slow, "here").await;
    ask(&mut good, "/").await;
    hear(&mut good, "here").await;
}

#[tokio::test]
async fn in_a_crowd_who_never_ends_a_first_request_leaves_before_idle_clients() {
    let house = House::open(3).await;
    let mut good = house.connect().await;
    ask(&mut good, "/").await;
    hear(&mut good, "here").await;
    house.until(1, false).await;
    let mut slow = Vec::new();
    for count in 2..=3 {
        let mut stream = house.connect().await;
        say(&mut stream, "GET / HTTP/1.1\r\n").await;
        house.until_spoken(count).await;
        house.look(1);
        slow.push(stream);
    }
    house.look(2);
    let mut newcomer = house.connect().await;
    ask(&mut newcomer, "/").await;
    hear(&mut newcomer, "here").await;
    is_closed(&mut slow[0]).await;
    ask(&mut good, "/").await;
    hear(&mut good, "here").await;
}

#[tokio::test]
async fn without_file_descriptors_silent_connections_are_closed_and_fewer_are_allowed_for_a_while()
{
    let house = House::open(100).await;
    let mut good = house.connect().await;
    ask(&mut good, "/").await;
    hear(&mut good, "here").await;
    let mut silent = Vec::new();
    for _ in 0..20 {
        silent.push(house.connect().await);
    }
    house.until_count(21).await;
    let error = std::io::Error::from_raw_os_error(rustix::io::Errno::MFILE.raw_os_error());
    house.connections.files_ran_out(&error).await;
    house.until_count(13).await;
    // The bound is the current number of connections; the next one replaces a silent one.
    let mut newcomer = house.connect().await;
    ask(&mut newcomer, "/").await;
    hear(&mut newcomer, "here").await;
    assert!(house.connections.all().len() <= 13);
    ask(&mut good, "/").await;
    hear(&mut good, "here").await;
}

#[tokio::test]
async fn in_a_crowd_the_longest_idle_leaves_and_nobody_who_is_busy() {
    let house = House::open(3).await;
    let mut listener = house.connect().await;
    ask(&mut listener, "/stream").await;
    hear(&mut listener, "\r\n\r\n").await;
    let mut idle = Vec::new();
    for count in 2..=3 {
        let mut stream = house.connect().await;
        ask(&mut stream, "/").await;
        hear(&mut stream, "here").await;
        house.until(count, false).await;
        house.look(1);
        idle.push(stream);
    }
    let [mut oldest, mut older] = <[TcpStream; 2]>::try_from(idle).unwrap();
    let mut newcomer = house.connect().await;
    ask(&mut newcomer, "/stream").await;
    is_closed(&mut oldest).await;
    hear(&mut newcomer, "\r\n\r\n").await;
    // The last idle connection is closed too; then all are busy, and a new one must wait.
    let mut second = house.connect().await;
    ask(&mut second, "/stream").await;
    is_closed(&mut older).await;
    hear(&mut second, "\r\n\r\n").await;
    let mut waiting = house.connect().await;
    ask(&mut waiting, "/").await;
    house.until(3, false).await;
    house.news.send("still here").unwrap();
    for busy in [&mut listener, &mut newcomer, &mut second] {
        hear(busy, "still here").await;
    }
    drop(second);
    hear(&mut waiting, "here").await;
}

#[tokio::test]
async fn over_http2_a_connection_may_be_idle_for_ages_but_not_from_the_start() {
    let house = House::open(10).await;
    let io = TokioIo::new(house.connect().await);
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), io).await.unwrap();
    TaskTracker::new().spawn(connection);
    for _ in 0..2 {
        let url = format!("http://{}/", house.address);
        let request = hyper::Request::get(url).body(Body::empty()).unwrap();
        let answer = tokio::time::timeout(PATIENCE, sender.send_request(request)).await;
        assert_eq!(answer.unwrap().unwrap().status(), 200);
        house.until(1, false).await;
        house.look(AGES);
    }
    let mut silent = house.connect().await;
    say(&mut silent, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await;
    let waiting = async {
        while house.connections.all().len() < 2 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.unwrap();
    house.look(HEAD_LOOKS + 1);
    house.until(1, false).await;
}
