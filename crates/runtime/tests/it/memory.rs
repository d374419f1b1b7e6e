//! Tests of the state that one run stores for the next.

use pretty_assertions::assert_eq;
use serde_json::json;
use switchboard_model::{CallErrorKind, ServerState};
use switchboard_runtime::Memory;
use switchboard_store::Store;
use switchboard_test_support::{Fault, ScriptedServer, SeenRequest, Tool, wait_until};
use tracing::Level;

use crate::support::{
    Logs, PATIENCE, board_on, dynamic, end, failure, names, records, revision, server, status,
    strict, text, until_state, with, yaml,
};

/// How often the server was asked for its era.
fn questions(server: &ScriptedServer) -> usize {
    let asks = |request: &&SeenRequest| request.method.as_deref() == Some("server/discover");
    server.stats().requests.iter().filter(asks).count()
}

#[tokio::test]
async fn the_revision_stays_with_the_same_tools_and_grows_by_one_with_a_change() {
    let directory = tempfile::tempdir().unwrap();
    let crm = server([Tool::echo("a"), Tool::echo("b")]).await;
    let config = yaml(&[], &[dynamic("crm", &crm)]);
    let mut seen = Vec::new();
    for tools in
        [vec!["a", "b"], vec!["a", "b"], vec!["a", "b", "c"], vec!["a", "b", "c"], vec!["a"]]
    {
        crm.set_tools(tools.into_iter().map(Tool::echo));
        let board = board_on(directory.path(), Memory::Keep, &config).await;
        seen.push(revision(&board));
        end(&board).await;
    }
    assert_eq!(seen, [1, 1, 2, 2, 3]);

    let board = board_on(
        directory.path(),
        Memory::Keep,
        &yaml(&["{name: a, max_instances: 9}"], &[dynamic("crm", &crm)]),
    )
    .await;
    assert_eq!(revision(&board), 4, "another limit is another catalog");
    end(&board).await;
}

#[tokio::test]
async fn a_read_only_board_leaves_no_trace_but_its_calls() {
    let logs = Logs::listen();
    let directory = tempfile::tempdir().unwrap();
    let crm = server([Tool::echo("a")]).await;
    let config = yaml(&[], &[dynamic("crm", &crm)]);

    let first = board_on(directory.path(), Memory::ReadOnly, &config).await;
    text(&first, "a", json!({})).await;
    end(&first).await;
    let store = Store::open(directory.path()).await.unwrap();
    assert!(store.remembered_tools().await.unwrap().is_empty());
    store.close().await;

    let keeping = board_on(directory.path(), Memory::Keep, &config).await;
    assert_eq!(revision(&keeping), 1);
    assert_eq!(records(&keeping, 1).await.len(), 1);
    end(&keeping).await;
    assert_eq!(questions(&crm), 2, "the era was not remembered by the first");

    crm.set_tools([Tool::echo("a"), Tool::echo("b")]);
    let looking = board_on(directory.path(), Memory::ReadOnly, &config).await;
    assert_eq!(names(&looking), ["crm.a", "crm.b"]);
    end(&looking).await;
    logs.forget();
    let keeping = board_on(directory.path(), Memory::Keep, &config).await;
    assert_eq!(revision(&keeping), 2);
    logs.assert_once(
        Level::INFO,
        "New tool 'b' discovered from MCP server 'crm', registering with default configuration",
    );
    end(&keeping).await;
}

#[tokio::test]
async fn a_server_that_is_away_at_a_later_start_shows_what_it_had_and_works_once_it_is_back() {
    let directory = tempfile::tempdir().unwrap();
    let crm = server([Tool::echo("a")]).await;
    let config = yaml(&[], &[with(&dynamic("crm", &crm), "required: false")]);
    let first = board_on(directory.path(), Memory::Keep, &config).await;
    let before = revision(&first);
    end(&first).await;

    crm.set_fault(Fault::Refuse).await;
    let second = board_on(directory.path(), Memory::Keep, &config).await;
    assert_eq!((names(&second), revision(&second)), (vec!["crm.a".to_owned()], before));
    assert_eq!(status(&second, "crm").offered, 1);
    let error = failure(&second, "a", json!({})).await;
    assert_eq!(error.kind, CallErrorKind::Unavailable);
    assert!(
        error.message.starts_with("tool 'a' of MCP server 'crm' is unavailable: ")
            && error.message.contains("Connection refused"),
        "{error}"
    );

    crm.clear_fault().await;
    until_state(&second, "crm", ServerState::Ready).await;
    assert_eq!(text(&second, "a", json!({})).await, "{}");
    assert_eq!(revision(&second), before, "nothing changed");
    end(&second).await;
}

#[tokio::test]
async fn a_definition_that_changed_under_the_same_name_is_remembered_too() {
    let directory = tempfile::tempdir().unwrap();
    let crm = server([Tool::echo("a").description("first")]).await;
    let config = yaml(&[], &[with(&dynamic("crm", &crm), "required: false")]);
    let first = board_on(directory.path(), Memory::Keep, &config).await;
    crm.set_tools([Tool::echo("a").description("second")]);
    first.refresh();
    let described = |board: &switchboard_runtime::Board| {
        board.catalog().tools()[0].descriptor.description.clone().unwrap()
    };
    wait_until(PATIENCE, async || (described(&first) == "second").then_some(())).await;
    let before = revision(&first);
    end(&first).await;

    crm.set_fault(Fault::Refuse).await;
    let second = board_on(directory.path(), Memory::Keep, &config).await;
    assert_eq!((described(&second), revision(&second)), ("second".to_owned(), before));
    end(&second).await;
}

#[tokio::test]
async fn what_is_only_remembered_of_an_absent_server_does_not_end_the_start() {
    let directory = tempfile::tempdir().unwrap();
    let vault = server([Tool::echo("a"), Tool::echo("b")]).await;
    let entry = with(&strict("vault", &vault), "required: false");
    let both = yaml(&["{name: a}", "{name: b}"], std::slice::from_ref(&entry));
    let first = board_on(directory.path(), Memory::Keep, &both).await;
    end(&first).await;

    vault.set_fault(Fault::Refuse).await;
    let one = yaml(&["{name: a}"], &[entry]);
    let board = board_on(directory.path(), Memory::Keep, &one).await;
    assert_eq!(names(&board), ["vault.a"]);
    end(&board).await;
}

#[tokio::test]
async fn the_era_of_a_server_is_asked_for_once() {
    let directory = tempfile::tempdir().unwrap();
    let crm = server([Tool::echo("a")]).await;
    let config = yaml(&[], &[dynamic("crm", &crm)]);
    for _ in 0..3 {
        let board = board_on(directory.path(), Memory::Keep, &config).await;
        end(&board).await;
    }
    assert_eq!(questions(&crm), 1);
    assert_eq!(crm.stats().initialize_count, 3);
}
