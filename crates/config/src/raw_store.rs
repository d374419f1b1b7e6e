//! The type of `store`. As in [`crate::raw`], its doc comments become the JSON Schema that users read.

use schemars::JsonSchema;
use serde::Deserialize;
use switchboard_model as model;

/// Where the data is kept: sessions, conversations, records, keys, sign-ins. Default: a database file in the data
/// directory.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Store")]
pub(crate) struct RawStore {
    /// The address of a database of `PostgreSQL`, which several boards may share. A secret: use `${VAR}` or `file:/path`.
    #[schemars(
        length(min = 1),
        extend("examples" = ["postgres://switchboard:${DB_PASSWORD}@db:5432/switchboard", "file:/run/secrets/store-url"])
    )]
    pub(crate) url: Option<String>,
    /// The address of the same database for notifications, if `url` leads to a pooler: in transaction mode a pooler loses
    /// them. Without notifications, boards notice each other's changes by polling. A secret.
    #[schemars(length(min = 1))]
    pub(crate) listen_url: Option<String>,
    /// The most connections of this board to that database.
    #[schemars(range(min = 2, max = 1000), extend("default" = model::DEFAULT_STORE_CONNECTIONS))]
    pub(crate) max_connections: Option<u32>,
}
