//! Tests with HTTP servers that cannot be reached or listed, and of the error messages.

use std::process::Command;
use std::time::Duration;

use switchboard_model::ServerSpec;
use switchboard_test_support::{Fault, ScriptedServer, ScriptedServerBuilder, Stage, Tool};

use crate::support::{PATIENCE, assert_rows, failure, helper, http, open, sse, with_credentials};

const LOGIN: &str = "protocol: HTTP 200 OK: a web page instead of an MCP answer \
    -> this looks like a login or start page; check `url` and the credentials";
const CREDENTIALS: &str = "give the server's credentials in `auth.bearer` or `headers`";
const PATH: &str = "check the path of `url`; many servers answer at /mcp, \
    older ones at /sse with `transport: sse`";
const NOT_JSON: &str = "protocol: the answer is not a JSON-RPC message \
    (key must be a string at line 1 column 3): { this is not JSON at all";
const BROKEN_OFF: &str = "unreachable: the answer broke off: unexpected EOF during chunk size line";
/// What does not go through rmcp.
const CLOSED: &str = "unreachable: the answer broke off: the server closed the connection";
const REDIRECT: &str = "protocol: HTTP 307 Temporary Redirect \
    -> the server redirects elsewhere; put the final address into `url`";
const REFUSED: &str = "unreachable: cannot connect: Connection refused (os error 111) \
    -> check host and port of `url`, and whether the server runs";
const TOO_LARGE: &str = "protocol: the answer is larger than 16777216 bytes";
const TOO_DEEP: &str = "protocol: the answer is nested deeper than 127 levels";

fn legacy() -> ScriptedServerBuilder {
    ScriptedServer::builder().legacy().tools([Tool::echo("echo")])
}

fn modern() -> ScriptedServerBuilder {
    ScriptedServer::builder().modern().tools([Tool::echo("echo")])
}

fn old() -> ScriptedServerBuilder {
    ScriptedServer::builder().sse_transport().tools([Tool::echo("echo")])
}

struct Case(&'static str, ScriptedServerBuilder, Fault, String);

impl Case {
    /// What a person reads, beside what they should.
    async fn run(self, limit: Duration) -> (String, String, String) {
        let Self(name, server, fault, expected) = self;
        let name = format!("{name}, {fault:?}");
        let server = server.fault(fault).start().await;
        // Nobody there speaks TLS, which is no different from one who does not go on with it.
        let is_secure = name.starts_with("HTTPS");
        let scheme = if is_secure { "https://" } else { "http://" };
        let url = server.url().replace("http://", scheme);
        let spec = with_credentials(if url.ends_with("/sse") { sse(&url) } else { http(&url) });
        let shown = failure(open(&ServerSpec { connect_timeout: limit, ..spec }).await);
        assert!(!shown.contains("s3cret"), "{shown}");
        (name, shown, expected)
    }
}

async fn check(cases: impl IntoIterator<Item = Case>) {
    let mut rows = Vec::new();
    for case in cases {
        rows.push(case.run(PATIENCE).await);
    }
    assert_rows(rows);
}

#[tokio::test]
async fn a_status_says_what_to_do() {
    let said = |code: u16, reason: &str| match code {
        401 | 403 => format!(
            "unauthorized: HTTP {code} {reason}: {{\"error\":\"{reason}\"}} -> {CREDENTIALS}"
        ),
        404 | 405 => {
            format!("protocol: HTTP {code} {reason}: {{\"error\":\"{reason}\"}} -> {PATH}")
        }
        _ => format!("overloaded: HTTP {code} {reason}: {{\"error\":\"{reason}\"}}"),
    };
    let mut cases = Vec::new();
    for (code, reason) in [
        (401, "Unauthorized"),
        (403, "Forbidden"),
        (404, "Not Found"),
        (405, "Method Not Allowed"),
        (429, "Too Many Requests"),
        (500, "Internal Server Error"),
        (503, "Service Unavailable"),
    ] {
        let expected = said(code, reason);
        cases.push(Case("legacy", legacy(), Fault::Status(Stage::Any, code), expected.clone()));
        cases.push(Case("modern", modern(), Fault::Status(Stage::List, code), expected.clone()));
        cases.push(Case("HTTP+SSE", old(), Fault::Status(Stage::Any, code), expected.clone()));
        if code != 404 {
            cases.push(Case("legacy", legacy(), Fault::Status(Stage::List, code), expected));
        }
    }
    let lost = "protocol: HTTP 404 Not Found within a session that the server had just opened";
    cases.push(Case("legacy", legacy(), Fault::Status(Stage::List, 404), lost.into()));
    check(cases).await;
}

#[tokio::test]
async fn something_else_than_an_answer_is_shown_for_what_it_is() {
    let mut cases = Vec::new();
    let elsewhere = ScriptedServer::builder().legacy().start().await;
    for stage in [Stage::Any, Stage::Initialize, Stage::List] {
        let redirect = Fault::Redirect(stage, elsewhere.url());
        let broken_off = if matches!(stage, Stage::List) { CLOSED } else { BROKEN_OFF };
        for (fault, expected) in [
            (Fault::LoginPage(stage), LOGIN),
            (Fault::NotJson(stage), NOT_JSON),
            (Fault::CloseMidBody(stage), broken_off),
            (redirect, REDIRECT),
        ] {
            cases.push(Case("legacy", legacy(), fault, expected.into()));
        }
    }
    for fault in [Fault::LoginPage(Stage::Any), Fault::LoginPage(Stage::List)] {
        cases.push(Case("modern", modern(), fault, LOGIN.into()));
    }
    cases.push(Case("HTTP+SSE", old(), Fault::LoginPage(Stage::Any), LOGIN.into()));
    check(cases).await;
    let strangers = elsewhere.stats().requests;
    assert!(strangers.is_empty(), "our credentials went to another origin: {strangers:?}");
}

#[tokio::test]
async fn a_redirect_within_the_server_is_followed() {
    let server = legacy().start().await;
    server.set_fault_times(1, Fault::Redirect(Stage::Initialize, server.url())).await;
    assert!(open(&http(&server.url())).await.is_ok());
}

#[tokio::test]
async fn nobody_there_is_said_at_once() {
    check([
        Case("legacy", legacy(), Fault::Refuse, REFUSED.into()),
        Case("HTTP+SSE", old(), Fault::Refuse, REFUSED.into()),
    ])
    .await;
}

#[tokio::test]
async fn a_timeout_names_what_was_waited_for() {
    let late = |step: &str| {
        format!(
            "timeout: no answer to {step} within 2s \
             -> raise `connect_timeout` for a server that needs longer to start"
        )
    };
    let mut cases = vec![
        Case("legacy", legacy(), Fault::HangAtConnect, late("initialize")),
        Case("HTTPS", legacy(), Fault::HangAtConnect, late("initialize")),
        // Silence is no answer: the old handshake is tried, and here it works.
        Case("legacy", legacy(), Fault::Hang(Stage::Discover), r#"opened, with ["echo"]"#.into()),
        Case("legacy", legacy(), Fault::Hang(Stage::Initialize), late("initialize")),
        Case("HTTP+SSE", old(), Fault::Hang(Stage::Initialize), late("initialize")),
    ];
    let stream = late("the opening of the event stream");
    cases.push(Case("HTTP+SSE", old(), Fault::HangAtConnect, stream));
    for server in [legacy(), modern(), old()] {
        cases.push(Case("any", server, Fault::Hang(Stage::List), late("tools/list")));
    }
    // At the same time: each of them takes as long as it may.
    let limit = Duration::from_secs(2);
    let rows = cases.into_iter().map(|case| case.run(limit));
    assert_rows(futures::future::join_all(rows).await);
}

#[tokio::test]
async fn a_list_that_does_not_end_is_not_read_to_the_end() {
    let circles = "protocol: the server's list goes in circles: cursor \"page-1\" came twice";
    let refused =
        "protocol: the server refused to list its tools: scripted failure of the second page";
    let endless = "protocol: the server's list has more than 1000 pages, so it is not used";
    let mut cases = vec![Case("legacy", legacy(), Fault::EndlessPages, endless.into())];
    for server in [legacy, modern, old] {
        cases.push(Case("any", server(), Fault::CursorLoop, circles.into()));
        cases.push(Case("any", server(), Fault::SecondPageFails, refused.into()));
    }
    check(cases).await;
}

#[tokio::test]
async fn more_tools_than_anyone_needs_are_refused() {
    let server = legacy().pages(11).tools_per_page(1000).start().await;
    let expected = "protocol: the server lists more than 10000 tools";
    assert_eq!(failure(open(&http(&server.url())).await), expected);
}

#[tokio::test]
async fn a_schema_that_is_too_deep_is_refused_in_words() {
    let mut cases = Vec::new();
    for server in [legacy(), modern(), legacy().answers_as_events(), modern().answers_as_events()] {
        cases.push(Case("any", server, Fault::DeepSchema(10_000), TOO_DEEP.into()));
    }
    let deep = "opened, with [\"echo\", \"deep\"]";
    cases.push(Case("legacy", legacy(), Fault::DeepSchema(50), deep.into()));
    check(cases).await;
}

#[tokio::test]
async fn a_huge_list_is_cut_off_at_the_bound() {
    let huge = || Fault::HugeList(100_000_000);
    check([
        Case("legacy", legacy(), huge(), TOO_LARGE.into()),
        Case("events", modern().answers_as_events(), huge(), TOO_LARGE.into()),
    ])
    .await;
}

#[tokio::test]
async fn a_huge_list_does_not_fill_the_memory() {
    for server in [legacy(), modern().answers_as_events()] {
        let server = server.fault(Fault::HugeList(100_000_000)).start().await;
        let run = Command::new(helper()).args(["weigh", &server.url()]).output().unwrap();
        let said = String::from_utf8(run.stdout).unwrap();
        let (error, peak) = said.trim().rsplit_once('\n').unwrap();
        assert_eq!(error, "the answer is larger than 16777216 bytes");
        let kilobytes: u64 = peak.strip_suffix(" kB").unwrap().parse().unwrap();
        assert!(kilobytes < 80 * 1024, "{kilobytes} kB for a list that is cut off at 16 MiB");
    }
}

#[tokio::test]
async fn a_server_of_the_other_transport_is_not_taken_for_ours() {
    let (new, old) = (legacy().start().await, old().start().await);
    let refusal = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad Request: Server not initialized"}}"#;
    assert_rows(vec![
        (
            "HTTP+SSE at a streamable server".into(),
            failure(open(&sse(&new.url())).await),
            format!("protocol: HTTP 400 Bad Request: {refusal}"),
        ),
        (
            "streamable at an HTTP+SSE server".into(),
            failure(open(&http(&old.url())).await),
            format!("protocol: HTTP 405 Method Not Allowed -> {PATH}"),
        ),
    ]);
}
