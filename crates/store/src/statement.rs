//! One SQL statement with its values, which runs on either database.
//!
//! Each statement of this crate is written once, in SQL that both databases understand. The drivers of sqlx are called
//! here and in the modules that open databases. Columns are 64-bit integers, texts and bytes, and nothing else.

use std::borrow::Cow;

use sqlx::postgres::{PgArguments, PgConnection, Postgres};
use sqlx::query::Query;
use sqlx::sqlite::{Sqlite, SqliteArguments};
use sqlx::{AssertSqlSafe, Executor, SqlSafeStr, SqlStr};

use crate::backend::{Pool, Transaction};
use crate::row::{Column, Row};

/// A value of a statement, borrowed where it can be.
#[derive(Debug, Clone)]
pub(crate) enum Value<'q> {
    Integer(Option<i64>),
    Flag(bool),
    Text(Option<Cow<'q, str>>),
    Bytes(Option<Cow<'q, [u8]>>),
}

macro_rules! values {
    ($($from:ty => |$it:ident| $value:expr;)*) => {
        $(impl<'q> From<$from> for Value<'q> {
            fn from($it: $from) -> Self {
                $value
            }
        })*
    };
}

values! {
    i64 => |it| Self::Integer(Some(it));
    &'q i64 => |it| Self::Integer(Some(*it));
    Option<i64> => |it| Self::Integer(it);
    bool => |it| Self::Flag(it);
    &'q bool => |it| Self::Flag(*it);
    &'q str => |it| Self::Text(Some(it.into()));
    &'q String => |it| Self::Text(Some(it.as_str().into()));
    String => |it| Self::Text(Some(it.into()));
    Option<&'q str> => |it| Self::Text(it.map(Into::into));
    Option<String> => |it| Self::Text(it.map(Into::into));
    &'q Option<String> => |it| Self::Text(it.as_deref().map(Into::into));
    &'q [u8] => |it| Self::Bytes(Some(it.into()));
    Vec<u8> => |it| Self::Bytes(Some(it.into()));
}

/// A statement with its values. Values are bound in the order of `$1`, `$2`, and so on.
#[derive(Debug)]
pub(crate) struct Statement<'q> {
    sql: SqlStr,
    values: Vec<Value<'q>>,
}

/// A statement without values yet.
pub(crate) fn query<'q>(sql: &'static str) -> Statement<'q> {
    Statement { sql: SqlStr::from_static(sql), values: Vec::new() }
}

/// A statement that reads the first column of its rows.
pub(crate) fn query_scalar<'q>(sql: &'static str) -> Scalar<'q> {
    Scalar(query(sql))
}

/// What of an answer is wanted.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Wanted {
    Count,
    First,
    All,
}

/// What a statement answered: the rows that were wanted, or the number of those that it changed.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    rows: Vec<Row>,
    affected: u64,
}

impl Answer {
    fn count(affected: u64) -> Self {
        Self { affected, ..Self::default() }
    }

    fn rows<R>(rows: impl IntoIterator<Item = R>, row: impl Fn(R) -> Row) -> Self {
        Self { rows: rows.into_iter().map(row).collect(), affected: 0 }
    }
}

/// Where a statement runs.
#[derive(Debug)]
pub(crate) enum Target<'a> {
    Pool(&'a Pool),
    Transaction(&'a mut Transaction),
}

impl<'a> From<&'a Pool> for Target<'a> {
    fn from(pool: &'a Pool) -> Self {
        Self::Pool(pool)
    }
}

impl<'a> From<&'a mut Transaction> for Target<'a> {
    fn from(transaction: &'a mut Transaction) -> Self {
        Self::Transaction(transaction)
    }
}

impl<'q> Statement<'q> {
    pub(crate) fn of(sql: String, values: Vec<Value<'q>>) -> Self {
        Self { sql: AssertSqlSafe(sql).into_sql_str(), values }
    }

    pub(crate) fn bind(mut self, value: impl Into<Value<'q>>) -> Self {
        self.values.push(value.into());
        self
    }

    /// Runs it and returns the number of rows that it changed.
    pub(crate) async fn execute<'a>(self, on: impl Into<Target<'a>>) -> Result<u64, sqlx::Error> {
        Ok(self.run(on.into(), Wanted::Count).await?.affected)
    }

    pub(crate) async fn fetch_all<'a>(
        self,
        on: impl Into<Target<'a>>,
    ) -> Result<Vec<Row>, sqlx::Error> {
        Ok(self.run(on.into(), Wanted::All).await?.rows)
    }

    pub(crate) async fn fetch_optional<'a>(
        self,
        on: impl Into<Target<'a>>,
    ) -> Result<Option<Row>, sqlx::Error> {
        Ok(self.run(on.into(), Wanted::First).await?.rows.pop())
    }

    pub(crate) async fn fetch_one<'a>(self, on: impl Into<Target<'a>>) -> Result<Row, sqlx::Error> {
        self.fetch_optional(on).await?.ok_or(sqlx::Error::RowNotFound)
    }

    /// Locks rows until the end of a transaction, with a `SELECT ... FOR UPDATE`. A transaction of `SQLite` has locked the
    /// whole database already.
    pub(crate) async fn lock(self, open: &mut Transaction) -> Result<(), sqlx::Error> {
        match open {
            Transaction::Sqlite(_) => Ok(()),
            Transaction::Postgres(open) => open.run(&self, Wanted::Count).await.map(drop),
        }
    }

    /// Converts each row.
    pub(crate) fn try_map<T, F>(self, convert: F) -> Mapped<'q, F>
    where
        F: FnMut(Row) -> Result<T, sqlx::Error>,
    {
        Mapped { statement: self, convert }
    }

    /// The futures of the drivers are large and would be a part of every future above, so they are on the heap.
    async fn run(self, on: Target<'_>, wanted: Wanted) -> Result<Answer, sqlx::Error> {
        match on {
            Target::Pool(Pool::Sqlite(pool)) => Box::pin(self.on_sqlite(pool, wanted)).await,
            Target::Transaction(Transaction::Sqlite(open)) => {
                Box::pin(self.on_sqlite(&mut **open, wanted)).await
            }
            Target::Pool(Pool::Postgres(pool)) => Box::pin(pool.read(&self, wanted)).await,
            Target::Transaction(Transaction::Postgres(open)) => {
                Box::pin(open.run(&self, wanted)).await
            }
        }
    }

    async fn on_sqlite<'e, E>(&self, on: E, wanted: Wanted) -> Result<Answer, sqlx::Error>
    where
        E: Executor<'e, Database = Sqlite>,
    {
        let query = self.for_sqlite();
        Ok(match wanted {
            Wanted::Count => Answer::count(query.execute(on).await?.rows_affected()),
            Wanted::First => Answer::rows(query.fetch_optional(on).await?, Row::Sqlite),
            Wanted::All => Answer::rows(query.fetch_all(on).await?, Row::Sqlite),
        })
    }

    pub(crate) async fn on_postgres(
        &self,
        on: &mut PgConnection,
        wanted: Wanted,
    ) -> Result<Answer, sqlx::Error> {
        let query = self.for_postgres();
        Ok(match wanted {
            Wanted::Count => Answer::count(query.execute(on).await?.rows_affected()),
            Wanted::First => Answer::rows(query.fetch_optional(on).await?, Row::Postgres),
            Wanted::All => Answer::rows(query.fetch_all(on).await?, Row::Postgres),
        })
    }

    fn for_sqlite(&self) -> Query<'_, Sqlite, SqliteArguments> {
        self.values.iter().fold(sqlx::query(self.sql.clone()), |query, value| match value {
            Value::Integer(value) => query.bind(*value),
            Value::Flag(value) => query.bind(*value),
            Value::Text(value) => query.bind(value.as_deref()),
            Value::Bytes(value) => query.bind(value.as_deref()),
        })
    }

    fn for_postgres(&self) -> Query<'_, Postgres, PgArguments> {
        self.values.iter().fold(sqlx::query(self.sql.clone()), |query, value| match value {
            Value::Integer(value) => query.bind(*value),
            Value::Flag(value) => query.bind(*value),
            Value::Text(value) => query.bind(value.as_deref().map(without_nul)),
            Value::Bytes(value) => query.bind(value.as_deref()),
        })
    }
}

/// A text as `PostgreSQL` can store it: it has no NUL character. Texts with one come from outside, as a title or an error
/// message, and are shown to people.
pub(crate) fn without_nul(text: &str) -> Cow<'_, str> {
    if text.contains('\0') { text.replace('\0', "\u{FFFD}").into() } else { text.into() }
}

/// A statement whose rows are converted.
#[derive(Debug)]
pub(crate) struct Mapped<'q, F> {
    statement: Statement<'q>,
    convert: F,
}

impl<F> Mapped<'_, F> {
    pub(crate) async fn fetch_all<'a, T>(
        self,
        on: impl Into<Target<'a>>,
    ) -> Result<Vec<T>, sqlx::Error>
    where
        F: FnMut(Row) -> Result<T, sqlx::Error>,
    {
        self.statement.fetch_all(on).await?.into_iter().map(self.convert).collect()
    }

    pub(crate) async fn fetch_optional<'a, T>(
        self,
        on: impl Into<Target<'a>>,
    ) -> Result<Option<T>, sqlx::Error>
    where
        F: FnMut(Row) -> Result<T, sqlx::Error>,
    {
        self.statement.fetch_optional(on).await?.map(self.convert).transpose()
    }
}

/// A statement whose first column is read.
#[derive(Debug)]
pub(crate) struct Scalar<'q>(Statement<'q>);

impl<'q> Scalar<'q> {
    pub(crate) fn of(statement: Statement<'q>) -> Self {
        Self(statement)
    }

    pub(crate) fn bind(self, value: impl Into<Value<'q>>) -> Self {
        Self(self.0.bind(value))
    }

    pub(crate) async fn fetch_all<'a, T>(
        self,
        on: impl Into<Target<'a>>,
    ) -> Result<Vec<T>, sqlx::Error>
    where
        T: for<'r> Column<'r>,
    {
        self.0.fetch_all(on).await?.iter().map(Row::first).collect()
    }

    pub(crate) async fn fetch_optional<'a, T>(
        self,
        on: impl Into<Target<'a>>,
    ) -> Result<Option<T>, sqlx::Error>
    where
        T: for<'r> Column<'r>,
    {
        self.0.fetch_optional(on).await?.as_ref().map(Row::first).transpose()
    }

    pub(crate) async fn fetch_one<'a, T>(self, on: impl Into<Target<'a>>) -> Result<T, sqlx::Error>
    where
        T: for<'r> Column<'r>,
    {
        self.0.fetch_one(on).await?.first()
    }
}
