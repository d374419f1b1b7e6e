//! Toolsets of the configuration file, changed.

use axum::extract::Extension;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use futures::FutureExt;
use futures::future::ready;
use serde_json::{Map, Value};
use switchboard_api::{FieldError, ToolsetDeclaration, ToolsetDetail};
use switchboard_auth::Principal;
use switchboard_config::{ConfigEdit, EntryList};
use switchboard_runtime::WrittenEntry;

use crate::answers::{
    BadRequest, EditConflict, EditRefused, Guarded, StaleEntry, TakesBody, UnknownToolset,
};
use crate::entry_edit::{change_entry, invalid, remove_entry};
use crate::entry_preconditions::{IfRemovable, IfReplaceable};
use crate::entry_values::new_references;
use crate::extract::{FromBody, FromPath};
use crate::problem::ProblemResponse;
use crate::ready::{ReadyConfig, ReadySessions};
use crate::toolset_detail::{ToolsetName, answer};

const LIST: EntryList = EntryList::Toolsets;

/// Configure a toolset
///
/// Makes the entry of this name in `toolsets` hold exactly this declaration: the text of the configuration file is edited,
/// checked, written and applied before the response. Needs the role admin.
#[utoipa::path(
    put,
    path = "/api/v1/toolsets/{toolset}",
    operation_id = "putToolset",
    tag = "sessions",
    params(ToolsetName, IfReplaceable),
    request_body(
        content = ToolsetDeclaration,
        description = "The entry of the toolset.",
        example = json!({"description": "Says things again", "tools": ["demo.echo"]})
    ),
    responses(
        (
            status = 200,
            description = "The toolset is written and in force.",
            body = ToolsetDetail,
            headers(("etag" = String, description = "The new version of its entry."))
        ),
        Guarded,
        TakesBody,
        EditConflict,
        StaleEntry,
        EditRefused,
    )
)]
pub(crate) async fn put(
    ReadySessions(sessions): ReadySessions,
    ReadyConfig(config): ReadyConfig,
    Extension(principal): Extension<Principal>,
    FromPath(ToolsetName { toolset }): FromPath<ToolsetName>,
    headers: HeaderMap,
    FromBody(body): FromBody<Map<String, Value>>,
) -> Result<Response, ProblemResponse> {
    change_entry(&config, (LIST, &toolset), &headers, |present| {
        let edit = new_fields(body.clone(), present.as_ref());
        let name = toolset.clone();
        ready(edit.map(|fields| ConfigEdit::Put { list: LIST, name, fields })).boxed()
    })
    .await?;
    answer(&sessions, &config, &principal, &toolset).await
}

/// Remove a toolset
///
/// Removes the entry of this name from `toolsets`, as `PUT` writes it. What names the toolset must be changed first, such as
/// `gateway.tool_sets`. Needs the role admin.
#[utoipa::path(
    delete,
    path = "/api/v1/toolsets/{toolset}",
    operation_id = "deleteToolset",
    tag = "sessions",
    params(ToolsetName, IfRemovable),
    responses(
        (status = 204, description = "The entry is removed, and the change is in force."),
        Guarded,
        BadRequest,
        UnknownToolset,
        EditConflict,
        StaleEntry,
        EditRefused,
    )
)]
pub(crate) async fn delete(
    ReadyConfig(config): ReadyConfig,
    FromPath(ToolsetName { toolset }): FromPath<ToolsetName>,
    headers: HeaderMap,
) -> Result<StatusCode, ProblemResponse> {
    remove_entry(&config, (LIST, &toolset), &headers).await
}

/// The fields of the entry as a request gives them.
fn new_fields(
    mut body: Map<String, Value>,
    present: Option<&WrittenEntry>,
) -> Result<Map<String, Value>, ProblemResponse> {
    let present = present.map(|entry| Value::Object(entry.fields.clone()));
    let mut errors = new_references(&Value::Object(body.clone()), present.as_ref(), "");
    if body.contains_key("name") {
        errors.push(FieldError { path: "/name".into(), message: "is given by the path".into() });
    }
    if !errors.is_empty() {
        return Err(invalid(errors));
    }
    body.retain(|_, value| !value.is_null());
    Ok(body)
}
