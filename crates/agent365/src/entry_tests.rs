//! Entries through both of their sources.

use pretty_assertions::assert_eq;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::gateway_answer::parse_gateway_answer;
use crate::manifest::parse_manifest;

fn environment() -> Environment {
    Environment::from_lookup(|name| {
        (name == "MCP_PLATFORM_ENDPOINT").then(|| "https://platform.test".to_owned())
    })
}

/// The servers of a list with these entries, which must be the same from manifest, gateway and bare list.
#[track_caller]
fn found(entries: &Value) -> FoundServers {
    let wrapped = json!({"mcpServers": entries}).to_string();
    let of_manifest = parse_manifest(&wrapped, &environment()).unwrap();
    let of_gateway = parse_gateway_answer(wrapped.as_bytes(), &environment()).unwrap();
    let bare = parse_gateway_answer(entries.to_string().as_bytes(), &environment()).unwrap();
    assert_eq!(of_manifest, of_gateway);
    assert_eq!(of_gateway, bare);
    assert!(of_manifest.is_list);
    of_manifest
}

#[track_caller]
fn check_url(entry: &Value, expected: &str) {
    let found = found(&json!([entry]));
    assert_eq!(found.problems, []);
    assert_eq!(found.servers[0].url.as_str(), expected, "{entry}");
}

/// A good entry stays beside one that is bad, which is reported.
#[track_caller]
fn check_problem(entry: &Value, name: Option<&str>, expected: &str) {
    let found = found(&json!([{"mcpServerName": "first"}, entry, {"mcpServerName": "last"}]));
    let names: Vec<_> = found.servers.iter().map(|it| it.mcp_server_name.as_str()).collect();
    assert_eq!(names, ["first", "last"], "{entry}");
    let name = name.map(str::to_owned);
    assert_eq!(found.problems, [EntryProblem { index: 1, name, message: expected.to_owned() }]);
}

#[test]
fn mcp_server_config_has_every_member() {
    let found = found(&json!([{
        "mcpServerName": "mailMCPServer",
        "mcpServerUniqueName": "mcp_MailTools",
        "url": "https://mail.test/mcp",
        "audience": "api://mail",
        "scope": "Tools.ListInvoke.All",
        "publisher": "Microsoft",
        "connectivityStatus": "Pending",
        "missingConnectionsUrl": "https://setup.test/mail",
        "allConnectionsUrl": "https://setup.test/all",
        "id": "ignored",
    }]));
    let url = "https://mail.test/mcp".parse().unwrap();
    let mut expected = McpServerConfig::new("mailMCPServer", "mcp_MailTools", url);
    expected.audience = Some("api://mail".to_owned());
    expected.scope = Some("Tools.ListInvoke.All".to_owned());
    expected.publisher = Some("Microsoft".to_owned());
    expected.connectivity = Connectivity {
        status: Some("Pending".to_owned()),
        missing_connections_url: Some("https://setup.test/mail".to_owned()),
        all_connections_url: Some("https://setup.test/all".to_owned()),
    };
    assert_eq!(found.servers, [expected]);
    assert_eq!(found.warnings, [""; 0]);
}

#[test]
fn the_sentinels_of_audience_and_scope_mean_absent() {
    for (audience, scope) in [("default", "null"), ("Default", "NULL"), ("", ""), (" ", " ")] {
        let found = found(&json!([{"mcpServerName": "a", "audience": audience, "scope": scope}]));
        assert_eq!((&found.servers[0].audience, &found.servers[0].scope), (&None, &None));
    }
}

#[test]
fn the_address_is_url_then_unique_name_then_name() {
    let base = "https://platform.test/agents/servers";
    check_url(&json!({"mcpServerName": "mail"}), &format!("{base}/mail"));
    check_url(
        &json!({"mcpServerName": "mail", "mcpServerUniqueName": null}),
        &format!("{base}/mail"),
    );
    check_url(
        &json!({"mcpServerName": "mail", "mcpServerUniqueName": "mcp_Mail"}),
        &format!("{base}/mcp_Mail"),
    );
    check_url(
        &json!({"mcpServerName": "mail", "mcpServerUniqueName": "https://x.test/mcp"}),
        "https://x.test/mcp",
    );
    check_url(
        &json!({"mcpServerName": "mail", "mcpServerUniqueName": "https://x.test/", "url": "http://y.test/mcp"}),
        "http://y.test/mcp",
    );
    for absent in [json!(null), json!(""), json!("  ")] {
        check_url(&json!({"mcpServerName": "mail", "url": absent}), &format!("{base}/mail"));
    }
}

#[test]
fn names_with_blanks_slashes_and_other_scripts_stay_one_segment() {
    let base = "https://platform.test/agents/servers";
    for (name, segment) in [
        ("my mail", "my%20mail"),
        ("a/b", "a%2Fb"),
        ("../../admin", "..%2F..%2Fadmin"),
        ("почта", "%D0%BF%D0%BE%D1%87%D1%82%D0%B0"),
    ] {
        check_url(&json!({"mcpServerName": name}), &format!("{base}/{segment}"));
    }
}

#[test]
fn a_relative_url_is_resolved_below_the_base_and_said() {
    for (written, expected) in [
        ("mcp_MailTools", "https://platform.test/agents/servers/mcp_MailTools"),
        ("/mcp/mail", "https://platform.test/mcp/mail"),
    ] {
        let found = found(&json!([{"mcpServerName": "mail", "url": written}]));
        assert_eq!(found.servers[0].url.as_str(), expected);
        assert_eq!(
            found.warnings,
            [format!(
                "url '{written}' of MCP server 'mail' is not absolute and was resolved below \
                 https://platform.test/agents/servers"
            )]
        );
    }
}

#[test]
fn one_bad_entry_costs_no_other() {
    check_problem(
        &json!("x"),
        None,
        "Failed to parse server config from element 'x': it is no object",
    );
    check_problem(&json!(7), None, "Failed to parse server config from element 7: it is no object");
    check_problem(
        &json!(null),
        None,
        "Failed to parse server config from element null: it is no object",
    );
    check_problem(
        &json!([]),
        None,
        "Failed to parse server config from element a list: it is no object",
    );
    check_problem(&json!({}), None, "mcpServerName is missing");
    check_problem(&json!({"mcpServerUniqueName": "only"}), None, "mcpServerName is missing");
    check_problem(&json!({"mcpServerName": 7}), None, "mcpServerName is 7, which is no string");
    check_problem(&json!({"mcpServerName": " "}), Some(" "), "mcp_server_name cannot be empty");
    check_problem(
        &json!({"mcpServerName": "a", "mcpServerUniqueName": ""}),
        Some("a"),
        "mcp_server_unique_name cannot be empty",
    );
    check_problem(
        &json!({"mcpServerName": ".."}),
        Some(".."),
        "mcpServerUniqueName '..' cannot be part of a path",
    );
    check_problem(
        &json!({"mcpServerName": "a", "url": ["x"]}),
        Some("a"),
        "url is a list, which is no string",
    );
    check_problem(
        &json!({"mcpServerName": "first", "url": "https://other.test"}),
        Some("first"),
        "entry 0 has the same mcpServerName; that one is used",
    );
}

#[test]
fn a_url_of_another_scheme_or_without_a_host_is_refused() {
    for url in ["file:///etc/passwd", "javascript:1", "ftp://x.test/", "//evil.test/mcp", "http://"]
    {
        check_problem(
            &json!({"mcpServerName": "a", "url": url}),
            Some("a"),
            &format!("url '{url}' is no http or https address"),
        );
    }
}

#[test]
fn a_long_text_is_not_quoted_whole() {
    let found = found(&json!(["x".repeat(100_000), "a\u{1b}[31m"]));
    assert!(found.problems[0].message.len() < 200, "{}", found.problems[0].message);
    assert!(!found.problems[1].message.contains('\u{1b}'));
}

#[test]
fn ten_thousand_entries_are_read() {
    let entries: Vec<_> =
        (0..10_000).map(|at| json!({"mcpServerName": format!("server {at}")})).collect();
    let found = found(&Value::Array(entries));
    assert_eq!((found.servers.len(), found.problems.len()), (10_000, 0));
    assert_eq!(found.servers[9_999].mcp_server_name, "server 9999");
}

#[test]
fn connections_are_required_when_one_is_pending() {
    let ready =
        json!([{"mcpServerName": "a"}, {"mcpServerName": "b", "connectivityStatus": "Ready"}]);
    assert_eq!(found(&ready).require_connections(), Ok(()));
    let answer = json!({
        "mcpServers": [
            {"mcpServerName": "a", "connectivityStatus": "ready"},
            {"mcpServerName": "b", "connectivityStatus": "Pending", "missingConnectionsUrl": "https://b.test"},
        ],
        "connectivityStatus": "Pending",
        "missingConnectionsUrl": "https://setup.test",
        "allConnectionsUrl": "https://all.test",
    });
    let mut found = parse_gateway_answer(answer.to_string().as_bytes(), &environment()).unwrap();
    assert_eq!(found.connectivity.all_connections_url.as_deref(), Some("https://all.test"));
    let text = |found: &FoundServers| found.require_connections().unwrap_err().to_string();
    assert_eq!(
        text(&found),
        "MCP servers [b] require connection setup (connectivityStatus=Pending). Set up missing connections at: \
         https://setup.test"
    );
    found.connectivity.missing_connections_url = None;
    assert!(text(&found).ends_with("at: https://b.test"));
}

/// Any JSON, with the members of entries in it more often than chance would have it.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "\\PC{0,12}".prop_map(Value::from),
        "(https?:)?//?[a-z.%:@\\[\\]]{0,8}(/\\.\\.)?".prop_map(Value::from),
    ];
    let key = prop_oneof![
        Just("mcpServerName"),
        Just("mcpServerUniqueName"),
        Just("url"),
        Just("audience"),
        Just("scope"),
        Just("mcpServers"),
    ];
    leaf.prop_recursive(3, 30, 6, move |inner| {
        let members = proptest::collection::vec((key.clone(), inner.clone()), 0..6);
        prop_oneof![
            proptest::collection::vec(inner, 0..6).prop_map(Value::from),
            members.prop_map(|members| {
                let members = members.into_iter().map(|(key, value)| (key.to_owned(), value));
                Value::Object(members.collect())
            }),
        ]
    })
}

proptest! {
    #[test]
    fn every_entry_is_a_server_or_a_problem(entries in proptest::collection::vec(any_json(), 0..8)) {
        let count = entries.len();
        let found = found(&Value::Array(entries));
        prop_assert_eq!(found.servers.len() + found.problems.len(), count);
        for server in &found.servers {
            prop_assert!(!server.mcp_server_name.trim().is_empty());
            prop_assert!(server.url.has_host() && matches!(server.url.scheme(), "http" | "https"));
        }
    }

    #[test]
    fn no_bytes_break_the_parser(bytes in any::<Vec<u8>>(), json in any_json()) {
        let _read = parse_gateway_answer(&bytes, &environment());
        let _read = parse_gateway_answer(json.to_string().as_bytes(), &environment());
        let _read = parse_manifest(&json.to_string(), &environment());
    }
}
