//! Copies everything of a board from one database to another, between any two of them, and compares both.
//!
//! The source is read in one snapshot, so it may be in use. The copy is one transaction: it is there whole, or not at all.

use crate::backend::{Pool, Transaction};
use crate::postgres_transaction::{PostgresTransaction, WriteKind};
use crate::query_builder::QueryBuilder;
use crate::row::Row;
use crate::statement::{Scalar, Statement, Value, without_nul};
use crate::tables::{ColumnKind, TABLES, Table};
use crate::{Store, StoreError};

/// Rows that are read and written at once. A row may be a message of some megabytes.
const ROWS_AT_ONCE: usize = 100;

/// What was copied of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CopiedTable {
    pub name: &'static str,
    pub rows: u64,
    /// A digest of all rows in the order of their keys; the same in both databases.
    pub digest: String,
}

/// Why a copy failed. The target is as it was before.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The target has data of its own.
    #[error("the database {database} is not empty: its table `{table}` has rows")]
    NotEmpty { database: String, table: &'static str },
    /// What was read back differs from what was written.
    #[error("the copy of the table `{table}` in {database} differs from the original")]
    Differs { database: String, table: &'static str },
}

impl Store {
    /// Copies everything to an empty database and returns what each table has. Afterwards the rows of the target are read
    /// again and compared with those of the source.
    pub async fn copy_to(&self, target: &Self) -> Result<Vec<CopiedTable>, CopyError> {
        let mut from = self.begin_snapshot().await?;
        let mut write = target.write_as(WriteKind::Maintenance, "copy a database").await?;
        for table in TABLES {
            let first = first_of(table).fetch_optional::<i64>(write.on()).await;
            if first.map_err(|error| write.fault(error))?.is_some() {
                let (database, table) = (target.location().to_string(), table.name);
                return Err(CopyError::NotEmpty { database, table });
            }
        }
        let mut copied = Vec::new();
        for table in TABLES {
            let mut rows = TableReader::of(table, target.is_shared());
            loop {
                let page = rows.next(&mut from).await.map_err(|error| self.fault(READ, error))?;
                if page.is_empty() {
                    break;
                }
                let insert = insert(table, &page).execute(write.on()).await;
                insert.map_err(|error| write.fault(error))?;
            }
            if table.is_numbered && target.is_shared() {
                let counted = continue_numbers(table).execute(write.on()).await;
                counted.map_err(|error| write.fault(error))?;
            }
            copied.push(rows.done());
        }
        from.roll_back().await.map_err(|error| self.fault(READ, error))?;
        for (table, expected) in TABLES.iter().zip(&copied) {
            let mut rows = TableReader::of(table, false);
            while !rows.next(write.on()).await.map_err(|error| write.fault(error))?.is_empty() {}
            if rows.done() != *expected {
                let (database, table) = (target.location().to_string(), table.name);
                return Err(CopyError::Differs { database, table });
            }
        }
        write.commit().await?;
        Ok(copied)
    }

    /// A transaction that sees one state of the database.
    async fn begin_snapshot(&self) -> Result<Transaction, StoreError> {
        let begun = match &self.pool {
            Pool::Sqlite(pool) => pool.begin().await.map(Transaction::Sqlite),
            Pool::Postgres(pool) => PostgresTransaction::begin(pool, WriteKind::Snapshot)
                .await
                .map(Transaction::Postgres),
        };
        begun.map_err(|error| self.fault(READ, error))
    }
}

const READ: &str = "read what is copied";

/// Whether a table has a row.
fn first_of(table: &Table) -> Scalar<'static> {
    let sql = format!("SELECT CAST(1 AS BIGINT) FROM {} LIMIT 1", table.name);
    Scalar::of(Statement::of(sql, Vec::new()))
}

/// Lets the database number the next row after those that were copied.
fn continue_numbers(table: &Table) -> Statement<'static> {
    let (name, column) = (table.name, table.columns[0].0);
    let sql = format!(
        "SELECT setval(pg_get_serial_sequence('{name}', '{column}'), GREATEST(MAX({column}), 1)) FROM {name}"
    );
    Statement::of(sql, Vec::new())
}

fn insert<'q>(table: &Table, rows: &[Vec<Value<'q>>]) -> Statement<'q> {
    let mut insert =
        QueryBuilder::new(format!("INSERT INTO {} ({}) ", table.name, names(table, 0)));
    insert.push_values(rows, |tuple, row| {
        for value in row {
            tuple.push_bind(value.clone());
        }
    });
    insert.build()
}

/// The names of the key columns, or of all columns with 0.
fn names(table: &Table, key: usize) -> String {
    let most = if key == 0 { table.columns.len() } else { key };
    let names: Vec<&str> = table.columns.iter().take(most).map(|(name, _)| *name).collect();
    names.join(", ")
}

/// Reads a table page by page in the order of its keys.
struct TableReader<'t> {
    table: &'t Table,
    /// Whether texts are read as `PostgreSQL` keeps them.
    is_for_postgres: bool,
    last_key: Vec<Value<'static>>,
    count: u64,
    digest: blake3::Hasher,
}

impl<'t> TableReader<'t> {
    fn of(table: &'t Table, is_for_postgres: bool) -> Self {
        let digest = blake3::Hasher::new();
        Self { table, is_for_postgres, last_key: Vec::new(), count: 0, digest }
    }

    /// The next rows; none at the end.
    async fn next(
        &mut self,
        from: &mut Transaction,
    ) -> Result<Vec<Vec<Value<'static>>>, sqlx::Error> {
        let (table, key) = (self.table, names(self.table, self.table.key));
        let mut select =
            QueryBuilder::new(format!("SELECT {} FROM {}", names(table, 0), table.name));
        if !self.last_key.is_empty() {
            select.push(" WHERE (").push(&key).push(") > (");
            let mut places = select.separated();
            for value in &self.last_key {
                places.push_bind(value.clone());
            }
            select.push(")");
        }
        select.push(" ORDER BY ").push(&key).push(" LIMIT ").push(ROWS_AT_ONCE);
        let found = select.build().fetch_all(from).await?;
        let mut page = Vec::with_capacity(found.len());
        for row in &found {
            let values = self.read(row)?;
            self.last_key.clear();
            self.last_key.extend(values.iter().take(table.key).cloned());
            page.push(values);
        }
        Ok(page)
    }

    fn read(&mut self, row: &Row) -> Result<Vec<Value<'static>>, sqlx::Error> {
        self.count += 1;
        let mut values = Vec::with_capacity(self.table.columns.len());
        for (name, kind) in self.table.columns {
            values.push(match kind {
                ColumnKind::Integer => Value::Integer(row.try_get(name)?),
                ColumnKind::Bytes => {
                    Value::Bytes(row.try_get::<Option<Vec<u8>>>(name)?.map(Into::into))
                }
                ColumnKind::Text => {
                    let mut text: Option<String> = row.try_get(name)?;
                    if self.is_for_postgres {
                        text = text.map(|text| without_nul(&text).into_owned());
                    }
                    Value::Text(text.map(Into::into))
                }
            });
        }
        for value in &values {
            self.digest_value(value);
        }
        Ok(values)
    }

    fn digest_value(&mut self, value: &Value<'_>) {
        let mut add = |kind: u8, bytes: &[u8]| {
            self.digest.update(&[kind]).update(&(bytes.len() as u64).to_le_bytes()).update(bytes);
        };
        match value {
            Value::Integer(Some(number)) => add(1, &number.to_le_bytes()),
            Value::Text(Some(text)) => add(2, text.as_bytes()),
            Value::Bytes(Some(bytes)) => add(3, bytes),
            Value::Flag(flag) => add(4, &[u8::from(*flag)]),
            Value::Integer(None) | Value::Text(None) | Value::Bytes(None) => add(0, &[]),
        }
    }

    fn done(self) -> CopiedTable {
        let digest = self.digest.finalize().to_hex().to_string();
        CopiedTable { name: self.table.name, rows: self.count, digest }
    }
}
