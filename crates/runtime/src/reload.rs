//! Takes over a changed configuration while the board runs: on a file change and on SIGHUP.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use notify_debouncer_full::notify::RecursiveMode;
use notify_debouncer_full::{DebounceEventResult, new_debouncer};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::board::Board;
use crate::config_source::ConfigSource;

/// How long a file must stay still before it is read: editors write in several steps.
const SETTLE: Duration = Duration::from_millis(150);

/// What came of a reload.
#[derive(Debug, PartialEq, Eq)]
pub enum ReloadOutcome {
    /// It means the same as before.
    Unchanged,
    /// It is in force.
    Applied,
    /// It was refused with this reason; the old one keeps serving.
    Refused(String),
}

impl Board {
    /// Reads the configuration again and takes it over, or keeps the old one.
    pub async fn reload(&self, source: &ConfigSource) -> ReloadOutcome {
        let refused = |reason: String| {
            tracing::error!(
                "the new configuration was refused, the old one keeps serving\n{reason}"
            );
            ReloadOutcome::Refused(reason)
        };
        let loaded = match source.load() {
            Ok(loaded) => loaded,
            Err(error) => return refused(error.to_string()),
        };
        if *self.plan() == loaded.plan {
            return ReloadOutcome::Unchanged;
        }
        match self.apply(loaded.plan).await {
            Ok(()) => {
                tracing::info!(
                    revision = self.catalog().revision(),
                    "the new configuration is in force"
                );
                ReloadOutcome::Applied
            }
            Err(error) => refused(error.to_string()),
        }
    }
}

/// Reloads on every change of the file and on SIGHUP, until `stop`. SIGHUP also has every list read again.
pub async fn watch_config(board: Arc<Board>, source: ConfigSource, stop: CancellationToken) {
    let (changed, mut changes) = mpsc::channel(1);
    let _watcher = source.path().and_then(|path| watch_file(path, changed.clone()));
    let mut hangup = match signal(SignalKind::hangup()) {
        Ok(hangup) => hangup,
        Err(error) => {
            tracing::error!(%error, "SIGHUP cannot be heard; the configuration is not reloaded");
            return;
        }
    };
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            Some(()) = changes.recv() => {}
            Some(()) = hangup.recv() => board.refresh(),
        }
        // Any outcome has been logged; the next change gets its own chance.
        let _logged = board.reload(&source).await;
    }
}

/// Watches the directory, not the file: editors and orchestrators replace files and swap links, and a watch
/// on the file itself would follow the old one. Unrelated files wake us too; an unchanged plan ends it there.
fn watch_file(path: &Path, changed: mpsc::Sender<()>) -> Option<impl Send> {
    let on_change = move |events: DebounceEventResult| {
        let is_change = |events: &Vec<notify_debouncer_full::DebouncedEvent>| {
            events.iter().any(|event| !event.kind.is_access())
        };
        if events.as_ref().map_or(true, is_change) {
            // One waiting wake-up is enough.
            let _one_is_waiting = changed.try_send(());
        }
    };
    let mut debouncer = new_debouncer(SETTLE, None, on_change)
        .inspect_err(|error| tracing::warn!(%error, "the configuration file is not watched"))
        .ok()?;
    for directory in watched_directories(path) {
        if let Err(error) = debouncer.watch(&directory, RecursiveMode::NonRecursive) {
            tracing::warn!(%error, directory = %directory.display(), "a directory is not watched");
        }
    }
    Some(debouncer)
}

/// The directory of the file, and that of what it links to.
fn watched_directories(path: &Path) -> Vec<PathBuf> {
    let parent = |path: &Path| {
        let parent = path.parent().unwrap_or(Path::new("."));
        if parent.as_os_str().is_empty() { PathBuf::from(".") } else { parent.to_owned() }
    };
    let mut directories = vec![parent(path)];
    if let Ok(target) = path.canonicalize() {
        let target = parent(&target);
        if directories.first().and_then(|d| d.canonicalize().ok()).as_ref() != Some(&target) {
            directories.push(target);
        }
    }
    directories
}
