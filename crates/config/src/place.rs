//! Where a value was written: the answer to "why is it set to that?".

use std::fmt;
use std::sync::Arc;

/// Where a value comes from, as people are told.
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
    /// Nobody wrote it.
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

/// The same inside the crate, where the file is known and need not be named at every node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ValueOrigin {
    File(Extent),
    Environment(Arc<str>),
    /// Made up while reading: an absent file, a list that only the environment fills.
    Nowhere,
}

/// A stretch of the file. Lines and columns count from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) line: usize,
    pub(crate) column: usize,
    pub(crate) end_line: usize,
    /// Characters on the first line; the rest of a longer value is never underlined.
    pub(crate) width: usize,
    /// A list or map that is written with brackets.
    pub(crate) bracketed: bool,
}

impl Extent {
    /// A single character.
    pub(crate) fn point(line: usize, column: usize) -> Self {
        Self { line, column, end_line: line, width: 1, bracketed: false }
    }
}
