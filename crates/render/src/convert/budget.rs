//! Limits for converting a schema.

use std::fmt;

use serde_json::Value;

/// Maximum number of schemas in one declaration.
pub(super) const MAX_NODES: usize = 4_000;
/// Maximum number of values that are copied or searched during a conversion.
const MAX_WORK: usize = 200_000;

/// How much of a schema is kept in an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ConversionEffort {
    /// Maximum depth below the arguments.
    pub(super) depth: usize,
    pub(super) texts: Texts,
}

/// Which descriptions are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Texts {
    Shown,
    OfParameters,
}

/// The attempts, from everything to almost nothing; the first result within the limits is used.
pub(super) const EFFORTS: [ConversionEffort; 6] = [
    ConversionEffort { depth: 32, texts: Texts::Shown },
    ConversionEffort { depth: 12, texts: Texts::Shown },
    ConversionEffort { depth: 6, texts: Texts::Shown },
    ConversionEffort { depth: 4, texts: Texts::OfParameters },
    ConversionEffort { depth: 2, texts: Texts::OfParameters },
    ConversionEffort { depth: 1, texts: Texts::OfParameters },
];

impl fmt::Display for ConversionEffort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let levels = if self.depth == 1 { "level" } else { "levels" };
        write!(f, "cut to {} {levels}", self.depth)?;
        match self.texts {
            Texts::Shown => Ok(()),
            Texts::OfParameters => f.write_str(", and texts below the parameters dropped"),
        }
    }
}

/// The remaining budget. Once it is exceeded, the attempt has failed and the conversion stops soon.
#[derive(Debug)]
pub(super) struct Budget {
    nodes: usize,
    work: usize,
    exhausted: bool,
}

impl Default for Budget {
    fn default() -> Self {
        Self { nodes: MAX_NODES, work: MAX_WORK, exhausted: false }
    }
}

impl Budget {
    /// Pays for one schema of the result; `false` if the budget is exceeded.
    pub(super) fn node(&mut self) -> bool {
        match self.nodes.checked_sub(1) {
            Some(left) if !self.exhausted => {
                self.nodes = left;
                true
            }
            _ => {
                self.exhausted = true;
                false
            }
        }
    }

    /// Pays for copying or searching `value`; `false` if the budget is exceeded.
    pub(super) fn copy_of(&mut self, value: &Value) -> bool {
        let mut left = self.work;
        let is_paid = !self.exhausted && pay(value, &mut left);
        self.work = left;
        self.exhausted |= !is_paid;
        is_paid
    }

    pub(super) fn is_exhausted(&self) -> bool {
        self.exhausted
    }
}

/// The recursion is bounded by the JSON parser's depth limit.
fn pay(value: &Value, left: &mut usize) -> bool {
    let own = match value {
        Value::String(text) => 1 + text.len() / 64,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => 1,
    };
    let Some(rest) = left.checked_sub(own) else { return false };
    *left = rest;
    match value {
        Value::Array(values) => values.iter().all(|value| pay(value, left)),
        Value::Object(members) => members.values().all(|value| pay(value, left)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    }
}
