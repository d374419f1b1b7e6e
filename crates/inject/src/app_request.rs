//! An app's request as the HTTP server hands it over.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use switchboard_model::Caller;
use switchboard_sessions::Session;
use switchboard_splice::RequestTarget;

use crate::{ApiFamily, Operation};

/// Whether tools are added: `off` sends the request to the provider as it is.
const INJECT: HeaderName = HeaderName::from_static("x-switchboard-inject");
/// Whether the app is shown the calls that ran here: `calls` or `none`.
const SHOW: HeaderName = HeaderName::from_static("x-switchboard-show");
/// The number of attempts that the SDKs of OpenAI and Anthropic made before this one.
const RETRY_COUNT: HeaderName = HeaderName::from_static("x-stainless-retry-count");
const BETAS: HeaderName = HeaderName::from_static("anthropic-beta");

/// A request of an app whose credentials and session have been checked.
#[derive(Debug)]
pub struct AppCall {
    pub family: ApiFamily,
    /// The version of the API in the path.
    pub version: &'static str,
    pub operation: Operation,
    pub session: Arc<Session>,
    pub caller: Caller,
    pub headers: HeaderMap,
    /// The query without credentials.
    pub query: Option<String>,
    pub body: Bytes,
    /// The app's own credential for the provider.
    pub app_credential: Option<AppCredential>,
}

/// An app's own credential for its provider, in the header in which the provider takes it.
#[derive(Debug, Clone)]
pub struct AppCredential {
    pub header: HeaderName,
    pub value: HeaderValue,
}

impl AppCall {
    fn header(&self, name: &HeaderName) -> Option<&str> {
        self.headers.get(name)?.to_str().ok().map(str::trim)
    }

    /// Whether the session's tools are added.
    pub(crate) fn is_injected(&self) -> bool {
        self.header(&INJECT).is_none_or(|word| !word.eq_ignore_ascii_case("off"))
    }

    /// Whether the app asks to be shown the calls that ran here; `None` leaves it to the API.
    pub(crate) fn shows_calls(&self) -> Option<bool> {
        match self.header(&SHOW)? {
            word if word.eq_ignore_ascii_case("calls") => Some(true),
            word if word.eq_ignore_ascii_case("none") => Some(false),
            _ => None,
        }
    }

    /// Whether the SDK says that it sends the request again.
    pub(crate) fn is_retry(&self) -> bool {
        self.header(&RETRY_COUNT)
            .and_then(|count| count.parse::<u32>().ok())
            .is_some_and(|count| count > 0)
    }

    /// What the address and the headers say, with the model and the kind of answer that the path names.
    pub(crate) fn target(&self, model: Option<String>, is_streamed: Option<bool>) -> RequestTarget {
        let has_events = || {
            let query = self.query.as_deref().unwrap_or_default();
            query.split('&').any(|part| part == "alt=sse")
        };
        // Google's API answers a stream without `alt=sse` with an array that arrives piece by piece.
        let is_json_array =
            self.family == ApiFamily::Gemini && is_streamed == Some(true) && !has_events();
        RequestTarget { model, is_streamed, is_json_array, betas: self.betas() }
    }

    /// The beta features that the app names.
    fn betas(&self) -> Vec<String> {
        let values = self.headers.get_all(BETAS).iter().filter_map(|value| value.to_str().ok());
        let words = values.flat_map(|value| value.split(',')).map(str::trim);
        words.filter(|word| !word.is_empty()).map(str::to_owned).collect()
    }
}
