//! Gemini `generateContent`.

mod contents;
mod part;
mod request;
mod response;
mod stream;
mod tool_result;
mod usage;

pub(crate) use request::GeminiRequest;
pub(crate) use stream::GeminiSplicer;
