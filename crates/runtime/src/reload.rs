//! Takes over a changed configuration while the board runs: on a file change and on SIGHUP.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::pin::pin;
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
/// As many links as the system itself follows.
const MOST_LINKS: usize = 40;

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
        if *self.plan() != loaded.plan {
            for warning in &loaded.warnings {
                tracing::warn!("{warning}");
            }
        }
        if *self.plan() == loaded.plan {
            return ReloadOutcome::Unchanged;
        }
        let waiting = self.waiting_for_restart(&loaded.plan);
        match self.apply(loaded.plan).await {
            Ok(()) => {
                for setting in waiting {
                    tracing::warn!(
                        "`{setting}` has changed: restart for it to take effect; until then the one of the start counts"
                    );
                }
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

/// Reloads on every change of the file and on SIGHUP, until `stop`. A change supersedes a reload that still waits for
/// servers. SIGHUP also has every list read again.
pub async fn watch_config(board: Arc<Board>, source: ConfigSource, stop: CancellationToken) {
    stop.run_until_cancelled(watch(&board, &source)).await;
}

async fn watch(board: &Board, source: &ConfigSource) {
    let mut hangup = match signal(SignalKind::hangup()) {
        Ok(hangup) => hangup,
        Err(error) => {
            tracing::error!(%error, "SIGHUP cannot be heard; the configuration is not reloaded");
            return;
        }
    };
    let (changed, mut changes) = mpsc::channel(1);
    loop {
        // Links may lead elsewhere by now, so what to watch is found anew. Whatever changed before that,
        // while the board started for one, is read below.
        let _watcher = source.path().and_then(|path| watch_file(path, changed.clone()));
        let seen = stamp(source);
        let mut reload = pin!(board.reload(source));
        let mut is_reloading = true;
        loop {
            tokio::select! {
                // Any outcome has been logged; the next change gets its own chance.
                _logged = &mut reload, if is_reloading => is_reloading = false,
                Some(()) = changes.recv() => {
                    if stamp(source) != seen {
                        break;
                    }
                }
                Some(()) = hangup.recv() => {
                    board.refresh();
                    break;
                }
            }
        }
        // What it waits for may never come, and may be just what the change takes out.
        if is_reloading {
            tracing::info!(
                "the configuration is read again; the reload that was waiting for servers is given up"
            );
        }
    }
}

/// Tells one state of the file from another. The directory may be busy with files that are no business of
/// ours, and a file that was refused is not refused again for each of them.
fn stamp(source: &ConfigSource) -> Option<impl PartialEq + use<>> {
    let file = std::fs::metadata(source.path()?).ok()?;
    let changed = (file.mtime(), file.mtime_nsec(), file.ctime(), file.ctime_nsec());
    Some((file.dev(), file.ino(), file.len(), changed))
}

/// Watches directories, not the file: editors and orchestrators replace files and swap links, and a watch on
/// the file itself would follow the old one.
fn watch_file(path: &Path, changed: mpsc::Sender<()>) -> Option<impl Send + use<>> {
    let on_change = move |events: DebounceEventResult| {
        let is_change = |events: &Vec<notify_debouncer_full::DebouncedEvent>| {
            events.iter().any(|event| !event.kind.is_access())
        };
        if events.as_ref().map_or(true, is_change) {
            // One waiting wake-up is enough.
            let _one_is_waiting = changed.try_send(());
        }
    };
    // It looks for what has settled as often as this, also while nothing happens; by default four times as often.
    let mut debouncer = new_debouncer(SETTLE, Some(SETTLE), on_change)
        .inspect_err(|error| tracing::warn!(%error, "the configuration file is not watched"))
        .ok()?;
    for directory in watched_directories(path) {
        if let Err(error) = debouncer.watch(&directory, RecursiveMode::NonRecursive) {
            tracing::warn!(%error, directory = %directory.display(), "a directory is not watched");
        }
    }
    Some(debouncer)
}

/// The directories in which a change can make the path lead to something else: that of the file itself, and
/// that of every link on the way to it.
fn watched_directories(path: &Path) -> BTreeSet<PathBuf> {
    let mut directories = BTreeSet::new();
    let mut path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    for _ in 0..MOST_LINKS {
        let mut prefixes = path.ancestors().collect::<Vec<_>>().into_iter().rev();
        let link = prefixes.find_map(|prefix| Some((prefix, prefix.read_link().ok()?)));
        let (at, target) = match &link {
            Some((at, target)) => (*at, Some(target)),
            None => (path.as_path(), None),
        };
        let Some(parent) = at.parent() else { break };
        directories.insert(parent.to_owned());
        let Some(target) = target else { break };
        let rest = path.strip_prefix(at).unwrap_or(Path::new(""));
        let target = parent.join(target);
        // Joining nothing would add a slash, and then a file is no file.
        path = if rest.as_os_str().is_empty() { target } else { target.join(rest) };
    }
    directories
}
