//! Opens a database of a `PostgreSQL` server: the address, the first connection, the schema.

use std::str::FromStr;
use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{ConnectOptions, Connection};
use switchboard_model::{DEFAULT_STORE_CONNECTIONS, Secret};
use tokio::time::{Instant, sleep};

use crate::backend::Pool;
use crate::migrations::POSTGRES;
use crate::postgres_pool::{PostgresPool, within};
use crate::{Hints, Store, StoreError, StoreLocation};

/// The default of `open_timeout`.
const OPEN_TIMEOUT: Duration = Duration::from_secs(15);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const RETRY_PAUSE: Duration = Duration::from_millis(250);
/// How long another replica may take to migrate, and this one.
const MIGRATION_TIMEOUT: Duration = Duration::from_mins(10);
/// The lock under which replicas migrate one after the other: "switchbo" as a number.
const MIGRATION_LOCK: i64 = 0x7377_6974_6368_626f;
/// Connections that writers leave to readers.
const KEPT_FOR_READERS: u32 = 2;

/// The database of a server, and how it is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PostgresSettings {
    /// `postgres://USER:PASSWORD@HOST:PORT/DATABASE`, with the parameters of libpq.
    pub url: Secret,
    /// The address for the connection that receives notifications, where `url` leads to a pooler that loses them.
    pub listen_url: Option<Secret>,
    /// The most connections of this process, at least 2.
    pub max_connections: u32,
    /// How long opening waits for a server that is away, starts, or has no connection left.
    pub open_timeout: Duration,
}

impl PostgresSettings {
    pub fn new(url: Secret) -> Self {
        Self {
            url,
            listen_url: None,
            max_connections: DEFAULT_STORE_CONNECTIONS,
            open_timeout: OPEN_TIMEOUT,
        }
    }

    fn options(&self) -> Result<PgConnectOptions, StoreError> {
        Self::options_of(&self.url)
    }

    fn options_of(url: &Secret) -> Result<PgConnectOptions, StoreError> {
        let url = url.expose();
        if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
            let source = sqlx::Error::Configuration("it does not begin with postgres://".into());
            return Err(StoreError::Address { source });
        }
        let options = PgConnectOptions::from_str(url)
            .map_err(|source| StoreError::Address { source })?
            // Poolers refuse start parameters that they do not know.
            .extra_float_digits(None)
            .statement_cache_capacity(200)
            .disable_statement_logging();
        Ok(match options.get_application_name() {
            Some(_) => options,
            None => options.application_name("switchboard"),
        })
    }

    /// The database as messages name it.
    pub fn location(&self) -> Result<StoreLocation, StoreError> {
        Ok(location(&self.options()?))
    }
}

fn location(options: &PgConnectOptions) -> StoreLocation {
    let user = options.get_username();
    let database = options.get_database().unwrap_or(user);
    let port = options.get_port();
    StoreLocation::Server(match options.get_socket() {
        Some(socket) => {
            format!("postgres://{user}@/{database}?host={}&port={port}", socket.display())
        }
        None => format!("postgres://{user}@{}:{port}/{database}", options.get_host()),
    })
}

impl Store {
    /// Opens the database of a server and brings its layout up to date. Waits a bounded time for a server that is away.
    ///
    /// A layout of a newer version is left as it is; it is served if it says that this version can work with it.
    pub async fn connect(settings: &PostgresSettings) -> Result<Self, StoreError> {
        let options = settings.options()?;
        let listen = settings.listen_url.as_ref().map(PostgresSettings::options_of).transpose()?;
        let listen = listen.unwrap_or_else(|| options.clone());
        let location = location(&options);
        let deadline = Instant::now() + settings.open_timeout;
        let mut is_told = false;
        loop {
            match prepare(&options, &location).await {
                Ok(()) => break,
                Err(error) if may_pass(&error) && Instant::now() < deadline => {
                    if !std::mem::replace(&mut is_told, true) {
                        tracing::warn!(error = error.in_full(), "waiting for the database");
                    }
                    sleep(RETRY_PAUSE).await;
                }
                Err(error) => return Err(error),
            }
        }
        let connections = settings.max_connections.max(2);
        let writers = connections.saturating_sub(KEPT_FOR_READERS).max(1);
        let pool = PostgresPool::new(options, connections);
        let hints = Hints::over(pool.clone(), listen);
        let writers = usize::try_from(writers).unwrap_or(1);
        Ok(Self::new(Pool::Postgres(pool), location, writers).with_hints(hints))
    }
}

/// Whether it is worth waiting: the server may be about to start.
fn may_pass(error: &StoreError) -> bool {
    matches!(
        error,
        StoreError::Unreachable { .. } | StoreError::NoConnection { .. } | StoreError::Busy { .. }
    )
}

/// Connects and migrates. The connection is not one of the pool, whose errors hide why it cannot connect.
async fn prepare(options: &PgConnectOptions, location: &StoreLocation) -> Result<(), StoreError> {
    let fault = |operation, error| StoreError::from_sqlx(location, operation, error);
    let connected = within(CONNECT_TIMEOUT, options.connect()).await;
    let mut connection = connected.map_err(|error| fault("connect", error))?;
    let migrated = migrate(&mut connection, location).await;
    // A connection that does not close is dropped.
    drop(within(CONNECT_TIMEOUT, connection.close()).await);
    migrated
}

/// Brings the layout up to date, in one transaction and under a lock: of several replicas that start at once, one
/// migrates and the others find it done.
async fn migrate(
    connection: &mut PgConnection,
    location: &StoreLocation,
) -> Result<(), StoreError> {
    let fault = |error| StoreError::from_sqlx(location, "read the schema", error);
    let known = POSTGRES.iter().map(|migration| migration.version).max().unwrap_or_default();
    let work = async {
        if let Some(layout) = newer_layout(connection, known).await.map_err(fault)? {
            return layout.check(known, location);
        }
        let mut open = connection.begin().await.map_err(fault)?;
        sqlx::query("SELECT pg_advisory_xact_lock($1)")
            .bind(MIGRATION_LOCK)
            .execute(&mut *open)
            .await
            .map_err(fault)?;
        let migrated = POSTGRES.run_direct(None, &mut *open, false).await;
        migrated.map_err(|error| StoreError::from_migration(location, known, error))?;
        open.commit().await.map_err(fault)
    };
    tokio::time::timeout(MIGRATION_TIMEOUT, work).await.unwrap_or_else(|_| {
        Err(StoreError::Busy {
            database: location.clone(),
            operation: "migrate the schema",
            source: sqlx::Error::PoolTimedOut,
        })
    })
}

/// A layout that this version does not know.
struct NewerLayout {
    migration: i64,
    readable_by: i64,
}

impl NewerLayout {
    fn check(&self, known: i64, location: &StoreLocation) -> Result<(), StoreError> {
        if self.readable_by > known {
            let migration = self.migration;
            return Err(StoreError::Newer { database: location.clone(), migration });
        }
        tracing::warn!(
            layout = self.migration,
            known,
            "the database has the layout of a newer version, which this version can work with"
        );
        Ok(())
    }
}

/// The layout, if it is newer than `known`.
async fn newer_layout(
    connection: &mut PgConnection,
    known: i64,
) -> Result<Option<NewerLayout>, sqlx::Error> {
    // Without a table, `to_regclass` is NULL.
    let is_there: bool = sqlx::query_scalar(
        "SELECT to_regclass('_sqlx_migrations') IS NOT NULL AND to_regclass('layout_readable_by') IS NOT NULL",
    )
    .fetch_one(&mut *connection)
    .await?;
    if !is_there {
        return Ok(None);
    }
    let (migration, readable_by): (Option<i64>, Option<i64>) = sqlx::query_as(
        "SELECT (SELECT MAX(version) FROM _sqlx_migrations), (SELECT layout FROM layout_readable_by)",
    )
    .fetch_one(connection)
    .await?;
    Ok(match (migration, readable_by) {
        (Some(migration), Some(readable_by)) if migration > known => {
            Some(NewerLayout { migration, readable_by })
        }
        _ => None,
    })
}
