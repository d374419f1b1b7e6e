//! The tools that a session has declared so far.
//!
//! Providers cache the beginning of a prompt, which contains the tools. So a tool keeps its position while it is
//! listed, and new tools are appended, whatever the order of the catalog is.

use std::collections::HashSet;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use switchboard_model::CanonicalName;

/// Maximum number of retired names that are kept; the oldest are dropped.
const MAX_RETIRED: usize = 1024;

/// A tool and the name under which it was declared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeclaredTool {
    pub name: Arc<str>,
    pub tool: CanonicalName,
}

/// The tools declared last, in their order, and the names that were declared earlier. Immutable and shared.
#[derive(Debug, Default)]
pub struct Past {
    declared: Vec<DeclaredTool>,
    retired: Vec<DeclaredTool>,
    digest: [u8; 32],
}

impl Past {
    /// Creates a history from the tools declared last, in their order, and the names declared earlier.
    pub fn new(declared: Vec<DeclaredTool>, retired: Vec<DeclaredTool>) -> Self {
        let mut hasher = blake3::Hasher::new();
        for (mark, declared) in [(b"d", &declared), (b"r", &retired)] {
            for one in declared {
                hasher.update(mark);
                for text in [&*one.name, one.tool.as_str()] {
                    hasher.update(&(text.len() as u64).to_le_bytes());
                    hasher.update(text.as_bytes());
                }
            }
        }
        Self { declared, retired, digest: *hasher.finalize().as_bytes() }
    }

    /// The tools declared last, in their order.
    pub fn declared(&self) -> &[DeclaredTool] {
        &self.declared
    }

    /// Names that were declared earlier and are no longer, oldest first.
    pub fn retired(&self) -> &[DeclaredTool] {
        &self.retired
    }

    /// The tool that a current or earlier name was declared for; the most recent one first.
    pub(crate) fn named(&self, name: &str) -> Option<&CanonicalName> {
        let all = self.declared.iter().chain(self.retired.iter().rev());
        all.into_iter().find(|one| *one.name == *name).map(|one| &one.tool)
    }

    /// The history after the tools `now` have been declared.
    pub(crate) fn followed_by(&self, now: Vec<DeclaredTool>) -> Self {
        let names: HashSet<&str> = now.iter().map(|one| &*one.name).collect();
        let gone = self.retired.iter().chain(&self.declared);
        let mut retired: Vec<DeclaredTool> =
            gone.filter(|one| !names.contains(&*one.name)).cloned().collect();
        retired.drain(..retired.len().saturating_sub(MAX_RETIRED));
        Self::new(now, retired)
    }
}

// Compared by digest: the content may be thousands of names.
impl PartialEq for Past {
    fn eq(&self, other: &Self) -> bool {
        self.digest == other.digest
    }
}

impl Eq for Past {}

impl Hash for Past {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.digest.hash(state);
    }
}
