//! What a session has been shown so far.
//!
//! Providers cache the beginning of a prompt, and the tools stand there. So a tool that was declared once keeps its
//! place for as long as it is there, and what comes later is put behind it, whatever the order of the catalog is.

use std::collections::HashSet;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use switchboard_model::CanonicalName;

/// Names of tools that are gone are kept up to this many, the newest.
const MAX_RETIRED: usize = 1024;

/// A name under which a tool was declared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeclaredTool {
    pub name: Arc<str>,
    pub tool: CanonicalName,
}

/// The tools that were declared last, in their order, and earlier names. Immutable and shared.
#[derive(Debug, Default)]
pub struct Past {
    declared: Vec<DeclaredTool>,
    retired: Vec<DeclaredTool>,
    digest: [u8; 32],
}

impl Past {
    /// Tools that were declared in this order, and names that stood for a tool before that.
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

    /// What was declared last, in its order.
    pub fn declared(&self) -> &[DeclaredTool] {
        &self.declared
    }

    /// Names that were declared before that and are no longer.
    pub fn retired(&self) -> &[DeclaredTool] {
        &self.retired
    }

    /// The tool that this name once stood for.
    pub(crate) fn named(&self, name: &str) -> Option<&CanonicalName> {
        let all = self.declared.iter().chain(self.retired.iter().rev());
        all.into_iter().find(|one| *one.name == *name).map(|one| &one.tool)
    }

    /// The past of who sees these tools after this past.
    pub(crate) fn followed_by(&self, now: Vec<DeclaredTool>) -> Self {
        let names: HashSet<&str> = now.iter().map(|one| &*one.name).collect();
        let gone = self.retired.iter().chain(&self.declared);
        let mut retired: Vec<DeclaredTool> =
            gone.filter(|one| !names.contains(&*one.name)).cloned().collect();
        retired.drain(..retired.len().saturating_sub(MAX_RETIRED));
        Self::new(now, retired)
    }
}

// Two pasts of the same content are the same; the content may be thousands of names.
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
