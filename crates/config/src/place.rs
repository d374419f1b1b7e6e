//! The location of a value in the configuration.

use std::fmt;
use std::sync::Arc;

/// Where a value was set, for display.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum SourceLocation {
    /// A file, with a line and a column that count from 1.
    File {
        /// The name of the file as the user gave it.
        name: String,
        /// The line, from 1.
        line: usize,
        /// The column in characters, from 1.
        column: usize,
    },
    /// An environment variable.
    Environment {
        /// The name of the variable, never its value.
        variable: String,
    },
    /// The built-in default.
    Default,
}

impl fmt::Display for SourceLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { name, line, column } => write!(f, "{name}:{line}:{column}"),
            Self::Environment { variable } => write!(f, "environment variable {variable}"),
            Self::Default => f.write_str("default"),
        }
    }
}

/// Where a value was set, without the file name, which is the same for all nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ValueOrigin {
    File(Extent),
    Environment(Arc<str>),
    /// No source: an absent file, or a list that only the environment fills.
    Nowhere,
}

/// A range of the file. Lines and columns count from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) line: usize,
    pub(crate) column: usize,
    pub(crate) end_line: usize,
    /// Characters on the first line; further lines of a value are never underlined.
    pub(crate) width: usize,
    /// Whether it is a list or map in flow style (with brackets).
    pub(crate) bracketed: bool,
}

impl Extent {
    /// A range of one character.
    pub(crate) fn point(line: usize, column: usize) -> Self {
        Self { line, column, end_line: line, width: 1, bracketed: false }
    }
}
