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
    /// How boards share the slots of a tool (`max_instances`). Only with `url`.
    pub(crate) slots: Option<RawSlots>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "StoreSlots")]
pub(crate) struct RawSlots {
    /// When other boards get the slots of a board that fell silent: `lease`, after its lease of 10 seconds; `timeout`, after
    /// its lease and the `timeout` of the tool. A board whose machine is paused does not end its calls: only with `timeout`
    /// does the limit hold all the same, as long as no call runs longer than that. Default: `timeout` for a tool with
    /// `max_instances: 1`, else `lease`.
    pub(crate) after_loss: Option<RawAfterLoss>,
    /// What a board does that cannot reach the database for 8 seconds: `stop` cancels its running calls and refuses new
    /// ones; `share` goes on with `max_instances` divided by the number of boards, rounded down.
    #[schemars(extend("default" = "stop"))]
    pub(crate) on_store_loss: Option<RawOnStoreLoss>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub(crate) enum RawAfterLoss {
    Lease,
    Timeout,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub(crate) enum RawOnStoreLoss {
    Stop,
    Share,
}
