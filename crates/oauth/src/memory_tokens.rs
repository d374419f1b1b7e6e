//! Grants that end with the process.

use std::collections::BTreeMap;
use std::fmt;

use futures::FutureExt;
use futures::future::ready;
use parking_lot::Mutex;
use switchboard_model::{GrantId, RenewalTurn, Secret};

use crate::token_store::{Kept, StoredGrant, TokenStore, WallClock};

/// How long the turn of a renewal lasts.
const TURN_MS: i64 = 20_000;

/// A [`TokenStore`] in memory.
pub struct MemoryTokens {
    clock: WallClock,
    state: Mutex<MemoryState>,
}

#[derive(Debug, Default)]
struct MemoryState {
    grants: BTreeMap<(GrantId, String), MemoryGrant>,
    needs: BTreeMap<GrantId, String>,
    saves: u64,
}

#[derive(Debug)]
struct MemoryGrant {
    content: Secret,
    version: i64,
    renewing_until_ms: i64,
    /// The number of the save; the highest one is the last.
    saved: u64,
}

impl fmt::Debug for MemoryTokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryTokens").finish_non_exhaustive()
    }
}

impl MemoryTokens {
    pub fn new(clock: WallClock) -> Self {
        Self { clock, state: Mutex::default() }
    }
}

impl MemoryState {
    fn at(&mut self, id: &GrantId, issuer: &str, version: i64) -> Option<&mut MemoryGrant> {
        let grant = self.grants.get_mut(&(id.clone(), issuer.to_owned()));
        grant.filter(|grant| grant.version == version)
    }

    fn next_save(&mut self) -> u64 {
        self.saves += 1;
        self.saves
    }
}

fn stored(key: &(GrantId, String), grant: &MemoryGrant) -> StoredGrant {
    StoredGrant {
        id: key.0.clone(),
        issuer: key.1.clone(),
        content: Ok(grant.content.clone()),
        is_encrypted: false,
        version: grant.version,
        renewing_until_ms: grant.renewing_until_ms,
    }
}

impl TokenStore for MemoryTokens {
    fn load<'a>(
        &'a self,
        id: &'a GrantId,
        issuer: Option<&'a str>,
    ) -> Kept<'a, Option<StoredGrant>> {
        let state = self.state.lock();
        let of_id = state.grants.iter().filter(|((of, _), _)| of == id);
        let at_issuer = of_id.filter(|((_, at), _)| issuer.is_none_or(|issuer| at == issuer));
        let last = at_issuer.max_by_key(|(_, grant)| grant.saved);
        let found = last.map(|(key, grant)| stored(key, grant));
        ready(Ok(found)).boxed()
    }

    fn list(&self) -> Kept<'_, Vec<StoredGrant>> {
        let all = self.state.lock().grants.iter().map(|(key, grant)| stored(key, grant)).collect();
        ready(Ok(all)).boxed()
    }

    fn save<'a>(&'a self, id: &'a GrantId, issuer: &'a str, content: Secret) -> Kept<'a, ()> {
        let mut state = self.state.lock();
        let (saved, key) = (state.next_save(), (id.clone(), issuer.to_owned()));
        let version = state.grants.get(&key).map_or(0, |grant| grant.version) + 1;
        state.grants.insert(key, MemoryGrant { content, version, renewing_until_ms: 0, saved });
        state.needs.remove(id);
        ready(Ok(())).boxed()
    }

    fn begin_renewal<'a>(
        &'a self,
        id: &'a GrantId,
        issuer: &'a str,
        version: i64,
        abandoned: Option<i64>,
    ) -> Kept<'a, RenewalTurn> {
        let now_ms = self.now_ms();
        let mut state = self.state.lock();
        let turn = match state.at(id, issuer, version) {
            None => RenewalTurn::Changed,
            Some(grant) => {
                let until_ms = grant.renewing_until_ms;
                if until_ms < now_ms || Some(until_ms) == abandoned {
                    grant.renewing_until_ms = now_ms.saturating_add(TURN_MS);
                    RenewalTurn::Taken
                } else {
                    RenewalTurn::Held { until_ms }
                }
            }
        };
        ready(Ok(turn)).boxed()
    }

    fn finish_renewal<'a>(
        &'a self,
        id: &'a GrantId,
        issuer: &'a str,
        version: i64,
        content: Secret,
    ) -> Kept<'a, bool> {
        let mut state = self.state.lock();
        let saved = state.next_save();
        let grant = state.at(id, issuer, version);
        let had_version = grant.is_some();
        if let Some(grant) = grant {
            *grant = MemoryGrant { content, version: version + 1, renewing_until_ms: 0, saved };
        }
        ready(Ok(had_version)).boxed()
    }

    fn end_renewal<'a>(&'a self, id: &'a GrantId, issuer: &'a str, version: i64) -> Kept<'a, ()> {
        if let Some(grant) = self.state.lock().at(id, issuer, version) {
            grant.renewing_until_ms = 0;
        }
        ready(Ok(())).boxed()
    }

    fn forget<'a>(&'a self, id: &'a GrantId) -> Kept<'a, bool> {
        let mut state = self.state.lock();
        let before = state.grants.len();
        state.grants.retain(|(of, _), _| of != id);
        state.needs.remove(id);
        ready(Ok(state.grants.len() < before)).boxed()
    }

    fn need<'a>(&'a self, id: &'a GrantId) -> Kept<'a, Option<String>> {
        ready(Ok(self.state.lock().needs.get(id).cloned())).boxed()
    }

    fn set_need<'a>(&'a self, id: &'a GrantId, need: String) -> Kept<'a, ()> {
        self.state.lock().needs.insert(id.clone(), need);
        ready(Ok(())).boxed()
    }

    fn now_ms(&self) -> i64 {
        (self.clock)()
    }
}
