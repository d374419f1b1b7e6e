//! A whole conversation: its validity rules, and its exported JSON form.

use std::collections::{HashMap, HashSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::history_v1;
use crate::{Message, Reply, ToolCall, ToolReturn};

/// The format version of exported conversations.
pub const HISTORY_VERSION: u64 = 1;

/// Maximum number of messages of a conversation.
const MAX_MESSAGES: usize = 100_000;

/// Content of the result that stands in for a missing one.
const UNKNOWN_RESULT: &str = "The result of this call is not known: the conversation was interrupted while it ran. It may have taken effect. Check before calling it again.";

/// A conversation as the API exports and imports it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct History {
    pub version: u64,
    pub messages: Vec<Message>,
}

/// Why a document cannot be imported as a conversation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HistoryError {
    #[error("invalid JSON: {0}")]
    NotJson(String),
    #[error("not a conversation: expected an object with `version` and `messages`")]
    NotHistory,
    #[error("unsupported conversation version {0}; supported are {HISTORY_VERSION} and `v1`")]
    Version(String),
    #[error("a conversation has at most {MAX_MESSAGES} messages, and this one has {0}")]
    TooLong(usize),
    #[error("messages[{index}]: {reason}")]
    Message { index: usize, reason: String },
    #[error(transparent)]
    Broken(#[from] Broken),
}

/// The rule that a list of messages breaks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Broken {
    #[error("messages[{index}] calls `{name}` without an id")]
    NoId { index: usize, name: String },
    #[error("messages[{index}] has the call id `{id}`, which an earlier call has too")]
    SameId { index: usize, id: String },
    #[error("the arguments of the call `{id}` in messages[{index}] are not a JSON object")]
    Arguments { index: usize, id: String },
    #[error(
        "messages[{index}] is the result of `{id}`, but no call of that id stands right before it"
    )]
    NoCall { index: usize, id: String },
    #[error("messages[{index}] is a second result of the tool call `{id}`")]
    SecondResult { index: usize, id: String },
    #[error(
        "messages[{index}] comes between the calls of messages[{reply}] and their results: `{id}` has none yet"
    )]
    Between { index: usize, reply: usize, id: String },
    #[error("the call `{id}` of messages[{reply}] has no result")]
    NoResult { reply: usize, id: String },
}

impl History {
    pub fn new(messages: Vec<Message>) -> Self {
        Self { version: HISTORY_VERSION, messages }
    }

    /// Parses and validates an exported conversation, also one in the older format `"version": "v1"`. Calls without a
    /// result get an error result.
    pub fn read(json: &[u8]) -> Result<Self, HistoryError> {
        let value = serde_json::from_slice(json);
        Self::of_value(value.map_err(|error| HistoryError::NotJson(error.to_string()))?)
    }

    /// Like [`History::read`], for parsed JSON.
    pub fn of_value(value: Value) -> Result<Self, HistoryError> {
        let Value::Object(mut whole) = value else { return Err(HistoryError::NotHistory) };
        let (Some(version), Some(Value::Array(messages))) =
            (whole.shift_remove("version"), whole.shift_remove("messages"))
        else {
            return Err(HistoryError::NotHistory);
        };
        if messages.len() > MAX_MESSAGES {
            return Err(HistoryError::TooLong(messages.len()));
        }
        let read: fn(Value) -> Result<Message, String> = match &version {
            Value::Number(number) if number.as_u64() == Some(HISTORY_VERSION) => {
                |message| serde_json::from_value(message).map_err(|error| error.to_string())
            }
            Value::String(word) if word == "v1" => history_v1::message,
            other => return Err(HistoryError::Version(other.to_string())),
        };
        let messages = messages.into_iter().enumerate().map(|(index, message)| {
            read(message).map_err(|reason| HistoryError::Message { index, reason })
        });
        let mut messages = messages.collect::<Result<Vec<_>, _>>()?;
        answer_dangling(&mut messages);
        check(&messages)?;
        Ok(Self::new(messages))
    }
}

/// Checks that messages are a conversation that every provider accepts: call ids are unique, and every call has exactly
/// one result, directly after its reply.
pub fn check(messages: &[Message]) -> Result<(), Broken> {
    let mut ids = HashSet::new();
    let mut open = OpenCalls::default();
    for (index, message) in messages.iter().enumerate() {
        match message {
            Message::Tool(result) => open.answer(index, result)?,
            Message::System(_) | Message::User(_) | Message::Assistant(_) => {
                if let Some(id) = open.unanswered() {
                    return Err(Broken::Between { index, reply: open.reply, id });
                }
                open = OpenCalls::default();
            }
        }
        let Message::Assistant(reply) = message else { continue };
        open = OpenCalls::of(index, reply, &mut ids)?;
    }
    match open.unanswered() {
        Some(id) => Err(Broken::NoResult { reply: open.reply, id }),
        None => Ok(()),
    }
}

/// The calls of the last reply that still need results.
#[derive(Default)]
struct OpenCalls<'a> {
    reply: usize,
    /// Call ids in their order, each with whether it has a result.
    calls: Vec<(&'a str, bool)>,
    places: HashMap<&'a str, usize>,
}

impl<'a> OpenCalls<'a> {
    fn of(reply: usize, said: &'a Reply, ids: &mut HashSet<&'a str>) -> Result<Self, Broken> {
        let mut open = Self { reply, ..Self::default() };
        for call in said.calls() {
            let id = call.id.as_str();
            if id.is_empty() {
                return Err(Broken::NoId { index: reply, name: call.name.clone() });
            }
            if !ids.insert(id) {
                return Err(Broken::SameId { index: reply, id: id.to_owned() });
            }
            if !call.arguments.is_object() {
                return Err(Broken::Arguments { index: reply, id: id.to_owned() });
            }
            open.places.insert(id, open.calls.len());
            open.calls.push((id, false));
        }
        Ok(open)
    }

    fn answer(&mut self, index: usize, result: &'a ToolReturn) -> Result<(), Broken> {
        let place = self.places.get(result.call.as_str()).copied();
        let id = || result.call.clone();
        match place.and_then(|place| self.calls.get_mut(place)) {
            None => Err(Broken::NoCall { index, id: id() }),
            Some((_, true)) => Err(Broken::SecondResult { index, id: id() }),
            Some((_, is_answered)) => {
                *is_answered = true;
                Ok(())
            }
        }
    }

    fn unanswered(&self) -> Option<String> {
        let open = self.calls.iter().find(|(_, is_answered)| !is_answered);
        open.map(|(id, _)| (*id).to_owned())
    }
}

/// Repairs an interrupted conversation: adds error results for calls without one, directly after their reply, and sorts
/// results into the order of their calls. Returns the number of added results.
pub fn answer_dangling(messages: &mut Vec<Message>) -> usize {
    let mut added = 0;
    let mut mended = Vec::with_capacity(messages.len());
    let mut rest = std::mem::take(messages).into_iter().peekable();
    while let Some(message) = rest.next() {
        let calls: Vec<ToolCall> = match &message {
            Message::Assistant(said) => said.calls().cloned().collect(),
            Message::System(_) | Message::User(_) | Message::Tool(_) => Vec::new(),
        };
        mended.push(message);
        if calls.is_empty() {
            continue;
        }
        let mut results = Vec::new();
        while let Some(Message::Tool(_)) = rest.peek() {
            results.extend(rest.next());
        }
        let of = |message: &Message| match message {
            Message::Tool(result) => Some(result.call.clone()),
            Message::System(_) | Message::User(_) | Message::Assistant(_) => None,
        };
        let known: HashSet<_> = results.iter().filter_map(of).collect();
        let missing = calls.iter().filter(|call| !known.contains(&call.id));
        let before = results.len();
        results.extend(missing.map(|call| Message::Tool(ToolReturn::failed(call, UNKNOWN_RESULT))));
        added += results.len() - before;
        let order: HashMap<_, _> =
            calls.iter().enumerate().map(|(place, call)| (call.id.as_str(), place)).collect();
        // Results that belong to no call stay at the end; [`check`] reports them.
        results.sort_by_key(|result| {
            of(result).and_then(|id| order.get(id.as_str()).copied()).unwrap_or(usize::MAX)
        });
        mended.extend(results);
    }
    *messages = mended;
    added
}
