//! Frames that a client sends over the WebSocket, and the question for the agent.

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::config_request::check_workspace;
use crate::error::TrustGraphError;

/// The first frame of a connection.
#[derive(Clone, PartialEq, Eq)]
pub struct AuthFrame {
    /// Empty without credentials.
    pub token: String,
}

/// Leaves out the token.
impl std::fmt::Debug for AuthFrame {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("AuthFrame")
    }
}

impl AuthFrame {
    /// Reads the first frame.
    pub fn read(text: &str) -> Option<Self> {
        #[derive(Deserialize)]
        struct RawFrame {
            #[serde(rename = "type")]
            kind: String,
            #[serde(default)]
            token: String,
        }
        let RawFrame { kind, token } = serde_json::from_str(text).ok()?;
        (kind == "auth").then_some(Self { token })
    }
}

/// A request over the WebSocket.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct SocketRequest {
    /// Returned with every frame of the answer.
    pub id: String,
    pub service: String,
    pub workspace: Option<String>,
    #[serde(default)]
    pub request: Map<String, Value>,
}

/// The longest id of a request.
const LONGEST_ID: usize = 256;

impl SocketRequest {
    /// Reads a frame. The error names what is wrong with it.
    pub fn read(text: &str) -> Result<Self, TrustGraphError> {
        let refuse = |why: String| {
            TrustGraphError::request(format!(
                "a request is an object with id, service and request: {why}"
            ))
        };
        let request: Self =
            serde_json::from_str(text).map_err(|error| refuse(error.to_string()))?;
        if request.id.len() > LONGEST_ID {
            return Err(refuse(format!("its id is longer than {LONGEST_ID} bytes")));
        }
        Ok(request)
    }

    /// Refuses a workspace that does not exist.
    pub fn check_workspace(&self) -> Result<(), TrustGraphError> {
        check_workspace(self.workspace.as_deref())
    }
}

/// A question for the agent.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentRequest {
    pub question: String,
    /// Whether thoughts and the answer are sent in pieces, as the model writes them.
    pub is_streaming: bool,
    pub state: Option<String>,
    pub groups: Option<Vec<String>>,
}

#[derive(Deserialize)]
struct RawAgentRequest {
    question: String,
    #[serde(default)]
    streaming: bool,
    workspace: Option<String>,
    state: Option<String>,
    group: Option<Vec<String>>,
    pattern: Option<String>,
    history: Option<Vec<Value>>,
}

impl AgentRequest {
    /// Reads a question. Members about TrustGraph's own data, such as `collection`, are ignored.
    pub fn read(request: Map<String, Value>) -> Result<Self, TrustGraphError> {
        let raw: RawAgentRequest =
            serde_json::from_value(Value::Object(request)).map_err(|error| {
                TrustGraphError::request(format!("the question cannot be read: {error}"))
            })?;
        check_workspace(raw.workspace.as_deref())?;
        if let Some(pattern) = raw.pattern.filter(|pattern| pattern != "react") {
            return Err(TrustGraphError::agent(format!(
                "the pattern '{pattern}' does not exist here; the agent of Switchboard follows `react`"
            )));
        }
        if raw.history.is_some_and(|history| !history.is_empty()) {
            return Err(TrustGraphError::agent(
                "`history` is not supported: each question begins a new conversation",
            ));
        }
        Ok(Self {
            question: raw.question,
            is_streaming: raw.streaming,
            state: raw.state,
            groups: raw.group,
        })
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use serde_json::json;

    use super::*;

    #[test]
    fn the_first_frame_has_the_token() {
        let read = |text: &str| AuthFrame::read(text).map(|frame| frame.token);
        assert_eq!(read(r#"{"type":"auth","token":"abc"}"#), Some("abc".into()));
        assert_eq!(read(r#"{"type":"auth"}"#), Some(String::new()));
        for other in [r#"{"type":"hello","token":"abc"}"#, r#"{"id":"req-1"}"#, "abc", "[]"] {
            assert_eq!(read(other), None, "{other}");
        }
    }

    #[track_caller]
    fn check(request: Value, expected: Result<AgentRequest, &str>) {
        let Value::Object(request) = request else { panic!("not an object") };
        let read = AgentRequest::read(request).map_err(|error| error.message);
        assert_eq!(read, expected.map_err(str::to_owned));
    }

    #[test]
    fn a_question_has_groups_and_a_state() {
        let question = |is_streaming, state: Option<&str>, groups: Option<&[&str]>| AgentRequest {
            question: "why?".into(),
            is_streaming,
            state: state.map(str::to_owned),
            groups: groups.map(|groups| groups.iter().map(|it| (*it).to_owned()).collect()),
        };
        check(json!({"question": "why?"}), Ok(question(false, None, None)));
        check(
            json!({"question": "why?", "streaming": true, "state": "s", "group": ["a", "b"],
                   "collection": "default", "history": [], "pattern": "react"}),
            Ok(question(true, Some("s"), Some(&["a", "b"]))),
        );
        check(
            json!({"question": "why?", "pattern": "supervisor"}),
            Err(
                "the pattern 'supervisor' does not exist here; the agent of Switchboard follows `react`",
            ),
        );
        check(
            json!({"question": "why?", "history": [{"role": "user", "content": "x"}]}),
            Err("`history` is not supported: each question begins a new conversation"),
        );
        check(json!({}), Err("the question cannot be read: missing field `question`"));
    }
}
