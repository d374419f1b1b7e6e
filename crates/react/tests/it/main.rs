//! Replies as models write them, at every chunking; the prompt and its bounds.

mod chunking;
mod prompt;
mod replies;
