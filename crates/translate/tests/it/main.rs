//! Requests of one API, answered by the demo model, as an app with the tools of a session sees it.
#![expect(clippy::unwrap_used, reason = "tests, and what they are made of")]

mod conversations;
mod demo;
mod lost_members;
