//! Requests of the configuration service.

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::error::TrustGraphError;

/// The types of values that correspond to parts of the configuration file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueType {
    Tool,
    Mcp,
}

impl ValueType {
    pub const ALL: [Self; 2] = [Self::Tool, Self::Mcp];

    /// The word of the protocol.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Mcp => "mcp",
        }
    }

    /// The type of this word; `None` for types that have no counterpart here.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == word)
    }
}

/// Names a value.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ConfigKey {
    #[serde(rename = "type")]
    pub kind: String,
    pub key: String,
}

/// A value with its name.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ConfigValue {
    #[serde(rename = "type")]
    pub kind: String,
    pub key: String,
    /// A JSON text.
    pub value: String,
}

/// A request of the configuration service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConfigRequest {
    Get(Vec<ConfigKey>),
    /// The keys of a type.
    List(String),
    /// The values of a type.
    GetValues(String),
    /// The values of a type, each with its workspace.
    GetValuesOfAllWorkspaces(String),
    /// Everything.
    Config,
    Put(Vec<ConfigValue>),
    Delete(Vec<ConfigKey>),
}

#[derive(Deserialize)]
struct RawRequest {
    operation: String,
    workspace: Option<String>,
    #[serde(rename = "type")]
    kind: Option<String>,
    keys: Option<Vec<ConfigKey>>,
    values: Option<Vec<ConfigValue>>,
}

/// The most values that one request sets or deletes.
const MAX_VALUES: usize = 1000;

impl ConfigRequest {
    /// Reads a request.
    pub fn read(request: Map<String, Value>) -> Result<Self, TrustGraphError> {
        let raw: RawRequest = serde_json::from_value(Value::Object(request)).map_err(|error| {
            TrustGraphError::request(format!("the request cannot be read: {error}"))
        })?;
        check_workspace(raw.workspace.as_deref())?;
        let missing = |member: &str| {
            TrustGraphError::request(format!("the operation '{}' needs `{member}`", raw.operation))
        };
        let keys = || raw.keys.clone().ok_or_else(|| missing("keys"));
        let kind = || raw.kind.clone().ok_or_else(|| missing("type"));
        let request = match raw.operation.as_str() {
            "get" => Self::Get(keys()?),
            "list" => Self::List(kind()?),
            "getvalues" => Self::GetValues(kind()?),
            "getvalues-all-ws" => Self::GetValuesOfAllWorkspaces(kind()?),
            "config" => Self::Config,
            "put" => Self::Put(raw.values.clone().ok_or_else(|| missing("values"))?),
            "delete" => Self::Delete(keys()?),
            other => {
                return Err(TrustGraphError::request(format!(
                    "the operation '{other}' does not exist; use get, getvalues, list, config, put or delete"
                )));
            }
        };
        let many = match &request {
            Self::Get(keys) | Self::Delete(keys) => keys.len(),
            Self::Put(values) => values.len(),
            Self::List(_)
            | Self::GetValues(_)
            | Self::GetValuesOfAllWorkspaces(_)
            | Self::Config => 0,
        };
        if many > MAX_VALUES {
            let message =
                format!("the request has {many} keys or values; at most {MAX_VALUES} are accepted");
            return Err(TrustGraphError::request(message));
        }
        Ok(request)
    }

    /// Whether the request changes the configuration.
    pub fn is_write(&self) -> bool {
        match self {
            Self::Put(_) | Self::Delete(_) => true,
            Self::Get(_)
            | Self::List(_)
            | Self::GetValues(_)
            | Self::GetValuesOfAllWorkspaces(_)
            | Self::Config => false,
        }
    }
}

/// Refuses other workspaces than `default`: there is one configuration, and a client that names another one would read and
/// change values that it does not mean.
pub(crate) fn check_workspace(workspace: Option<&str>) -> Result<(), TrustGraphError> {
    match workspace {
        None | Some("" | "default") => Ok(()),
        Some(other) => Err(TrustGraphError::request(format!(
            "there is no workspace '{other}': Switchboard has one configuration, the workspace 'default'"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(request: Value, expected: Result<ConfigRequest, &str>) {
        let Value::Object(request) = request else { panic!("not an object") };
        let read = ConfigRequest::read(request).map_err(|error| error.message);
        assert_eq!(read, expected.map_err(str::to_owned));
    }

    #[test]
    fn a_request_is_what_the_clients_send() {
        let key = ConfigKey { kind: "tool".into(), key: "a".into() };
        let keys = json!([{"type": "tool", "key": "a"}]);
        check(
            json!({"operation": "get", "workspace": "default", "keys": keys}),
            Ok(ConfigRequest::Get(vec![key.clone()])),
        );
        check(json!({"operation": "delete", "keys": keys}), Ok(ConfigRequest::Delete(vec![key])));
        check(
            json!({"operation": "put", "values": [{"type": "mcp", "key": "a", "value": "{}"}]}),
            Ok(ConfigRequest::Put(vec![ConfigValue {
                kind: "mcp".into(),
                key: "a".into(),
                value: "{}".into(),
            }])),
        );
        check(json!({"operation": "list", "type": "tool"}), Ok(ConfigRequest::List("tool".into())));
        check(
            json!({"operation": "getvalues", "type": "tool"}),
            Ok(ConfigRequest::GetValues("tool".into())),
        );
        check(json!({"operation": "config"}), Ok(ConfigRequest::Config));
    }

    #[test]
    fn a_request_that_cannot_be_used_says_why() {
        check(json!({"operation": "getvalues"}), Err("the operation 'getvalues' needs `type`"));
        check(json!({"operation": "put", "keys": []}), Err("the operation 'put' needs `values`"));
        check(
            json!({"operation": "dump"}),
            Err(
                "the operation 'dump' does not exist; use get, getvalues, list, config, put or delete",
            ),
        );
        check(
            json!({"operation": "config", "workspace": "sales"}),
            Err(
                "there is no workspace 'sales': Switchboard has one configuration, the workspace 'default'",
            ),
        );
        check(json!({}), Err("the request cannot be read: missing field `operation`"));
    }
}
