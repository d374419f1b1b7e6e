//! Records the changes between a server's definition and a provider's, for `render --explain`.

use std::fmt;

/// One change of a schema or a description.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rewrite {
    /// A JSON pointer into the server's schema; empty for the root.
    pub path: String,
    /// What was changed.
    pub what: String,
    /// Why it was changed.
    pub reason: &'static str,
}

/// Maximum number of recorded changes; more are only counted, so that a hostile schema cannot use up memory.
const MAX_REWRITES: usize = 200;

/// The changes of one tool.
#[derive(Debug, Default)]
pub(crate) struct Journal {
    rewrites: Vec<Rewrite>,
    more: usize,
    losses: usize,
}

impl Journal {
    /// The number of changes so far after which the schema may accept more than before.
    pub(crate) fn losses(&self) -> usize {
        self.losses
    }

    /// Records a change after which the schema may accept more than before.
    pub(crate) fn note(
        &mut self,
        at: &SchemaPath<'_>,
        what: impl Into<String>,
        reason: &'static str,
    ) {
        self.losses += 1;
        self.mention(at, what, reason);
    }

    /// Records a change that keeps the meaning.
    pub(crate) fn mention(
        &mut self,
        at: &SchemaPath<'_>,
        what: impl Into<String>,
        reason: &'static str,
    ) {
        if self.rewrites.len() < MAX_REWRITES {
            self.rewrites.push(Rewrite { path: at.to_string(), what: what.into(), reason });
        } else {
            self.more += 1;
        }
    }

    pub(crate) fn into_rewrites(mut self) -> Vec<Rewrite> {
        if self.more > 0 {
            self.rewrites.push(Rewrite {
                path: String::new(),
                what: format!("{} more rewrites", self.more),
                reason: "only the first ones are listed",
            });
        }
        self.rewrites
    }
}

/// A path in the server's schema, as a linked list on the stack, because most paths are never written.
#[derive(Debug, Clone, Copy)]
pub(crate) enum SchemaPath<'a> {
    /// A JSON pointer; empty for the root.
    At(&'a str),
    Key(&'a SchemaPath<'a>, &'a str),
    Index(&'a SchemaPath<'a>, usize),
}

impl SchemaPath<'_> {
    pub(crate) const ROOT: SchemaPath<'static> = SchemaPath::At("");
}

impl fmt::Display for SchemaPath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::At(pointer) => f.write_str(pointer),
            Self::Key(parent, key) => {
                write!(f, "{parent}/{}", key.replace('~', "~0").replace('/', "~1"))
            }
            Self::Index(parent, index) => write!(f, "{parent}/{index}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_a_json_pointer() {
        let properties = SchemaPath::Key(&SchemaPath::ROOT, "properties");
        let key = SchemaPath::Key(&properties, "a/b~c");
        assert_eq!(SchemaPath::Index(&key, 3).to_string(), "/properties/a~1b~0c/3");
        assert_eq!(SchemaPath::ROOT.to_string(), "");
    }

    #[test]
    fn rewrites_are_capped_and_the_rest_is_counted() {
        let mut journal = Journal::default();
        for _ in 0..MAX_REWRITES + 7 {
            journal.note(&SchemaPath::ROOT, "x", "y");
        }
        let rewrites = journal.into_rewrites();
        assert_eq!(rewrites.len(), MAX_REWRITES + 1);
        assert_eq!(rewrites.last().unwrap().what, "7 more rewrites");
    }
}
