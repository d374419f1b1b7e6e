//! An app that writes the requests of each API itself, with spaces and members of its own.

use reqwest::header::HeaderMap;
use reqwest::{RequestBuilder, Response};
use serde_json::{Value, json};

use crate::lab::{ANTHROPIC, Account, CHAT, GEMINI, Lab, OPENAI};

/// The API that an app speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    Responses,
    Chat,
    Messages,
    Gemini,
}

/// A complete answer.
#[derive(Debug)]
pub(crate) struct Heard {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

impl Heard {
    pub(crate) async fn of(response: Response) -> Self {
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        Self { status, headers, text: response.text().await.unwrap() }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The body of a successful answer that is no stream.
    #[track_caller]
    pub(crate) fn body(&self) -> Value {
        assert_eq!(self.status, 200, "{}", self.text);
        serde_json::from_str(&self.text).unwrap()
    }
}

impl Dialect {
    pub(crate) const ALL: [Self; 4] = [Self::Responses, Self::Chat, Self::Messages, Self::Gemini];

    pub(crate) fn account(self) -> Account {
        match self {
            Self::Responses => OPENAI,
            Self::Chat => CHAT,
            Self::Messages => ANTHROPIC,
            Self::Gemini => GEMINI,
        }
    }

    pub(crate) fn path(self, is_streamed: bool) -> &'static str {
        match self {
            Self::Responses => "/openai/v1/responses",
            Self::Chat => "/openai/v1/chat/completions",
            Self::Messages => "/anthropic/v1/messages",
            Self::Gemini if is_streamed => {
                "/gemini/v1beta/models/gemini-3.1-pro-preview:streamGenerateContent?alt=sse"
            }
            Self::Gemini => "/gemini/v1beta/models/gemini-3.1-pro-preview:generateContent",
        }
    }

    /// The member of a request that has the conversation.
    pub(crate) fn conversation(self) -> &'static str {
        match self {
            Self::Responses => "input",
            Self::Chat | Self::Messages => "messages",
            Self::Gemini => "contents",
        }
    }

    /// A message of the user.
    pub(crate) fn said(self, text: &str) -> String {
        match self {
            Self::Gemini => format!(r#"{{"role": "user", "parts":[{{"text":"{text}"}}]}}"#),
            Self::Responses | Self::Chat | Self::Messages => {
                format!(r#"{{"role": "user", "content":"{text}"}}"#)
            }
        }
    }

    /// The declaration of a tool of the app.
    pub(crate) fn tool(self, name: &str) -> String {
        let schema = r#"{ "type":"object", "properties":{"city":{"type":"string"}}, "required":["city"], "additionalProperties":false }"#;
        match self {
            Self::Responses => format!(
                r#"{{"type":"function","name":"{name}", "description":"About","parameters":{schema},"strict":false}}"#
            ),
            Self::Chat => format!(
                r#"{{"type":"function","function":{{"name":"{name}", "description":"About","parameters":{schema}}}}}"#
            ),
            Self::Messages => {
                format!(r#"{{"name":"{name}", "description":"About","input_schema":{schema}}}"#)
            }
            Self::Gemini => {
                format!(
                    r#"{{"name":"{name}", "description":"About","parametersJsonSchema":{schema}}}"#
                )
            }
        }
    }

    /// The value of `tools`.
    pub(crate) fn tools(self, declarations: &[String]) -> String {
        let list = declarations.join(", ");
        match self {
            Self::Gemini => format!(r#"[{{"functionDeclarations":[{list}]}}]"#),
            Self::Responses | Self::Chat | Self::Messages => format!("[{list}]"),
        }
    }

    /// A request. `more` are further members, each followed by a comma.
    pub(crate) fn request(self, conversation: &[String], more: &str, is_streamed: bool) -> String {
        let said = conversation.join(", ");
        let name = self.conversation();
        match self {
            Self::Gemini => format!(r#"{{{more} "{name}": [{said}]}}"#),
            Self::Responses => format!(
                r#"{{"model":"gpt-5.5", "store":false, {more} "{name}": [{said}], "stream":{is_streamed}}}"#
            ),
            Self::Chat => {
                format!(r#"{{"model":"llama", {more} "{name}": [{said}], "stream":{is_streamed}}}"#)
            }
            Self::Messages => format!(
                r#"{{"model":"claude-opus-5-5", "max_tokens":1000, {more} "{name}": [{said}], "stream":{is_streamed}}}"#
            ),
        }
    }

    /// What an app keeps of an answer for its next request.
    pub(crate) fn reply(self, body: &Value) -> Vec<String> {
        match self {
            Self::Responses => {
                body["output"].as_array().unwrap().iter().map(Value::to_string).collect()
            }
            Self::Chat => vec![body["choices"][0]["message"].to_string()],
            Self::Messages => {
                vec![json!({"role": "assistant", "content": body["content"]}).to_string()]
            }
            Self::Gemini => vec![body["candidates"][0]["content"].to_string()],
        }
    }

    /// The calls of the app in an answer: name and id, where there are ids.
    pub(crate) fn calls(self, body: &Value) -> Vec<(String, Value)> {
        let list = match self {
            Self::Responses => &body["output"],
            Self::Chat => &body["choices"][0]["message"]["tool_calls"],
            Self::Messages => &body["content"],
            Self::Gemini => &body["candidates"][0]["content"]["parts"],
        };
        let found = list.as_array().into_iter().flatten().filter_map(|each| {
            let (call, id) = match self {
                Self::Responses if each["type"] == "function_call" => (each, "call_id"),
                Self::Chat => (&each["function"], "id"),
                Self::Messages if each["type"] == "tool_use" => (each, "id"),
                Self::Gemini => (each.get("functionCall")?, "id"),
                Self::Responses | Self::Messages => return None,
            };
            Some((call["name"].as_str().unwrap().to_owned(), each[id].clone()))
        });
        found.collect()
    }

    /// The app's result of a call, as a part of the conversation.
    pub(crate) fn result(self, name: &str, id: &Value, text: &str) -> String {
        match self {
            Self::Responses => {
                json!({"type": "function_call_output", "call_id": id, "output": text})
            }
            Self::Chat => json!({"role": "tool", "tool_call_id": id, "content": text}),
            Self::Messages => {
                json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": text}]})
            }
            Self::Gemini => {
                json!({"role": "user", "parts": [{"functionResponse": {"name": name, "response": {"output": text}}}]})
            }
        }
        .to_string()
    }
}

impl Lab {
    /// A request of an app. `place` is empty, or the session such as `/s/work`.
    pub(crate) fn app(
        &self,
        place: &str,
        dialect: Dialect,
        is_streamed: bool,
        body: String,
    ) -> RequestBuilder {
        self.app_at(&format!("{place}{}", dialect.path(is_streamed)), dialect, body)
    }

    /// A request of an app for this path.
    pub(crate) fn app_at(&self, path: &str, dialect: Dialect, body: String) -> RequestBuilder {
        let request = self.serve.http.post(self.serve.at(path));
        let request = request.header("content-type", "application/json");
        let request = match dialect {
            Dialect::Messages => request.header("anthropic-version", "2023-06-01"),
            Dialect::Responses | Dialect::Chat | Dialect::Gemini => request,
        };
        request.body(body)
    }

    /// The answer to a request that asks for no stream, of the session of the credential.
    pub(crate) async fn ask_whole(&self, dialect: Dialect, body: String) -> Heard {
        Heard::of(self.app("", dialect, false, body).send().await.unwrap()).await
    }
}
