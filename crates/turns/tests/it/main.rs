//! Turns in this process: real sessions and databases, a scripted MCP server, and model backends that check every request.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on says so by ending")]

mod account_lab;
mod account_matrix;
mod account_shapes;
mod account_tokens;
mod apply_now;
mod caller_rights;
mod cancelling;
mod concurrency;
mod content_checks;
mod conversations;
mod event_stream;
mod groups;
mod lab;
mod lifecycle;
mod limits;
mod new_turn;
mod prompt_tools;
mod react;
mod store_failures;
mod tool_changes;
mod tool_schema_form;
