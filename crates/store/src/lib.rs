//! What outlives the process: what servers had, which era they speak, the catalog revision, call records, large
//! results, API keys, sessions of the gateway and sign-ins at servers (spec, sections 2, 3, 7 and 9).
//!
//! [`Store`] is a concrete type with plain methods; `SQLite` in WAL mode stands behind it. The SQL keeps to what
//! `PostgreSQL` also understands (`$1`, row values, upserts, window functions), and rows meet the model only in
//! `rows`, so that a second backend replaces `open` and the few statements that cannot be shared.
//!
//! Invariants:
//! - Every write is one immediate transaction, and is done when it is committed; no write waits without a bound. Dropping a future of this crate leaves all of its write or none.
//! - Time is given by the caller; nothing here reads a clock to decide what is old.
//! - Any number of processes may use one directory at the same time.

mod calls;
mod clients;
mod era;
mod error;
mod health;
mod keys;
mod messages;
mod migrations;
mod oauth;
mod open;
mod results;
mod retention;
mod revision;
mod rows;
mod secrets;
mod servers;
mod session_batch;
mod sessions;
mod store;

pub use calls::CallFilter;
pub use clients::StoredClient;
pub use error::{StoreError, StoreFailure};
pub use health::StoreOutage;
pub use keys::StoredKey;
pub use results::{NewResult, ResultBounds, ResultSlice};
pub use retention::{Pruned, Retention};
pub use session_batch::SessionBatch;
pub use sessions::{SessionSnapshot, StoredSession};
pub use store::Store;
