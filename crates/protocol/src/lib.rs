//! MCP messages of both eras as borrowed JSON: reading, checking, writing. Pure.

mod mirror;
pub use mirror::{Mirrors, decode_header, encode_header};
