//! Exported spans, received by a test collector.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::mpsc;

use crate::support::Home;

/// A collector that takes what it is sent and hands it over, head and body.
fn collector() -> (String, mpsc::Receiver<Vec<u8>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (sender, received) = mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut request = Vec::new();
            let mut chunk = [0; 4096];
            while !is_whole(&request) {
                let length = stream.read(&mut chunk).unwrap();
                request.extend_from_slice(&chunk[..length]);
            }
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").unwrap();
            sender.send(request).unwrap();
        }
    });
    (url, received)
}

fn is_whole(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request).to_ascii_lowercase();
    let Some((head, _)) = text.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
    request.len() >= head.len() + 4 + length.trim().parse::<usize>().unwrap()
}

#[test]
fn a_call_becomes_a_span_under_the_agreed_names() {
    let (url, received) = collector();
    let home = Home::new("switchboard: {toolbox: {tools: [{name: sum_numbers}]}}")
        .with_variable("OTEL_EXPORTER_OTLP_ENDPOINT", url);
    home.run(&["tool", "call", "sum_numbers", r#"{"a": 1, "b": 2}"#]).expect(0);
    let request = received.recv_timeout(crate::support::PATIENCE).expect("a span arrives");
    let text = String::from_utf8_lossy(&request);
    assert!(text.starts_with("POST /v1/traces "), "{text}");
    for word in [
        "tools/call sum_numbers",
        "mcp.method.name",
        "gen_ai.tool.name",
        "gen_ai.operation.name",
        "execute_tool",
        "switchboard.outcome",
    ] {
        assert!(text.contains(word), "{word} is missing in {text}");
    }
}

#[test]
fn a_collector_that_is_away_costs_nothing_but_its_spans() {
    let home = Home::new("switchboard: {toolbox: {tools: [{name: sum_numbers}]}}")
        .with_variable("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9");
    let outcome = home.run(&["tool", "call", "sum_numbers", r#"{"a": 1, "b": 2}"#]).expect(0);
    assert_eq!(outcome.stdout, "3\n");
}
