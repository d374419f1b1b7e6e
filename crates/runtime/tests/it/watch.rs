//! The watcher of the configuration file.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use pretty_assertions::assert_eq;
use serde_json::json;
use switchboard_runtime::{Board, ConfigSource, LiveConfig, watch_config};
use switchboard_test_support::{Fault, ScriptedServer, Stage, TempConfig, Tool};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::Level;

use crate::support::{Logs, board, dynamic, end, names, revision, server, text, until, with, yaml};

/// A hangup reaches every watcher of the process, so only one of them lives at a time.
static ALONE: Semaphore = Semaphore::const_new(1);

struct Watched {
    _alone: SemaphorePermit<'static>,
    board: Arc<Board>,
    stop: CancellationToken,
    task: JoinSet<()>,
}

impl Watched {
    /// Starts the board on the file and watches it.
    async fn start(path: &Path) -> Self {
        let alone = ALONE.acquire().await.unwrap();
        let source = ConfigSource::find(Some(path.to_owned()), Vec::new());
        let board = board(&std::fs::read_to_string(path).unwrap()).await;
        let stop = CancellationToken::new();
        let mut task = JoinSet::new();
        let loaded = source.load().unwrap();
        let live = LiveConfig::new(board.clone(), source, loaded);
        task.spawn(watch_config(live, stop.clone()));
        Self { _alone: alone, board, stop, task }
    }

    async fn until_names(&self, expected: &[&str]) {
        until(|| names(&self.board) == expected).await;
    }

    async fn end(mut self) {
        self.stop.cancel();
        self.task.join_next().await.unwrap().unwrap();
        end(&self.board).await;
    }
}

fn with_local(tools: &[&str], crm: &ScriptedServer) -> String {
    let entries: Vec<_> = tools.iter().map(|tool| format!("{{name: {tool}}}")).collect();
    let entries: Vec<_> = entries.iter().map(String::as_str).collect();
    yaml(&entries, &[dynamic("crm", crm)])
}

#[tokio::test]
async fn a_file_that_is_replaced_or_written_in_place_is_taken_over() {
    let crm = server([Tool::echo("a")]).await;
    let file = TempConfig::new(with_local(&[], &crm));
    let watched = Watched::start(&file.path()).await;
    file.rewrite(with_local(&["sum_numbers"], &crm));
    watched.until_names(&["local.sum_numbers", "crm.a"]).await;
    std::fs::write(file.path(), with_local(&["current_time"], &crm)).unwrap();
    watched.until_names(&["local.current_time", "crm.a"]).await;
    std::fs::remove_file(file.path()).unwrap();
    std::fs::write(file.path(), with_local(&["multiply_numbers"], &crm)).unwrap();
    watched.until_names(&["local.multiply_numbers", "crm.a"]).await;
    assert_eq!(crm.stats().initialize_count, 1);
    watched.end().await;
}

#[tokio::test]
async fn a_change_supersedes_a_reload_that_waits_for_a_server() {
    let crm = server([Tool::echo("a")]).await;
    let hung = ScriptedServer::builder().fault(Fault::Hang(Stage::Any)).start().await;
    let file = TempConfig::new(with_local(&[], &crm));
    let watched = Watched::start(&file.path()).await;
    // A server is required unless its entry says otherwise.
    let waits = with(&dynamic("hung", &hung), "connect_timeout: 10m");
    file.rewrite(yaml(&[], &[dynamic("crm", &crm), waits]));
    until(|| !hung.stats().requests.is_empty()).await;
    assert_eq!(names(&watched.board), ["crm.a"]);
    file.rewrite(with_local(&["sum_numbers"], &crm));
    watched.until_names(&["local.sum_numbers", "crm.a"]).await;
    watched.end().await;
}

#[tokio::test]
async fn a_broken_file_is_refused_once_however_busy_its_directory_is() {
    let logs = Logs::listen();
    let crm = server([Tool::echo("a")]).await;
    let file = TempConfig::new(with_local(&[], &crm));
    let watched = Watched::start(&file.path()).await;
    let start = revision(&watched.board);
    file.rewrite("switchboard: {toolbox: {max_concurent: 3}}");
    until(|| logs.count_of_level(Level::ERROR) == 1).await;
    let error = logs.lines().into_iter().find(|line| line.level == Level::ERROR).unwrap();
    assert!(error.message.contains("the old one keeps serving"), "{error:?}");
    assert!(error.message.contains("max_concurent"), "{error:?}");
    assert_eq!(text(&watched.board, "a", json!({})).await, "{}");
    assert_eq!(revision(&watched.board), start);
    // Editors leave such files, and a database or a log may live beside the configuration.
    // That they are no business of ours shows only in time.
    for n in 0..3 {
        for name in
            [".switchboard.yaml.swp", "4913", "switchboard.yaml~", "#switchboard.yaml#", "a.log"]
        {
            file.file(name, format!("{n}"));
        }
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    }
    assert_eq!(logs.count_of_level(Level::ERROR), 1, "{:#?}", logs.lines());
    file.rewrite(with_local(&["sum_numbers"], &crm));
    watched.until_names(&["local.sum_numbers", "crm.a"]).await;
    watched.end().await;
}

#[tokio::test]
async fn a_swapped_link_is_followed_as_a_config_map_does_it() {
    let crm = server([Tool::echo("a")]).await;
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let publish = |version: &str, text: String| {
        std::fs::create_dir(at(version)).unwrap();
        std::fs::write(at(version).join("switchboard.yaml"), text).unwrap();
        symlink(version, at("..data_tmp")).unwrap();
        std::fs::rename(at("..data_tmp"), at("..data")).unwrap();
    };
    publish("..2026_1", with_local(&[], &crm));
    symlink("..data/switchboard.yaml", at("switchboard.yaml")).unwrap();
    let watched = Watched::start(&at("switchboard.yaml")).await;
    publish("..2026_2", with_local(&["sum_numbers"], &crm));
    std::fs::remove_dir_all(at("..2026_1")).unwrap();
    watched.until_names(&["local.sum_numbers", "crm.a"]).await;
    publish("..2026_3", with_local(&["current_time"], &crm));
    std::fs::remove_dir_all(at("..2026_2")).unwrap();
    watched.until_names(&["local.current_time", "crm.a"]).await;
    watched.end().await;
}

#[tokio::test]
async fn a_swapped_link_to_the_directory_of_a_release_is_followed() {
    let crm = server([Tool::echo("a")]).await;
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let release = |version: &str, text: String| {
        std::fs::create_dir_all(at("releases").join(version)).unwrap();
        std::fs::write(at("releases").join(version).join("switchboard.yaml"), text).unwrap();
        symlink(at("releases").join(version), at("next")).unwrap();
        std::fs::rename(at("next"), at("current")).unwrap();
    };
    release("1", with_local(&[], &crm));
    let watched = Watched::start(&at("current").join("switchboard.yaml")).await;
    release("2", with_local(&["sum_numbers"], &crm));
    watched.until_names(&["local.sum_numbers", "crm.a"]).await;
    // The file of the new release is watched from now on.
    let edited = at("releases").join("2").join("switchboard.yaml");
    std::fs::write(edited, with_local(&["current_time"], &crm)).unwrap();
    watched.until_names(&["local.current_time", "crm.a"]).await;
    watched.end().await;
}

#[tokio::test]
async fn a_hangup_reads_the_file_and_every_list_again() {
    let crm = server([Tool::echo("a")]).await;
    let file = TempConfig::new(with_local(&[], &crm));
    let watched = Watched::start(&file.path()).await;
    // Once a change is seen, the signal is heard too.
    file.rewrite(with_local(&["sum_numbers"], &crm));
    watched.until_names(&["local.sum_numbers", "crm.a"]).await;
    crm.set_tools([Tool::echo("a"), Tool::echo("b")]);
    let pid = std::process::id().to_string();
    assert!(Command::new("kill").args(["-HUP", &pid]).status().unwrap().success());
    watched.until_names(&["local.sum_numbers", "crm.a", "crm.b"]).await;
    watched.end().await;
}
