//! Tests of connections with servers that keep, drop and break them.

use std::io::{Read as _, Write as _};
use std::sync::LazyLock;
use std::task::{Context, Waker};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_util::task::TaskTracker;

use super::*;

/// Answers each request on a connection with the next of these responses, and closes it after the last one.
async fn serve(listener: TcpListener, answers: &'static [&'static [&'static str]]) {
    while let Ok((mut stream, _)) = listener.accept().await {
        for answer in answers {
            let mut request = [0; 1024];
            if stream.read(&mut request).await.unwrap_or_default() == 0 {
                break;
            }
            for piece in *answer {
                stream.write_all(piece.as_bytes()).await.unwrap();
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    }
}

fn pool_to(listener: &TcpListener) -> Arc<LoopbackPool> {
    let url = format!("http://{}/", listener.local_addr().unwrap());
    LoopbackPool::to(&Url::parse(&url).unwrap()).unwrap()
}

async fn ask(pool: &Arc<LoopbackPool>) -> Result<(ResponseHead, LoopbackBody), LoopbackError> {
    pool.send(request()).await
}

fn request() -> LoopbackRequest<'static> {
    static NONE: LazyLock<HeaderMap> = LazyLock::new(HeaderMap::new);
    static ROOT: PathAndQuery = PathAndQuery::from_static("/");
    static BODY: Bytes = Bytes::from_static(b"{}");
    LoopbackRequest {
        method: &Method::POST,
        target: &ROOT,
        headers: &NONE,
        more_headers: &[],
        body: &BODY,
        repeat: RetryPolicy::Never,
    }
}

async fn read(pool: &Arc<LoopbackPool>) -> Result<String, LoopbackError> {
    read_with(pool, RetryPolicy::Never).await
}

async fn read_with(pool: &Arc<LoopbackPool>, repeat: RetryPolicy) -> Result<String, LoopbackError> {
    let (head, mut rest) = pool.send(LoopbackRequest { repeat, ..request() }).await?;
    assert_eq!(head.status, 200);
    let mut text = String::new();
    while let Some(piece) = rest.chunk().await? {
        text.push_str(std::str::from_utf8(&piece).unwrap());
    }
    Ok(text)
}

const WHOLE: &[&str] = &["HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nwhole"];
const PARTS: &[&str] = &["HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n", "pa", "rts"];
const CHUNKS: &[&str] =
    &["HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nchu\r\n", "3\r\nnks\r\n0\r\n\r\n"];
const CONTINUED: &[&str] = &[
    "HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n",
    "HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nc",
];
const TRAILED: &[&str] = &[
    "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ntrailer: x\r\n\r\n1\r\nt\r\n",
    "0\r\nx: y\r\n\r\n",
];
const CLOSING: &[&str] =
    &["HTTP/1.1 200 OK\r\ncontent-length: 7\r\nconnection: close\r\n\r\nclosing"];
const OLD: &[&str] = &["HTTP/1.0 200 OK\r\n\r\nol", "d"];
const BROKEN: &[&str] = &["HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nbro"];

async fn start(answers: &'static [&'static [&'static str]]) -> (Arc<LoopbackPool>, TaskTracker) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let pool = pool_to(&listener);
    let server = TaskTracker::new();
    server.spawn(serve(listener, answers));
    (pool, server)
}

#[tokio::test]
async fn a_connection_is_used_again_however_its_answers_come() {
    let (pool, _server) = start(&[WHOLE, PARTS, CHUNKS, WHOLE]).await;
    for expected in ["whole", "parts", "chunks"] {
        assert_eq!(read(&pool).await.unwrap(), expected);
        assert_eq!(pool.idle().len(), 1, "after {expected}");
    }
}

#[tokio::test]
async fn answers_of_every_shape_are_read_to_their_end() {
    let shapes: [(&'static [&'static [&'static str]], &str, usize); 4] = [
        (&[CONTINUED, WHOLE], "c", 1),
        (&[TRAILED, WHOLE], "t", 1),
        (&[CLOSING], "closing", 0),
        (&[OLD], "old", 0),
    ];
    for (answers, expected, kept) in shapes {
        let (pool, _server) = start(answers).await;
        assert_eq!(read(&pool).await.unwrap(), expected);
        assert_eq!(pool.idle().len(), kept, "after {expected}");
    }
}

/// A task that has exhausted its cooperative budget is woken later; the response must not be lost.
#[tokio::test]
async fn an_answer_is_seen_by_a_task_that_has_used_up_its_budget() {
    const AT_ONCE: &[&str] =
        &["HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nnow\r\n0\r\n\r\n"];
    for answers in [&[AT_ONCE][..], &[CLOSING]] {
        for spent in 120..=127 {
            let (pool, _server) = start(answers).await;
            let mut reading = std::pin::pin!(read(&pool));
            let reading = std::future::poll_fn(|context| {
                for _ in 0..spent {
                    // Spends one unit of the budget if there is one.
                    let mut spending = std::pin::pin!(tokio::task::coop::consume_budget());
                    let _spent = spending.as_mut().poll(&mut Context::from_waker(Waker::noop()));
                }
                reading.as_mut().poll(context)
            });
            tokio::select! {
                // Biased: when this branch ends the wait, the response is ready at the next poll.
                biased;
                () = tokio::time::sleep(Duration::from_secs(5)) => panic!("{spent} spent"),
                read = reading => assert!(read.is_ok(), "{spent} spent: {read:?}"),
            }
        }
    }
}

#[tokio::test]
async fn one_that_was_closed_meanwhile_is_replaced_unseen() {
    let (pool, _server) = start(&[WHOLE]).await;
    for _ in 0..3 {
        assert_eq!(read(&pool).await.unwrap(), "whole");
        heard_of(&pool).await;
    }
}

/// Waits until something arrives on the idle connection: its end, or unsolicited data.
async fn heard_of(pool: &LoopbackPool) {
    let is_quiet = || pool.idle().last().is_some_and(|idle| idle.connection.is_quiet());
    while is_quiet() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// A server in a thread of its own, which closes its connections on request, or when a request is to be lost.
struct Beside {
    pool: Arc<LoopbackPool>,
    close: std::sync::mpsc::Sender<()>,
    closed: std::sync::mpsc::Receiver<()>,
    server: std::thread::JoinHandle<usize>,
}

/// How a connection ends after its response.
enum Lost {
    /// When the test tells the server to close it.
    Unseen,
    /// When the next request was read.
    Read,
    /// When its response has begun.
    Answered(&'static str),
    AtOnce,
}

const ANSWER: &str = "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nwhole";

impl Beside {
    fn start(connections: &'static [(&'static str, Lost)]) -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let pool = LoopbackPool::to(&Url::parse(&url).unwrap()).unwrap();
        let (close, told) = std::sync::mpsc::channel();
        let (say, closed) = std::sync::mpsc::channel();
        let server = std::thread::spawn(move || {
            let mut requests = 0;
            for (answer, lost) in connections {
                let (mut stream, _) = listener.accept().unwrap();
                let mut next = |answer: &str| {
                    let mut request = [0; 1024];
                    requests += usize::from(stream.read(&mut request).unwrap() > 0);
                    stream.write_all(answer.as_bytes()).unwrap();
                };
                next(answer);
                match lost {
                    Lost::Unseen => told.recv().unwrap(),
                    Lost::Read => next(""),
                    Lost::Answered(begun) => next(begun),
                    Lost::AtOnce => {}
                }
                drop(stream);
                say.send(()).unwrap();
            }
            requests
        });
        Self { pool, close, closed, server }
    }

    /// Makes the server close the connection while the runtime cannot notice it, because its thread blocks here.
    fn close_unseen(&self) {
        self.close.send(()).unwrap();
        self.closed.recv().unwrap();
        assert!(self.pool.idle().iter().all(|idle| idle.connection.is_quiet()), "it was heard of");
    }
}

#[tokio::test]
async fn an_end_that_nobody_has_heard_of_is_seen_on_a_connection_that_was_idle() {
    let beside = Beside::start(&[(ANSWER, Lost::Unseen), (ANSWER, Lost::AtOnce)]);
    assert_eq!(read(&beside.pool).await.unwrap(), "whole");
    beside.close_unseen();
    beside.pool.idle().iter_mut().for_each(|idle| idle.since -= BELIEVED);
    assert_eq!(read(&beside.pool).await.unwrap(), "whole");
    assert_eq!(beside.server.join().unwrap(), 2);
}

#[tokio::test]
async fn a_lost_request_is_sent_once_more_if_it_may_be() {
    type Connections = &'static [(&'static str, Lost)];
    let closed = Err("the server closed the connection");
    let rows: [(Connections, RetryPolicy, Result<&str, &str>, usize); 5] = [
        (&[(ANSWER, Lost::Unseen), (ANSWER, Lost::AtOnce)], RetryPolicy::IfLost, Ok("whole"), 2),
        (&[(ANSWER, Lost::Read), (ANSWER, Lost::AtOnce)], RetryPolicy::IfLost, Ok("whole"), 3),
        (&[(ANSWER, Lost::Read)], RetryPolicy::Never, closed, 2),
        (&[(ANSWER, Lost::Answered("HTTP/1.1 "))], RetryPolicy::IfLost, closed, 2),
        // A new connection that ends is a failure.
        (&[(ANSWER, Lost::Read), ("", Lost::AtOnce)], RetryPolicy::IfLost, closed, 3),
    ];
    for (row, (connections, repeat, expected, requests)) in rows.into_iter().enumerate() {
        let beside = Beside::start(connections);
        assert_eq!(read(&beside.pool).await.unwrap(), "whole");
        if matches!(connections, [(_, Lost::Unseen), ..]) {
            beside.close_unseen();
        }
        let said = read_with(&beside.pool, repeat).await.map_err(|error| error.to_string());
        let said = said.as_deref().map_err(String::as_str);
        assert_eq!(said, expected, "row {row}");
        assert_eq!(beside.server.join().unwrap(), requests, "row {row}");
    }
}

#[tokio::test]
async fn a_connection_is_used_for_as_long_as_its_server_keeps_it() {
    const KEPT_FOR_FIVE: &[&str] =
        &["HTTP/1.1 200 OK\r\nkeep-alive: timeout=5\r\ncontent-length: 5\r\n\r\nwhole"];
    for (age, is_used) in [(3900, true), (4100, false)] {
        let (pool, _server) = start(&[KEPT_FOR_FIVE, WHOLE]).await;
        assert_eq!(read(&pool).await.unwrap(), "whole");
        pool.idle()[0].since -= Duration::from_millis(age);
        assert_eq!(pool.take().is_some(), is_used, "after {age} ms");
    }
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_a_failure_and_its_connection_is_gone() {
    let (pool, _server) = start(&[BROKEN]).await;
    let error = read(&pool).await.unwrap_err();
    assert_eq!(error.stage, RequestPhase::Reading, "{error:?}");
    assert!(pool.idle().is_empty());
}

#[tokio::test]
async fn who_gives_up_closes_the_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let pool = pool_to(&listener);
    let asking = async { tokio::time::timeout(Duration::from_millis(50), read(&pool)).await };
    let serving = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = Vec::new();
        stream.read_to_end(&mut request).await.unwrap();
    };
    let (asked, ()) = tokio::join!(asking, serving);
    assert!(asked.is_err());
    assert!(pool.idle().is_empty());
}

/// Sends a request that is larger than the socket buffers. The connection stays open if the server returns it.
async fn send_much<Kept>(
    serve: impl AsyncFnOnce(TcpStream) -> Kept,
) -> (Result<String, LoopbackError>, usize) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let pool = pool_to(&listener);
    let body = Bytes::from(vec![b'x'; 32 << 20]);
    let asking = async {
        let (head, mut rest) = pool.send(LoopbackRequest { body: &body, ..request() }).await?;
        let mut text = head.status.to_string();
        while let Some(piece) = rest.chunk().await? {
            text.push_str(std::str::from_utf8(&piece).unwrap());
        }
        Ok(text)
    };
    let serving = async {
        let (stream, _) = listener.accept().await.unwrap();
        serve(stream).await
    };
    let (asked, _stream_that_was_open_until_now) = tokio::join!(asking, serving);
    (asked, pool.idle().len())
}

#[tokio::test]
async fn a_server_that_answers_before_it_has_read_everything_is_heard() {
    for status in ["413 Payload Too Large", "200 OK"] {
        let said = "no".repeat(10_000);
        let answer = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n{said}", said.len());
        let (asked, kept) = send_much(async |mut stream: TcpStream| {
            let mut some = [0; 100];
            stream.read_exact(&mut some).await.unwrap();
            stream.write_all(answer.as_bytes()).await.unwrap();
            // It reads no more, but keeps the connection open.
            stream
        })
        .await;
        assert_eq!((asked.unwrap(), kept), (format!("{status}{said}"), 0));
    }
}

/// The request cannot be sent completely then, and the response is still valid.
#[tokio::test]
async fn a_server_that_answers_and_closes_is_heard_whole() {
    for length in ["", "content-length: 20000\r\n"] {
        let said = "no".repeat(10_000);
        let answer = format!("HTTP/1.1 413 Payload Too Large\r\n{length}\r\n{said}");
        let (asked, kept) = send_much(async |mut stream: TcpStream| {
            let mut some = [0; 100];
            stream.read_exact(&mut some).await.unwrap();
            stream.write_all(answer.as_bytes()).await.unwrap();
        })
        .await;
        assert_eq!((asked.unwrap(), kept), (format!("413 Payload Too Large{said}"), 0));
    }
}

#[tokio::test]
async fn a_server_that_begins_to_answer_early_gets_the_rest() {
    let much = "m".repeat(16 << 20);
    let (asked, kept) = send_much(async |mut stream: TcpStream| {
        let begin = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
        stream.write_all(begin.as_bytes()).await.unwrap();
        // More than fits into the socket buffers, before it reads on.
        let chunk = format!("{:x}\r\n{much}\r\n", much.len());
        stream.write_all(chunk.as_bytes()).await.unwrap();
        let mut rest = vec![0; 32 << 20];
        stream.read_exact(&mut rest).await.unwrap();
        stream.write_all(b"1\r\nb\r\n0\r\n\r\n").await.unwrap();
        stream
    })
    .await;
    assert!(asked.unwrap() == format!("200 OK{much}b"), "the answer is another");
    assert_eq!(kept, 1);
}

/// Interim responses without end, while it reads nothing: the caller must still be able to cancel.
#[tokio::test]
async fn a_server_that_only_ever_announces_can_be_given_up() {
    let sending = send_much(async |mut stream: TcpStream| {
        let hints = "HTTP/1.1 103 Early Hints\r\n\r\n".repeat(1000);
        while stream.write_all(hints.as_bytes()).await.is_ok() {}
    });
    let late = tokio::time::timeout(Duration::from_millis(200), sending).await;
    assert!(late.is_err());
}

#[tokio::test]
async fn a_connection_with_more_on_it_than_was_asked_for_is_not_used_again() {
    const TOO_MUCH: &[&str] = &["HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nwholeand more"];
    const LATER: &[&str] = &["HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nwhole", "and more"];
    for (answers, kept) in [(&[TOO_MUCH, BROKEN][..], 0), (&[LATER, BROKEN], 1)] {
        let (pool, _server) = start(answers).await;
        assert_eq!(read(&pool).await.unwrap(), "whole");
        assert_eq!(pool.idle().len(), kept);
        heard_of(&pool).await;
        assert_eq!(read(&pool).await.unwrap(), "whole", "on another one");
    }
}

/// It may have been processed.
#[tokio::test]
async fn a_request_that_was_sent_is_not_sent_again() {
    const NOTHING: &[&str] = &[];
    let (pool, _server) = start(&[WHOLE, NOTHING]).await;
    assert_eq!(read(&pool).await.unwrap(), "whole");
    let error = read(&pool).await.unwrap_err();
    assert_eq!(error.stage, RequestPhase::Waiting, "{error:?}");
    assert_eq!(error.to_string(), "the server closed the connection");
}

#[tokio::test]
async fn a_server_that_goes_away_amid_a_request_is_a_failure() {
    let (asked, kept) = send_much(async |mut stream: TcpStream| {
        let mut some = [0; 100];
        stream.read_exact(&mut some).await.unwrap();
        stream.shutdown().await.unwrap();
        stream
    })
    .await;
    assert_eq!((asked.unwrap_err().stage, kept), (RequestPhase::Waiting, 0));
}

#[test]
fn a_request_says_what_it_must_and_nothing_twice() {
    let mut headers = HeaderMap::new();
    headers.insert("x-a", HeaderValue::from_static("b"));
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from_static("99"));
    headers.insert(header::TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
    let host = HeaderValue::from_static("here:81");
    let request = LoopbackRequest { headers: &headers, ..request() };
    let said = |request: LoopbackRequest<'_>| String::from_utf8(request.head(&host)).unwrap();
    let expected = "POST / HTTP/1.1\r\nhost: here:81\r\nx-a: b\r\ncontent-length: 2\r\n\r\n";
    assert_eq!(said(request), expected);
    let more = [(header::HOST, HeaderValue::from_static("else"))];
    let headers = HeaderMap::from_iter(more);
    let request =
        LoopbackRequest { headers: &headers, method: &Method::GET, body: &Bytes::new(), ..request };
    assert_eq!(said(request), "GET / HTTP/1.1\r\nhost: else\r\n\r\n");
}

#[tokio::test]
async fn nobody_there_is_said_so() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let pool = pool_to(&listener);
    drop(listener);
    let error = read(&pool).await.unwrap_err();
    assert_eq!(error.stage, RequestPhase::Connecting, "{error:?}");
    assert!(error.to_string().starts_with("Connection refused"), "{error}");
}

#[tokio::test]
async fn a_piece_that_was_not_waited_for_comes_the_next_time() {
    let (pool, _server) = start(&[PARTS, WHOLE]).await;
    let (_, mut rest) = ask(&pool).await.unwrap();
    let mut text = Vec::new();
    loop {
        let impatient = tokio::time::timeout(Duration::from_millis(3), rest.chunk());
        match impatient.await {
            Ok(Ok(Some(piece))) => text.extend_from_slice(&piece),
            Ok(Ok(None)) => break,
            Ok(Err(error)) => panic!("{error}"),
            Err(_) => {}
        }
    }
    assert_eq!((text.as_slice(), pool.idle().len()), (b"parts".as_slice(), 1));
    assert_eq!(rest.chunk().await.unwrap(), None, "the end stays the end");
    assert_eq!(read(&pool).await.unwrap(), "whole");
}

#[tokio::test]
async fn what_nobody_uses_is_closed() {
    let (pool, _server) = start(&[WHOLE, WHOLE]).await;
    read(&pool).await.unwrap();
    // Not before: a paused clock advances while the network is waited for.
    tokio::time::pause();
    tokio::time::advance(KEPT / 2).await;
    pool.close_unused();
    assert_eq!(pool.idle().len(), 1);
    tokio::time::advance(KEPT / 2).await;
    pool.close_unused();
    assert!(pool.idle().is_empty());
}

#[tokio::test]
async fn what_the_server_has_closed_is_closed() {
    let (pool, _server) = start(&[WHOLE]).await;
    read(&pool).await.unwrap();
    assert_eq!(pool.idle().len(), 1);
    while !pool.idle().is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
        pool.close_unused();
    }
}

#[test]
fn only_what_is_here_and_plain_is_gone_to_straight() {
    let check = |text: &str, expected: Option<(&str, &str, &str)>| {
        let url = Url::parse(text).unwrap();
        let pool = LoopbackPool::to(&url);
        let target = target(&url).unwrap().to_string();
        let shown = pool
            .as_ref()
            .map(|pool| (pool.address.as_str(), pool.host.to_str().unwrap(), target.as_str()));
        assert_eq!(shown, expected, "{text}");
    };
    check("http://127.0.0.1:81/a?b=c", Some(("127.0.0.1:81", "127.0.0.1:81", "/a?b=c")));
    check("http://localhost", Some(("localhost:80", "localhost", "/")));
    check("http://[::1]:81/", Some(("[::1]:81", "[::1]:81", "/")));
    check("https://127.0.0.1:81/", None);
    check("http://me:pw@127.0.0.1/", None);
    check("http://10.0.0.1/", None);
}
