//! Tools that are not in the catalog, and why.

use std::collections::HashSet;
use std::sync::Arc;

use switchboard_model::{CanonicalName, ServerName, ToolDescriptor};
use switchboard_registry::{Absence, KnownTools, Offer, absence_of};

use crate::board::Board;
use crate::server::Listing;
use crate::snapshot::Snapshot;

impl Board {
    /// Why the catalog has no tool of this name, which may also be that of an entry. `None` if nothing here has the name.
    pub fn absence_of(&self, name: &str) -> Option<Absence> {
        let snapshot = self.snapshot();
        self.with_known_tools(&snapshot, |known| absence_of(snapshot.plan(), known, name))
    }

    /// The tools that servers list, and built-in ones, that are not in the catalog, with the reasons.
    pub fn absent_tools(&self) -> Vec<(CanonicalName, ToolDescriptor, Absence)> {
        let snapshot = self.snapshot();
        let there: HashSet<&str> =
            snapshot.catalog().tools().iter().map(|tool| tool.name.as_str()).collect();
        self.with_known_tools(&snapshot, |known| {
            let local = ServerName::local();
            let built_in = known.built_in.iter().map(|tool| (&local, tool));
            let listed = known.offers.iter().flat_map(|offer| {
                let tools = offer.tools.unwrap_or_default().iter();
                tools.map(|tool| (&offer.plan.spec.name, tool))
            });
            let all = built_in.chain(listed);
            let absent = all.filter_map(|(server, tool)| {
                let name = CanonicalName::new(server, &tool.name);
                let is_absent = !there.contains(name.as_str());
                let absence =
                    is_absent.then(|| absence_of(snapshot.plan(), known, name.as_str()))??;
                Some((name, tool.clone(), absence))
            });
            absent.collect()
        })
    }

    fn with_known_tools<T>(
        &self,
        snapshot: &Arc<Snapshot>,
        tell: impl FnOnce(KnownTools<'_>) -> T,
    ) -> T {
        let servers = snapshot.plan().servers.iter();
        let listings: Vec<(_, Listing)> = servers
            .filter_map(|plan| Some((plan, snapshot.servers.get(&plan.spec.name)?.listing())))
            .collect();
        let offers: Vec<_> = listings
            .iter()
            .map(|(plan, listing)| Offer {
                plan,
                tools: listing.tools.as_deref().map(Vec::as_slice),
                available: listing.is_ready,
                before: None,
                quarantined: &listing.quarantined,
            })
            .collect();
        tell(KnownTools {
            built_in: &self.local_tools.descriptors(),
            offers: &offers,
            quarantined: snapshot.quarantined(),
        })
    }
}
