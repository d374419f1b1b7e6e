//! Warnings about settings that are valid but probably a mistake.

use pretty_assertions::assert_eq;

use crate::support::load_with;

fn check(tools: &str, servers: &str, expected: &[&str]) {
    let text = format!("switchboard:\n  toolbox:\n    tools: {tools}\n    mcps: {servers}\n");
    let loaded =
        load_with(Some(&text), &[("T", "x")]).unwrap_or_else(|problems| panic!("{problems}"));
    let messages: Vec<_> = loaded.warnings.iter().map(|warning| warning.message.as_str()).collect();
    assert_eq!(messages, expected);
    assert!(loaded.warnings.iter().all(|w| w.to_string().starts_with("warning: ")));
    assert_eq!(loaded.to_json()["warnings"].as_array().map(Vec::len), Some(expected.len()));
}

#[test]
fn defaults_of_a_strict_server_are_ignored_unless_a_tool_is_dynamic() {
    let server = "[{name: a, url: 'http://h', mode: strict, default_tool_config: {}}]";
    let ignored = ["`default_tool_config` of server 'a' is ignored in strict mode"];
    check("[]", server, &ignored);
    check("[{name: t}, {name: a.t, mode: strict}]", server, &ignored);
    check("[{name: t, mode: dynamic}]", server, &[]);
    check("[{name: a.t, mode: dynamic}]", server, &[]);
}

#[test]
fn credentials_over_plain_http() {
    let rows = [
        ("http://h.example/", 1),
        ("http://10.0.0.1/", 1),
        ("http://[2001:db8::1]/", 1),
        ("https://h.example/", 0),
        ("http://localhost/", 0),
        ("http://x.localhost/", 0),
        ("http://127.0.0.9/", 0),
        ("http://[::1]/", 0),
    ];
    for (url, count) in rows {
        let expected = ["the credentials for server 'a' are sent over plain http"];
        let expected = &expected[..count];
        check(
            "[]",
            &format!("[{{name: a, url: '{url}', mode: strict, auth: {{bearer: x}}}}]"),
            expected,
        );
        check(
            "[]",
            &format!("[{{name: a, url: '{url}', mode: strict, headers: {{x: y}}}}]"),
            expected,
        );
        check("[]", &format!("[{{name: a, transport: sse, url: '{url}', mode: strict}}]"), &[]);
    }
}

#[test]
fn a_tool_of_a_server_that_is_not_there() {
    let server = "[{name: customers, url: 'http://h', mode: strict}]";
    check("[{name: customers.get}, {name: local.sum}, {name: sum}]", server, &[]);
    let message = "the tool entry `custmers.get` names a server that is not configured";
    check("[{name: custmers.get}]", server, &[message]);
    let message = "the tool entry `***` names a server that is not configured";
    check("[{name: '${T}.get'}]", server, &[message]);
}
