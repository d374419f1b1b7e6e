//! Serves TrustGraph's clients below `/trustgraph/`: the configuration service, tool calls and the agent.
//!
//! Only with `gateway.trustgraph: true`. Errors have status 200 and an `error` in the body, as the clients expect; only
//! refused credentials have another status. Reading the configuration needs the role operator, changing it the role admin.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Extension, FromRequestParts, Path};
use axum::http::StatusCode;
use axum::http::request::Parts;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use switchboard_auth::{Principal, Role};
use switchboard_config::{ConfigEdit, EntryList};
use switchboard_runtime::{Board, EditError, ExpectedEntry, LiveConfig, WrittenEntry};
use switchboard_sessions::SessionService;
use switchboard_trustgraph::{
    ConfigKey, ConfigRequest, ConfigValue, ShownValue, TrustGraphError, ValueType, WrittenFields,
    delete_tool, entry_of, put_server, put_tool, shown_servers, shown_tools, tool_answer,
    tool_meant,
};
use switchboard_turns::Turns;

use crate::calls::call_tool;
use crate::extract::FromBody;
use crate::problem::ProblemResponse;
use crate::ready::{Ready, ReadySessions, ReadyTurns};
use crate::server_state::Shared;

/// The services for TrustGraph's clients. As an extractor it responds 404 while they are switched off.
#[derive(Debug, Clone)]
pub(crate) struct TrustGraphServices {
    board: Arc<Board>,
    pub(crate) sessions: Arc<SessionService>,
    pub(crate) turns: Arc<Turns>,
    config: Option<Arc<LiveConfig>>,
}

impl FromRequestParts<Shared> for TrustGraphServices {
    type Rejection = ProblemResponse;

    async fn from_request_parts(
        parts: &mut Parts,
        shared: &Shared,
    ) -> Result<Self, ProblemResponse> {
        let Ready(board) = Ready::from_request_parts(parts, shared).await?;
        if !board.plan().gateway.trustgraph {
            let detail = "TrustGraph's clients are not served here: set `gateway.trustgraph: true` in the configuration";
            return Err(ProblemResponse::new("not_found", StatusCode::NOT_FOUND, detail));
        }
        let ReadySessions(sessions) = ReadySessions::from_request_parts(parts, shared).await?;
        let ReadyTurns(turns) = ReadyTurns::from_request_parts(parts, shared).await?;
        Ok(Self { board, sessions, turns, config: shared.board.config().cloned() })
    }
}

/// The answer to a request: a value, or an error that the clients show.
type ServiceAnswer = Result<Value, TrustGraphError>;

fn body_of(answer: ServiceAnswer) -> Json<Value> {
    Json(answer.unwrap_or_else(|error| error.to_json()))
}

/// `POST /trustgraph/api/v1/config`.
pub(crate) async fn config(
    services: TrustGraphServices,
    Extension(principal): Extension<Principal>,
    FromBody(request): FromBody<Map<String, Value>>,
) -> Json<Value> {
    body_of(services.config(&principal, request).await)
}

/// `POST /trustgraph/api/v1/flow/{flow}/service/{service}`.
pub(crate) async fn flow_service(
    services: TrustGraphServices,
    Extension(principal): Extension<Principal>,
    Path((_flow, service)): Path<(String, String)>,
    FromBody(request): FromBody<Map<String, Value>>,
) -> Json<Value> {
    let answer = match service.as_str() {
        "mcp-tool" => services.call(&principal, request).await,
        "agent" => Err(TrustGraphError::request(
            "the agent answers over the WebSocket /trustgraph/api/v1/socket",
        )),
        other => Err(no_service(other)),
    };
    body_of(answer)
}

pub(crate) fn no_service(name: &str) -> TrustGraphError {
    let name: String = name.chars().take(64).collect();
    TrustGraphError::request(format!(
        "there is no service '{name}' here; Switchboard has agent, mcp-tool and config"
    ))
}

/// The parameters of a tool call.
#[derive(Deserialize)]
struct ToolRequest {
    name: Option<String>,
    parameters: Option<Map<String, Value>>,
}

impl TrustGraphServices {
    /// Calls a tool by its id, the id of its server, its exposed name or its canonical name.
    pub(crate) async fn call(
        &self,
        principal: &Principal,
        request: Map<String, Value>,
    ) -> ServiceAnswer {
        let ToolRequest { name, parameters } = serde_json::from_value(Value::Object(request))
            .map_err(|error| {
                TrustGraphError::request(format!("the call cannot be read: {error}"))
            })?;
        let Some(name) = name else {
            return Err(TrustGraphError::request("the call needs the `name` of a tool"));
        };
        let arguments = Value::Object(parameters.unwrap_or_default());
        let name = self.catalog_name(principal, tool_meant(&self.board.plan(), &name));
        let call = call_tool(&self.board, &self.sessions, principal, name, arguments).await;
        let report =
            call.map_err(|problem| with_hint(problem.0.detail, problem.0.hint.as_deref()))?;
        match &report.result {
            Ok(result) => tool_answer(result),
            Err(error) => Err(with_hint(error.message.clone(), error.hint().as_deref())),
        }
    }

    /// The canonical name behind an exposed name; another name stays as it is.
    fn catalog_name(&self, principal: &Principal, name: String) -> String {
        if self.board.catalog().resolve(&name).is_ok() {
            return name;
        }
        let scope = self.sessions.scope_for(&Arc::default(), None, &principal.access);
        let cached = self.sessions.view_of(&scope, None);
        cached.view.reach(&name).map_or(name, |entry| entry.tool.name.to_string())
    }

    /// Reads or changes the values that correspond to entries of the configuration file.
    pub(crate) async fn config(
        &self,
        principal: &Principal,
        request: Map<String, Value>,
    ) -> ServiceAnswer {
        let request = ConfigRequest::read(request)?;
        let needed = if request.is_write() { Role::Admin } else { Role::Operator };
        if principal.effective_role() < needed {
            return Err(TrustGraphError::request(format!(
                "this needs the role {}, and the token has {}",
                needed.as_str(),
                principal.effective_role().as_str()
            )));
        }
        match request {
            ConfigRequest::Get(keys) => {
                let all = self.all_values()?;
                let found = keys.iter().filter_map(|ConfigKey { kind, key }| {
                    let (_, values) = all.iter().find(|(known, _)| known.as_str() == kind)?;
                    Some(shown(kind, entry_of(values, key)?))
                });
                Ok(json!({"values": found.collect::<Vec<_>>()}))
            }
            ConfigRequest::List(kind) => {
                let keys: Vec<_> = self.values(&kind)?.into_iter().map(|value| value.key).collect();
                Ok(json!({"directory": keys}))
            }
            ConfigRequest::GetValues(kind) => {
                let values: Vec<_> =
                    self.values(&kind)?.iter().map(|value| shown(&kind, value)).collect();
                Ok(json!({"values": values}))
            }
            ConfigRequest::GetValuesOfAllWorkspaces(kind) => {
                let in_workspace = |value: &ShownValue| {
                    let mut value = shown(&kind, value);
                    value["workspace"] = json!("default");
                    value
                };
                let values: Vec<_> = self.values(&kind)?.iter().map(in_workspace).collect();
                Ok(json!({"values": values}))
            }
            ConfigRequest::Config => {
                let mut config = Map::new();
                for (kind, values) in self.all_values()? {
                    let values: Map<_, _> = values
                        .into_iter()
                        .map(|value| (value.key, json!(Value::from(value.value).to_string())))
                        .collect();
                    config.insert(kind.as_str().to_owned(), values.into());
                }
                let version = self.live()?.state().revision;
                Ok(json!({"config": config, "version": version}))
            }
            ConfigRequest::Put(values) => self.put(values).await,
            ConfigRequest::Delete(keys) => self.delete(keys).await,
        }
    }

    fn live(&self) -> Result<&Arc<LiveConfig>, TrustGraphError> {
        self.config.as_ref().ok_or_else(|| TrustGraphError::config(EditError::NoFile.to_string()))
    }

    fn entries(&self, list: EntryList) -> Result<Vec<WrittenEntry>, TrustGraphError> {
        self.live()?.entries(list).map_err(|error| refused(&error))
    }

    /// All values of a type. Types without a counterpart here have none.
    fn values(&self, kind: &str) -> Result<Vec<ShownValue>, TrustGraphError> {
        ValueType::from_word(kind).map_or_else(|| Ok(Vec::new()), |kind| self.values_of(kind))
    }

    fn values_of(&self, kind: ValueType) -> Result<Vec<ShownValue>, TrustGraphError> {
        let entries = self.entries(list_of(kind))?;
        let entries = entries.iter().map(|entry| &entry.fields);
        Ok(match kind {
            ValueType::Tool => shown_tools(entries),
            ValueType::Mcp => shown_servers(entries),
        })
    }

    fn all_values(&self) -> Result<Vec<(ValueType, Vec<ShownValue>)>, TrustGraphError> {
        ValueType::ALL.into_iter().map(|kind| Ok((kind, self.values_of(kind)?))).collect()
    }

    async fn put(&self, values: Vec<ConfigValue>) -> ServiceAnswer {
        let (tools, servers) = (self.entries(EntryList::Tools)?, self.entries(EntryList::Servers)?);
        let fields = |entries: &[WrittenEntry]| -> Vec<WrittenFields> {
            entries.iter().map(|entry| entry.fields.clone()).collect()
        };
        let (tool_fields, server_fields) = (fields(&tools), fields(&servers));
        let tool_fields: Vec<_> = tool_fields.iter().collect();
        let server_fields: Vec<_> = server_fields.iter().collect();
        let mut edits = Vec::new();
        for ConfigValue { kind, key, value } in values {
            match ValueType::from_word(&kind) {
                Some(ValueType::Tool) => edits.push(put_tool(&tool_fields, &key, &value)?),
                Some(ValueType::Mcp) => {
                    let put = put_server(&server_fields, &key, &value)?;
                    if let Some(address) = put.new_address {
                        let checked = self.board.check_address(address.as_str()).await;
                        checked.map_err(|error| TrustGraphError::config(error.to_string()))?;
                    }
                    edits.push(put.edit);
                }
                None => return Err(no_such_type(&kind)),
            }
        }
        // A single change is made to the entry that it was computed from, or not at all.
        let expected = match edits.as_slice() {
            [ConfigEdit::Patch { list, name, .. }] => {
                let entries = if *list == EntryList::Tools { &tools } else { &servers };
                let is_meant =
                    |entry: &&WrittenEntry| entry.fields.get("name") == Some(&json!(name));
                let present = entries.iter().find(is_meant);
                let expected = present
                    .map_or(ExpectedEntry::Absent, |entry| ExpectedEntry::Tag(entry.tag.clone()));
                Some((*list, name.clone(), expected))
            }
            _ => None,
        };
        self.edit(expected, edits).await
    }

    async fn delete(&self, keys: Vec<ConfigKey>) -> ServiceAnswer {
        let all = self.all_values()?;
        let tools = self.entries(EntryList::Tools)?;
        let tools: Vec<_> = tools.iter().map(|entry| &entry.fields).collect();
        let mut edits = Vec::new();
        for ConfigKey { kind, key } in keys {
            let found = all.iter().find(|(known, _)| known.as_str() == kind);
            let (known, values) = found.ok_or_else(|| no_such_type(&kind))?;
            let Some(value) = entry_of(values, &key) else {
                return Err(TrustGraphError::config(format!("there is no {kind} '{key}'")));
            };
            edits.push(match known {
                ValueType::Tool => delete_tool(&tools, value)?,
                ValueType::Mcp => {
                    ConfigEdit::Remove { list: EntryList::Servers, name: value.entry.clone() }
                }
            });
        }
        self.edit(None, edits).await
    }

    async fn edit(
        &self,
        expected: Option<(EntryList, String, ExpectedEntry)>,
        edits: Vec<ConfigEdit>,
    ) -> ServiceAnswer {
        if edits.is_empty() {
            return Ok(json!({}));
        }
        let edited = self.live()?.edit(expected, edits).await;
        edited.map(|_applied| json!({})).map_err(|error| refused(&error))
    }
}

fn list_of(kind: ValueType) -> EntryList {
    match kind {
        ValueType::Tool => EntryList::Tools,
        ValueType::Mcp => EntryList::Servers,
    }
}

fn shown(kind: &str, value: &ShownValue) -> Value {
    let text = Value::from(value.value.clone()).to_string();
    json!({"type": kind, "key": value.key, "value": text})
}

fn no_such_type(kind: &str) -> TrustGraphError {
    let kind: String = kind.chars().take(64).collect();
    TrustGraphError::config(format!(
        "values of the type '{kind}' have no counterpart here; Switchboard has tool and mcp"
    ))
}

fn with_hint(message: String, hint: Option<&str>) -> TrustGraphError {
    TrustGraphError::tool(match hint {
        Some(hint) => format!("{message}; {hint}"),
        None => message,
    })
}

fn refused(error: &EditError) -> TrustGraphError {
    let message = error.to_string();
    let message = message.trim_end();
    TrustGraphError::config(match error.hint() {
        Some(hint) => format!("{message}; {hint}"),
        None => message.to_owned(),
    })
}
