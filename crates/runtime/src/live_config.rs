//! The configuration of a running board: its file, the reloads and the edits through the API.
//!
//! Reloads and edits take turns, so a reload never reads a file that an edit is about to replace. An edit is in force and on the
//! disk when it returns; the reload that the file watcher triggers then finds the configuration unchanged.

use std::collections::HashSet;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;
use switchboard_config::{
    ConfigEdit, ConfigText, EntryList, Loaded, MergedServers, SourceLocation, merge_discovered,
};
use switchboard_discovery::{Discovery, SourceStatus};
use switchboard_model::{LeftOutServer, Plan, SourceServers, ToolEntry};
use switchboard_registry::RedirectedValue;
use tokio::sync::{Semaphore, watch};

use crate::board::Board;
use crate::config_edit::{EditError, ProposedEdit};
use crate::config_source::{ConfigError, ConfigSource};
use crate::start_error::StartError;

/// How long an edit waits for a reload or another edit to finish.
const WAIT_FOR_TURN: Duration = Duration::from_mins(1);
/// Maximum number of left out servers that are logged one by one for one change.
const MOST_LOGGED: usize = 10;

/// The condition of an edit: which version of an entry it expects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExpectedEntry {
    /// The entry has this tag (`If-Match`).
    Tag(String),
    /// The entry exists, in any version (`If-Match: *`).
    Present,
    /// There is no such entry (`If-None-Match: *`).
    Absent,
}

/// An edit that is written and in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppliedEdit {
    /// Whether the file has changed.
    pub is_change: bool,
    /// The revision of the catalog.
    pub revision: u64,
    /// Warnings about the configuration that is now in force.
    pub warnings: Vec<String>,
}

/// One entry of the file as it is written, references not expanded. May hold secrets.
#[derive(Clone, PartialEq)]
pub struct WrittenEntry {
    pub fields: serde_json::Map<String, serde_json::Value>,
    /// Identifies this version of the entry.
    pub tag: String,
    /// The place of each value, by its JSON pointer from the entry.
    pub places: Vec<(String, SourceLocation)>,
}

/// Leaves out the values, which may be secrets.
impl std::fmt::Debug for WrittenEntry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WrittenEntry").field("tag", &self.tag).finish_non_exhaustive()
    }
}

/// The configuration in force, and the last one that was refused.
#[derive(Debug, Clone)]
pub struct ConfigState {
    pub loaded: Arc<Loaded>,
    /// When it was loaded.
    pub loaded_at_ms: i64,
    /// How many configurations have been in force since the start.
    pub revision: u64,
    /// The last reload, if it was refused.
    pub refused: Option<RefusedConfig>,
}

/// A configuration that was not applied.
#[derive(Debug, Clone)]
pub struct RefusedConfig {
    pub at_ms: i64,
    pub reason: Arc<ConfigFault>,
}

/// Why a configuration was not applied.
#[derive(Debug, thiserror::Error)]
pub enum ConfigFault {
    #[error("{0}")]
    Config(ConfigError),
    #[error("{0}")]
    Start(StartError),
}

/// The configuration of a running board.
#[derive(Debug)]
pub struct LiveConfig {
    board: Arc<Board>,
    source: ConfigSource,
    state: Mutex<ConfigState>,
    /// What the sources found. Changed only by who has the turn.
    discovered: Mutex<LastDiscovered>,
    /// The running sources, if the board has any.
    discovery: OnceLock<Arc<Discovery>>,
    /// The number of the configuration in force.
    revisions: watch::Sender<u64>,
    /// Steps with every configuration that is applied or refused.
    outcomes: watch::Sender<u64>,
    /// Admits one reload or edit at a time.
    turn: Semaphore,
    /// Makes the tags of entries unguessable, because entries hold secrets.
    tag_key: [u8; 32],
}

/// What the sources found, and what the plan in force does not have of it.
#[derive(Debug, Clone, Default)]
struct LastDiscovered {
    found: Arc<[SourceServers]>,
    left_out: Arc<[LeftOutServer]>,
}

/// The outcome of a reload.
#[derive(Debug, PartialEq, Eq)]
pub enum ReloadOutcome {
    /// The configuration is equivalent to the one in force.
    Unchanged,
    /// The new configuration is in force.
    Applied,
    /// The new configuration was rejected for this reason; the old one stays in force.
    Refused(String),
}

impl LiveConfig {
    /// The configuration of a board that was started with `loaded`.
    pub fn new(board: Arc<Board>, source: ConfigSource, loaded: Loaded) -> Arc<Self> {
        let state = ConfigState {
            loaded: Arc::new(loaded),
            loaded_at_ms: now_ms(),
            revision: 1,
            refused: None,
        };
        let key = [uuid::Uuid::now_v7(), uuid::Uuid::now_v7()].map(uuid::Uuid::into_bytes).concat();
        let tag_key = blake3::derive_key("switchboard config entry tag", &key);
        Arc::new(Self {
            board,
            source,
            state: Mutex::new(state),
            discovered: Mutex::default(),
            discovery: OnceLock::new(),
            revisions: watch::Sender::new(1),
            outcomes: watch::Sender::new(0),
            turn: Semaphore::new(1),
            tag_key,
        })
    }

    pub fn board(&self) -> &Arc<Board> {
        &self.board
    }

    pub fn source(&self) -> &ConfigSource {
        &self.source
    }

    pub fn state(&self) -> ConfigState {
        self.state.lock().clone()
    }

    /// Reads the configuration again and applies it, or keeps the old one. Dropping the future cancels it.
    pub async fn reload(&self) -> ReloadOutcome {
        let Ok(_turn) = self.turn.acquire().await else { return ReloadOutcome::Unchanged };
        let loaded = match self.source.load() {
            Ok(loaded) => loaded,
            Err(error) => return self.refuse(ConfigFault::Config(error)),
        };
        let MergedServers { plan, left_out } = self.with_discovered(&loaded);
        match self.board.put_in_force(&loaded, plan).await {
            Ok(is_new) => {
                self.note_left_out(&left_out);
                self.remember(loaded, is_new);
                if is_new { ReloadOutcome::Applied } else { ReloadOutcome::Unchanged }
            }
            Err(error) => self.refuse(ConfigFault::Start(error)),
        }
    }

    /// Replaces what the sources found, and applies the difference in one step. Returns whether there was one. Servers of
    /// the file are not affected. Dropping the future cancels it.
    pub async fn put_discovered(&self, found: Vec<SourceServers>) -> bool {
        let Ok(_turn) = self.turn.acquire().await else { return false };
        let MergedServers { plan, left_out } = merge_discovered(&self.state().loaded.plan, &found);
        let is_new = *self.board.plan() != plan;
        if is_new && let Err(error) = self.board.apply_discovered(plan).await {
            tracing::error!(%error, "the discovered servers could not be applied");
            return false;
        }
        self.discovered.lock().found = found.into();
        self.note_left_out(&left_out);
        is_new
    }

    /// Sets the sources that the board follows. Later calls have no effect.
    pub(crate) fn set_discovery(&self, discovery: Arc<Discovery>) {
        let _there_is_one = self.discovery.set(discovery);
    }

    /// The state of the sources of servers, in the order of precedence.
    pub fn sources(&self) -> Vec<SourceStatus> {
        self.discovery.get().map(|discovery| discovery.status()).unwrap_or_default()
    }

    /// Steps with every configuration that is put into force.
    pub(crate) fn revisions(&self) -> watch::Receiver<u64> {
        self.revisions.subscribe()
    }

    /// Steps with every configuration that is applied or refused. [`LiveConfig::state`] has the last one.
    pub fn outcomes(&self) -> watch::Receiver<u64> {
        self.outcomes.subscribe()
    }

    /// What sources found and the plan in force does not have, with the reasons.
    pub fn left_out(&self) -> Arc<[LeftOutServer]> {
        self.discovered.lock().left_out.clone()
    }

    /// Replaces what is left out, and logs what is new in it.
    fn note_left_out(&self, left_out: &[LeftOutServer]) {
        let before = std::mem::replace(&mut self.discovered.lock().left_out, left_out.into());
        let known: HashSet<&LeftOutServer> = before.iter().collect();
        let new: Vec<_> = left_out.iter().filter(|server| !known.contains(server)).collect();
        for LeftOutServer { source, name, reason } in new.iter().take(MOST_LOGGED) {
            tracing::info!(source, server = name, reason, "a server of the source is left out");
        }
        if let Some(more) = new.len().checked_sub(MOST_LOGGED).filter(|more| *more > 0) {
            tracing::info!(
                "{more} more servers of the sources are left out; `switchboard discover` shows them"
            );
        }
    }

    /// The plan of a configuration with the servers that the sources found.
    fn with_discovered(&self, loaded: &Loaded) -> MergedServers {
        let found = self.discovered.lock().found.clone();
        merge_discovered(&loaded.plan, &found)
    }

    /// The entry of this name in the file.
    pub fn entry(&self, list: EntryList, name: &str) -> Result<Option<WrittenEntry>, EditError> {
        let path = self.source.path().ok_or(EditError::NoFile)?.display().to_string();
        let text = self.source.read_text().map_err(EditError::Unreadable)?;
        let text = ConfigText::new(&path, &text).map_err(EditError::Invalid)?;
        Ok(text.entry(list, name).map(|fields| WrittenEntry {
            fields: fields.clone(),
            tag: self.tag(fields),
            places: text.places(list, name),
        }))
    }

    /// The index of the entry of this name in the file; that of the next one if there is none.
    pub fn index(&self, list: EntryList, name: &str) -> usize {
        let text = self.source.read_text().unwrap_or_default();
        ConfigText::new("", &text).map_or(0, |text| text.index(list, name))
    }

    /// All entries of a list of the file.
    pub fn entries(&self, list: EntryList) -> Result<Vec<WrittenEntry>, EditError> {
        let path = self.source.path().ok_or(EditError::NoFile)?.display().to_string();
        let text = self.source.read_text().map_err(EditError::Unreadable)?;
        let text = ConfigText::new(&path, &text).map_err(EditError::Invalid)?;
        let entries = text.entries(list).iter().filter_map(serde_json::Value::as_object);
        let entry = |fields: &serde_json::Map<String, serde_json::Value>| WrittenEntry {
            fields: fields.clone(),
            tag: self.tag(fields),
            places: Vec::new(),
        };
        Ok(entries.map(entry).collect())
    }

    /// Edits the file and applies it. When this returns `Ok`, the file is written and its configuration is in force;
    /// otherwise neither has changed. The edit goes on if the future is dropped.
    pub async fn edit(
        self: &Arc<Self>,
        expected: Option<(EntryList, String, ExpectedEntry)>,
        edits: Vec<ConfigEdit>,
    ) -> Result<AppliedEdit, EditError> {
        let this = self.clone();
        let edit = async move {
            let turn = tokio::time::timeout(WAIT_FOR_TURN, this.turn.acquire()).await;
            let Ok(Ok(_turn)) = turn else { return Err(EditError::Busy) };
            this.edit_now(expected, &edits).await
        };
        // A task of its own: a client that closes its connection must not leave a configuration in force that is not on
        // the disk.
        self.board.around.tasks.spawn(edit).await.unwrap_or(Err(EditError::Busy))
    }

    async fn edit_now(
        &self,
        expected: Option<(EntryList, String, ExpectedEntry)>,
        edits: &[ConfigEdit],
    ) -> Result<AppliedEdit, EditError> {
        self.source.path().ok_or(EditError::NoFile)?;
        let before = self.source.read_text().map_err(EditError::Unreadable)?;
        if let Some((list, name, expected)) = expected {
            self.check_expected(&before, list, &name, &expected)?;
        }
        let proposed = self.source.propose_from(before, edits)?;
        let redirected = self.redirected(&proposed, edits);
        if !redirected.is_empty() {
            return Err(EditError::Redirects(redirected));
        }
        self.check_contradictions(&proposed.loaded().plan)?;
        let prepared = proposed.prepare()?;
        let previous = self.state().loaded;
        let MergedServers { plan, left_out } = self.with_discovered(proposed.loaded());
        let is_new = self.board.put_in_force(proposed.loaded(), plan).await;
        let is_new = is_new.map_err(EditError::NotApplied)?;
        if let Some(prepared) = prepared
            && let Err(error) = prepared.commit(proposed.before())
        {
            // The file could not be replaced after all, so its configuration must not stay in force.
            let before = self.with_discovered(&previous).plan;
            if let Err(error) = self.board.put_in_force(&previous, before).await {
                tracing::error!(%error, "the previous configuration could not be restored; the next reload applies the file");
            }
            return Err(EditError::Unwritten(error));
        }
        let is_change = proposed.is_change();
        let warnings = proposed.loaded().warnings.iter().map(ToString::to_string).collect();
        self.note_left_out(&left_out);
        self.remember(proposed.into_loaded(), is_new);
        Ok(AppliedEdit { is_change, revision: self.board.catalog().revision(), warnings })
    }

    /// The values of the file that would go elsewhere after the edits. [`edit`](Self::edit) refuses such edits: whoever
    /// cannot read the file must not have its secrets sent to a tool or a host of their choice.
    pub fn redirected(
        &self,
        proposed: &ProposedEdit,
        edits: &[ConfigEdit],
    ) -> Vec<RedirectedValue> {
        self.source.redirected(proposed, edits, &self.state().loaded.plan)
    }

    /// Refuses declared arguments that a server would refuse. Entries that are as before do not count: a server may have
    /// changed, and the rest of the configuration can be changed all the same.
    fn check_contradictions(&self, plan: &Plan) -> Result<(), EditError> {
        let present = self.board.plan();
        let mut found = self.board.contradictions(plan);
        found.retain(|it| {
            let declared = |entry: &ToolEntry| (entry.name.clone(), entry.arguments.clone());
            let changed = plan.tools.get(it.entry).map(declared);
            !present.tools.iter().any(|entry| Some(declared(entry)) == changed)
        });
        if found.is_empty() { Ok(()) } else { Err(EditError::Contradicts(found)) }
    }

    fn check_expected(
        &self,
        before: &str,
        list: EntryList,
        name: &str,
        expected: &ExpectedEntry,
    ) -> Result<(), EditError> {
        let path = self.source.path().map(|path| path.display().to_string()).unwrap_or_default();
        let text = ConfigText::new(&path, before).map_err(EditError::Invalid)?;
        let present = text.entry(list, name).map(|fields| self.tag(fields));
        let is_met = match expected {
            ExpectedEntry::Tag(tag) => present.as_ref() == Some(tag),
            ExpectedEntry::Present => present.is_some(),
            ExpectedEntry::Absent => present.is_none(),
        };
        let what = format!("the {} '{name}'", list.noun());
        if is_met { Ok(()) } else { Err(EditError::Stale { what }) }
    }

    fn tag(&self, fields: &serde_json::Map<String, serde_json::Value>) -> String {
        let text = serde_json::to_vec(fields).unwrap_or_default();
        blake3::keyed_hash(&self.tag_key, &text).to_hex().chars().take(32).collect()
    }

    /// Notes the configuration in force. One that means the same as before may have other places in the file.
    fn remember(&self, loaded: Loaded, is_new: bool) {
        let mut state = self.state.lock();
        if is_new {
            state.revision += 1;
            state.loaded_at_ms = now_ms();
            self.revisions.send_replace(state.revision);
        }
        state.loaded = Arc::new(loaded);
        let was_refused = state.refused.take().is_some();
        drop(state);
        if is_new || was_refused {
            self.outcomes.send_modify(|outcomes| *outcomes += 1);
        }
    }

    fn refuse(&self, fault: ConfigFault) -> ReloadOutcome {
        tracing::error!("the new configuration was refused, the old one keeps serving\n{fault}");
        let reason = fault.to_string();
        let refused = RefusedConfig { at_ms: now_ms(), reason: Arc::new(fault) };
        self.state.lock().refused = Some(refused);
        self.outcomes.send_modify(|outcomes| *outcomes += 1);
        ReloadOutcome::Refused(reason)
    }
}

fn now_ms() -> i64 {
    jiff::Timestamp::now().as_millisecond()
}
