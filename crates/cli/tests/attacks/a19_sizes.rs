//! A19: input that is too large, too deep, too much, or of another type than declared. The process survives and stays
//! small.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::Stdio;
use std::time::Duration;

use futures::stream;
use serde_json::{Value, json};
use switchboard_test_support::{Fault, Reply, ScriptedServer, Tool};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

use crate::client::{Answer, Peer, raw, status_of};
use crate::support::{Home, Serve, dynamic, server, with};
use crate::world::{Holdings, config, home};

const MIB: usize = 1024 * 1024;
/// More than the program needs for anything here, less than any of the attacks would make it take.
const BOUND_KB: u64 = 200 * 1024;

async fn world() -> (ScriptedServer, Serve) {
    let upstream = server([Tool::new("echo")]).await;
    let serve = home(&[("one", &upstream.url())], &[]).serve().await;
    (upstream, serve)
}

fn headers() -> Vec<(String, String)> {
    Peer::modern_headers("tools/call", &json!({"name": "one__echo"}))
}

/// A modern call of `one__echo` with this text as its arguments.
fn call_with(arguments: &str) -> String {
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "one__echo", "arguments": "ARGUMENTS", "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        },
    }});
    message.to_string().replace("\"ARGUMENTS\"", arguments)
}

async fn assert_well(serve: &Serve) {
    let answer = Peer::of(serve).call("one__echo", json!({"still": "here"})).await;
    assert_eq!(answer.result()["structuredContent"]["still"], "here");
    let now = Holdings::of(serve.pid());
    assert!(now.rss_kb < BOUND_KB, "{now:?}");
}

#[tokio::test]
async fn a19_a_body_that_is_too_large_is_cut_off() {
    let (upstream, serve) = world().await;
    let peer = Peer::of(&serve);
    let padding = "x".repeat(5 * MIB);
    let announced = call_with(&format!("{{\"a\":\"{padding}\"}}"));
    // Who goes on sending may lose the connection before it reads the answer.
    if let Ok(answer) = peer.request(reqwest::Method::POST, &headers()).body(announced).send().await
    {
        assert_eq!(answer.status(), 413);
    }
    // An announcement alone is enough to be refused; nothing is waited for.
    let head = "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 99999999999\r\n\r\n";
    assert_eq!(status_of(&raw(&serve, head.as_bytes()).await), "413");
    let api = head.replace("/mcp", "/api/v1/tools/one.echo/call");
    assert_eq!(status_of(&raw(&serve, api.as_bytes()).await), "413");
    for path in ["/mcp", "/api/v1/tools/one.echo/call"] {
        let pieces = std::iter::repeat_n(vec![b' '; 64 * 1024], 16 * 100);
        let body = reqwest::Body::wrap_stream(stream::iter(pieces.map(Ok::<_, std::io::Error>)));
        let sent = peer.at(serve.at(path)).request(reqwest::Method::POST, &headers()).body(body);
        if let Ok(answer) = sent.send().await {
            assert_eq!(answer.status(), 413, "{path}");
        }
    }
    let (zero, twice) = ("Content-Length: -1", "Content-Length: 1\r\nContent-Length: 2");
    for length in [
        zero,
        twice,
        "Content-Length: 5\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: xchunked",
    ] {
        let text = head.replace("Content-Length: 99999999999", length);
        let answer = raw(&serve, format!("{text}0\r\n\r\n").as_bytes()).await;
        assert!(answer.is_empty() || status_of(&answer).starts_with('4'), "{length}: {answer}");
    }
    assert_eq!(upstream.stats().total_calls(), 0);
    assert_well(&serve).await;
}

fn nested(levels: usize) -> String {
    format!("{}1{}", "[".repeat(levels), "]".repeat(levels))
}

#[tokio::test]
async fn a19_what_is_nested_too_deep_is_refused_before_it_is_parsed() {
    let (upstream, serve) = world().await;
    let peer = Peer::of(&serve);
    let objects = format!("{}1{}", "{\"a\":".repeat(10_000), "}".repeat(10_000));
    for body in [
        nested(10_000),
        "[".repeat(1_000_000),
        "{\"a\":".repeat(100_000),
        call_with(&objects),
        call_with(&format!("{{\"a\":{}}}", nested(10_000))),
        call_with("{}").replace("\"id\":1", &format!("\"id\":{}", nested(10_000))),
    ] {
        let answer = peer.post(body, &headers()).await;
        assert_eq!((answer.status, answer.code()), (400, -32700), "{}", answer.body);
    }
    let api = peer.at(serve.at("/api/v1/tools/one.echo/call"));
    let answer = api.post(format!("{{\"arguments\":{objects}}}"), &[]).await;
    assert!((400..500).contains(&answer.status), "{}", answer.body);
    // Brackets within a string are text.
    let text = format!("{{\"a\":\"{}\"}}", "[{".repeat(10_000));
    assert!(!peer.post(call_with(&text), &headers()).await.is_refusal());
    assert_eq!(upstream.stats().total_calls(), 1);
    assert_well(&serve).await;
}

#[tokio::test]
async fn a19_a_server_cannot_answer_too_deep_too_large_or_without_end() {
    let deep = (0..1_000).fold(json!(1), |inner, _| json!([inner]));
    let deep = json!({"content": [], "structuredContent": {"deep": deep}});
    let tools = [
        Tool::new("echo"),
        Tool::new("deep").replies(Reply::Result(deep)),
        Tool::new("huge").replies(Reply::Huge(100 * MIB)),
        Tool::new("large").replies(Reply::Huge(3 * MIB)),
    ];
    let one = server(tools).await;
    let strange =
        async |fault| ScriptedServer::builder().tools([Tool::new("t")]).fault(fault).start().await;
    let endless = strange(Fault::EndlessPages).await;
    let looping = strange(Fault::CursorLoop).await;
    let big = strange(Fault::HugeList(100 * MIB)).await;
    let deep_list = strange(Fault::DeepSchema(10_000)).await;
    let optional = |name: &str, server: &ScriptedServer| {
        with(&dynamic(name, &server.url()), "required: false")
    };
    let servers = [
        dynamic("one", &one.url()),
        optional("endless", &endless),
        optional("looping", &looping),
        optional("big", &big),
        optional("deep", &deep_list),
    ];
    let serve = Home::new(config(&servers, &[])).serve().await;
    let peer = Peer::of(&serve);
    let session = peer.open().await;
    for tool in ["one__deep", "one__huge"] {
        let answers = [peer.call(tool, json!({})).await, session.call(tool, json!({})).await];
        for answer in answers {
            assert_eq!(answer.result()["isError"], true, "{tool}");
            assert!(answer.body.len() < 10_000, "{tool}: {}", answer.body.len());
        }
    }
    // What is larger than a result may be is kept, and a preview of it is given.
    let large = peer.call("one__large", json!({})).await;
    assert!(!large.is_refusal() && large.body.len() < 2 * MIB, "{}", large.body.len());
    let tools = peer.tools().await;
    assert!(
        tools.iter().all(|name| name.starts_with("one__") || name.starts_with("deep__")),
        "{tools:?}"
    );
    assert!(endless.stats().page_count <= 1_100, "{}", endless.stats().page_count);
    assert_well(&serve).await;
}

/// Spaces without end, packed: deflate repeats the 258 bytes before with 13 bits.
fn gzip_bomb(bytes: usize) -> Vec<u8> {
    let mut packed = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3];
    let mut used = 8;
    let mut put = |bits: &str| {
        for bit in bits.bytes() {
            if used == 8 {
                packed.push(0);
                used = 0;
            }
            *packed.last_mut().unwrap() |= (bit - b'0') << used;
            used += 1;
        }
    };
    // One block with the fixed code, and a space to begin with.
    put("110");
    put("01010000");
    for _ in 0..bytes / 258 {
        put("1100010100000");
    }
    put("0000000");
    packed
}

/// A server that lists a tool, and packs what that answers. It keeps no connection.
async fn packing_server(packed: Vec<u8>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let tasks = TaskTracker::new();
    tasks.clone().spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let packed = packed.clone();
            tasks.spawn(async move { answer_packed(stream, &packed).await });
        }
    });
    url
}

async fn answer_packed(mut stream: TcpStream, packed: &[u8]) -> Option<()> {
    let mut heard = Vec::new();
    let body: Value = loop {
        if stream.read_buf(&mut heard).await.ok()? == 0 {
            return None;
        }
        let text = String::from_utf8_lossy(&heard);
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        assert!(!head.to_ascii_lowercase().contains("accept-encoding"), "{head}");
        if !head.starts_with("POST") {
            break Value::Null;
        }
        if let Ok(body) = serde_json::from_str(body) {
            break body;
        }
    };
    let result = match body["method"].as_str().unwrap_or_default() {
        "initialize" => json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
            "serverInfo": {"name": "packing", "version": "1"}}),
        "tools/list" => json!({"tools": [{"name": "bomb", "inputSchema": {"type": "object"}}]}),
        "tools/call" => json!("packed"),
        _ => Value::Null,
    };
    let plain = json!({"jsonrpc": "2.0", "id": body["id"], "result": result}).to_string();
    let (status, encoding, body) = match result {
        Value::Null if body["id"].is_null() && body.is_object() => ("202 Accepted", "", &b""[..]),
        Value::Null => ("405 Method Not Allowed", "", &b""[..]),
        Value::String(_) => ("200 OK", "Content-Encoding: gzip\r\n", packed),
        _ => ("200 OK", "", plain.as_bytes()),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\n{encoding}Content-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await.ok()?;
    stream.write_all(body).await.ok()
}

#[tokio::test]
async fn a19_a_packed_answer_is_not_unpacked() {
    let one = server([Tool::new("echo")]).await;
    let bomb = gzip_bomb(1024 * MIB);
    assert!(bomb.len() < 8 * MIB, "{}", bomb.len());
    let packing = packing_server(bomb).await;
    let serve = home(&[("one", &one.url()), ("packing", &packing)], &[]).serve().await;
    let peer = Peer::of(&serve);
    let before = peak_kb(serve.pid());
    let begun = Instant::now();
    let session = peer.open().await;
    let answers = [
        peer.call("packing__bomb", json!({})).await,
        session.call("packing__bomb", json!({})).await,
    ];
    for answer in answers {
        assert!(answer.is_refusal() && answer.body.len() < 10_000, "{:.300}", answer.body);
    }
    assert!(begun.elapsed() < Duration::from_secs(40), "{:?}", begun.elapsed());
    let grown = peak_kb(serve.pid()) - before;
    assert!(grown < 64 * 1024, "{grown} kB more");
    assert_well(&serve).await;
}

#[tokio::test]
async fn a19_a_schema_that_branches_without_end_holds_nobody_up() {
    const STEPS: usize = 60;
    let mut schema = json!({"type": "object", "$ref": "#/$defs/d0", "$defs": {}});
    for step in 0..STEPS {
        let next = json!({"$ref": format!("#/$defs/d{}", step + 1)});
        schema["$defs"][format!("d{step}")] = json!({"anyOf": [next, next]});
    }
    schema["$defs"][format!("d{STEPS}")] = json!({"required": ["nothing"]});
    let upstream = server([Tool::new("echo"), Tool::new("maze").schema(schema)]).await;
    let serve = home(&[("one", &upstream.url())], &[]).serve().await;
    let peer = Peer::of(&serve);
    let begun = Instant::now();
    let session = peer.open().await;
    for tools in [peer.tools().await, session.tools().await] {
        assert_eq!(tools, ["one__echo", "one__maze"]);
    }
    // What cannot be checked here is the server's to check.
    assert!(!peer.call("one__maze", json!({"some": "thing"})).await.is_refusal());
    assert!(!session.call("one__maze", json!({"some": "thing"})).await.is_refusal());
    let made = peer.at(serve.at("/api/v1/sessions")).post("{}", &[]).await;
    let id = made.last()["id"].as_str().unwrap().to_owned();
    for provider in ["openai", "anthropic", "gemini"] {
        let path = format!("/api/v1/sessions/{id}/render?provider={provider}");
        let rendered = peer.at(serve.at(&path)).request(reqwest::Method::GET, &[]);
        assert_eq!(rendered.send().await.unwrap().status(), 200, "{provider}");
    }
    assert!(begun.elapsed() < Duration::from_secs(40), "{:?}", begun.elapsed());
    assert_well(&serve).await;
}

#[tokio::test]
async fn a19_many_keys_are_neither_slow_nor_ambiguous() {
    let (upstream, serve) = world().await;
    let peer = Peer::of(&serve);
    let keys: Vec<String> = (0..100_000).map(|n| format!("\"k{n}\":{n}")).collect();
    let many = keys.join(",");
    let begun = Instant::now();
    let taken = peer.post(call_with(&format!("{{{many}}}")), &headers()).await;
    assert!(!taken.is_refusal(), "{:.300}", taken.body);
    for body in [
        call_with("{}").replacen('{', &format!("{{{many},"), 1),
        call_with(&format!("{{}},{many}")),
    ] {
        let answer = peer.post(body, &headers()).await;
        assert_eq!(answer.status, 400, "{:.300}", answer.body);
    }
    // Comparing each key with each would take many minutes.
    assert!(begun.elapsed() < Duration::from_mins(1), "{:?}", begun.elapsed());
    for body in [
        call_with("{}").replace("\"id\":1", "\"id\":1,\"id\":2"),
        call_with("{}").replace("\"method\":", "\"method\":\"ping\",\"method\":"),
        call_with("{}").replace("\"name\":", "\"name\":\"one__other\",\"name\":"),
        call_with("{}").replace("\"name\":", "\"n\\u0061me\":\"one__other\",\"name\":"),
        call_with("{},\"arguments\":{\"b\":1}"),
        call_with("{}")
            .replace("\"_meta\":{", "\"_meta\":{\"progressToken\":1,\"progressToken\":2,"),
        call_with("{\"a\":1,\"a\":2}"),
        call_with("{\"a\":1,\"\\u0061\":2}"),
    ] {
        let answer = peer.post(body.clone(), &headers()).await;
        assert!(answer.is_refusal(), "{body}: {}", answer.body);
    }
    assert_eq!(upstream.stats().total_calls(), 1, "{:?}", upstream.stats().calls.last());
    assert_well(&serve).await;
}

#[tokio::test]
async fn a19_bytes_that_are_no_message_get_a_clear_answer() {
    let (upstream, serve) = world().await;
    let peer = Peer::of(&serve);
    let gzip: &[u8] =
        &[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 0xab, 0xae, 5, 0, 0x43, 0xbf, 0xa6, 0xa3, 2, 0, 0, 0];
    let bodies: [&[u8]; 12] = [
        b"",
        b" ",
        b"null",
        b"7",
        b"\"text\"",
        b"[]",
        b"{}",
        b"\x00",
        b"\xff\xfe{\x00}\x00",
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\xff\"}",
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}{}",
        gzip,
    ];
    for body in bodies {
        let answer = peer.post(body.to_vec(), &headers()).await;
        assert!(
            answer.status == 400 && [-32700, -32600].contains(&answer.code()),
            "{body:?}: {answer:?}"
        );
    }
    let batch = format!("[{},{}]", call_with("{}"), call_with("{}"));
    let answer = peer.post(batch, &headers()).await;
    assert_eq!((answer.status, answer.code()), (400, -32600), "{}", answer.body);
    let packed = peer.with("content-encoding", "gzip").post(gzip.to_vec(), &headers()).await;
    assert!((400..500).contains(&packed.status), "{packed:?}");
    for kind in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/jsonx",
    ] {
        let typed = peer.with("content-type", kind).post(call_with("{}"), &headers()).await;
        assert_eq!(typed.status, 415, "{kind}");
    }
    let arguments = ["null", "[]", "7", "\"text\"", "true"];
    for arguments in &arguments[1..] {
        let answer = peer.post(call_with(arguments), &headers()).await;
        assert!(answer.is_refusal(), "{arguments}: {}", answer.body);
    }
    assert_eq!(upstream.stats().total_calls(), 0);
    // NUL and lone surrogates within strings are either passed on whole or refused.
    let nul = peer.post(call_with("{\"a\":\"\\u0000\"}"), &headers()).await;
    assert_eq!(nul.result()["structuredContent"]["a"], "\u{0}");
    let lone = peer.post(call_with("{\"a\":\"\\ud800\"}"), &headers()).await;
    assert!(lone.is_refusal() || lone.body.contains("ud800"), "{}", lone.body);
    assert_well(&serve).await;
}

#[tokio::test]
async fn a19_an_id_is_a_string_or_an_integer_and_comes_back_as_it_was() {
    let (_upstream, serve) = world().await;
    let peer = Peer::of(&serve);
    let with_id = async |id: &str| -> Answer {
        peer.post(call_with("{}").replace("\"id\":1", &format!("\"id\":{id}")), &headers()).await
    };
    for id in ["null", "1.5", "1e3", "{}", "[1]", "true", "-", "01", "NaN"] {
        let answer = with_id(id).await;
        assert_eq!(answer.status, 400, "{id}: {}", answer.body);
        assert!([-32600, -32700].contains(&answer.code()), "{id}: {}", answer.body);
    }
    for id in ["0", "-7", "123456789012345678901234567890", "\"\"", "\"\\u0000\\r\\n\"", "\"1\""] {
        let answer = with_id(id).await;
        assert_eq!(answer.status, 200, "{id}: {}", answer.body);
        assert!(answer.body.contains(&format!("\"id\":{id}")), "{id}: {}", answer.body);
    }
    let long = format!("\"{}\"", "i".repeat(MIB));
    let answer = with_id(&long).await;
    assert!(answer.is_refusal() || answer.last()["id"].as_str().map(str::len) == Some(MIB));
    let session = peer.open().await;
    let message = json!({"jsonrpc": "2.0", "id": "i".repeat(MIB), "method": "ping"});
    assert_eq!(session.peer.post(message.to_string(), &[]).await.status, 200);
    assert_well(&serve).await;
}

#[tokio::test]
async fn a19_huge_headers_are_refused() {
    let (upstream, serve) = world().await;
    let ask = async |headers: String| {
        let head = format!("GET /readyz HTTP/1.1\r\nHost: 127.0.0.1\r\n{headers}\r\n");
        raw(&serve, head.as_bytes()).await
    };
    for headers in [
        format!("X-Long: {}\r\n", "x".repeat(MIB)),
        (0..1_000).map(|n| format!("X-{n}: x\r\n")).collect::<Vec<_>>().concat(),
        format!("X-{}: x\r\n", "n".repeat(MIB)),
    ] {
        let answer = ask(headers).await;
        // A refusal can be lost when the sender is not done yet.
        assert!(answer.is_empty() || status_of(&answer).starts_with('4'), "{answer:.300}");
    }
    let uri = format!("GET /{} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", "u".repeat(MIB));
    let answer = raw(&serve, uri.as_bytes()).await;
    assert!(answer.is_empty() || status_of(&answer).starts_with('4'), "{answer:.300}");
    let session = Peer::of(&serve).with("mcp-session-id", &"s".repeat(20_000));
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).to_string();
    assert_eq!(session.post(list, &[]).await.status, 404);
    assert_eq!(upstream.stats().total_calls(), 0);
    assert_well(&serve).await;
}

/// The most memory that a process has had.
fn peak_kb(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn a19_a_line_without_end_on_standard_input_is_thrown_away() {
    let home = Home::new("switchboard: {}");
    let mut child = home.command(&["stdio"]).stdin(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut answers = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut answer =
        || -> Value { serde_json::from_str(&answers.next().unwrap().unwrap()).unwrap() };
    let ping = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n";
    input.write_all(ping).unwrap();
    assert_eq!(answer()["id"], 1);
    let before = peak_kb(child.id());
    let piece = vec![b'x'; MIB];
    for _ in 0..100 {
        input.write_all(&piece).unwrap();
    }
    input.write_all(b"\n").unwrap();
    assert_eq!(answer()["error"]["code"], -32700);
    for garbage in [&b"\xff\xfe\x00\n"[..], b"[]\n", b"{\n", b"\n", b"   \r\n"] {
        input.write_all(garbage).unwrap();
    }
    input.write_all(&["[".repeat(100_000).as_bytes(), b"\n"].concat()).unwrap();
    for _ in 0..4 {
        assert!(answer()["error"]["code"].is_i64());
    }
    input.write_all(ping).unwrap();
    assert_eq!(answer()["result"], json!({}));
    let grown = peak_kb(child.id()) - before;
    assert!(grown < 32 * 1024, "{grown} kB more");
    drop(input);
    assert!(child.wait().unwrap().success());
}
