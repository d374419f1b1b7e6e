//! One configured server: its state, its entry in the configuration file, and changes of it.
//!
//! No request makes the process start a program: what a server runs can be written in the file only. A new address passes the
//! egress check before it is written, and credentials of the file do not go to another address.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures::FutureExt;
use serde::Deserialize;
use serde_json::{Map, Value};
use switchboard_api::{FieldError, Problem, ServerDeclaration, ServerDetail, ServerView};
use switchboard_config::{ConfigEdit, EntryList, has_reference};
use switchboard_model::ServerName;
use switchboard_runtime::{LiveConfig, WrittenEntry};
use url::Url;

use crate::answers::{
    BadRequest, EditConflict, EditRefused, Guarded, StaleEntry, TakesBody, UnknownConfigServer,
};
use crate::entry_edit::{change_entry, edit_problem, etag, invalid, remove_entry};
use crate::entry_preconditions::{IfRemovable, IfReplaceable};
use crate::entry_values::{hide_server_secrets, keep_hidden, new_references};
use crate::extract::{FromBody, FromPath};
use crate::present;
use crate::problem::ProblemResponse;
use crate::ready::{Ready, ReadyConfig};

const LIST: EntryList = EntryList::Servers;
/// What a program runs with. Only the file may say it.
const PROGRAM_KEYS: [&str; 7] =
    ["command", "args", "env", "cwd", "process", "max_processes", "process_idle_timeout"];

/// Names a configured server.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct ConfiguredServer {
    /// The name of the server in the configuration.
    #[param(min_length = 1, max_length = 64, example = "demo")]
    pub(crate) name: String,
}

/// Show one server
///
/// Its state, and its entry in the configuration file without secrets. Needs the role operator.
#[utoipa::path(
    get,
    path = "/api/v1/servers/{name}",
    operation_id = "getServer",
    tag = "servers",
    params(ConfiguredServer),
    responses(
        (
            status = 200,
            description = "The server.",
            body = ServerDetail,
            headers(("etag" = String, description = "The version of its entry, if there is one."))
        ),
        Guarded,
        BadRequest,
        UnknownConfigServer,
    )
)]
pub(crate) async fn show(
    ReadyConfig(config): ReadyConfig,
    FromPath(ConfiguredServer { name }): FromPath<ConfiguredServer>,
) -> Result<Response, ProblemResponse> {
    answer(&config, &name)
}

/// Configure a server
///
/// Makes the entry of this name in `toolbox.mcps` hold exactly this declaration: the text of the configuration file is edited,
/// checked, written and applied before the response. What a program runs with stays as the file says. Needs the role admin.
#[utoipa::path(
    put,
    path = "/api/v1/servers/{name}",
    operation_id = "putServer",
    tag = "servers",
    params(ConfiguredServer, IfReplaceable),
    request_body(
        content = ServerDeclaration,
        description = "The entry of the server.",
        example = json!({"url": "https://example.com/mcp", "mode": "dynamic", "required": false, "default_tool_config": {"max_instances": 5}})
    ),
    responses(
        (
            status = 200,
            description = "The server is written and in force.",
            body = ServerDetail,
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
    ReadyConfig(config): ReadyConfig,
    FromPath(ConfiguredServer { name }): FromPath<ConfiguredServer>,
    headers: HeaderMap,
    FromBody(body): FromBody<Map<String, Value>>,
) -> Result<Response, ProblemResponse> {
    change_entry(&config, (LIST, &name), &headers, |present| {
        let (config, body, name) = (config.clone(), body.clone(), name.clone());
        let edit = async move {
            let fields = new_fields(&config, body, present.as_ref()).await?;
            Ok(ConfigEdit::Put { list: LIST, name, fields })
        };
        edit.boxed()
    })
    .await?;
    answer(&config, &name)
}

/// Remove a server
///
/// Removes the entry of this name from `toolbox.mcps`, as `PUT` writes it. Running calls may finish. Needs the role admin.
#[utoipa::path(
    delete,
    path = "/api/v1/servers/{name}",
    operation_id = "deleteServer",
    tag = "servers",
    params(ConfiguredServer, IfRemovable),
    responses(
        (status = 204, description = "The entry is removed, and the change is in force."),
        Guarded,
        BadRequest,
        UnknownConfigServer,
        EditConflict,
        StaleEntry,
        EditRefused,
    )
)]
pub(crate) async fn delete(
    ReadyConfig(config): ReadyConfig,
    FromPath(ConfiguredServer { name }): FromPath<ConfiguredServer>,
    headers: HeaderMap,
) -> Result<StatusCode, ProblemResponse> {
    remove_entry(&config, (LIST, &name), &headers).await
}

/// Connect a server anew
///
/// Opens a new connection now and responds with the state after the attempt, or after half a minute. Calls that run end on the
/// old connection. Needs the role operator.
#[utoipa::path(
    post,
    path = "/api/v1/servers/{name}/reconnect",
    operation_id = "reconnectServer",
    tag = "servers",
    params(ConfiguredServer),
    responses(
        (status = 200, description = "The state of the server.", body = ServerView),
        Guarded,
        BadRequest,
        UnknownConfigServer,
    )
)]
pub(crate) async fn reconnect(
    Ready(board): Ready,
    FromPath(ConfiguredServer { name }): FromPath<ConfiguredServer>,
) -> Result<Json<ServerView>, ProblemResponse> {
    let known = board.servers().into_iter().map(|(plan, _)| plan.spec.name);
    let known: Option<ServerName> = known.into_iter().find(|known| known.as_str() == name);
    let known = known.ok_or_else(|| unknown_server(&name))?;
    board.reconnect(&known).await;
    let mut servers = present::servers(&board).servers.into_iter();
    servers.find(|server| server.name == name).map(Json).ok_or_else(|| unknown_server(&name))
}

pub(crate) fn unknown_server(name: &str) -> ProblemResponse {
    let detail = format!("no server '{name}' is configured");
    ProblemResponse::new("unknown_server", StatusCode::NOT_FOUND, detail)
}

/// The fields of the entry as a request gives them, with those that only the file may give.
async fn new_fields(
    config: &LiveConfig,
    mut body: Map<String, Value>,
    present: Option<&WrittenEntry>,
) -> Result<Map<String, Value>, ProblemResponse> {
    let empty = Map::new();
    let written = present.map_or(&empty, |entry| &entry.fields);
    body.retain(|_, value| !value.is_null());
    let mut errors = forbidden(&body, written);
    keep_hidden(&mut body, written);
    let present = Value::Object(written.clone());
    errors.extend(new_references(&Value::Object(body.clone()), Some(&present), ""));
    let old_url = written.get("url").and_then(Value::as_str);
    let new_url = body.get("url").and_then(Value::as_str).map(str::to_owned);
    if let Some(url) = new_url.filter(|url| Some(url.as_str()) != old_url && !has_reference(url)) {
        if let Err(refused) = config.board().check_address(&url).await {
            errors.push(FieldError { path: "/url".into(), message: refused.to_string() });
        }
        if old_url.is_some_and(|old| !is_same_origin(old, &url)) && keeps_secret(&body, written) {
            let message = "the credentials of the file do not go to another host: give new ones, or change the address in the file";
            errors.push(FieldError { path: "/url".into(), message: message.into() });
        }
    }
    if !errors.is_empty() {
        return Err(invalid(errors));
    }
    for key in PROGRAM_KEYS {
        if let Some(value) = written.get(key) {
            body.insert(key.into(), value.clone());
        }
    }
    if written.contains_key("command")
        && let Some(transport) = written.get("transport")
    {
        body.insert("transport".into(), transport.clone());
    }
    Ok(body)
}

/// Members that a request may not have.
fn forbidden(body: &Map<String, Value>, written: &Map<String, Value>) -> Vec<FieldError> {
    let error =
        |key: &str, message: &str| FieldError { path: format!("/{key}"), message: message.into() };
    let mut errors: Vec<_> = PROGRAM_KEYS
        .into_iter()
        .filter(|key| body.get(*key).is_some_and(|value| !is_shown(key, value, written)))
        .map(|key| {
            error(key, "what a program runs with can be written in the configuration file only")
        })
        .collect();
    if body.contains_key("name") {
        errors.push(error("name", "is given by the path"));
    }
    if body.get("transport").is_some_and(|transport| transport == "stdio")
        && !written.contains_key("command")
    {
        errors.push(error("transport", "a program can be written in the configuration file only"));
    }
    if written.contains_key("command") && body.contains_key("url") {
        errors.push(error(
            "url",
            "this server is a program: remove it first, or change it in the configuration file",
        ));
    }
    let oauth = |fields: &Map<String, Value>| {
        fields.get("auth").and_then(|auth| auth.get("oauth")).cloned()
    };
    let shown = |fields: &Map<String, Value>| {
        let mut fields = fields.clone();
        hide_server_secrets(&mut fields);
        oauth(&fields)
    };
    if let Some(given) = oauth(body)
        && Some(given) != shown(written)
    {
        errors.push(error(
            "auth/oauth",
            "OAuth settings can be written in the configuration file only",
        ));
    }
    errors
}

/// Whether a member is what `GET` shows of the present one; such a member changes nothing.
fn is_shown(key: &str, value: &Value, written: &Map<String, Value>) -> bool {
    let mut shown = written.clone();
    hide_server_secrets(&mut shown);
    shown.get(key) == Some(value)
}

fn is_same_origin(old: &str, new: &str) -> bool {
    match (Url::parse(old), Url::parse(new)) {
        (Ok(old), Ok(new)) => old.origin() == new.origin(),
        _ => false,
    }
}

/// Whether the new entry has a header or credentials of the present one.
fn keeps_secret(new: &Map<String, Value>, written: &Map<String, Value>) -> bool {
    fn leaves<'a>(value: &'a Value, into: &mut Vec<&'a str>) {
        match value {
            Value::String(text) => into.push(text),
            Value::Object(members) => members.values().for_each(|value| leaves(value, into)),
            Value::Array(items) => items.iter().for_each(|item| leaves(item, into)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    let secrets = |fields: &Map<String, Value>| {
        let mut found = Vec::new();
        for value in ["headers", "auth"].iter().filter_map(|key| fields.get(*key)) {
            leaves(value, &mut found);
        }
        found.into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    let present = secrets(written);
    secrets(new).iter().any(|secret| present.contains(secret))
}

fn answer(config: &Arc<LiveConfig>, name: &str) -> Result<Response, ProblemResponse> {
    let detail = detail(config, name)?;
    let tag = detail.etag.as_deref().and_then(etag);
    let mut response = Json(detail).into_response();
    if let Some(tag) = tag {
        response.headers_mut().insert(header::ETAG, tag);
    }
    Ok(response)
}

/// One configured server with its entry in the file.
pub fn server_detail(config: &LiveConfig, name: &str) -> Result<ServerDetail, Box<Problem>> {
    detail(config, name).map_err(|response| response.0)
}

fn detail(config: &LiveConfig, name: &str) -> Result<ServerDetail, ProblemResponse> {
    let board = config.board();
    let view = present::servers(board).servers.into_iter().find(|server| server.name == name);
    let mut server = view.ok_or_else(|| unknown_server(name))?;
    let status = board.servers().into_iter().find(|(plan, _)| plan.spec.name.as_str() == name);
    server.stderr = status.as_ref().and_then(|(_, status)| status.stderr.clone());
    let entry = match config.entry(LIST, name) {
        Ok(entry) => entry,
        // A server that comes from the environment alone has no entry.
        Err(switchboard_runtime::EditError::NoFile) => None,
        Err(error) => return Err(edit_problem(config, (LIST, name), &error)),
    };
    let origins: BTreeMap<_, _> = entry
        .iter()
        .flat_map(|entry| &entry.places)
        .filter(|(pointer, _)| pointer != "/name")
        .map(|(pointer, place)| (pointer.clone(), place.to_string()))
        .collect();
    let tag = entry.as_ref().map(|entry| entry.tag.clone());
    let declared = entry.map(|mut entry| {
        hide_server_secrets(&mut entry.fields);
        entry.fields.shift_remove("name");
        Value::Object(entry.fields)
    });
    let refused = present::quarantined(board).into_iter().filter(|tool| tool.server == name);
    Ok(ServerDetail {
        server,
        listed_at_ms: status.and_then(|(_, status)| status.listed_at_ms),
        refused: refused.collect(),
        declared,
        origins,
        etag: tag,
    })
}
