//! The servers that sessions attached, as state of the reconciler.
//!
//! They exist beside the servers of the plan. A reload does not affect them unless it changes the egress policy.

use std::sync::Arc;

use indexmap::IndexMap;
use switchboard_mcp_client::{ConnectOptions, ListBounds};
use switchboard_model::{
    AttachedServer, DEFAULT_CONNECT_TIMEOUT, EgressPolicy, EraChoice, ServerName, ServerSpec,
    ToolDescriptor,
};
use switchboard_outbound::HttpPool;

use crate::attach::MAX_SERVERS_PER_OWNER;
use crate::attach_error::AttachError;
use crate::memory::Memory;
use crate::server::Server;
use crate::server_context::{Audience, ServerContext};
use crate::supervisor::start_server;

/// Limits for the lists of an attached server. They are lower than those of configured servers, because any caller may
/// attach one.
const LIST_BOUNDS: ListBounds = ListBounds { items: 1_000, bytes: 4 * 1024 * 1024 };

/// A server that a session attached.
#[derive(Debug)]
pub(crate) struct Attached {
    pub(crate) owner: Arc<str>,
    pub(crate) spec: AttachedServer,
    pub(crate) server: Arc<Server>,
}

/// All attached servers, in the order of attaching.
#[derive(Debug)]
pub(crate) struct Attachments {
    around: ServerContext,
    egress: EgressPolicy,
    all: IndexMap<ServerName, Arc<Attached>>,
}

impl Attachments {
    pub(crate) fn new(around: &ServerContext, egress: EgressPolicy) -> Self {
        let around = ServerContext {
            memory: Memory::ReadOnly,
            options: guarded_options(&egress),
            audience: Audience::Owner,
            ..around.clone()
        };
        Self { around, egress, all: IndexMap::new() }
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<Attached>> {
        self.all.values()
    }

    /// Starts to connect a server, unless an identical one is attached already. Returns the process-wide name of the
    /// server, and the server that it replaces.
    pub(crate) fn attach(
        &mut self,
        owner: Arc<str>,
        spec: AttachedServer,
        most: u32,
    ) -> Result<(ServerName, Option<Arc<Server>>), AttachError> {
        let name = unique_name(&owner, &spec.name);
        let Some(present) = self.all.get(&name) else {
            self.check_room(&owner, most)?;
            self.start(name.clone(), owner, spec, None);
            return Ok((name, None));
        };
        if present.spec == spec {
            return Ok((name, None));
        }
        // A change of credentials alone keeps the server's identity: its tools stay declared until they are listed
        // again.
        let is_same_place =
            (&present.spec.url, present.spec.transport) == (&spec.url, spec.transport);
        let known = is_same_place.then(|| present.server.listing().tools).flatten();
        let replaced = present.server.clone();
        self.start(name.clone(), owner, spec, known);
        Ok((name, Some(replaced)))
    }

    /// Removes one server of an owner, or all of them.
    pub(crate) fn detach(&mut self, owner: &str, name: Option<&ServerName>) -> Vec<Arc<Server>> {
        let is_meant = |attached: &Attached| {
            &*attached.owner == owner && name.is_none_or(|name| *name == attached.spec.name)
        };
        let mut gone = Vec::new();
        self.all.retain(|_, attached| {
            let stays = !is_meant(attached);
            if !stays {
                gone.push(attached.server.clone());
            }
            stays
        });
        gone
    }

    /// Applies another egress policy. Servers connected under the old policy are started again; the old ones are
    /// returned.
    pub(crate) fn follow(&mut self, egress: &EgressPolicy) -> Vec<Arc<Server>> {
        if self.egress == *egress {
            return Vec::new();
        }
        self.egress = egress.clone();
        self.around.options = guarded_options(egress);
        let before: Vec<_> = self.all.iter().map(|(name, it)| (name.clone(), it.clone())).collect();
        for (name, attached) in &before {
            let known = attached.server.listing().tools;
            self.start(name.clone(), attached.owner.clone(), attached.spec.clone(), known);
        }
        before.into_iter().map(|(_, attached)| attached.server.clone()).collect()
    }

    fn check_room(&self, owner: &str, most: u32) -> Result<(), AttachError> {
        let of_owner = self.all.values().filter(|attached| &*attached.owner == owner).count();
        if of_owner >= MAX_SERVERS_PER_OWNER {
            return Err(AttachError::TooManyOfOwner { limit: MAX_SERVERS_PER_OWNER });
        }
        if self.all.len() >= most as usize {
            return Err(AttachError::TooMany { limit: most });
        }
        Ok(())
    }

    /// Starts a server. A replacement keeps the position of the server that it replaces.
    fn start(
        &mut self,
        name: ServerName,
        owner: Arc<str>,
        spec: AttachedServer,
        known: Option<Arc<Vec<ToolDescriptor>>>,
    ) {
        let how = ServerSpec {
            name: name.clone(),
            endpoint: spec.endpoint(),
            place: spec.place(),
            referenced: spec.secret_parts(),
            caller_headers: Vec::new(),
            era: EraChoice::Auto,
            connect_timeout: DEFAULT_CONNECT_TIMEOUT,
            sharing: switchboard_model::Sharing::Shared,
            egress: None,
        };
        let known = known.map(Arc::unwrap_or_clone);
        let server = start_server(how, Some(spec.name.clone()), None, known, &self.around);
        self.all.insert(name, Arc::new(Attached { owner, spec, server }));
    }
}

/// No guard process and no sign-in store: attached servers are never child processes, and there is no interactive
/// sign-in for them.
pub(crate) fn guarded_options(egress: &EgressPolicy) -> ConnectOptions {
    ConnectOptions {
        http: HttpPool::guarded(egress.clone()),
        list_bounds: LIST_BOUNDS,
        ..ConnectOptions::default()
    }
}

/// A name derived from owner and name by hashing: stable across restarts, and safe for log lines because it reveals
/// neither.
fn unique_name(owner: &str, name: &ServerName) -> ServerName {
    let mut hasher = blake3::Hasher::new();
    // Names hold no NUL, so different pairs never hash the same text.
    for part in [name.as_str(), "\0", owner] {
        hasher.update(part.as_bytes());
    }
    let digest = hasher.finalize().to_hex();
    ServerName::attached(digest.get(..32).unwrap_or(&digest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_unique_steady_and_tells_nothing() {
        let name = |owner: &str, name: &str| unique_name(owner, &ServerName::new(name)).to_string();
        let all = [name("a", "bc"), name("ab", "c"), name("c", "ab"), name("a", "b")];
        let distinct: std::collections::HashSet<_> = all.iter().collect();
        assert_eq!(distinct.len(), all.len());
        assert_eq!(name("a", "bc"), all[0]);
        assert!(all.iter().all(|name| name.len() == 33 && !name.contains('.')));
    }
}
