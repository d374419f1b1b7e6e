//! An app's request to its provider.

use std::collections::HashMap;

use bytes::Bytes;

use crate::put_back::{self, RecordKey, TurnRecord};
use crate::raw_json::{RawObject, to_raw};
use crate::request_format::{ConversationUnit, RequestFormat, RoundBody};
use crate::{Api, Refusal, RefusalKind, SessionTools, dispatch};

/// An app's request, of which only the necessary parts are read.
#[derive(Debug)]
pub struct AppRequest {
    api: Api,
    pub(crate) format: Box<dyn RequestFormat>,
    /// The conversation as the app sees it, without what is put back: the app's next request begins with it.
    pub(crate) units: Vec<ConversationUnit>,
}

/// What the turn must know of a request.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a wish of the app, independent of the others"
)]
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RequestFacts {
    pub model: String,
    pub is_streamed: bool,
    /// The names of the tools that the app declares.
    pub app_tools: Vec<String>,
    /// Whether the app asks for output of a certain format. Then text of a round that ends in calls is not shown.
    pub wants_format: bool,
    /// Whether the app asks for the token usage at the end of a stream.
    pub wants_usage: bool,
    /// Whether the app can be shown calls that ran here, without having asked for it.
    pub shows_calls: bool,
    /// Whether the app names beta features of the API.
    pub is_beta: bool,
    /// Whether the stream is one JSON array instead of server-sent events.
    pub is_json_array: bool,
    /// The maximum number of calls that run here.
    pub max_tool_calls: Option<u32>,
    /// The maximum of output tokens of the whole answer.
    pub max_output_tokens: Option<u64>,
    /// The id of an earlier answer that the request goes on from.
    pub previous_answer: Option<String>,
    /// Whether the app may ask for the answer later by its id.
    pub is_stored: bool,
}

/// What the address and the headers of a request say.
#[derive(Debug, Clone, Default)]
pub struct RequestTarget {
    /// The model, where the path names it.
    pub model: Option<String>,
    /// Whether a stream is asked for, where the path says it.
    pub is_streamed: Option<bool>,
    /// Whether a stream is wanted as one JSON array, as Gemini's without `alt=sse`. The provider is asked for events all the
    /// same, and the app gets `application/json`.
    pub is_json_array: bool,
    /// The beta features that a header names.
    pub betas: Vec<String>,
}

impl AppRequest {
    /// Reads a request. Refuses what cannot be done with several rounds.
    pub fn read(api: Api, target: &RequestTarget, body: &[u8]) -> Result<Self, Refusal> {
        let text = std::str::from_utf8(body)
            .map_err(|_| Refusal::new(RefusalKind::Invalid, "the body is not UTF-8"))?;
        let format = dispatch::format(api, target, text)?;
        Ok(Self { api, units: format.units(), format })
    }

    pub fn api(&self) -> Api {
        self.api
    }

    pub fn facts(&self) -> &RequestFacts {
        self.format.facts()
    }

    /// The keys under which records of earlier turns may be stored.
    pub fn record_keys(&self) -> Vec<RecordKey> {
        let mut keys = put_back::keys(self.api, &*self.format, &self.units);
        let previous = self.facts().previous_answer.as_deref();
        keys.extend(previous.map(|id| RecordKey::of_answer(self.api, id)));
        keys
    }

    /// Puts the hidden rounds of earlier turns back. Refuses a request that names an answer which is no longer known.
    pub fn put_back(&mut self, records: &HashMap<RecordKey, TurnRecord>) -> Result<(), Refusal> {
        put_back::put_back(self.api, &mut *self.format, records)
    }

    /// The body of a request that counts tokens, with the tools of the session.
    pub fn count_body(&self, tools: &SessionTools) -> Bytes {
        self.format.count_body(&RoundBody {
            tools: tools.declarations(),
            appended: &[],
            is_first: true,
            output_left: None,
            container: None,
        })
    }
}

/// The body of a request with another model. The other members keep their bytes and their order.
pub fn with_model(body: &[u8], model: &str) -> Result<Bytes, Refusal> {
    let unreadable = |error: serde_json::Error| {
        Refusal::new(RefusalKind::Invalid, format!("the body is not a JSON object: {error}"))
    };
    let mut object: RawObject = serde_json::from_slice(body).map_err(unreadable)?;
    object.set("model", to_raw(&model));
    Ok(object.to_json().into())
}
