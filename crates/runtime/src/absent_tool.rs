//! Tools that somebody asks for by name and that are not in the catalog.

use switchboard_registry::{Absence, KnownTools, Offer, absence_of};

use crate::board::Board;

impl Board {
    /// Why the catalog has no tool of this name, which may also be that of an entry. `None` if nothing here has the name.
    pub fn absence_of(&self, name: &str) -> Option<Absence> {
        let snapshot = self.published.load();
        let servers = snapshot.plan().servers.iter();
        let listings: Vec<_> = servers
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
        let known = KnownTools {
            built_in: &self.local_tools.descriptors(),
            offers: &offers,
            quarantined: snapshot.quarantined(),
        };
        absence_of(snapshot.plan(), known, name)
    }
}
