//! What a connection asks to see. It can only narrow what the configuration shows.

use serde::{Deserialize, Serialize};
use switchboard_model::{Exposure, ExposureMode};

use crate::Index;

/// The narrowing of one connection or request. Everything that is `None` or empty narrows nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Scope {
    /// Only this server.
    pub server: Option<String>,
    /// Only tools of these sets; where several places name sets, each of them must hold.
    pub toolsets: Vec<Vec<String>>,
    /// Only these tools, by exposed or canonical name.
    pub tools: Option<Vec<String>>,
    /// Only tools that say that they change nothing.
    pub read_only: bool,
    /// Begin with the meta-tools.
    pub dynamic: bool,
}

/// Why a scope cannot be served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScopeFault {
    UnknownServer(String),
    UnknownToolset { name: String, known: Vec<String> },
}

impl std::fmt::Display for ScopeFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::UnknownServer(name) => write!(f, "there is no MCP server '{name}' here"),
            Self::UnknownToolset { name, known } => {
                write!(f, "there is no toolset '{name}' here; there are: {}", known.join(", "))
            }
        }
    }
}

impl Scope {
    /// Whether everything that is named exists, as far as the configuration lets it be seen.
    pub fn check(
        &self,
        index: &Index,
        exposure: &Exposure,
        servers: &[String],
    ) -> Result<(), ScopeFault> {
        if let Some(server) = self.server.as_ref().filter(|server| !servers.contains(server)) {
            return Err(ScopeFault::UnknownServer(server.clone()));
        }
        let known = || -> Vec<String> {
            let sets = index.toolsets().map(|set| set.name.clone());
            let is_exposed = |name: &String| match exposure.mode {
                ExposureMode::Static => exposure.tool_sets.contains(name),
                ExposureMode::Legacy | ExposureMode::Dynamic => true,
            };
            sets.filter(is_exposed).collect()
        };
        for name in self.toolsets.iter().flatten() {
            let known = known();
            if !known.contains(name) {
                return Err(ScopeFault::UnknownToolset { name: name.clone(), known });
            }
        }
        Ok(())
    }

    /// The mode that a connection of this scope has.
    pub fn mode(&self, exposure: &Exposure) -> ExposureMode {
        match exposure.mode {
            ExposureMode::Dynamic => ExposureMode::Dynamic,
            ExposureMode::Legacy | ExposureMode::Static if self.dynamic => ExposureMode::Dynamic,
            ExposureMode::Legacy if !self.toolsets.is_empty() => ExposureMode::Static,
            mode => mode,
        }
    }

    /// The sets that a dynamic connection begins with: those that it names, else those of the configuration.
    pub fn first_sets(&self, exposure: &Exposure) -> Vec<String> {
        match self.toolsets.first() {
            Some(named) => named
                .iter()
                .filter(|name| self.toolsets.iter().all(|sets| sets.contains(name)))
                .cloned()
                .collect(),
            None if exposure.mode == ExposureMode::Dynamic => exposure.tool_sets.clone(),
            None => Vec::new(),
        }
    }
}
