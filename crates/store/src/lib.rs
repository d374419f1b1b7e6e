//! The persistent state: remembered tools and eras of servers, servers of sources, the catalog revision, call records,
//! large results, API keys, sessions, clients and conversations, and grants (the results of sign-ins).
//!
//! [`Store`] is a concrete type over `SQLite` in WAL mode. The SQL is limited to what `PostgreSQL` also supports (`$1`,
//! row values, upserts, window functions), and only `rows` converts between rows and the model, so that a second
//! backend would replace `open` and a few statements.
//!
//! Invariants:
//! - Every write is one immediate transaction. A function that writes returns after the commit, and no write waits
//!   without a limit. Dropping a future of this crate leaves its write complete or undone.
//! - The caller provides the time; nothing here reads a clock to decide what is old.
//! - Any number of processes may use one directory at the same time.

mod call_export;
mod call_times;
mod calls;
mod clients;
mod content_checks;
mod era;
mod error;
mod grant_cipher;
mod grant_keys;
mod grants;
mod health;
mod keys;
mod messages;
mod migrations;
mod open;
mod results;
mod retention;
mod revision;
mod rows;
mod secrets;
mod servers;
mod session_batch;
mod sessions;
mod source_servers;
mod store;

pub use call_export::{CallExport, ExportError};
pub use call_times::CallTimes;
pub use calls::CallFilter;
pub use clients::StoredClient;
pub use content_checks::ContentCheckFilter;
pub use error::{StoreError, StoreFailure};
pub use grant_cipher::GrantLock;
pub use grants::{GrantRow, RENEWAL_TURN_MS, ReencryptedGrants};
pub use health::StoreOutage;
pub use keys::StoredKey;
pub use results::{NewResult, ResultBounds, ResultSlice};
pub use retention::{Pruned, Retention};
pub use session_batch::SessionBatch;
pub use sessions::{SessionSnapshot, StoredSession};
pub use store::Store;
