//! Applies a changed configuration while the board runs: on a file change and on SIGHUP.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use notify_debouncer_full::notify::RecursiveMode;
use notify_debouncer_full::{DebounceEventResult, new_debouncer};
use switchboard_config::Loaded;
use switchboard_model::Plan;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::board::Board;
use crate::config_source::ConfigSource;
use crate::live_config::LiveConfig;
use crate::start_error::StartError;

/// How long a file must be unchanged before it is read: editors write in several steps.
const SETTLE: Duration = Duration::from_millis(150);
/// Maximum number of symbolic links to follow, as on Linux.
const MOST_LINKS: usize = 40;

impl Board {
    /// Applies a configuration unless it is in force already; `plan` is its plan with the discovered servers. Returns
    /// whether it was new.
    pub(crate) async fn put_in_force(
        &self,
        loaded: &Loaded,
        plan: Plan,
    ) -> Result<bool, StartError> {
        if *self.plan() == plan {
            return Ok(false);
        }
        for warning in &loaded.warnings {
            tracing::warn!("{warning}");
        }
        let waiting = self.waiting_for_restart(&loaded.plan);
        self.apply(plan).await?;
        for setting in waiting {
            tracing::warn!(
                "`{setting}` has changed: restart for it to take effect; until then the old value applies"
            );
        }
        tracing::info!(revision = self.catalog().revision(), "the new configuration is in force");
        Ok(true)
    }
}

/// Reloads on every change of the file and on SIGHUP, until `stop`. A change cancels a reload that still waits for
/// servers. SIGHUP also requests a new listing from every server.
pub async fn watch_config(config: Arc<LiveConfig>, stop: CancellationToken) {
    Box::pin(stop.run_until_cancelled(watch(&config))).await;
}

async fn watch(config: &LiveConfig) {
    let source = config.source();
    let mut hangup = match signal(SignalKind::hangup()) {
        Ok(hangup) => hangup,
        Err(error) => {
            tracing::error!(%error, "SIGHUP cannot be handled; the configuration is not reloaded");
            return;
        }
    };
    let (changed, mut changes) = mpsc::channel(1);
    loop {
        // Links may have changed, so the watched directories are computed again. Changes before that, such as during
        // the start, are read below.
        let _watcher = source.path().and_then(|path| watch_file(path, changed.clone()));
        let seen = stamp(source);
        let mut reload = pin!(config.reload());
        let mut is_reloading = true;
        loop {
            tokio::select! {
                // The outcome is logged; the next change triggers another reload.
                _logged = &mut reload, if is_reloading => is_reloading = false,
                Some(()) = changes.recv() => {
                    if stamp(source) != seen {
                        break;
                    }
                }
                Some(()) = hangup.recv() => {
                    config.board().refresh();
                    break;
                }
            }
        }
        // The running reload may wait forever, and for a server that this change removes.
        if is_reloading {
            tracing::info!(
                "the configuration is read again; the reload that was waiting for servers is cancelled"
            );
        }
    }
}

/// Identifies a state of the file. Changes of other files in the directory must not trigger a reload, and a rejected
/// file must not be rejected again because of them.
fn stamp(source: &ConfigSource) -> Option<impl PartialEq + use<>> {
    let file = std::fs::metadata(source.path()?).ok()?;
    let changed = (file.mtime(), file.mtime_nsec(), file.ctime(), file.ctime_nsec());
    Some((file.dev(), file.ino(), file.len(), changed))
}

/// Watches directories, not the file: editors and orchestrators replace files and swap links, and a watch on the file
/// would stay on the old one.
fn watch_file(path: &Path, changed: mpsc::Sender<()>) -> Option<impl Send + use<>> {
    let on_change = move |events: DebounceEventResult| {
        let is_change = |events: &Vec<notify_debouncer_full::DebouncedEvent>| {
            events.iter().any(|event| !event.kind.is_access())
        };
        if events.as_ref().map_or(true, is_change) {
            // One queued wake-up is enough.
            let _one_is_waiting = changed.try_send(());
        }
    };
    // The interval at which the debouncer checks for settled changes; its default is four times as often.
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

/// The directories in which a change can alter what the path refers to: that of the file itself, and that of every link
/// on the way to it.
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
        // Joining an empty path would append a slash and turn the file into a directory.
        path = if rest.as_os_str().is_empty() { target } else { target.join(rest) };
    }
    directories
}
