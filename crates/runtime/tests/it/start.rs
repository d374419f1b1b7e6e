//! Tests of starting a board: which configurations start, and the errors of those that do not.

use std::time::Duration;

use pretty_assertions::assert_eq;
use serde_json::json;
use switchboard_model::AdmissionMode::{Dynamic, Strict};
use switchboard_model::ServerState;
use switchboard_registry::Configured;
use switchboard_runtime::{Board, StartEvent, StartFailure};
use switchboard_test_support::{Fault, ScriptedServer, Stage, Tool, free_port};

use crate::support::{
    board, dynamic, dynamic_at, end, failure, names, options, plan, refused, revision, server,
    started, status, strict, strict_at, text, try_board, until, until_state, with, yaml, yaml_with,
};

#[tokio::test]
async fn strict_dynamic_and_local_tools_start_together_each_with_its_own_limits() {
    let customers = server([Tool::echo("get_customer"), Tool::echo("list_customers")]).await;
    let internal = server([Tool::echo("audit")]).await;
    let config = yaml(
        &[
            "{name: sum_numbers, max_instances: 20}",
            "{name: get_customer, max_instances: 50}",
            "{name: internal.audit, timeout: 2s}",
        ],
        &[dynamic("customers", &customers), strict("internal", &internal)],
    );
    let board = board(&config).await;
    let catalog = board.catalog();
    let shown: Vec<_> = catalog
        .tools()
        .iter()
        .map(|tool| {
            let limits = (tool.limits.max_instances, tool.limits.timeout.as_secs());
            (tool.name.as_str(), tool.mode, tool.configured, limits)
        })
        .collect();
    assert_eq!(
        shown,
        [
            ("local.sum_numbers", Strict, Configured::Explicit, (20, 30)),
            ("customers.get_customer", Dynamic, Configured::Merged, (50, 8)),
            ("customers.list_customers", Dynamic, Configured::Default, (5, 8)),
            ("internal.audit", Strict, Configured::Explicit, (5, 2)),
        ]
    );
    assert_eq!(text(&board, "sum_numbers", json!({"a": 1, "b": 2})).await, "3");
    assert_eq!(text(&board, "audit", json!({"n": 1})).await, r#"{"n":1}"#);
    assert_eq!(text(&board, "customers.get_customer", json!({"n": 2})).await, r#"{"n":2}"#);
    assert_eq!((customers.stats().total_calls(), internal.stats().total_calls()), (1, 1));
    end(&board).await;
}

#[tokio::test]
async fn only_strict_servers_start_when_every_tool_is_configured() {
    let (a, b) = (server([Tool::echo("one")]).await, server([Tool::echo("two")]).await);
    let config = yaml(&["{name: one}", "{name: two}"], &[strict("a", &a), strict("b", &b)]);
    let board = board(&config).await;
    assert_eq!(names(&board), ["a.one", "b.two"]);
    assert_eq!(text(&board, "two", json!({})).await, "{}");
    end(&board).await;
}

#[tokio::test]
async fn only_dynamic_servers_start_without_any_tool_entry() {
    let (a, b) = (server([Tool::echo("one")]).await, server([Tool::echo("two")]).await);
    let board = board(&yaml(&[], &[dynamic("a", &a), dynamic("b", &b)])).await;
    assert_eq!(names(&board), ["a.one", "b.two"]);
    assert_eq!(text(&board, "a.one", json!({})).await, "{}");
    end(&board).await;
}

#[tokio::test]
async fn local_tools_start_without_any_server() {
    let tools = ["{name: sum_numbers}", "{name: multiply_numbers}", "{name: current_time}"];
    let board = board(&yaml_with("local_tools: all", &tools, &[])).await;
    assert_eq!(names(&board).len(), 3);
    assert_eq!(text(&board, "multiply_numbers", json!({"a": 6, "b": 7})).await, "42");
    end(&board).await;
}

#[tokio::test]
async fn the_examples_of_seed_000_start_unchanged_but_for_their_addresses() {
    let customers = server([Tool::echo("get_customer"), Tool::echo("more")]).await;
    let external = server([]).await;
    let minimal = server([Tool::echo("get_customer")]).await;
    for (fixture, expected) in [
        (include_str!("../../../config/tests/fixtures/minimal_strict.yaml"), 1),
        (include_str!("../../../config/tests/fixtures/minimal_dynamic.yaml"), 1),
        (include_str!("../../../config/tests/fixtures/mixed.yaml"), 3),
    ] {
        let at = if expected == 1 { &minimal } else { &customers };
        let text = fixture
            .replace("http://localhost:8180/mcp/http/mcp", &at.url())
            .replace("http://external.com/mcp", &external.url());
        let board = board(&text).await;
        assert_eq!(names(&board).len(), expected, "{text}");
        end(&board).await;
    }
}

#[tokio::test]
async fn a_refused_connection_ends_the_start_with_the_fixed_text_and_its_cause() {
    let url = format!("http://127.0.0.1:{}/mcp", free_port());
    let message = refused(try_board(&yaml(&[], &[dynamic_at("gone", &url)])).await);
    let (head, tail) = message.split_once("\n\n").expect("a blank line");
    let mut lines = head.lines();
    assert_eq!(lines.next(), Some(&*format!("Failed to connect to MCP server 'gone' at {url}")));
    let error = lines.next().unwrap();
    assert!(error.starts_with("Error: ") && error.contains("Connection refused"), "{error}");
    assert_eq!(
        lines.next_back(),
        Some("Hint: to start without it, add `required: false` to the server at test.yaml:6")
    );
    assert_eq!(
        tail,
        "The application cannot start without connecting to all configured MCP servers."
    );
}

#[tokio::test]
async fn every_way_of_not_answering_is_named_as_the_cause() {
    for (fault, cause) in [
        (Fault::Status(Stage::Any, 401), "401"),
        (Fault::Status(Stage::Any, 404), "404"),
        (Fault::Status(Stage::Any, 500), "500"),
        (Fault::LoginPage(Stage::Any), "a web page"),
        (Fault::HangAtConnect, "within 300ms"),
        (Fault::Hang(Stage::Initialize), "initialize within 300ms"),
        (Fault::Hang(Stage::List), "tools/list within 300ms"),
    ] {
        let sick = ScriptedServer::builder().fault(fault.clone()).start().await;
        let entry = with(&dynamic("sick", &sick), "connect_timeout: 300ms");
        let error = try_board(&yaml(&[], &[entry])).await.expect_err("nothing answers");
        assert!(error.is_only_unreachable());
        assert!(error.to_string().contains(cause), "{fault:?}: {error}");
    }
}

#[tokio::test]
async fn everything_that_is_wrong_with_a_start_is_said_at_once() {
    let first = server([Tool::echo("x"), Tool::echo("known"), Tool::echo("y")]).await;
    let second = server([Tool::echo("z")]).await;
    let sick = ScriptedServer::builder().fault(Fault::Status(Stage::Any, 500)).start().await;
    let gone = format!("http://127.0.0.1:{}/mcp", free_port());
    let config = yaml_with(
        "local_tools: [sum_numbers]",
        &["{name: known}"],
        &[
            strict("first", &first),
            strict("second", &second),
            strict("sick", &sick),
            strict_at("gone", &gone),
        ],
    );
    let error = try_board(&config).await.expect_err("six reasons");
    let mut reasons: Vec<String> = error
        .failures
        .iter()
        .map(|failure| match failure {
            StartFailure::Connect { server, .. } => format!("unreachable {server}"),
            StartFailure::Violation(violation) => {
                let server = violation.server().map_or("local", |name| name.as_str());
                format!("{server}.{}", violation.tool())
            }
            other => other.to_string(),
        })
        .collect();
    reasons.sort();
    assert_eq!(
        reasons,
        [
            "first.x",
            "first.y",
            "local.sum_numbers",
            "second.z",
            "unreachable gone",
            "unreachable sick"
        ]
    );
    let text = error.to_string();
    let first_words = "Tool 'x' from MCP server 'first' is not configured in the toolbox.\n\n\
                       MCP Server: first\nMode: strict\nMissing Tool: x\n\n\
                       Configured tools: ['known']\n\nTo resolve:\n\
                       1. Add the tool to switchboard.toolbox.tools in your configuration, OR\n\
                       2. Change the MCP server mode to 'dynamic' and provide default_tool_config";
    assert!(text.contains(first_words), "{text}");
}

#[tokio::test]
async fn a_failed_start_leaves_no_session_and_no_stream() {
    let good = server([Tool::echo("echo")]).await;
    let rogue = server([Tool::echo("unconfigured")]).await;
    let gone = format!("http://127.0.0.1:{}/mcp", free_port());
    let config =
        yaml(&[], &[dynamic("good", &good), strict("rogue", &rogue), dynamic_at("gone", &gone)]);
    refused(try_board(&config).await);
    for server in [&good, &rogue] {
        assert_eq!(server.stats().initialize_count, 1);
        assert_eq!(server.open_sessions(), 0, "the session was ended before the start returned");
        until(|| server.open_streams() == 0).await;
        assert_eq!(server.stats().initialize_count, 1, "nobody tries on");
    }
}

#[tokio::test]
async fn a_start_that_is_given_up_leaves_nothing_behind() {
    let good = server([Tool::echo("echo")]).await;
    let slow = ScriptedServer::builder().fault(Fault::HangAtConnect).start().await;
    let config = yaml(&[], &[dynamic("good", &good), dynamic("slow", &slow)]);
    {
        let starting = try_board(&config);
        tokio::pin!(starting);
        tokio::select! {
            _ = &mut starting => panic!("one server hangs"),
            () = until(|| good.open_sessions() == 1 && good.stats().list_count == 1) => {}
        }
    }
    until(|| good.open_sessions() == 0 && good.open_streams() == 0).await;
}

#[tokio::test]
async fn a_server_that_is_not_required_degrades_the_start_and_comes_back_by_itself() {
    let here = server([Tool::echo("here")]).await;
    let away =
        ScriptedServer::builder().tools([Tool::echo("away")]).fault(Fault::Refuse).start().await;
    let entry = with(&dynamic("away", &away), "required: false");
    let board = board(&yaml(&[], &[dynamic("here", &here), entry])).await;
    assert_eq!(names(&board), ["here.here"]);
    let degraded = status(&board, "away");
    assert_eq!(degraded.state, ServerState::Unavailable);
    assert!(degraded.error.unwrap().message.contains("Connection refused"));
    assert_eq!(text(&board, "here", json!({})).await, "{}");
    failure(&board, "away", json!({})).await;
    let before = revision(&board);

    away.clear_fault().await;
    until_state(&board, "away", ServerState::Ready).await;
    until(|| names(&board).len() == 2).await;
    assert_eq!(revision(&board), before + 1);
    assert_eq!(text(&board, "away", json!({})).await, "{}");
    assert!(status(&board, "away").error.is_none());
    end(&board).await;
}

#[tokio::test]
async fn the_line_that_makes_a_server_required_is_named() {
    let url = format!("http://127.0.0.1:{}/mcp", free_port());
    let entry =
        format!("name: gone\n        url: \"{url}\"\n        mode: strict\n        required: true");
    let message = refused(try_board(&yaml(&[], &[entry])).await);
    assert!(
        message.contains("\nHint: to start without it, set `required: false` at test.yaml:9\n"),
        "{message}"
    );
}

#[tokio::test]
async fn a_server_that_hangs_and_is_not_required_delays_nobody_and_comes_later() {
    let here = server([Tool::echo("here")]).await;
    let hung = ScriptedServer::builder()
        .tools([Tool::echo("hung")])
        .fault(Fault::Hang(Stage::Any))
        .start()
        .await;
    let waiting = |entry: &str| with(entry, "connect_timeout: 10m");
    let entry = waiting(&dynamic("hung", &hung));
    let config = yaml_with("defaults: {required: false}", &[], &[dynamic("here", &here), entry]);
    let mut told = Vec::new();
    let starting = Board::start(plan(&config), options().await, |event| {
        if let StartEvent::Waiting(status) = event {
            told.push((status.name.to_string(), status.waiting.map(|waiting| waiting.step)));
        }
    });
    // It would be waited for until `connect_timeout`.
    let board = started(tokio::time::timeout(Duration::from_mins(1), starting).await.unwrap());
    assert!(told.contains(&("hung".to_owned(), Some("server/discover"))), "{told:?}");
    assert_eq!(names(&board), ["here.here"]);
    assert_eq!(status(&board, "hung").state, ServerState::Connecting);
    assert_eq!(text(&board, "here", json!({})).await, "{}");
    let before = revision(&board);

    // What hangs is given up by the server, and the next attempt succeeds.
    hung.clear_fault().await;
    hung.restart_on_same_port().await;
    until_state(&board, "hung", ServerState::Ready).await;
    until(|| names(&board).len() == 2).await;
    assert_eq!(revision(&board), before + 1);
    assert_eq!(text(&board, "hung", json!({})).await, "{}");
    end(&board).await;
}

#[tokio::test]
async fn each_server_is_reported_once_while_the_board_starts() {
    let (a, b) = (server([Tool::echo("one")]).await, server([]).await);
    let gone = with(
        &dynamic_at("gone", &format!("http://127.0.0.1:{}/mcp", free_port())),
        "required: false",
    );
    let mut seen = Vec::new();
    let config = yaml(&[], &[dynamic("a", &a), dynamic("b", &b), gone]);
    let board = Board::start(plan(&config), options().await, |event| {
        let StartEvent::Attempted(status) = event else { return };
        seen.push((status.name.to_string(), status.state, status.offered));
    });
    let board = started(board.await);
    seen.sort_by(|a, b| a.0.cmp(&b.0));
    assert_eq!(
        seen,
        [
            ("a".to_owned(), ServerState::Ready, 1),
            ("b".to_owned(), ServerState::Ready, 0),
            ("gone".to_owned(), ServerState::Unavailable, 0),
        ]
    );
    end(&board).await;
}

#[tokio::test]
async fn a_bare_name_of_two_servers_means_the_last_one_and_neither_is_lost() {
    let one =
        server([Tool::new("search").replies(switchboard_test_support::Reply::Text("1".into()))]);
    let two =
        server([Tool::new("search").replies(switchboard_test_support::Reply::Text("2".into()))]);
    let (one, two) = (one.await, two.await);
    let board = board(&yaml(&[], &[dynamic("one", &one), dynamic("two", &two)])).await;
    assert_eq!(text(&board, "search", json!({})).await, "2");
    assert_eq!(text(&board, "one.search", json!({})).await, "1");
    assert_eq!(text(&board, "two.search", json!({})).await, "2");
    end(&board).await;
}

#[tokio::test]
async fn a_hundred_tools_of_which_five_are_configured_all_start() {
    let many = server((0..100).map(|n| Tool::echo(format!("t{n}")))).await;
    let entries = ["{name: t1}", "{name: t2}", "{name: t3}", "{name: t4}", "{name: t5}"];
    let board = board(&yaml(&entries, &[dynamic("many", &many)])).await;
    let catalog = board.catalog();
    let merged = catalog.tools().iter().filter(|tool| tool.configured == Configured::Merged);
    assert_eq!((catalog.tools().len(), merged.count()), (100, 5));
    board.shutdown(Duration::from_secs(1)).await;
}
