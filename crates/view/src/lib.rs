//! Computes the tools that a client sees from the catalog, the policy and the session: toolsets, names, search and
//! `tools/list` results as bytes.
//!
//! An [`Index`] is built once per catalog revision. A [`View`] is what one [`Scope`] and one [`Selection`] see of it.
//! Both are immutable and shared, so clients that see the same tools share the same bytes.

mod access_tools;
mod agent_tools;
mod bit_set;
mod definition;
mod index;
mod meta_tools;
mod names;
mod past;
mod scope;
mod search;
mod selection;
mod server_toolsets;
mod snapshot;
mod standing;
mod tool_groups;
mod toolset;
mod unmatched;
mod view;

pub use definition::{ListEra, render_tool};
pub use index::{Entry, Index};
pub use meta_tools::{MetaTool, Switched, not_enabled, switched_off, unknown_tool};
pub use names::{Named, expose_names, sanitized};
pub use past::{DeclaredTool, Past};
pub use scope::{Scope, ScopeFault};
pub use search::Hit;
pub use selection::Selection;
pub use server_toolsets::ServerToolsets;
pub use snapshot::{read_declared, snapshot_tools};
pub use standing::Standing;
pub use tool_groups::ToolGroups;
pub use toolset::{Toolset, toolset_members};
pub use unmatched::{UnmatchedPattern, unmatched_patterns};
pub use view::{Difference, Found, View, ViewKey};
