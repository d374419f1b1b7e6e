//! Splicers as an app sees them: the answers of several rounds go in, and an independent checker reads what comes out.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "tests, and what they are made of")]

mod broken_streams;
mod chat;
mod chat_checker;
mod chat_laws;
mod gemini;
mod messages;
mod play;
mod responses;
mod responses_checker;
mod responses_laws;
mod said;
mod scripted;
mod sse;
