//! Statements whose text depends on their values: filters, lists, several rows at once.

use std::fmt::Display;

use crate::statement::{Statement, Value};

/// A statement that is put together from pieces.
#[derive(Debug)]
pub(crate) struct QueryBuilder<'q> {
    sql: String,
    values: Vec<Value<'q>>,
}

impl<'q> QueryBuilder<'q> {
    pub(crate) fn new(sql: impl Into<String>) -> Self {
        Self { sql: sql.into(), values: Vec::new() }
    }

    /// Adds text, which never comes from a caller.
    pub(crate) fn push(&mut self, sql: impl Display) -> &mut Self {
        self.sql.push_str(&sql.to_string());
        self
    }

    /// Adds a value and its place.
    pub(crate) fn push_bind(&mut self, value: impl Into<Value<'q>>) -> &mut Self {
        self.values.push(value.into());
        let place = self.values.len();
        self.push(format_args!("${place}"))
    }

    /// Adds values with commas between them.
    pub(crate) fn separated(&mut self) -> Separated<'_, 'q> {
        Separated { query: self, is_first: true }
    }

    /// Adds `VALUES` and one tuple for each item.
    pub(crate) fn push_values<T>(
        &mut self,
        items: impl IntoIterator<Item = T>,
        mut bind: impl FnMut(&mut Separated<'_, 'q>, T),
    ) -> &mut Self {
        self.push("VALUES ");
        for (place, item) in items.into_iter().enumerate() {
            self.push(if place == 0 { "(" } else { ", (" });
            bind(&mut self.separated(), item);
            self.push(")");
        }
        self
    }

    pub(crate) fn build(self) -> Statement<'q> {
        Statement::of(self.sql, self.values)
    }
}

/// Values with commas between them.
#[derive(Debug)]
pub(crate) struct Separated<'b, 'q> {
    query: &'b mut QueryBuilder<'q>,
    is_first: bool,
}

impl<'q> Separated<'_, 'q> {
    pub(crate) fn push_bind(&mut self, value: impl Into<Value<'q>>) -> &mut Self {
        if !std::mem::replace(&mut self.is_first, false) {
            self.query.push(", ");
        }
        self.query.push_bind(value);
        self
    }
}
