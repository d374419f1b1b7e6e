//! The servers that sessions brought, as the reconciler keeps them.
//!
//! They live beside those of the plan and outlive it: a reload changes nothing about them, unless it changes where
//! they may be.

use std::sync::Arc;

use indexmap::IndexMap;
use switchboard_mcp_client::{ConnectOptions, HttpPool, ListBounds};
use switchboard_model::{
    AttachedServer, DEFAULT_CONNECT_TIMEOUT, EgressPolicy, EraChoice, ServerName, ServerSpec,
    ToolDescriptor,
};

use crate::attach::{AttachError, MAX_SERVERS_PER_OWNER};
use crate::board::Memory;
use crate::supervisor::{Audience, Server, ServerContext};

/// Anybody may bring a server, so the memory that one may take is not what an operator's own may.
const LIST_BOUNDS: ListBounds = ListBounds { items: 1_000, bytes: 4 * 1024 * 1024 };

/// A server that a session brought.
#[derive(Debug)]
pub(crate) struct Attached {
    pub(crate) owner: Arc<str>,
    pub(crate) spec: AttachedServer,
    pub(crate) server: Arc<Server>,
}

/// All of them, in the order in which they came.
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
            options: options(&egress),
            audience: Audience::Owner,
            ..around.clone()
        };
        Self { around, egress, all: IndexMap::new() }
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<Attached>> {
        self.all.values()
    }

    /// Starts to connect a server, unless just this one is there already. Gives the name by which the process knows it,
    /// and the server that it replaces.
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
        // With other credentials it is the same server, whose tools stay declared until they are listed anew.
        let is_same_place =
            (&present.spec.url, present.spec.transport) == (&spec.url, spec.transport);
        let known = is_same_place.then(|| present.server.listing().tools).flatten();
        let replaced = present.server.clone();
        self.start(name.clone(), owner, spec, known);
        Ok((name, Some(replaced)))
    }

    /// Takes out one server of an owner, or all of them.
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

    /// Takes over another policy. What was connected under the old one is connected anew, and given back.
    pub(crate) fn follow(&mut self, egress: &EgressPolicy) -> Vec<Arc<Server>> {
        if self.egress == *egress {
            return Vec::new();
        }
        self.egress = egress.clone();
        self.around.options = options(egress);
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

    /// One that replaces another takes its place in the order.
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
            era: EraChoice::Auto,
            connect_timeout: DEFAULT_CONNECT_TIMEOUT,
            sharing: switchboard_model::Sharing::Shared,
        };
        let known = known.map(Arc::unwrap_or_clone);
        let server = Server::start(how, Some(spec.name.clone()), None, known, &self.around);
        self.all.insert(name, Arc::new(Attached { owner, spec, server }));
    }
}

/// No guard and no sign-ins: nothing is started for a session, and nobody signs in for it.
fn options(egress: &EgressPolicy) -> ConnectOptions {
    ConnectOptions {
        http: HttpPool::guarded(egress.clone()),
        list_bounds: LIST_BOUNDS,
        ..ConnectOptions::default()
    }
}

/// The same for the same owner and name, also in the next run, and telling neither: it stands in log lines.
fn unique_name(owner: &str, name: &ServerName) -> ServerName {
    let mut hasher = blake3::Hasher::new();
    // No name holds a zero, so no two pairs are one text.
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
