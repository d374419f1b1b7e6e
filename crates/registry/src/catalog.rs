//! The catalog: all admitted tools, immutable, with a revision.

use std::collections::HashMap;
use std::sync::Arc;

use switchboard_model::{
    AdmissionMode, ArgumentSpec, CanonicalName, ServerName, ToolDescriptor, ToolLimits,
};

/// Where the limits of a tool come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Configured {
    /// An entry of `toolbox.tools` alone.
    Explicit,
    /// An entry laid over the server's defaults.
    Merged,
    /// The server's defaults alone.
    Default,
}

impl Configured {
    /// The word that tables and JSON show.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Explicit => "explicit",
            Self::Merged => "merged",
            Self::Default => "default",
        }
    }
}

/// One admitted tool.
#[derive(Debug, Clone, PartialEq)]
pub struct CatalogTool {
    pub name: CanonicalName,
    /// As the server describes it, with the configured description and arguments laid over.
    pub descriptor: ToolDescriptor,
    pub limits: ToolLimits,
    pub configured: Configured,
    pub mode: AdmissionMode,
    /// The toolset of its server.
    pub toolset: String,
    pub expose_as: Option<String>,
    /// Declared arguments; already part of the descriptor's schema in a published catalog.
    pub arguments: Option<Vec<ArgumentSpec>>,
}

/// An immutable snapshot. Holders of an old one keep seeing it unchanged.
#[derive(Debug, Default)]
pub struct Catalog {
    revision: u64,
    tools: Vec<Arc<CatalogTool>>,
    by_canonical: HashMap<Arc<str>, usize>,
    by_bare: HashMap<Arc<str>, usize>,
}

/// Why a name leads to no tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unresolved {
    /// Names that look like it, nearest first.
    pub nearest: Vec<CanonicalName>,
}

impl Catalog {
    /// Makes a snapshot of tools in the order of their registration.
    pub fn new(revision: u64, tools: Vec<Arc<CatalogTool>>) -> Self {
        let by_canonical =
            tools.iter().enumerate().map(|(at, tool)| (tool.name.as_str().into(), at)).collect();
        // A later tool replaces an earlier one: last registered wins.
        let by_bare =
            tools.iter().enumerate().map(|(at, tool)| (tool.name.tool().into(), at)).collect();
        Self { revision, tools, by_canonical, by_bare }
    }

    /// Grows by one with every change, also over restarts.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// All tools in the order of their registration.
    pub fn tools(&self) -> &[Arc<CatalogTool>] {
        &self.tools
    }

    /// The tools of one server.
    pub fn tools_of<'a>(
        &'a self,
        server: &'a ServerName,
    ) -> impl Iterator<Item = &'a Arc<CatalogTool>> {
        self.tools.iter().filter(move |tool| tool.name.server() == server)
    }

    /// The tool of this canonical name, else the last registered one of this bare name.
    pub fn resolve(&self, name: &str) -> Result<&Arc<CatalogTool>, Unresolved> {
        self.by_canonical
            .get(name)
            .or_else(|| self.by_bare.get(name))
            .and_then(|at| self.tools.get(*at))
            .ok_or_else(|| Unresolved { nearest: self.nearest(name) })
    }

    /// The tool of exactly this name.
    pub fn exactly(&self, name: &CanonicalName) -> Result<&Arc<CatalogTool>, Unresolved> {
        self.by_canonical
            .get(name.as_str())
            .and_then(|at| self.tools.get(*at))
            .ok_or_else(|| Unresolved { nearest: self.nearest(name.as_str()) })
    }

    fn nearest(&self, name: &str) -> Vec<CanonicalName> {
        let mut scored: Vec<_> = self
            .tools
            .iter()
            .map(|tool| {
                let bare = strsim::jaro_winkler(name, tool.name.tool());
                (bare.max(strsim::jaro_winkler(name, tool.name.as_str())), &tool.name)
            })
            .filter(|(similarity, _)| *similarity > 0.75)
            .collect();
        scored.sort_by(|(a, x), (b, y)| b.total_cmp(a).then_with(|| x.cmp(y)));
        scored.into_iter().take(3).map(|(_, name)| name.clone()).collect()
    }
}

#[cfg(test)]
#[path = "catalog_tests.rs"]
mod tests;
