//! The tables that belong to a board, with their keys and columns, in an order in which each comes after those that it
//! refers to. A test compares the list with the layouts of both databases.

/// The type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ColumnKind {
    Integer,
    Text,
    Bytes,
}

/// A table. Its key columns come first.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Table {
    pub(crate) name: &'static str,
    /// How many of the columns are the key by which rows are ordered.
    pub(crate) key: usize,
    pub(crate) columns: &'static [(&'static str, ColumnKind)],
    /// Whether the first column gets its values from the database.
    pub(crate) is_numbered: bool,
}

use ColumnKind::{Bytes, Integer, Text};

const fn table(
    name: &'static str,
    key: usize,
    columns: &'static [(&'static str, ColumnKind)],
) -> Table {
    Table { name, key, columns, is_numbered: false }
}

const fn numbered(name: &'static str, columns: &'static [(&'static str, ColumnKind)]) -> Table {
    Table { name, key: 1, columns, is_numbered: true }
}

pub(crate) const TABLES: &[Table] = &[
    table("installation_secrets", 1, &[("name", Text), ("secret", Bytes)]),
    table(
        "api_keys",
        1,
        &[
            ("id", Text),
            ("name", Text),
            ("role", Text),
            ("hash", Bytes),
            ("created_at_ms", Integer),
            ("last_used_at_ms", Integer),
            ("revoked_at_ms", Integer),
            ("expires_at_ms", Integer),
            ("user_label", Text),
            ("access", Text),
        ],
    ),
    table(
        "grants",
        3,
        &[
            ("purpose", Text),
            ("owner", Text),
            ("issuer", Text),
            ("key_id", Text),
            ("content", Bytes),
            ("version", Integer),
            ("renewing_until_ms", Integer),
            ("updated_at_ms", Integer),
        ],
    ),
    table("grant_needs", 2, &[("purpose", Text), ("owner", Text), ("content", Text)]),
    table(
        "catalog_revision",
        1,
        &[("singleton", Integer), ("revision", Integer), ("fingerprint", Text)],
    ),
    table("remembered_servers", 1, &[("server", Text), ("seen_at_ms", Integer)]),
    table(
        "remembered_tools",
        2,
        &[
            ("server", Text),
            ("position", Integer),
            ("name", Text),
            ("title", Text),
            ("description", Text),
            ("input_schema", Text),
            ("output_schema", Text),
            ("annotations", Text),
            ("extra", Text),
        ],
    ),
    table(
        "era_verdicts",
        1,
        &[("server", Text), ("fingerprint", Text), ("era", Text), ("decided_at_ms", Integer)],
    ),
    table(
        "source_servers",
        1,
        &[("source", Text), ("fingerprint", Text), ("servers", Text), ("seen_at_ms", Integer)],
    ),
    table("tool_snapshots", 1, &[("digest", Text), ("tools", Text)]),
    table(
        "sessions",
        1,
        &[
            ("id", Text),
            ("kind", Text),
            ("owner", Text),
            ("title", Text),
            ("provider", Text),
            ("model", Text),
            ("state", Text),
            ("tools_revision", Integer),
            ("snapshot", Text),
            ("created_at_ms", Integer),
            ("updated_at_ms", Integer),
            ("version", Integer),
        ],
    ),
    table("session_messages", 2, &[("session", Text), ("position", Integer), ("message", Text)]),
    table("session_call_results", 2, &[("session", Text), ("call_id", Text), ("result", Text)]),
    table(
        "gateway_sessions",
        2,
        &[
            ("id", Text),
            ("kind", Text),
            ("owner", Text),
            ("session", Text),
            ("state", Text),
            ("created_at_ms", Integer),
            ("last_seen_at_ms", Integer),
        ],
    ),
    numbered(
        "calls",
        &[
            ("seq", Integer),
            ("id", Text),
            ("started_at_ms", Integer),
            ("face", Text),
            ("server", Text),
            ("tool", Text),
            ("requested", Text),
            ("revision", Integer),
            ("argument_digest", Text),
            ("outcome", Text),
            ("message", Text),
            ("wait_ns", Integer),
            ("run_ns", Integer),
            ("result_bytes", Integer),
            ("result_handle", Text),
            ("session", Text),
            ("principal", Text),
            ("client", Text),
            ("person", Text),
            ("owner", Text),
            ("key_name", Text),
            ("client_version", Text),
            ("agent", Text),
            ("configured", Text),
            ("mode", Text),
            ("policy", Text),
        ],
    ),
    table(
        "call_contents",
        1,
        &[
            ("id", Text),
            ("arguments_text", Text),
            ("arguments_size", Integer),
            ("arguments_cut", Integer),
            ("result_text", Text),
            ("result_size", Integer),
            ("result_cut", Integer),
            ("stored_bytes", Integer),
        ],
    ),
    table(
        "content_checks",
        1,
        &[
            ("id", Text),
            ("at_ms", Integer),
            ("hook", Text),
            ("verdict", Text),
            ("blocked", Integer),
            ("reason", Text),
            ("principal", Text),
            ("conversation", Text),
            ("message", Text),
            ("server", Text),
            ("tool", Text),
            ("messages", Integer),
            ("bytes", Integer),
            ("took_ns", Integer),
        ],
    ),
    table(
        "results",
        1,
        &[
            ("handle", Text),
            ("call_id", Text),
            ("owner", Text),
            ("total", Integer),
            ("kept_at_ms", Integer),
        ],
    ),
    table(
        "result_parts",
        2,
        &[("handle", Text), ("start", Integer), ("length", Integer), ("bytes", Bytes)],
    ),
    numbered(
        "turn_records",
        &[
            ("id", Integer),
            ("owner", Text),
            ("session", Text),
            ("content", Text),
            ("bytes", Integer),
            ("expires_at_ms", Integer),
        ],
    ),
    table(
        "turn_record_keys",
        3,
        &[("owner", Text), ("session", Text), ("key", Bytes), ("record", Integer)],
    ),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use sqlx::Row;

    use super::*;
    use crate::Store;
    use crate::backend::Pool;

    /// Tables that have nothing of a board, or only something of boards that run.
    const OTHERS: [&str; 8] = [
        "_sqlx_migrations",
        "write_probe",
        "sqlite_sequence",
        "replicas",
        "slot_tools",
        "slot_loans",
        "slot_epoch",
        "rate_buckets",
    ];

    #[tokio::test]
    async fn every_table_and_column_is_listed() {
        let store = Store::in_memory().await.unwrap();
        let Pool::Sqlite(pool) = &store.pool else { unreachable!("it is in memory") };
        let found = sqlx::query(
            "SELECT m.name, c.name, c.type FROM sqlite_schema m, pragma_table_info(m.name) c
             WHERE m.type = 'table' ORDER BY m.name, c.name",
        )
        .fetch_all(pool)
        .await
        .unwrap();
        let mut expected: BTreeMap<(String, String), String> = BTreeMap::new();
        for row in found {
            let (table, column, kind): (String, String, String) =
                (row.get(0), row.get(1), row.get(2));
            if !OTHERS.contains(&table.as_str()) {
                expected.insert((table, column), kind);
            }
        }
        let word = |kind| match kind {
            Integer => "INTEGER",
            Text => "TEXT",
            Bytes => "BLOB",
        };
        let listed = TABLES.iter().flat_map(|table| {
            let columns = table.columns.iter();
            columns
                .map(|(column, kind)| ((table.name.into(), (*column).into()), word(*kind).into()))
        });
        assert_eq!(listed.collect::<BTreeMap<(String, String), String>>(), expected);
    }
}
