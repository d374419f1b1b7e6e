//! Gemini `generateContent`.

pub(crate) mod checker;
pub(crate) mod golden;
mod properties;
mod provider;
mod request;
