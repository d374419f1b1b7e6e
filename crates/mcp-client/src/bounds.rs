//! Limits on the data that an upstream server may send.

/// Maximum size of one message: a JSON body, an SSE event or a line of a child's output. Equal to rmcp's own limit for
/// events and lines, so that all transports accept the same messages.
pub const MAX_MESSAGE_BYTES: usize = 16 * 1024 * 1024;

/// Maximum number of tools that one server may list.
pub const MAX_TOOLS_PER_SERVER: usize = 10_000;

/// Maximum number of pages of one listing.
pub const MAX_LIST_PAGES: usize = 1_000;

/// Maximum total size of the tools of one listing.
pub(crate) const MAX_LIST_BYTES: usize = 64 * 1024 * 1024;

/// Limits of one listing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListBounds {
    pub items: usize,
    /// Maximum total size of the items.
    pub bytes: usize,
}

impl Default for ListBounds {
    fn default() -> Self {
        Self { items: MAX_TOOLS_PER_SERVER, bytes: MAX_LIST_BYTES }
    }
}

/// Maximum number of recorded reasons for left out tools; the rest are only counted.
pub(crate) const KEPT_REASONS: usize = 100;

/// Maximum size of a pagination cursor.
pub(crate) const MAX_CURSOR_BYTES: usize = 64 * 1024;

/// Number of bytes of a response that an error message quotes.
pub(crate) const QUOTED_BYTES: usize = 200;

/// Number of bytes of a child's standard error that are kept.
pub(crate) const KEPT_STDERR_BYTES: usize = 16 * 1024;
