//! One request of a turn to the provider.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Method};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use switchboard_providers::{PassedRequest, PassedResponse, ProviderEndpoint};
use switchboard_splice::{Api, Refusal, RefusalKind};

use crate::demo_answer::{DemoFrames, DemoRound};
use crate::translated_answer::{TranslatedAnswer, Translation};
use crate::{AppCall, AppCredential, Failure};

/// The characters of a model's name that would end a segment of a path.
const IN_PATH: &AsciiSet = &CONTROLS.add(b' ').add(b'?').add(b'#').add(b'%').add(b'"');

/// The answer to one request of a turn.
#[derive(Debug)]
pub(crate) enum RoundAnswer {
    Passed(Box<PassedResponse>),
    Translated(Box<TranslatedAnswer>),
    Demo(DemoFrames),
    DemoWhole(Bytes),
}

impl RoundAnswer {
    /// Headers that the app gets.
    pub(crate) fn headers(&self) -> HeaderMap {
        match self {
            Self::Passed(response) => response.headers.clone(),
            Self::Translated(_) | Self::Demo(_) | Self::DemoWhole(_) => HeaderMap::new(),
        }
    }

    /// The next piece; `None` after the last one. Cancel-safe.
    pub(crate) async fn chunk(&mut self) -> Result<Option<Bytes>, Failure> {
        match self {
            Self::Passed(response) => Ok(response.chunk().await?),
            Self::Translated(answer) => answer.chunk().await,
            Self::Demo(frames) => Ok(frames.chunk().await),
            Self::DemoWhole(body) => Ok(Some(std::mem::take(body)).filter(|body| !body.is_empty())),
        }
    }

    /// The whole body, if it has at most `most` bytes.
    pub(crate) async fn whole(self, most: usize) -> Result<Bytes, Failure> {
        match self {
            Self::Passed(response) => Ok(response.whole(most).await?),
            Self::Translated(answer) => answer.whole().await,
            Self::DemoWhole(body) => Ok(body),
            Self::Demo(_) => Ok(Bytes::new()),
        }
    }
}

/// Where the requests of a turn go, and what they have in common.
#[derive(Debug)]
pub(crate) struct Upstream {
    pub(crate) endpoint: Arc<ProviderEndpoint>,
    pub(crate) method: Method,
    /// The path below the address of the provider, with its query.
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    /// The name of the board's credential; `None` is the default one.
    pub(crate) credential: Option<String>,
    /// The app's own credential, if the configuration lets it pass.
    pub(crate) app_credential: Option<AppCredential>,
    pub(crate) session: Arc<str>,
    pub(crate) is_streamed: bool,
    /// Set if the provider does not speak the app's API.
    pub(crate) translation: Option<Translation>,
}

impl Upstream {
    /// Asks for an answer, and waits for the head of a successful response. `round` is unique for the request; `demo` is the
    /// request if the demo model answers.
    pub(crate) async fn ask(
        &self,
        body: Bytes,
        round: String,
        demo: Option<DemoRound>,
    ) -> Result<RoundAnswer, Failure> {
        if let Some(translation) = &self.translation {
            let credential = self.credential.as_deref();
            let asked =
                translation.ask(&self.endpoint, credential, &self.session, round, &body).await?;
            return Ok(RoundAnswer::Translated(Box::new(asked)));
        }
        let Some(demo) = demo else {
            return Ok(RoundAnswer::Passed(Box::new(self.send(body).await?)));
        };
        Ok(if self.is_streamed {
            RoundAnswer::Demo(demo.streamed(&self.endpoint).await?)
        } else {
            RoundAnswer::DemoWhole(demo.whole(&self.endpoint).await?)
        })
    }

    /// Sends a request and waits for the head of a successful response.
    pub(crate) async fn send(&self, body: Bytes) -> Result<PassedResponse, Failure> {
        if self.translation.is_some() {
            let plan = self.endpoint.plan();
            let text = format!(
                "the provider `{}` of the kind `{}` does not speak this API: only answers with the tools of a session are \
                 carried over to it, and neither requests with `x-switchboard-inject: off` nor counts of tokens nor lists of models",
                plan.name,
                plan.kind.as_str()
            );
            return Err(Refusal::new(RefusalKind::Invalid, text).into());
        }
        let app_credential =
            self.app_credential.as_ref().map(|own| (own.header.clone(), own.value.clone()));
        let request = PassedRequest {
            method: self.method.clone(),
            path: &self.path,
            headers: &self.headers,
            body,
            session: &self.session,
            credential: self.credential.as_deref(),
            app_credential,
            is_streamed: self.is_streamed,
        };
        let passed = self.endpoint.pass(request).await;
        passed.map_err(|fault| Failure::of(fault, self.app_credential.is_some()))
    }
}

/// The path of a provider for an answer.
pub(crate) fn answer_path(call: &AppCall, api: Api, model: &str, is_streamed: bool) -> String {
    let query = call.query.as_deref();
    let path = match api {
        Api::Responses => "/responses".to_owned(),
        Api::Chat => "/chat/completions".to_owned(),
        Api::Messages => "/v1/messages".to_owned(),
        Api::Gemini => {
            let action = if is_streamed { "streamGenerateContent" } else { "generateContent" };
            gemini_path(call.version, model, action)
        }
    };
    let query = match (api, is_streamed) {
        (Api::Gemini, true) => Some(as_events(query)),
        _ => query.map(str::to_owned),
    };
    with_query(path, query.as_deref())
}

/// The path of a provider for a number of tokens.
pub(crate) fn count_path(call: &AppCall, api: Api, model: &str) -> String {
    let path = match api {
        Api::Responses | Api::Chat => "/responses/input_tokens".to_owned(),
        Api::Messages => "/v1/messages/count_tokens".to_owned(),
        Api::Gemini => gemini_path(call.version, model, "countTokens"),
    };
    with_query(path, call.query.as_deref())
}

pub(crate) fn with_query(path: String, query: Option<&str>) -> String {
    match query.filter(|query| !query.is_empty()) {
        Some(query) => format!("{path}?{query}"),
        None => path,
    }
}

fn gemini_path(version: &str, model: &str, action: &str) -> String {
    let model = utf8_percent_encode(model, IN_PATH);
    format!("/{version}/models/{model}:{action}")
}

/// The query of a stream: without `alt=sse`, Gemini answers with one JSON array.
fn as_events(query: Option<&str>) -> String {
    let others = query.unwrap_or_default().split('&');
    let others = others.filter(|part| !part.is_empty() && !part.starts_with("alt="));
    std::iter::once("alt=sse").chain(others).collect::<Vec<_>>().join("&")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_of_gemini_is_asked_for_as_events() {
        assert_eq!(as_events(None), "alt=sse");
        assert_eq!(as_events(Some("alt=json&x=1")), "alt=sse&x=1");
        assert_eq!(with_query("/p".into(), Some("beta=true")), "/p?beta=true");
        assert_eq!(with_query("/p".into(), Some("")), "/p");
        let path = gemini_path("v1", "a?b", "countTokens");
        assert_eq!(path, "/v1/models/a%3Fb:countTokens");
    }
}
