//! Whether a board stores what it learns.

/// Whether revisions and tool lists are stored for the next run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Memory {
    /// A long-running board: it stores its catalog revisions and the tools of its servers.
    Keep,
    /// A single command: it stores nothing except the records of its calls.
    ReadOnly,
}
