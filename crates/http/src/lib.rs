//! The board over HTTP: health, metrics, a JSON API and a page for people.

mod calls;
mod doorman;
mod faces;
mod health;
mod inspect;
mod mcp;
mod page;
pub mod present;
mod problem;
mod ready;
mod same_host;
mod server;
mod sessions;

pub use ready::BoardPlace;
pub use same_host::Doors;
pub use server::{ServeOptions, is_loopback, serve};
