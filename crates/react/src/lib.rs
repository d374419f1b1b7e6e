//! ReACT as text: the prompt that teaches a model without native tool calls to use tools, and the parser of its replies.
//! Pure: text in, text and values out.
//!
//! A model writes labelled lines: `Thought:`, then `Action:` with the name of a tool and `Args:` with a JSON object, or
//! `Final Answer:`. The result of an action comes back to it as an `Observation:`.
//!
//! [`PromptTemplate`] renders the prompt, [`ReactParser`] parses a reply in chunks of any size, and [`action_text`] and
//! [`observation_text`] write earlier steps of a conversation in the same format.

mod arguments;
mod inline;
mod labels;
mod parser;
mod problem;
mod prompt;
mod step_text;
mod text_sink;
mod tool_name;

pub use parser::{ReactCall, ReactEnd, ReactParser, ReactPiece, strip_reasoning};
pub use problem::ReactProblem;
pub use prompt::PromptTemplate;
pub use step_text::{action_text, answer_text, observation_text, thought_text};
