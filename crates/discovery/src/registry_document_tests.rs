use pretty_assertions::assert_eq;
use serde_json::json;

use super::*;

fn read(document: &Value) -> FetchedServers {
    parse_registry(&serde_json::to_vec(document).unwrap()).unwrap().fetched
}

fn remote(name: &str, remote: &Value) -> Value {
    json!({"name": name, "description": "d", "version": "1.0.0", "remotes": [remote]})
}

fn weather() -> Value {
    remote(
        "io.github.example/weather",
        &json!({"type": "streamable-http", "url": "https://weather.example.com/mcp"}),
    )
}

/// The reason why this document cannot be used.
#[track_caller]
fn check_unusable(document: &Value, reason: &str) {
    let fetched = read(&json!([document]));
    assert_eq!(fetched.servers, [], "{document}");
    assert_eq!(fetched.unusable.len(), 1, "{document}");
    assert_eq!(fetched.unusable[0].reason, reason);
}

#[test]
fn one_document_a_list_and_a_registrys_page_are_read() {
    let listed = json!({"server": weather(), "_meta": {OFFICIAL_META: {"isLatest": true}}});
    for document in [
        weather(),
        json!([weather()]),
        json!({"servers": [weather()]}),
        json!({"servers": [listed], "metadata": {"nextCursor": "abc", "count": 1}}),
        listed.clone(),
    ] {
        let fetched = read(&document);
        assert_eq!(fetched.unusable, [], "{document}");
        assert_eq!(fetched.servers[0].name, "io.github.example/weather");
        assert_eq!(fetched.servers[0].url.as_str(), "https://weather.example.com/mcp");
        assert_eq!(fetched.servers[0].transport, HttpTransport::StreamableHttp);
    }
    let page = json!({"servers": [], "metadata": {"nextCursor": "abc"}}).to_string();
    assert_eq!(parse_registry(page.as_bytes()).unwrap().next.as_deref(), Some("abc"));
}

#[test]
fn other_shapes_are_refused_as_a_whole() {
    for (text, reason) in [
        ("", "EOF while parsing a value at line 1 column 0"),
        ("<html>", "expected value at line 1 column 1"),
        ("null", SHAPES),
        ("\"servers\"", SHAPES),
        ("{\"mcpServers\": []}", SHAPES),
        ("{\"servers\": {}}", "`servers` is not a list"),
    ] {
        assert_eq!(parse_registry(text.as_bytes()).unwrap_err(), reason, "{text}");
    }
}

#[test]
fn streamable_http_is_preferred_to_sse_and_programs_are_never_started() {
    let both = json!({"name": "a", "remotes": [
        {"type": "sse", "url": "https://a.example/sse"},
        {"type": "streamable-http", "url": "https://a.example/mcp"},
    ], "packages": [{"registryType": "npm", "identifier": "a"}]});
    assert_eq!(read(&both).servers[0].url.as_str(), "https://a.example/mcp");
    let sse = remote("a", &json!({"type": "sse", "url": "https://a.example/sse"}));
    assert_eq!(read(&sse).servers[0].transport, HttpTransport::Sse);
    let package = json!({"name": "a", "packages": [{"registryType": "npm", "identifier": "a"}]});
    check_unusable(
        &package,
        "it has packages only, and a discovered server never starts a program",
    );
    check_unusable(&json!({"name": "a"}), "it has no remote of type streamable-http or sse");
    let stdio = remote("a", &json!({"type": "stdio", "command": "rm"}));
    check_unusable(&stdio, "it has no remote of type streamable-http or sse");
}

#[test]
fn one_bad_entry_costs_only_itself() {
    let fetched = read(&json!([5, weather(), {"name": " "}, {"name": "x", "remotes": 5}]));
    assert_eq!(fetched.servers.len(), 1);
    let unusable: Vec<_> =
        fetched.unusable.iter().map(|it| format!("{}: {}", it.name, it.reason)).collect();
    assert_eq!(
        unusable,
        [
            "entry 0: it is not an object",
            " : it has no `name`",
            "x: it has no remote of type streamable-http or sse",
        ]
    );
    let named = |name: &str| remote(name, &json!({"type": "sse", "url": "https://a.example/"}));
    check_unusable(&named(&"x".repeat(300)), "its name is longer than 256 bytes");
    for url in ["", "mcp", "ftp://a.example/", "https://", "file:///etc/passwd"] {
        let document = remote("a", &json!({"type": "sse", "url": url}));
        check_unusable(&document, "its address is no absolute http or https URL");
    }
}

#[test]
fn older_versions_are_skipped_and_deleted_servers_named() {
    let with = |meta: Value| json!({"server": weather(), "_meta": {OFFICIAL_META: meta}});
    let older = read(&json!([with(json!({"isLatest": false}))]));
    assert_eq!(older, FetchedServers::default());
    let deleted = "the registry has marked it as deleted";
    check_unusable(&with(json!({"isLatest": true, "status": "deleted"})), deleted);
    let mut document = weather();
    document["status"] = json!("deleted");
    check_unusable(&document, deleted);
}

#[test]
fn headers_and_variables_are_filled_in_where_the_document_has_values() {
    let document = remote(
        "a",
        &json!({
            "type": "streamable-http",
            "url": "https://{tenant}.example.com/{path}",
            "variables": {"tenant": {"default": "blue"}, "path": {"value": "mcp"}},
            "headers": [
                {"name": "X-Region", "value": "{region}", "variables": {"region": {"default": "eu"}}},
                {"name": "X-Plain", "default": "1"},
                {"name": "X-Optional", "isSecret": true},
            ],
        }),
    );
    let server = &read(&document).servers[0];
    assert_eq!(server.url.as_str(), "https://blue.example.com/mcp");
    let headers: Vec<_> =
        server.headers.iter().map(|(name, value)| (name.as_str(), value.expose())).collect();
    assert_eq!(headers, [("X-Plain", "1"), ("X-Region", "eu")]);

    let asks = json!({"type": "sse", "url": "https://{tenant}.example.com/"});
    check_unusable(
        &remote("a", &asks),
        "its address needs a value for `{tenant}`; add the server to `toolbox.mcps` with it",
    );
    let needs = json!({
        "type": "sse",
        "url": "https://a.example/",
        "headers": [{"name": "Authorization", "isRequired": true, "isSecret": true}],
    });
    check_unusable(
        &remote("a", &needs),
        "it needs a value for the header `Authorization`; add the server to `toolbox.mcps` with it",
    );
}

#[test]
fn ten_thousand_documents_are_read() {
    let all: Vec<_> = (0..10_000)
        .map(|n| remote(&format!("s{n}"), &json!({"type": "sse", "url": "https://a.example/"})))
        .collect();
    assert_eq!(read(&Value::Array(all)).servers.len(), 10_000);
}
