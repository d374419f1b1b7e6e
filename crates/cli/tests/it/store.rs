//! `store`: backups of running boards, restores, copies, and what is refused.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;

use pretty_assertions::assert_eq;
use reqwest::StatusCode;
use serde_json::{Value, json};
use switchboard_test_support::PostgresDatabase;

use crate::support::{Home, Serve};

const EMPTY: &str = "switchboard:\n  toolbox: {mcps: []}\n";

async fn new_session(serve: &Serve, id: &str) -> StatusCode {
    let request = serve.http.post(serve.at("/api/v1/sessions")).json(&json!({ "id": id }));
    request.send().await.unwrap().status()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_of_a_board_that_runs_has_all_that_was_acknowledged_before() {
    let home = Home::new(EMPTY);
    let serve = home.serve().await;
    for n in 0..20 {
        assert_eq!(new_session(&serve, &format!("s{n}")).await, StatusCode::CREATED);
    }
    // Others write meanwhile.
    let (backup, ()) = tokio::join!(
        async { tokio::task::block_in_place(|| home.run(&["store", "backup", "board.db"])) },
        async {
            for n in 20..40 {
                new_session(&serve, &format!("s{n}")).await;
            }
        }
    );
    backup.expect(0);
    let backup = home.path().join("board.db");
    let mode = backup.metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "it has secrets");

    // A backup is often read-only, and stays as it is.
    std::fs::set_permissions(&backup, Permissions::from_mode(0o400)).unwrap();
    let before = std::fs::read(&backup).unwrap();
    home.run(&["--data-dir", "restored", "store", "restore", "board.db"]).expect(0);
    assert!(before == std::fs::read(&backup).unwrap(), "restoring changes the backup");
    assert!(!home.path().join("board.db-wal").exists());
    drop(serve);
    let restored = home.serve_with(&["--data-dir", "restored"]).await;
    for n in 0..20 {
        let found = restored.http.get(restored.at(&format!("/api/v1/sessions/s{n}"))).send().await;
        assert_eq!(found.unwrap().status(), StatusCode::OK, "s{n}");
    }
}

#[test]
fn a_board_moves_to_postgresql_and_back_and_nothing_differs() {
    let (home, database) = (Home::new(EMPTY), PostgresDatabase::new());
    home.run(&["key", "add", "one"]).expect(0);
    home.run(&["key", "add", "two"]).expect(0);
    let there = home.run(&["--json", "store", "copy", "--to", database.url()]).expect(0).json();
    home.file("address", format!("{}\n", database.url()));
    let in_database = Home::new(format!("{EMPTY}  store: {{url: \"{}\"}}\n", database.url()));
    let listed = in_database.run(&["--json", "key", "list"]).expect(0).json();
    assert_eq!(listed["keys"].as_array().unwrap().len(), 2);
    let back = in_database.run(&["--json", "store", "copy", "--to", "back"]).expect(0).json();
    assert_eq!((&there["rows"], &there["tables"]), (&back["rows"], &back["tables"]));
    let rows = |tables: &Value| tables.as_array().unwrap().iter().map(|t| t["rows"].as_u64()).sum();
    assert_eq!(there["rows"].as_u64(), rows(&there["tables"]));

    let again = home.run(&["store", "copy", "--to", "file:address"]).expect(1);
    assert!(again.stderr.contains("is not empty: its table"), "{}", again.stderr);
    let itself = in_database.run(&["store", "copy", "--to", database.url()]).expect(2);
    assert!(itself.stderr.contains("cannot be copied to itself"), "{}", itself.stderr);
}

#[test]
fn what_is_wrong_with_a_place_is_said_with_a_way_out() {
    let home = Home::new(EMPTY);
    home.run(&["key", "add", "one"]).expect(0);
    home.file("text", "this is no database, although it is long enough to be one\n".repeat(99));
    for (code, arguments, parts) in [
        (2, "copy --to http://me:hunter2@db/x", "`--to` is not the address|postgres://USER"),
        (2, "copy --to file:nowhere", "cannot read nowhere"),
        (2, "copy --to data", "cannot be copied to itself"),
        (2, "backup text", "text is there already"),
        (
            1,
            "backup nowhere/board.db",
            "cannot write the backup nowhere/board.db|choose another file",
        ),
        (2, "restore nowhere", "there is no file nowhere"),
        (
            1,
            "--data-dir new store restore text",
            "cannot read the backup text|that `store backup` wrote",
        ),
    ] {
        let line = match arguments.strip_prefix("--data-dir") {
            Some(_) => arguments.to_owned(),
            None => format!("store {arguments}"),
        };
        let said = home.line(&line).expect(code).all();
        for part in parts.split('|') {
            assert!(said.contains(part), "{line}: {part} is not in {said}");
        }
        assert!(!said.contains("hunter2") && !said.contains("move "), "{line}: {said}");
        assert!(!said.contains("does not take writes"), "{line}: {said}");
    }
    assert!(!home.path().join("new").exists(), "nothing was made for a backup that is none");
}
