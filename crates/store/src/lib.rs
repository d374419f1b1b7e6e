//! The persistent state: remembered tools and eras of servers, servers of sources, the catalog revision, call records,
//! large results, API keys, sessions, clients and conversations, records of turns of apps, and grants (the results
//! of sign-ins).
//!
//! [`Store`] is a concrete type over two databases: `SQLite` in WAL mode, one file of one machine, and `PostgreSQL`, which
//! many boards share. Each statement is written once, in SQL that both understand, and runs through `statement`. The
//! databases differ in `open` and `open_postgres`, in their pools and transactions (`backend`), in the codes of their errors
//! and in a handful of statements. Only `rows` converts between rows and the model.
//!
//! Invariants:
//! - Every write is one transaction, on `SQLite` an immediate one. A function that writes returns after the commit, and no write waits
//!   without a limit. Dropping a future of this crate leaves its write complete or undone.
//! - The caller provides the time; nothing here reads a clock to decide what is old, except for leases of boards, which the
//!   clock of the database decides (`replicas`, `slots`).
//! - Any number of processes may use one directory or one database at the same time. Where `SQLite` has one writer,
//!   replicas on `PostgreSQL` lock the rows that they decide by (`Write::lock`, `Write::lock_writers`).

mod backend;
mod call_export;
mod call_times;
mod calls;
mod clients;
mod content_checks;
mod copy;
mod era;
mod error;
mod grant_cipher;
mod grant_keys;
mod grants;
mod health;
mod hint;
mod hint_listener;
mod hint_publisher;
mod hints;
mod keys;
mod location;
mod messages;
mod migrations;
mod open;
mod open_postgres;
mod postgres_pool;
mod postgres_transaction;
mod query_builder;
mod replicas;
mod results;
mod retention;
mod revision;
mod row;
mod rows;
mod secrets;
mod servers;
mod session_batch;
mod sessions;
mod shared_rates;
mod slots;
mod source_servers;
mod statement;
mod store;
mod tables;
mod turn_records;

pub use call_export::{CallExport, ExportError};
pub use call_times::CallTimes;
pub use calls::CallFilter;
pub use clients::StoredClient;
pub use content_checks::ContentCheckFilter;
pub use copy::{CopiedTable, CopyError};
pub use error::{StoreError, StoreFailure};
pub use grant_cipher::GrantLock;
pub use grants::{GrantRow, RENEWAL_TURN_MS, ReencryptedGrants};
pub use health::StoreOutage;
pub use hint::{ChangeHint, HintNotice, HintTopic};
pub use hints::Hints;
pub use keys::StoredKey;
pub use location::StoreLocation;
pub use open_postgres::PostgresSettings;
pub use replicas::{Replica, ReplicaRenewal};
pub use results::{NewResult, ResultBounds, ResultSlice};
pub use retention::{Pruned, Retention};
pub use session_batch::SessionBatch;
pub use sessions::{SessionSnapshot, SessionVersion, StoredSession};
pub use slots::{SlotHolder, SlotTrade, TradedSlots};
pub use store::Store;
pub use turn_records::{NewTurnRecord, TurnRecordBounds};
