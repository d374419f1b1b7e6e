//! Every rule of the module's documentation, on lists. `tests/it/tokens.rs` shows the same on the wire.

use futures::FutureExt as _;
use parking_lot::Mutex;
use pretty_assertions::assert_eq;
use url::Url;

use super::*;

const PLATFORM: (&str, &str) = ("MCP_PLATFORM_ENDPOINT", "https://platform.test");

fn environment(variables: &'static [(&str, &str)]) -> Environment {
    Environment::from_lookup(|name| {
        let all = variables.iter().chain([&PLATFORM]);
        all.into_iter().find(|(it, _)| *it == name).map(|(_, value)| (*value).to_owned())
    })
}

fn server(name: &str, url: &str, audience: Option<&str>) -> McpServerConfig {
    let mut server = McpServerConfig::new(name, name, Url::parse(url).unwrap());
    server.audience = audience.map(str::to_owned);
    server
}

fn found(servers: Vec<McpServerConfig>) -> FoundServers {
    FoundServers { servers, is_list: true, ..FoundServers::default() }
}

/// The servers with what is sent to them.
fn sent(found: &FoundServers) -> Vec<(&str, &str)> {
    let servers = found.servers.iter();
    servers
        .map(|server| {
            let token = server.headers.get(AUTHORIZATION).map_or("", Secret::expose);
            (server.mcp_server_name.as_str(), token)
        })
        .collect()
}

#[test]
fn one_leading_bearer_is_stripped() {
    for (written, expected) in [
        ("abc", "abc"),
        ("Bearer abc", "abc"),
        ("bearer abc", "abc"),
        ("BEARER  abc ", "abc"),
        ("Bearer Bearer abc", "Bearer abc"),
        ("Bearerabc", "Bearerabc"),
        ("Bearer", ""),
        ("bearer \n", ""),
        ("", ""),
    ] {
        assert_eq!(bare_token(written), expected, "{written}");
    }
}

#[test]
fn the_scope_of_a_server_follows_its_audience() {
    let environment = environment(&[]);
    let shared = "ea9ffc3e-8a23-4a7d-836d-234d7c7565c1/.default";
    for (audience, scope, expected) in [
        (None, None, shared),
        (None, Some("McpServers.Mail.All"), shared),
        (Some("default"), None, shared),
        (Some("EA9FFC3E-8a23-4a7d-836d-234d7c7565c1"), None, shared),
        (Some("api://ea9ffc3e-8a23-4a7d-836d-234d7c7565c1"), Some("x"), shared),
        (Some("API://Mail"), None, "api://mail/.default"),
        (Some("mail"), Some("Tools.ListInvoke.All"), "mail/Tools.ListInvoke.All"),
    ] {
        let mut server = server("a", "https://platform.test/a", audience);
        server.scope = scope.map(str::to_owned);
        assert_eq!(token_scope(&server, &environment), expected, "{audience:?} {scope:?}");
        assert_eq!(needs_audience_token(&server), expected != shared, "{audience:?}");
    }
}

#[test]
fn a_servers_own_token_goes_to_that_server_alone() {
    let environment = environment(&[("BEARER_TOKEN_MAIL", "Bearer mail-token")]);
    let mut found = found(vec![
        server("mail", "https://elsewhere.test/mail", None),
        server("files", "https://platform.test/files", None),
        server("mail2", "https://platform.test/mail2", None),
    ]);
    attach_environment_tokens(&mut found, &environment);
    assert_eq!(sent(&found), [("mail", "Bearer mail-token"), ("files", ""), ("mail2", "")]);
    assert_eq!(found.warnings, [""; 0]);
}

#[test]
fn the_shared_token_goes_to_the_platform_alone() {
    let environment = environment(&[
        ("BEARER_TOKEN", "bearer shared-token"),
        ("BEARER_TOKEN_MAIL", "mail-token"),
    ]);
    let mut found = found(vec![
        server("mail", "https://platform.test/mail", None),
        server("files", "https://platform.test/files", None),
        server("port", "https://platform.test:8443/x", None),
        server("plain", "http://platform.test/x", None),
        server("below", "https://x.platform.test/x", None),
        server("foreign", "https://foreign.test/x", None),
    ]);
    attach_environment_tokens(&mut found, &environment);
    assert_eq!(
        sent(&found),
        [
            ("mail", "Bearer mail-token"),
            ("files", "Bearer shared-token"),
            ("port", ""),
            ("plain", ""),
            ("below", ""),
            ("foreign", ""),
        ]
    );
    let expected = "BEARER_TOKEN is not sent to MCP servers [port, plain, below, foreign]: their addresses are not \
                    the platform's";
    assert_eq!(found.warnings, [expected]);
}

#[test]
fn a_warning_about_many_servers_is_short() {
    let environment = environment(&[("BEARER_TOKEN", "shared-token")]);
    let many = (0..1_000).map(|at| server(&format!("s{at}"), "https://foreign.test/x", None));
    let mut found = found(many.collect());
    attach_environment_tokens(&mut found, &environment);
    assert_eq!(
        found.warnings,
        [
            "BEARER_TOKEN is not sent to MCP servers [s0, s1, s2, s3, s4, s5, s6, s7, s8, s9] and 990 more: their \
          addresses are not the platform's"
        ]
    );
}

#[test]
fn mcp_base_url_names_an_origin_of_the_platform_too() {
    let environment =
        environment(&[("BEARER_TOKEN", "shared-token"), ("MCP_BASE_URL", "http://127.0.0.1:9/x")]);
    let mut found = found(vec![
        server("near", "http://127.0.0.1:9/other", None),
        server("platform", "https://platform.test/x", None),
        server("other", "http://127.0.0.1:10/x", None),
    ]);
    attach_environment_tokens(&mut found, &environment);
    let shared = "Bearer shared-token";
    assert_eq!(sent(&found), [("near", shared), ("platform", shared), ("other", "")]);
}

#[test]
fn the_shared_token_is_not_sent_to_a_server_with_its_own_audience() {
    let environment = environment(&[("BEARER_TOKEN", "shared-token")]);
    let mut found = found(vec![server("crm", "https://platform.test/crm", Some("crm-app"))]);
    attach_environment_tokens(&mut found, &environment);
    assert_eq!(sent(&found), [("crm", "")]);
    assert_eq!(
        found.warnings,
        [
            "Dev: MCP server 'crm' requires scope 'crm-app/.default' but only BEARER_TOKEN is set. The shared token is \
          scoped to a different audience and is not sent. Set BEARER_TOKEN_CRM to a token acquired for the correct \
          audience."
        ]
    );
}

#[test]
fn a_variable_that_fits_two_servers_is_sent_to_neither() {
    let environment = environment(&[("BEARER_TOKEN_MY_MAIL", "mail-token")]);
    let mut found = found(vec![
        server("my mail", "https://platform.test/mail", None),
        server("My-Mail", "https://platform.test/other", None),
    ]);
    attach_environment_tokens(&mut found, &environment);
    assert_eq!(sent(&found), [("my mail", ""), ("My-Mail", "")]);
    assert_eq!(
        found.warnings,
        ["BEARER_TOKEN_MY_MAIL fits more than one MCP server and is sent to none of them"]
    );
}

#[test]
fn a_token_that_no_header_can_have_is_not_sent() {
    let environment = environment(&[("BEARER_TOKEN_MAIL", "two\nlines")]);
    let mut found = found(vec![server("mail", "https://platform.test/mail", None)]);
    attach_environment_tokens(&mut found, &environment);
    assert_eq!(sent(&found), [("mail", "")]);
    assert!(found.warnings[0].starts_with("BEARER_TOKEN_MAIL is not sent to MCP server 'mail': "));
    assert!(!found.warnings[0].contains("lines"));
}

#[test]
fn the_gateways_token_goes_to_the_platform_alone_and_servers_with_an_audience_are_left_out() {
    let mut found = found(vec![
        server("mail", "https://platform.test/mail", None),
        server("v2srv", "https://platform.test/crm", Some("crm-app")),
        server("foreign", "https://foreign.test/x", None),
    ]);
    let bad = EntryProblem { index: 1, name: None, message: "bad".to_owned() };
    found.problems = vec![bad.clone()];
    attach_platform_token(&mut found, &environment(&[]), &Secret::new("gateway-token"));
    assert_eq!(sent(&found), [("mail", "Bearer gateway-token"), ("foreign", "")]);
    let message = "MCP servers [v2srv] require per-audience token exchange (V2) but no authorization context was \
                   provided. Pass authorization, auth_handler_name, and turn_context to list_tool_servers().";
    let left_out =
        EntryProblem { index: 2, name: Some("v2srv".to_owned()), message: message.to_owned() };
    assert_eq!(found.problems, [bad, left_out]);
}

/// Answers with the scope in the token and remembers who it was for.
#[derive(Default)]
struct Exchange {
    asked: Mutex<Vec<(String, String)>>,
}

impl TokenExchange for Exchange {
    fn token_for<'a>(
        &'a self,
        server: &'a McpServerConfig,
        scope: &'a str,
    ) -> BoxFuture<'a, Option<Secret>> {
        self.asked.lock().push((server.mcp_server_name.clone(), scope.to_owned()));
        let token = (!scope.starts_with("none")).then(|| Secret::new(format!("for-{scope}")));
        futures::future::ready(token).boxed()
    }
}

#[test]
fn one_token_is_exchanged_for_each_audience_and_origin() {
    let exchange = Exchange::default();
    let environment = environment(&[("MCP_PLATFORM_AUTHENTICATION_SCOPE", "shared")]);
    let mut found = found(vec![
        server("v1a", "https://platform.test/a", None),
        server("v1b", "https://platform.test/b", None),
        server("foreign", "https://foreign.test/b", None),
        server("crm", "https://crm.test/a", Some("crm")),
        server("crm2", "https://crm.test/b", Some("CRM")),
        server("fake", "https://fake.test/b", Some("crm")),
        server("broken", "https://crm.test/c", Some("none")),
    ]);
    attach_tokens(&mut found, &environment, &exchange).now_or_never().unwrap();
    assert_eq!(
        sent(&found),
        [
            ("v1a", "Bearer for-shared"),
            ("v1b", "Bearer for-shared"),
            ("foreign", ""),
            ("crm", "Bearer for-crm/.default"),
            ("crm2", "Bearer for-crm/.default"),
            ("fake", "Bearer for-crm/.default"),
        ]
    );
    let asked: Vec<_> = exchange.asked.lock().iter().map(|(server, _)| server.clone()).collect();
    assert_eq!(
        asked,
        ["v1a", "crm", "fake", "broken"],
        "the exchange may refuse a host of its own"
    );
    let message = "Failed to obtain token for MCP server 'broken' (scope: none/.default)";
    let name = Some("broken".to_owned());
    assert_eq!(found.problems, [EntryProblem { index: 6, name, message: message.to_owned() }]);
}
