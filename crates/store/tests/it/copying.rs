//! Copies between databases: whole, equal, and only into empty ones.

use pretty_assertions::assert_eq;
use switchboard_model::{CallId, GrantId, Secret, ServerName, ToolDescriptor};
use switchboard_store::{
    CallFilter, CopyError, NewTurnRecord, PostgresSettings, SessionSnapshot, Store, StoredClient,
    StoredKey, StoredSession, TurnRecordBounds,
};
use switchboard_test_support::PostgresDatabase;

use tokio::task::JoinSet;

use crate::{NO_BOUNDS, kept, record};

fn session(id: &str) -> StoredSession {
    StoredSession {
        id: id.into(),
        kind: "endpoint".into(),
        owner: "local".into(),
        title: Some("Ünïcode 🦀 and 'quotes'".into()),
        provider: None,
        model: None,
        state: "{}".into(),
        tools_revision: 3,
        snapshot: Some("d".into()),
        created_at_ms: 1,
        updated_at_ms: 2,
        version: 0,
    }
}

async fn fill(store: &Store) {
    let key = StoredKey {
        id: "k".into(),
        name: "laptop".into(),
        role: "client".into(),
        created_at_ms: 1,
        last_used_at_ms: None,
        revoked_at_ms: None,
        expires_at_ms: None,
        user: None,
        access: None,
    };
    store.add_key(&key, &[7; 32]).await.unwrap();
    store.installation_secret("keys").await.unwrap();
    let snapshot = SessionSnapshot { digest: "d".into(), tools: "[]".into() };
    let sessions: Vec<_> = (0..250).map(|n| session(&format!("s{n}"))).collect();
    store.put_sessions(&sessions, &[snapshot]).await.unwrap();
    store.append_messages("s7", 0, &["one".into(), "two".into()]).await.unwrap();
    store.keep_call_result("s7", "c", "{}").await.unwrap();
    let client = StoredClient {
        id: "secret".into(),
        kind: "client".into(),
        owner: "local".into(),
        session: Some("s7".into()),
        state: "{}".into(),
        created_at_ms: 1,
        last_seen_at_ms: 2,
    };
    store.put_clients(&[client]).await.unwrap();
    store.record_calls(&(0..500).map(record).collect::<Vec<_>>()).await.unwrap();
    let body: Vec<u8> = (0..200_000_u32).flat_map(u32::to_le_bytes).collect();
    store.keep_result(&kept("h", &CallId("c".into()), &body, 1), &NO_BOUNDS).await.unwrap();
    let grant = GrantId::of_server(&ServerName::new("crm"));
    store.save_grant(&grant, "https://i", &Secret::new("token"), 1).await.unwrap();
    store
        .remember_tools(&ServerName::new("crm"), &[ToolDescriptor::named("find")], 1)
        .await
        .unwrap();
    store.revision_for("a").await.unwrap();
    let turn = NewTurnRecord {
        owner: "local",
        session: "s7",
        keys: &[b"key"],
        content: "{}",
        now_ms: 1,
        expires_at_ms: 9,
    };
    let bounds = TurnRecordBounds { owner_count: 9, owner_bytes: 99, total_bytes: 999 };
    store.keep_turn_record(&turn, &bounds).await.unwrap();
}

#[tokio::test]
async fn everything_goes_to_the_other_database_and_back() {
    let directory = tempfile::tempdir().unwrap();
    let (database, other) = (PostgresDatabase::new(), PostgresDatabase::new());
    let connect = async |database: &PostgresDatabase| {
        Store::connect(&PostgresSettings::new(Secret::new(database.url()))).await.unwrap()
    };
    let (first, second, third) = (
        Store::open(directory.path()).await.unwrap(),
        connect(&database).await,
        connect(&other).await,
    );
    let last = Store::open_file(&directory.path().join("copy.db")).await.unwrap();
    fill(&first).await;
    let copied = first.copy_to(&second).await.unwrap();
    let rows = |name: &str| copied.iter().find(|table| table.name == name).unwrap().rows;
    assert_eq!((rows("sessions"), rows("calls"), rows("session_messages")), (250, 500, 2));
    assert_eq!((rows("api_keys"), rows("installation_secrets"), rows("grants")), (1, 1, 1));
    assert!(rows("result_parts") > 10 && rows("turn_record_keys") == 1);
    assert_eq!(second.copy_to(&third).await.unwrap(), copied);
    assert_eq!(third.copy_to(&last).await.unwrap(), copied);

    // What is written afterwards gets numbers that are free.
    for store in [&second, &third, &last] {
        store.record_calls(&[record(1000)]).await.unwrap();
        assert_eq!(store.recent_calls(&CallFilter::newest(999)).await.unwrap().len(), 501);
        assert_eq!(
            store.installation_secret("keys").await.unwrap(),
            first.installation_secret("keys").await.unwrap()
        );
    }
}

#[tokio::test]
async fn a_database_that_has_something_is_left_alone() {
    let (first, second) = (Store::in_memory().await.unwrap(), Store::in_memory().await.unwrap());
    fill(&first).await;
    second.revision_for("mine").await.unwrap();
    let refused = first.copy_to(&second).await.unwrap_err();
    assert!(matches!(refused, CopyError::NotEmpty { table: "catalog_revision", .. }), "{refused}");
    assert_eq!(second.sessions(None).await.unwrap(), []);
    assert_eq!(second.revision_for("mine").await.unwrap(), 1);
}

#[tokio::test]
async fn a_database_in_use_is_copied_as_it_was_at_one_moment() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(directory.path()).await.unwrap();
    fill(&store).await;
    let writer = store.clone();
    let mut writing = JoinSet::new();
    writing.spawn(async move {
        for n in 0..200_i64 {
            let one = session(&format!("t{n}"));
            writer.put_sessions(std::slice::from_ref(&one), &[]).await.unwrap();
            writer.append_messages(&one.id, 0, &["m".into()]).await.unwrap();
        }
    });
    for n in 0..5 {
        let copy = Store::open_file(&directory.path().join(format!("copy{n}.db"))).await.unwrap();
        store.copy_to(&copy).await.unwrap();
        let sessions = copy.sessions(None).await.unwrap();
        let new: Vec<_> = sessions.iter().filter(|one| one.id.starts_with('t')).collect();
        let mut without = 0;
        for one in &new {
            without += usize::from(copy.messages(&one.id).await.unwrap().is_empty());
        }
        assert!(
            without <= 1,
            "only the newest may be without its message: {without} of {}",
            new.len()
        );
    }
    writing.join_all().await;
}
