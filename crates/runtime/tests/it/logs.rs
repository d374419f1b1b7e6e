//! Tests of the log lines about servers and admission, word for word and with their levels. The texts are fixed.

use pretty_assertions::assert_eq;
use serde_json::json;
use switchboard_runtime::Memory;
use switchboard_test_support::{Fault, ScriptedServer, Tool, free_port};
use tracing::Level;

use crate::support::{
    Logs, board, board_on, dynamic, dynamic_at, end, names, revision, server, strict, text, until,
    with, yaml,
};

#[tokio::test]
async fn a_start_logs_the_seeds_lines_once_at_their_levels() {
    let logs = Logs::listen();
    let customers = server([Tool::echo("get_customer"), Tool::echo("list")]).await;
    let internal = server([Tool::echo("audit")]).await;
    let empty = server([]).await;
    let entries = [
        "{name: get_customer, max_instances: 20}",
        "{name: audit, max_instances: 2, timeout: 1m}",
        "{name: sum_numbers}",
        "{name: vanished}",
    ];
    let servers =
        [dynamic("customers", &customers), strict("internal", &internal), strict("empty", &empty)];
    let board = board(&yaml(&entries, &servers)).await;
    // The reconcile after the start must not say everything again.
    board.refresh();
    until(|| [&customers, &internal, &empty].iter().all(|s| s.stats().list_count >= 2)).await;
    text(&board, "audit", json!({})).await;
    end(&board).await;

    let no_tools = format!("MCP server 'empty' at {} returned no tools", empty.url());
    for (level, message) in [
        (
            Level::INFO,
            "Tool 'list' from MCP 'customers' not explicitly configured, using default configuration",
        ),
        (
            Level::DEBUG,
            "Tool 'audit' registered with explicit configuration: \
             {max_instances=2, timeout=1m, max_timeout=10m, queue_timeout=1m, max_result_bytes=1048576}",
        ),
        (
            Level::DEBUG,
            "Tool 'sum_numbers' registered with explicit configuration: \
             {max_instances=5, timeout=30s, max_timeout=10m, queue_timeout=30s, max_result_bytes=1048576}",
        ),
        (
            Level::DEBUG,
            "Tool 'get_customer' configuration merged: explicit={max_instances=20}, \
             default={max_instances=5, timeout=8s}, \
             final={max_instances=20, timeout=8s, max_timeout=10m, queue_timeout=8s, max_result_bytes=1048576}",
        ),
        (Level::WARN, &no_tools),
        (Level::WARN, "Tool 'vanished' is configured in the toolbox, but no MCP server offers it"),
    ] {
        logs.assert_once(level, message);
    }
    assert_eq!(logs.count_of_level(Level::WARN), 2, "{:#?}", logs.lines());
    assert_eq!(logs.count_of_level(Level::ERROR), 0);
    logs.assert_nothing_of("New tool");
}

#[tokio::test]
async fn what_is_new_and_what_is_gone_is_true_over_restarts_and_said_once() {
    const NEW: &str =
        "New tool 'fresh' discovered from MCP server 'crm', registering with default configuration";
    const GONE: &str = "Tool 'old' was configured but is no longer available from MCP server 'crm'";
    let logs = Logs::listen();
    let directory = tempfile::tempdir().unwrap();
    let crm = server([Tool::echo("old"), Tool::echo("stays")]).await;
    let config = yaml(&[], &[dynamic("crm", &crm)]);

    let first = board_on(directory.path(), Memory::Keep, &config).await;
    end(&first).await;
    logs.assert_nothing_of("New tool");
    logs.assert_nothing_of("no longer available");

    crm.set_tools([Tool::echo("stays"), Tool::echo("fresh")]);
    let second = board_on(directory.path(), Memory::Keep, &config).await;
    second.refresh();
    until(|| crm.stats().list_count >= 3).await;
    end(&second).await;
    logs.assert_once(Level::INFO, NEW);
    logs.assert_once(Level::WARN, GONE);
    assert_eq!(names(&second), ["crm.stays", "crm.fresh"]);

    logs.forget();
    let third = board_on(directory.path(), Memory::Keep, &config).await;
    end(&third).await;
    logs.assert_nothing_of("New tool");
    logs.assert_nothing_of("no longer available");
}

#[tokio::test]
async fn what_appears_and_vanishes_while_the_board_runs_is_logged_once() {
    let logs = Logs::listen();
    let crm = server([Tool::echo("a")]).await;
    let board = board(&yaml(&[], &[dynamic("crm", &crm)])).await;
    until(|| crm.open_streams() == 1).await;
    logs.forget();

    crm.set_tools_and_notify([Tool::echo("a"), Tool::echo("b")]).await;
    until(|| names(&board).len() == 2).await;
    crm.set_tools_and_notify([Tool::echo("b")]).await;
    until(|| names(&board).len() == 1).await;
    crm.set_tools_and_notify([Tool::echo("b"), Tool::echo("c")]).await;
    until(|| names(&board).len() == 2).await;
    for tool in ["b", "c"] {
        let new = format!(
            "New tool '{tool}' discovered from MCP server 'crm', registering with default configuration"
        );
        logs.assert_once(Level::INFO, &new);
    }
    logs.assert_once(
        Level::WARN,
        "Tool 'a' was configured but is no longer available from MCP server 'crm'",
    );
    end(&board).await;
}

#[tokio::test]
async fn a_server_that_is_not_required_and_away_is_a_warning_with_its_cause() {
    let logs = Logs::listen();
    let url = format!("http://127.0.0.1:{}/mcp", free_port());
    let away = with(&dynamic_at("away", &url), "required: false");
    let board = board(&yaml(&[], &[away])).await;
    let warnings: Vec<_> =
        logs.lines().into_iter().filter(|line| line.level == Level::WARN).collect();
    assert_eq!(warnings.len(), 1, "{:#?}", logs.lines());
    let warning = &warnings[0].whole;
    assert!(warning.contains("away") && warning.contains("Connection refused"), "{warning}");
    assert_eq!(logs.count_of_level(Level::ERROR), 0);
    end(&board).await;
}

#[tokio::test]
async fn a_strict_server_that_offers_an_unconfigured_tool_later_is_one_error_and_no_tool() {
    let logs = Logs::listen();
    let vault = server([Tool::echo("known")]).await;
    let board = board(&yaml(&["{name: known}"], &[strict("vault", &vault)])).await;
    until(|| vault.open_streams() == 1).await;
    let before = revision(&board);

    vault.set_tools_and_notify([Tool::echo("known"), Tool::echo("rogue")]).await;
    until(|| logs.count_of_level(Level::ERROR) == 1).await;
    for lists in 1..=3 {
        let so_far = vault.stats().list_count;
        vault.set_tools_and_notify([Tool::echo("known"), Tool::echo("rogue")]).await;
        until(|| vault.stats().list_count > so_far).await;
        // A changed description makes the reconciler look again.
        let changed = Tool::echo("known").description(format!("take {lists}"));
        vault.set_tools_and_notify([changed, Tool::echo("rogue")]).await;
        until(|| revision(&board) == before + lists).await;
    }
    let errors: Vec<_> =
        logs.lines().into_iter().filter(|line| line.level == Level::ERROR).collect();
    assert_eq!(errors.len(), 1, "{errors:#?}");
    let first = "Tool 'rogue' from MCP server 'vault' is not configured in the toolbox.";
    assert!(errors[0].message.starts_with(first), "{errors:?}");
    assert_eq!(names(&board), ["vault.known"]);
    assert_eq!(text(&board, "known", json!({})).await, "{}");
    end(&board).await;
}

#[tokio::test]
async fn a_lost_server_is_warned_about_once_and_its_return_says_nothing_twice() {
    let logs = Logs::listen();
    let crm = ScriptedServer::builder().tools([Tool::echo("a")]).start().await;
    let board = board(&yaml(&[], &[dynamic("crm", &crm)])).await;
    crm.set_fault(Fault::Refuse).await;
    board.refresh();
    until(|| board.servers()[0].1.error.is_some()).await;
    crm.clear_fault().await;
    until(|| board.servers()[0].1.error.is_none()).await;
    end(&board).await;
    logs.assert_once(Level::WARN, "MCP server lost, reconnecting");
    logs.assert_once(
        Level::INFO,
        "Tool 'a' from MCP 'crm' not explicitly configured, using default configuration",
    );
}
