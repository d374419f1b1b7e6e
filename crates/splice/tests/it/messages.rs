//! Anthropic Messages.

mod checker;
mod golden;
mod properties;
mod provider;
mod request;
