//! The board over HTTP: health, metrics, a JSON API and a page for people.

mod calls;
mod health;
mod inspect;
mod page;
pub mod present;
mod problem;
mod ready;
mod same_host;
mod server;

pub use ready::BoardPlace;
pub use server::{ServeOptions, is_loopback, router, serve};
