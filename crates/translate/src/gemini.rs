//! Gemini `generateContent`.

mod answer;
mod declarations;
mod request;
#[cfg(test)]
mod tests;

pub(crate) use answer::GeminiAnswer;
pub(crate) use request::read;

/// The name of the API, for people.
const API: &str = "Gemini";
