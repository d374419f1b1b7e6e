//! Edits of the configuration file while the board serves.

use std::sync::Arc;

use pretty_assertions::assert_eq;
use serde_json::{Map, Value, json};
use switchboard_config::{ConfigEdit, EntryList};
use switchboard_runtime::{
    AppliedEdit, Board, ConfigSource, EditError, ExpectedEntry, LiveConfig, ReloadOutcome,
    watch_config,
};
use switchboard_test_support::{ScriptedServer, TempConfig, Tool, free_port};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::support::{board, dynamic, end, names, revision, server, until, yaml};

struct Edited {
    crm: ScriptedServer,
    file: TempConfig,
    board: Arc<Board>,
    live: Arc<LiveConfig>,
}

impl Edited {
    async fn start() -> Self {
        Self::start_with(Vec::new()).await
    }

    async fn start_with(environment: Vec<(String, String)>) -> Self {
        let crm = server([Tool::echo("a"), Tool::echo("b")]).await;
        let text = format!("# mine\n{}", yaml(&[], &[dynamic("crm", &crm)]));
        let file = TempConfig::new(&text);
        let board = board(&text).await;
        let source = ConfigSource::find(Some(file.path()), environment);
        let loaded = source.load().unwrap();
        let live = LiveConfig::new(board.clone(), source, loaded);
        Self { crm, file, board, live }
    }

    fn text(&self) -> String {
        std::fs::read_to_string(self.file.path()).unwrap()
    }

    async fn patch(&self, name: &str, fields: Value) -> Result<AppliedEdit, EditError> {
        self.live.edit(None, vec![patch(name, fields)]).await
    }

    async fn end(self) {
        end(&self.board).await;
    }
}

fn fields(json: Value) -> Map<String, Value> {
    match json {
        Value::Object(members) => members,
        other => panic!("not an object: {other}"),
    }
}

fn patch(name: &str, json: Value) -> ConfigEdit {
    ConfigEdit::Patch { list: EntryList::Tools, name: name.into(), fields: fields(json) }
}

fn new_server(name: &str, url: &str, required: bool) -> ConfigEdit {
    let fields = json!({"url": url, "mode": "dynamic", "default_tool_config": {"max_instances": 1}, "required": required});
    ConfigEdit::Put { list: EntryList::Servers, name: name.into(), fields: self::fields(fields) }
}

#[tokio::test]
async fn an_edit_is_written_and_in_force_when_it_returns_and_the_watcher_does_not_repeat_it() {
    let edited = Edited::start().await;
    let stop = CancellationToken::new();
    let mut watching = JoinSet::new();
    watching.spawn(watch_config(edited.live.clone(), stop.clone()));
    let before = revision(&edited.board);
    let applied = edited.patch("crm.a", json!({"max_instances": 7})).await.unwrap();
    assert!(applied.is_change);
    assert_eq!((applied.revision, revision(&edited.board)), (before + 1, before + 1));
    let tool = edited.board.catalog().resolve("crm.a").unwrap().clone();
    assert_eq!(tool.limits.max_instances, 7);
    assert!(edited.text().starts_with("# mine\n"), "{}", edited.text());
    // The watcher has seen the file when it has applied a change that was made after it.
    edited.file.rewrite(edited.text().replace("max_instances: 7", "max_instances: 8"));
    let limit = || edited.board.catalog().resolve("crm.a").unwrap().limits.max_instances;
    until(|| limit() == 8).await;
    assert_eq!(revision(&edited.board), before + 2);
    stop.cancel();
    watching.join_next().await;
    edited.end().await;
}

#[tokio::test]
async fn an_edit_that_changes_nothing_takes_no_revision() {
    let edited = Edited::start().await;
    edited.patch("crm.a", json!({"enabled": false})).await.unwrap();
    assert_eq!(names(&edited.board), ["crm.b"]);
    let (text, before) = (edited.text(), revision(&edited.board));
    let applied = edited.patch("crm.a", json!({"enabled": false})).await.unwrap();
    assert!(!applied.is_change);
    assert_eq!((edited.text(), revision(&edited.board)), (text, before));
    let remove = ConfigEdit::Remove { list: EntryList::Tools, name: "crm.a".into() };
    edited.live.edit(None, vec![remove]).await.unwrap();
    assert_eq!(names(&edited.board), ["crm.a", "crm.b"]);
    edited.end().await;
}

#[tokio::test]
async fn what_cannot_be_applied_or_loaded_is_not_written() {
    let edited = Edited::start().await;
    let (text, before) = (edited.text(), revision(&edited.board));
    let gone = format!("http://127.0.0.1:{}/mcp", free_port());
    let refused = edited.live.edit(None, vec![new_server("gone", &gone, true)]).await.unwrap_err();
    assert!(matches!(refused, EditError::NotApplied(_)), "{refused}");
    let refused = edited.patch("crm.a", json!({"timeout": "never"})).await.unwrap_err();
    assert!(refused.problems().is_some(), "{refused}");
    let refused = edited.patch("crm.a", json!({"unknown": 1, "mode": 2})).await.unwrap_err();
    assert_eq!(refused.problems().unwrap().count(), 2, "{refused}");
    assert_eq!((edited.text(), revision(&edited.board)), (text, before));
    edited.live.edit(None, vec![new_server("gone", &gone, false)]).await.unwrap();
    assert_eq!(edited.board.servers().len(), 2);
    edited.end().await;
}

#[tokio::test]
async fn a_read_only_file_stays_and_its_board_too() {
    let edited = Edited::start().await;
    let before = revision(&edited.board);
    let mut permissions = std::fs::metadata(edited.file.path()).unwrap().permissions();
    permissions.set_readonly(true);
    std::fs::set_permissions(edited.file.path(), permissions).unwrap();
    let refused = edited.patch("crm.a", json!({"enabled": false})).await.unwrap_err();
    assert!(refused.to_string().ends_with("the file is read-only"), "{refused}");
    assert!(refused.hint().unwrap().contains("chmod u+w"));
    assert_eq!(revision(&edited.board), before);
    edited.end().await;
}

#[tokio::test]
async fn a_variable_that_would_hide_the_edit_is_named() {
    let name = "SWITCHBOARD__TOOLBOX__TOOLS";
    let edited = Edited::start_with(vec![(name.into(), "[]".into())]).await;
    let refused = edited.patch("crm.a", json!({"enabled": false})).await.unwrap_err();
    assert!(refused.to_string().contains(name), "{refused}");
    edited.end().await;
}

#[tokio::test]
async fn of_several_writers_with_one_tag_one_wins() {
    let edited = Edited::start().await;
    edited.patch("crm.a", json!({"max_instances": 1})).await.unwrap();
    let tag = edited.live.entry(EntryList::Tools, "crm.a").unwrap().unwrap().tag;
    let mut writers = JoinSet::new();
    for limit in 2..10 {
        let (live, tag) = (edited.live.clone(), tag.clone());
        writers.spawn(async move {
            let expected = (EntryList::Tools, "crm.a".to_owned(), ExpectedEntry::Tag(tag));
            live.edit(Some(expected), vec![patch("crm.a", json!({"max_instances": limit}))]).await
        });
    }
    let outcomes = writers.join_all().await;
    let won = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
    let stale = |outcome: &&Result<_, _>| matches!(outcome, Err(EditError::Stale { .. }));
    assert_eq!((won, outcomes.iter().filter(stale).count()), (1, 7));
    let present = edited.live.entry(EntryList::Tools, "crm.a").unwrap().unwrap();
    let limit = edited.board.catalog().resolve("crm.a").unwrap().limits.max_instances;
    assert_eq!(present.fields["max_instances"], json!(limit));
    edited.end().await;
}

#[tokio::test]
async fn writers_of_different_entries_all_succeed() {
    let edited = Edited::start().await;
    let mut writers = JoinSet::new();
    for name in ["crm.a", "crm.b", "a", "b"] {
        let live = edited.live.clone();
        writers.spawn(
            async move { live.edit(None, vec![patch(name, json!({"timeout": "9s"}))]).await },
        );
    }
    for outcome in writers.join_all().await {
        outcome.unwrap();
    }
    let (text, crm) = (edited.text(), &edited.crm);
    assert_eq!(text.matches("timeout: 9s").count(), 4, "{text}");
    assert_eq!(crm.stats().initialize_count, 1, "no edit of a tool reconnects its server");
    assert_eq!(edited.live.reload().await, ReloadOutcome::Unchanged);
    edited.end().await;
}

#[tokio::test]
async fn a_file_that_changes_while_an_edit_is_applied_wins() {
    let edited = Edited::start().await;
    // A server that accepts and does not answer keeps the edit waiting.
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", silent.local_addr().unwrap());
    let edit = edited.live.edit(None, vec![new_server("silent", &url, false)]);
    let theirs = format!("{}# theirs\n", edited.text());
    let (refused, ()) = tokio::join!(edit, async {
        let _connection = silent.accept().await.unwrap();
        edited.file.rewrite(&theirs);
    });
    assert!(matches!(refused, Err(EditError::Unwritten(_))), "{refused:?}");
    assert_eq!((edited.text(), edited.board.servers().len()), (theirs, 1));
    edited.end().await;
}
