//! The database schema, as the list of its migrations.
//!
//! The list is written by hand, without `sqlx::migrate!`: the macros of sqlx compile sqlx and the C library of `SQLite`
//! a second time for the build host, which took a tenth of the CPU time of a first build.

use std::sync::LazyLock;

use sqlx::SqlSafeStr;
use sqlx::migrate::{Migration, MigrationType, Migrator};

/// `(file stem, SQL)` of each migration of `PostgreSQL`, in order.
const POSTGRES_FILES: &[(&str, &str)] = &[
    ("0001_first_layout", include_str!("../migrations/postgres/0001_first_layout.sql")),
    ("0002_replicas", include_str!("../migrations/postgres/0002_replicas.sql")),
    ("0003_session_versions", include_str!("../migrations/postgres/0003_session_versions.sql")),
    ("0004_slots", include_str!("../migrations/postgres/0004_slots.sql")),
];

/// The migrations of `PostgreSQL`. They run under a lock and in a transaction of the caller.
pub(crate) static POSTGRES: LazyLock<Migrator> = LazyLock::new(|| {
    let mut migrator = of(POSTGRES_FILES);
    migrator.set_locking(false);
    migrator
});

/// `(file stem, SQL)` of each migration of `SQLite`, in order. A released file never changes: databases store its checksum.
const FILES: &[(&str, &str)] = &[
    ("0001_first_layout", include_str!("../migrations/sqlite/0001_first_layout.sql")),
    ("0002_tool_extra", include_str!("../migrations/sqlite/0002_tool_extra.sql")),
    ("0003_gateway", include_str!("../migrations/sqlite/0003_gateway.sql")),
    ("0004_oauth", include_str!("../migrations/sqlite/0004_oauth.sql")),
    ("0005_sessions", include_str!("../migrations/sqlite/0005_sessions.sql")),
    ("0006_calls_by_id", include_str!("../migrations/sqlite/0006_calls_by_id.sql")),
    ("0007_callers", include_str!("../migrations/sqlite/0007_callers.sql")),
    ("0008_write_probe", include_str!("../migrations/sqlite/0008_write_probe.sql")),
    ("0009_call_results", include_str!("../migrations/sqlite/0009_call_results.sql")),
    ("0010_results_by_owner", include_str!("../migrations/sqlite/0010_results_by_owner.sql")),
    ("0011_content_checks", include_str!("../migrations/sqlite/0011_content_checks.sql")),
    ("0012_key_access", include_str!("../migrations/sqlite/0012_key_access.sql")),
    ("0013_grants", include_str!("../migrations/sqlite/0013_grants.sql")),
    ("0014_source_servers", include_str!("../migrations/sqlite/0014_source_servers.sql")),
    ("0015_who_called_what", include_str!("../migrations/sqlite/0015_who_called_what.sql")),
    ("0016_session_grants", include_str!("../migrations/sqlite/0016_session_grants.sql")),
    ("0017_turn_records", include_str!("../migrations/sqlite/0017_turn_records.sql")),
    ("0018_replicas", include_str!("../migrations/sqlite/0018_replicas.sql")),
    ("0019_session_versions", include_str!("../migrations/sqlite/0019_session_versions.sql")),
    ("0020_slots", include_str!("../migrations/sqlite/0020_slots.sql")),
];

pub(crate) static MIGRATIONS: LazyLock<Migrator> = LazyLock::new(|| of(FILES));

fn of(files: &[(&'static str, &'static str)]) -> Migrator {
    Migrator::with_migrations(files.iter().map(|(stem, sql)| migration(stem, sql)).collect())
}

/// Derives version and description from the file name as `sqlx::migrate!` does, so that databases which it created are
/// recognised.
fn migration(stem: &'static str, sql: &'static str) -> Migration {
    let (number, words) = stem.split_once('_').unwrap_or((stem, ""));
    let version = number.parse().unwrap_or_default();
    Migration::new(
        version,
        words.replace('_', " ").into(),
        MigrationType::Simple,
        sql.into_sql_str(),
        false,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_of_the_directory_is_listed_in_order() {
        for (database, files) in [("sqlite", FILES), ("postgres", POSTGRES_FILES)] {
            let directory = format!("{}/migrations/{database}", env!("CARGO_MANIFEST_DIR"));
            let mut found: Vec<String> = std::fs::read_dir(directory)
                .unwrap()
                .map(|entry| {
                    entry.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned()
                })
                .collect();
            found.sort();
            let listed: Vec<&str> = files.iter().map(|(stem, _)| *stem).collect();
            assert_eq!(found, listed);
        }
    }

    #[test]
    fn versions_and_descriptions_come_from_the_file_names() {
        let first = MIGRATIONS.iter().next().unwrap();
        assert_eq!((first.version, &*first.description), (1, "first layout"));
        for migrations in [&MIGRATIONS, &POSTGRES] {
            let versions = migrations.iter().map(|migration| migration.version);
            assert!(versions.clone().zip(versions.skip(1)).all(|(one, next)| one < next));
        }
    }
}
