//! A problem in a configuration, and its rendering.

use std::fmt;

use serde_json::{Value, json};

use crate::place::SourceLocation;

/// Whether a problem prevents the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// The configuration cannot be used.
    Error,
    /// The configuration can be used, but probably has a mistake.
    Warning,
}

impl Severity {
    /// The word in text and JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
        }
    }
}

/// One problem: message, location and help. It holds no secret and may be shown anywhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigProblem {
    /// Whether it prevents the start.
    pub severity: Severity,
    /// The message, in one line.
    pub message: String,
    /// The path of the value, starting with the root key as written.
    pub path: Option<String>,
    /// The location of the value; `None` if it is absent everywhere.
    pub place: Option<SourceLocation>,
    /// Further facts, such as the other location of a duplicate.
    pub notes: Vec<String>,
    /// How to fix it.
    pub help: Option<String>,
    /// The line of the file, if it may be shown.
    pub snippet: Option<Snippet>,
}

/// One line of the file with a part of it underlined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snippet {
    /// The line with control characters replaced, truncated if too long.
    pub text: String,
    /// Number of characters before the underlined part.
    pub indent: usize,
    /// Number of underlined characters; 0 if the line is hidden.
    pub width: usize,
}

impl ConfigProblem {
    /// An error that has no location yet.
    pub(crate) fn error(message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Error,
            message: message.into(),
            path: None,
            place: None,
            notes: Vec::new(),
            help: None,
            snippet: None,
        }
    }

    /// Adds how to fix it.
    #[must_use]
    pub(crate) fn help(self, help: impl Into<String>) -> Self {
        Self { help: Some(help.into()), ..self }
    }

    /// Adds a further fact.
    #[must_use]
    pub(crate) fn note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }

    /// Sets the path of the value that this is about.
    #[must_use]
    pub(crate) fn about(self, path: &crate::path::Path) -> Self {
        Self { path: Some(path.to_string()), ..self }
    }

    #[must_use]
    pub(crate) fn into_warning(self) -> Self {
        Self { severity: Severity::Warning, ..self }
    }

    /// The problem as JSON, with the location as separate fields.
    pub fn to_json(&self) -> Value {
        let mut whole = json!({
            "severity": self.severity.as_str(),
            "message": self.message,
            "path": self.path,
            "notes": self.notes,
            "help": self.help,
        });
        match &self.place {
            Some(SourceLocation::File { name, line, column }) => {
                whole["file"] = json!(name);
                whole["line"] = json!(line);
                whole["column"] = json!(column);
            }
            Some(SourceLocation::Environment { variable }) => whole["variable"] = json!(variable),
            Some(SourceLocation::Default) | None => {}
        }
        whole
    }
}

impl fmt::Display for ConfigProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.severity.as_str(), self.message)?;
        let line = match &self.place {
            Some(SourceLocation::File { line, .. }) => line.to_string(),
            Some(SourceLocation::Environment { .. } | SourceLocation::Default) | None => " ".into(),
        };
        let gutter = " ".repeat(line.len());
        if let Some(place) = &self.place {
            write!(f, "\n{gutter} --> {place}")?;
        }
        if let Some(snippet) = &self.snippet {
            write!(f, "\n{gutter}  |\n {line} | {}\n{gutter}  |", snippet.text)?;
            if snippet.width > 0 {
                let (indent, carets) = (" ".repeat(snippet.indent), "^".repeat(snippet.width));
                write!(f, " {indent}{carets}")?;
            }
        }
        for note in &self.notes {
            write!(f, "\n{gutter}  = note: {note}")?;
        }
        self.help.iter().try_for_each(|help| write!(f, "\n{gutter}  = help: {help}"))
    }
}

/// A single problem that ends a step; boxed, because it is large and rare.
pub(crate) type BoxedProblem = Box<ConfigProblem>;

/// All problems of a configuration, sorted by location.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problems(Vec<ConfigProblem>);

impl Problems {
    pub(crate) fn new(mut problems: Vec<ConfigProblem>) -> Self {
        sort(&mut problems);
        Self(problems)
    }

    /// The problems, sorted by location.
    pub fn iter(&self) -> std::slice::Iter<'_, ConfigProblem> {
        self.0.iter()
    }

    /// How many there are; never zero.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// All of them as a JSON array.
    pub fn to_json(&self) -> Value {
        self.0.iter().map(ConfigProblem::to_json).collect()
    }
}

impl<'a> IntoIterator for &'a Problems {
    type Item = &'a ConfigProblem;
    type IntoIter = std::slice::Iter<'a, ConfigProblem>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl From<BoxedProblem> for Problems {
    fn from(problem: BoxedProblem) -> Self {
        Self(vec![*problem])
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for problem in &self.0 {
            write!(f, "{problem}\n\n")?;
        }
        match self.0.len() {
            1 => f.write_str("1 problem found"),
            count => write!(f, "{count} problems found"),
        }
    }
}

impl std::error::Error for Problems {}

/// Sorts by location: the file from top to bottom, then the environment, then problems without a location. The sort is
/// stable, so problems at one location keep the order in which they were found.
pub(crate) fn sort(problems: &mut [ConfigProblem]) {
    problems.sort_by(|a, b| match (&a.place, &b.place) {
        (Some(a), Some(b)) => a.cmp(b),
        (a, b) => b.is_some().cmp(&a.is_some()),
    });
}
