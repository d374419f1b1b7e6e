//! What is wrong with a reply that has neither an action nor an answer.

use std::fmt;

/// Why nothing can be done with a reply. Its text is the observation that the model gets: it says how to do it right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReactProblem {
    /// A thought, and nothing after it.
    NoAction,
    /// `Action:` without the name of a tool.
    NoName,
    /// `Args:` without an `Action:` before it.
    ArgsWithoutAction,
    /// `Final Answer:` without a text.
    EmptyAnswer,
}

impl fmt::Display for ReactProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self {
            Self::NoAction => "your reply has a thought, but neither an action nor an answer",
            Self::NoName => "`Action:` in your reply names no tool",
            Self::ArgsWithoutAction => "your reply has `Args:` without an `Action:` before it",
            Self::EmptyAnswer => "`Final Answer:` in your reply has no text",
        };
        write!(
            f,
            "Error: {what}. Nothing was run. To use a tool, write `Action:` with its exact name and `Args:` with one JSON \
             object, each at the beginning of a line. To answer, write `Final Answer:` and your answer after it."
        )
    }
}
