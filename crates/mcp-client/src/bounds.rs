//! How much an upstream server may send before it is cut off. A server is not trusted to stop by itself.

/// One message: a JSON body, an SSE event or a line of a child's output. As large as rmcp's own bound for
/// events and lines, so that what one transport takes the others take too.
pub const MAX_MESSAGE_BYTES: usize = 16 * 1024 * 1024;

/// Tools that one server may list.
pub const MAX_TOOLS_PER_SERVER: usize = 10_000;

/// Pages that one listing may have.
pub const MAX_LIST_PAGES: usize = 1_000;

/// What the tools of one listing may take together.
pub(crate) const MAX_LIST_BYTES: usize = 64 * 1024 * 1024;

/// How much one listing may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListBounds {
    pub items: usize,
    /// What they may take together.
    pub bytes: usize,
}

impl Default for ListBounds {
    fn default() -> Self {
        Self { items: MAX_TOOLS_PER_SERVER, bytes: MAX_LIST_BYTES }
    }
}

/// Reasons that are kept for tools that were left out; the rest are counted.
pub(crate) const KEPT_REASONS: usize = 100;

/// A cursor is a bookmark, not a book.
pub(crate) const MAX_CURSOR_BYTES: usize = 64 * 1024;

/// Bytes of an answer that are quoted in an error.
pub(crate) const QUOTED_BYTES: usize = 200;

/// Bytes of a child's error output that are kept to be shown.
pub(crate) const KEPT_STDERR_BYTES: usize = 16 * 1024;
