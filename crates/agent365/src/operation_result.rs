//! The result of an operation that reports its errors as data.

use std::fmt;

/// Whether an operation succeeded, and its errors otherwise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperationResult {
    succeeded: bool,
    errors: Vec<OperationError>,
}

/// One error of an operation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct OperationError {
    /// What went wrong.
    pub message: String,
}

impl OperationError {
    /// An error with this message.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into() }
    }
}

impl OperationResult {
    /// The operation succeeded.
    pub const fn success() -> Self {
        Self { succeeded: true, errors: Vec::new() }
    }

    /// The operation failed with these errors.
    pub fn failed(errors: impl IntoIterator<Item = OperationError>) -> Self {
        Self { succeeded: false, errors: errors.into_iter().collect() }
    }

    /// Whether it succeeded.
    pub fn succeeded(&self) -> bool {
        self.succeeded
    }

    /// The errors; empty after a success.
    pub fn errors(&self) -> &[OperationError] {
        &self.errors
    }
}

/// `Succeeded`, `Failed: ` with the messages, or `Failed` when there are none.
impl fmt::Display for OperationResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.succeeded {
            return f.write_str("Succeeded");
        }
        let messages: Vec<_> = self.errors.iter().map(|error| error.message.as_str()).collect();
        let messages = messages.join(", ");
        if messages.is_empty() { f.write_str("Failed") } else { write!(f, "Failed: {messages}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_reads_as_the_package_prints_it() {
        let failed = |messages: &[&str]| {
            OperationResult::failed(messages.iter().map(|message| OperationError::new(*message)))
        };
        for (result, succeeded, expected) in [
            (OperationResult::success(), true, "Succeeded"),
            (failed(&[]), false, "Failed"),
            (failed(&[""]), false, "Failed"),
            (failed(&["one"]), false, "Failed: one"),
            (failed(&["one", "two"]), false, "Failed: one, two"),
        ] {
            assert_eq!(result.to_string(), expected);
            assert_eq!(result.succeeded(), succeeded, "{expected}");
        }
        assert!(OperationResult::success().errors().is_empty());
    }
}
