//! The addresses that apps use: what each one asks for.

use http::Method;
use switchboard_splice::{Api, Refusal, RefusalKind};

/// A group of APIs with one base address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ApiFamily {
    OpenAi,
    Anthropic,
    Gemini,
}

impl ApiFamily {
    const ALL: [Self; 3] = [Self::OpenAi, Self::Anthropic, Self::Gemini];

    /// The beginning of its paths, before the version.
    fn base(self) -> &'static str {
        match self {
            Self::OpenAi => "openai/",
            Self::Anthropic => "anthropic/",
            Self::Gemini => "gemini/",
        }
    }

    /// The versions of the API. The provider is asked for the version that the app asked for.
    fn versions(self) -> &'static [&'static str] {
        match self {
            Self::OpenAi | Self::Anthropic => &["v1"],
            Self::Gemini => &["v1beta", "v1", "v1alpha"],
        }
    }

    /// An API whose words its errors use.
    pub fn api(self) -> Api {
        match self {
            Self::OpenAi => Api::Chat,
            Self::Anthropic => Api::Messages,
            Self::Gemini => Api::Gemini,
        }
    }

    fn served(self) -> &'static str {
        match self {
            Self::OpenAi => {
                "POST responses, GET and DELETE responses/{id}, POST responses/input_tokens, POST chat/completions, \
                 GET models and GET models/{id}"
            }
            Self::Anthropic => {
                "POST messages, POST messages/count_tokens, GET models and GET models/{id}"
            }
            Self::Gemini => {
                "POST models/{model}:generateContent, :streamGenerateContent and :countTokens, GET models and \
                 GET models/{model}"
            }
        }
    }
}

/// What an app's request asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operation {
    /// An answer of a model. Gemini names the model, and whether it streams, in the path.
    Answer {
        api: Api,
        model: Option<String>,
        is_streamed: Option<bool>,
    },
    /// The number of tokens of a request.
    Count {
        api: Api,
        model: Option<String>,
    },
    /// The models of the provider, or one of them.
    Models {
        id: Option<String>,
    },
    /// An answer that was stored.
    StoredAnswer {
        id: String,
    },
    DeleteStoredAnswer {
        id: String,
    },
}

/// The path of an app's request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppRoute {
    pub family: ApiFamily,
    /// The id of the session, percent-encoded as in the path; `None` is the session of the credential.
    pub session: Option<String>,
    pub version: &'static str,
    /// The part of the path after the version.
    rest: String,
}

impl AppRoute {
    /// The route of a path; `None` if it is no path of an app.
    pub fn of(path: &str) -> Option<Self> {
        let path = path.strip_prefix('/')?;
        let (session, path) = match path.strip_prefix("s/") {
            Some(rest) => {
                let (session, path) = rest.split_once('/')?;
                (Some(session.to_owned()).filter(|session| !session.is_empty()), path)
            }
            None => (None, path),
        };
        ApiFamily::ALL.into_iter().find_map(|family| {
            let (version, rest) = path.strip_prefix(family.base())?.split_once('/')?;
            let version = family.versions().iter().find(|known| **known == version)?;
            Some(Self { family, session: session.clone(), version, rest: rest.to_owned() })
        })
    }

    /// What the request asks for.
    pub fn operation(&self, method: &Method) -> Result<Operation, Refusal> {
        let parts: Vec<_> = self.rest.trim_end_matches('/').split('/').collect();
        let operation = match self.family {
            ApiFamily::OpenAi => of_openai(method, &parts),
            ApiFamily::Anthropic => of_anthropic(method, &parts),
            ApiFamily::Gemini => of_gemini(method, &parts),
        };
        operation.ok_or_else(|| {
            let text = format!(
                "{method} {}{}/{} is not served here; served are {}",
                self.family.base(),
                self.version,
                self.rest,
                self.family.served()
            );
            Refusal::new(RefusalKind::NotFound, text)
        })
    }
}

fn of_openai(method: &Method, parts: &[&str]) -> Option<Operation> {
    let answer = |api| Operation::Answer { api, model: None, is_streamed: None };
    Some(match (method.as_str(), parts) {
        ("POST", ["responses"]) => answer(Api::Responses),
        ("POST", ["chat", "completions"]) => answer(Api::Chat),
        ("POST", ["responses", "input_tokens"]) => {
            Operation::Count { api: Api::Responses, model: None }
        }
        ("GET", ["responses", id]) => Operation::StoredAnswer { id: (*id).to_owned() },
        ("DELETE", ["responses", id]) => Operation::DeleteStoredAnswer { id: (*id).to_owned() },
        _ => return models(method, parts),
    })
}

fn of_anthropic(method: &Method, parts: &[&str]) -> Option<Operation> {
    Some(match (method.as_str(), parts) {
        ("POST", ["messages"]) => {
            Operation::Answer { api: Api::Messages, model: None, is_streamed: None }
        }
        ("POST", ["messages", "count_tokens"]) => {
            Operation::Count { api: Api::Messages, model: None }
        }
        _ => return models(method, parts),
    })
}

fn of_gemini(method: &Method, parts: &[&str]) -> Option<Operation> {
    let ["models", named @ ..] = parts else { return None };
    let named = named.join("/");
    let Some((model, action)) = named.rsplit_once(':') else { return models(method, parts) };
    if *method != Method::POST || model.is_empty() {
        return None;
    }
    let (api, model) = (Api::Gemini, Some(model.to_owned()));
    Some(match action {
        "generateContent" => Operation::Answer { api, model, is_streamed: Some(false) },
        "streamGenerateContent" => Operation::Answer { api, model, is_streamed: Some(true) },
        "countTokens" => Operation::Count { api, model },
        _ => return None,
    })
}

fn models(method: &Method, parts: &[&str]) -> Option<Operation> {
    match parts {
        ["models"] if *method == Method::GET => Some(Operation::Models { id: None }),
        // The names of some models contain slashes.
        ["models", id @ ..] if *method == Method::GET && id.iter().all(|part| !part.is_empty()) => {
            Some(Operation::Models { id: Some(id.join("/")) })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    fn read(method: &Method, path: &str) -> Option<(Option<String>, Option<Operation>)> {
        let route = AppRoute::of(path)?;
        Some((route.session.clone(), route.operation(method).ok()))
    }

    #[test]
    fn each_path_asks_for_one_thing() {
        let answer = |api| Operation::Answer { api, model: None, is_streamed: None };
        let gemini = |is_streamed| Operation::Answer {
            api: Api::Gemini,
            model: Some("gemini-3-pro".into()),
            is_streamed: Some(is_streamed),
        };
        let rows = [
            ("POST", "/openai/v1/responses", answer(Api::Responses)),
            ("POST", "/openai/v1/chat/completions", answer(Api::Chat)),
            ("POST", "/anthropic/v1/messages", answer(Api::Messages)),
            ("POST", "/gemini/v1beta/models/gemini-3-pro:generateContent", gemini(false)),
            ("POST", "/gemini/v1/models/gemini-3-pro:generateContent", gemini(false)),
            ("POST", "/gemini/v1beta/models/gemini-3-pro:streamGenerateContent", gemini(true)),
            (
                "POST",
                "/gemini/v1beta/models/m:countTokens",
                Operation::Count { api: Api::Gemini, model: Some("m".into()) },
            ),
            (
                "POST",
                "/anthropic/v1/messages/count_tokens",
                Operation::Count { api: Api::Messages, model: None },
            ),
            (
                "POST",
                "/openai/v1/responses/input_tokens",
                Operation::Count { api: Api::Responses, model: None },
            ),
            ("GET", "/openai/v1/responses/r1", Operation::StoredAnswer { id: "r1".into() }),
            (
                "DELETE",
                "/openai/v1/responses/r1",
                Operation::DeleteStoredAnswer { id: "r1".into() },
            ),
            ("GET", "/openai/v1/models", Operation::Models { id: None }),
            ("GET", "/anthropic/v1/models/", Operation::Models { id: None }),
            ("GET", "/openai/v1/models/a/b", Operation::Models { id: Some("a/b".into()) }),
            ("GET", "/gemini/v1beta/models/m", Operation::Models { id: Some("m".into()) }),
        ];
        for (method, path, expected) in rows {
            let method = Method::from_bytes(method.as_bytes()).unwrap();
            assert_eq!(read(&method, path), Some((None, Some(expected.clone()))), "{path}");
            let in_session = format!("/s/work{path}");
            let expected = Some((Some("work".to_owned()), Some(expected)));
            assert_eq!(read(&method, &in_session), expected, "{in_session}");
        }
    }

    #[test]
    fn other_paths_are_refused_or_not_of_apps() {
        for path in [
            "/openai/v1/embeddings",
            "/openai/v1/responses/r1/cancel",
            "/anthropic/v1/messages/batches",
            "/gemini/v1beta/models/m:batchGenerateContent",
            "/gemini/v1beta/files",
            "/openai/v1/",
        ] {
            assert_eq!(read(&Method::POST, path), Some((None, None)), "{path}");
        }
        assert_eq!(read(&Method::GET, "/openai/v1/chat/completions"), Some((None, None)));
        for path in ["/", "/openai", "/openai/v2/models", "/s/work", "/s/work/mcp", "/api/v1/x"] {
            assert_eq!(read(&Method::GET, path), None, "{path}");
        }
    }
}
