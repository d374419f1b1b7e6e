//! Sessions that several boards of one `PostgreSQL` database hold.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use pretty_assertions::assert_eq;
use switchboard_model::Secret;
use switchboard_sessions::{Change, Compared, Session, SessionError, Sessions};
use switchboard_store::{PostgresSettings, Store};
use switchboard_test_support::PostgresDatabase;

use super::{create, names, one_tool, published, show, toolset};

const TOOLS: [&str; 4] = ["crm.a", "crm.b", "crm.c", "crm.d"];

async fn board(database: &PostgresDatabase, tools: &[&str]) -> Sessions {
    let settings = PostgresSettings::new(Secret::new(database.url()));
    Sessions::new(Store::connect(&settings).await.unwrap(), published(tools))
}

async fn compare(board: &Sessions, session: &Arc<Session>) -> Compared {
    board.compare(session, Duration::ZERO).await.unwrap()
}

/// A session at both boards.
async fn at_both(boards: [&Sessions; 2]) -> [Arc<Session>; 2] {
    let first = create(boards[0], "s").await;
    let second = boards[1].find("s").await.unwrap().unwrap();
    [first, second]
}

/// Makes a change as the session service does: again where another board was quicker.
async fn change(board: &Sessions, session: &Arc<Session>, change: Change) -> u32 {
    let mut conflicts = 0;
    loop {
        match board.change(session, None, change.clone()).await {
            Ok(()) => return conflicts,
            Err(SessionError::Contended) => {
                conflicts += 1;
                compare(board, session).await;
            }
            Err(error) => panic!("{error}"),
        }
    }
}

#[tokio::test]
async fn a_change_at_one_board_is_seen_at_the_other() {
    let database = PostgresDatabase::new();
    let (here, there) = (board(&database, &TOOLS).await, board(&database, &TOOLS).await);
    let [first, second] = at_both([&here, &there]).await;
    assert!(matches!(compare(&there, &second).await, Compared::Same));
    here.change(&first, None, toolset("pair", false)).await.unwrap();
    let titled = Change { title: Some(Some("Sales".into())), ..Change::default() };
    here.change(&first, None, titled).await.unwrap();
    assert_eq!(second.revision(), 1, "nothing was compared yet");
    let recently = there.compare(&second, Duration::from_mins(1)).await.unwrap();
    assert!(matches!(recently, Compared::Same), "it was compared a moment ago");
    assert_eq!(there.list(None).await.unwrap()[0].revision, 2, "a list shows what is stored");
    assert!(matches!(compare(&there, &second).await, Compared::Changed { .. }));
    assert_eq!((names(&second), second.revision()), (names(&first), 2));
    assert_eq!(second.now().draft.about.title.as_deref(), Some("Sales"));
    let steps = second.steps_after(1).unwrap();
    assert_eq!(steps[0].difference.removed.len(), 2);

    there.change(&second, Some(2), one_tool("crm.a", Some(true))).await.unwrap();
    let stale = here.change(&first, Some(2), one_tool("crm.b", Some(true))).await;
    assert_eq!(stale.unwrap_err(), SessionError::Contended);
    assert_eq!(names(&first), ["crm__c", "crm__d"], "nothing was changed");
    compare(&here, &first).await;
    let stale = here.change(&first, Some(2), one_tool("crm.b", Some(true))).await;
    assert_eq!(stale.unwrap_err(), SessionError::Stale { expected: 2, current: 3 });
    assert_eq!(names(&first), ["crm__c", "crm__d", "crm__a"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn changes_at_several_boards_at_once_are_all_made_and_each_has_its_number() {
    const EACH: usize = 12;
    let database = PostgresDatabase::new();
    let first = board(&database, &TOOLS).await;
    create(&first, "s").await;
    let mut working = tokio::task::JoinSet::new();
    for tool in TOOLS {
        let board = board(&database, &TOOLS).await;
        working.spawn(async move {
            let session = board.find("s").await.unwrap().unwrap();
            let (mut seen, mut conflicts) = (0, 0);
            for n in 0..EACH {
                let is_on = n % 2 == 1;
                conflicts += change(&board, &session, one_tool(tool, Some(is_on))).await;
                assert!(session.revision() > seen, "a revision never goes back");
                seen = session.revision();
                let has_it = names(&session).contains(&tool.replace('.', "__"));
                assert_eq!(has_it, is_on, "an acknowledged change is in effect");
            }
            board.writes.flush().await;
            conflicts
        });
    }
    let conflicts: u32 = working.join_all().await.into_iter().sum();
    assert!(conflicts > 0, "the boards did not meet");
    let last = board(&database, &TOOLS).await.find("s").await.unwrap().unwrap();
    let all: BTreeSet<_> = names(&last).into_iter().collect();
    assert_eq!(all.len(), TOOLS.len(), "every last change switched its tool on: {all:?}");
    assert_eq!(last.revision(), 1 + (TOOLS.len() * EACH) as u64, "one step for each change");
}

#[tokio::test]
async fn a_session_that_ended_at_another_board_is_unknown_here_and_may_begin_anew() {
    let database = PostgresDatabase::new();
    let (here, there) = (board(&database, &TOOLS).await, board(&database, &TOOLS).await);
    let [first, second] = at_both([&here, &there]).await;
    let news = second.follow();
    here.end(&first, Vec::new()).await.unwrap();
    let refused = there.change(&second, None, toolset("pair", false)).await;
    assert_eq!(refused.unwrap_err(), SessionError::Contended, "it does not come back");
    assert!(matches!(compare(&there, &second).await, Compared::Ended));
    assert!(second.is_ended() && news.has_changed().unwrap_or(true));
    assert!(there.find("s").await.unwrap().is_none());

    let again = create(&here, "s").await;
    let [again, held] = [again, there.find("s").await.unwrap().unwrap()];
    here.end(&again, Vec::new()).await.unwrap();
    tokio::time::sleep(Duration::from_millis(2)).await;
    create(&here, "s").await;
    let compared = compare(&there, &held).await;
    assert!(matches!(compared, Compared::Ended), "another session of the same name: {compared:?}");
    let refused = there.create(Some("s"), "me", 9, Change::default()).await;
    assert_eq!(refused.unwrap_err(), SessionError::Taken("s".into()));
}

#[tokio::test]
async fn the_same_change_of_the_catalog_at_every_board_is_one_step() {
    let database = PostgresDatabase::new();
    let (here, there) = (board(&database, &TOOLS).await, board(&database, &TOOLS).await);
    let [first, second] = at_both([&here, &there]).await;
    for (n, tools) in [&TOOLS[..2], &TOOLS[..3]].into_iter().enumerate() {
        show(&here, tools);
        show(&there, tools);
        here.writes.flush().await;
        there.writes.flush().await;
        compare(&here, &first).await;
        compare(&there, &second).await;
        assert_eq!((first.revision(), second.revision()), (n as u64 + 2, n as u64 + 2));
    }
}

#[tokio::test]
async fn boards_with_different_catalogs_do_not_drive_the_revision_up() {
    let database = PostgresDatabase::new();
    let (here, there) = (board(&database, &TOOLS).await, board(&database, &TOOLS[..3]).await);
    let [first, second] = at_both([&here, &there]).await;
    let mut seen = 0;
    for round in 0..20 {
        for (board, session) in [(&here, &first), (&there, &second)] {
            if round == 10 {
                change(board, session, one_tool("crm.a", Some(false))).await;
            }
            compare(board, session).await;
            board.writes.flush().await;
            assert!(session.revision() >= seen, "a client that is moved sees no step back");
            seen = session.revision();
        }
    }
    // One step when the session woke with another list, and one for the change.
    assert_eq!((first.revision(), second.revision()), (3, 3));
    assert_eq!(names(&first), ["crm__b", "crm__c", "crm__d"]);
    assert_eq!(names(&second), ["crm__b", "crm__c"]);
}
