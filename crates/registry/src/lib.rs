//! Which tools exist: admission by policy, and the catalog that it leads to.
//!
//! Everything here is a pure function of the plan, of what the servers offered, and of what they offered
//! before. Nothing logs: what people should be told comes back as [`Notice`]s and [`Violation`]s.

mod admission;
mod attached;
mod catalog;
mod entries;
mod notice;
mod violation;

pub use admission::{Admission, Offer, admit};
pub use attached::{AttachedOffer, admit_attached};
pub use catalog::{Catalog, CatalogTool, Configured, Unresolved};
pub use notice::{Level, Notice};
pub use violation::Violation;
