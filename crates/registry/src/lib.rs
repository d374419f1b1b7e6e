//! Which tools exist: admission by policy, and the resulting catalog.
//!
//! Everything here is a pure function of the plan, the servers' current tools, and their previous tools. Nothing logs:
//! messages for the operator are returned as [`Notice`]s and [`Violation`]s.

mod absence;
mod admission;
mod attached;
mod catalog;
mod configured_values;
mod entries;
mod notice;
#[cfg(test)]
mod test_plans;
mod violation;

pub use absence::{Absence, KnownTools, absence_of};
pub use admission::{Admission, Offer, admit};
pub use attached::{AttachedOffer, admit_attached};
pub use catalog::{Catalog, CatalogTool, Configured, OfferedDefinition, Unresolved};
pub use configured_values::{RedirectedValue, redirected_values};
pub use entries::declaring_entry;
pub use notice::{Level, Notice};
pub use violation::Violation;
