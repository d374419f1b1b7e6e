//! A conversation as a whole: what makes it valid, how it is written down and read again.

use std::collections::{HashMap, HashSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::seed;
use crate::{Message, Reply, ToolReturn};

/// The form that is written today.
pub const HISTORY_VERSION: u64 = 1;

/// The text of a result that nobody has seen.
const UNKNOWN_RESULT: &str = "The result of this call is not known: the conversation was interrupted while it ran. It may have taken effect. Check before calling it again.";

/// A conversation as it is exported.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct History {
    pub version: u64,
    pub messages: Vec<Message>,
}

/// Why a text is no conversation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HistoryError {
    #[error("this is no JSON: {0}")]
    NotJson(String),
    #[error("this is no conversation: it must be an object with `version` and `messages`")]
    NotHistory,
    #[error(
        "conversations of version {0} are not known here; version {HISTORY_VERSION} and `v1` are"
    )]
    Version(String),
    #[error("messages[{index}]: {reason}")]
    Message { index: usize, reason: String },
    #[error(transparent)]
    Broken(#[from] Broken),
}

/// Why messages are no valid conversation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Broken {
    #[error("messages[{index}] calls `{name}` without an id")]
    NoId { index: usize, name: String },
    #[error("messages[{index}] has the call id `{id}`, which an earlier call has, too")]
    SameId { index: usize, id: String },
    #[error("the arguments of the call `{id}` in messages[{index}] are no JSON object")]
    Arguments { index: usize, id: String },
    #[error(
        "messages[{index}] is the result of `{id}`, but no call of that id stands right before it"
    )]
    NoCall { index: usize, id: String },
    #[error("messages[{index}] is a second result of `{id}`")]
    SecondResult { index: usize, id: String },
    #[error(
        "messages[{index}] stands between the calls of messages[{reply}] and their results: `{id}` has none yet"
    )]
    Between { index: usize, reply: usize, id: String },
    #[error("the call `{id}` of messages[{reply}] has no result")]
    NoResult { reply: usize, id: String },
}

impl History {
    pub fn new(messages: Vec<Message>) -> Self {
        Self { version: HISTORY_VERSION, messages }
    }

    /// Reads an exported conversation, also one in the form of seed 001, and checks it. Calls that were not answered are
    /// answered with an error.
    pub fn read(json: &[u8]) -> Result<Self, HistoryError> {
        let value = serde_json::from_slice(json);
        Self::of_value(value.map_err(|error| HistoryError::NotJson(error.to_string()))?)
    }

    /// The same for what is JSON already.
    pub fn of_value(value: Value) -> Result<Self, HistoryError> {
        let Value::Object(mut whole) = value else { return Err(HistoryError::NotHistory) };
        let (Some(version), Some(Value::Array(messages))) =
            (whole.shift_remove("version"), whole.shift_remove("messages"))
        else {
            return Err(HistoryError::NotHistory);
        };
        let read: fn(Value) -> Result<Message, String> = match &version {
            Value::Number(number) if number.as_u64() == Some(HISTORY_VERSION) => {
                |message| serde_json::from_value(message).map_err(|error| error.to_string())
            }
            Value::String(word) if word == "v1" => seed::message,
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

/// Whether messages are a conversation that every provider can be sent: ids are unique, and every call has one result,
/// right after its reply.
pub fn check(messages: &[Message]) -> Result<(), Broken> {
    let mut ids = HashSet::new();
    let mut open = Open::default();
    for (index, message) in messages.iter().enumerate() {
        match message {
            Message::Tool(result) => open.answer(index, result)?,
            Message::System(_) | Message::User(_) | Message::Assistant(_) => {
                open.closed_before(index)?;
                open = Open::default();
            }
        }
        let Message::Assistant(reply) = message else { continue };
        open = Open::of(index, reply, &mut ids)?;
    }
    match open.waiting.first() {
        Some(id) => Err(Broken::NoResult { reply: open.reply, id: (*id).to_owned() }),
        None => Ok(()),
    }
}

/// The calls of the last reply.
#[derive(Default)]
struct Open<'a> {
    reply: usize,
    waiting: Vec<&'a str>,
    answered: HashSet<&'a str>,
}

impl<'a> Open<'a> {
    fn of(reply: usize, said: &'a Reply, ids: &mut HashSet<&'a str>) -> Result<Self, Broken> {
        let mut waiting = Vec::new();
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
            waiting.push(id);
        }
        Ok(Self { reply, waiting, answered: HashSet::new() })
    }

    fn answer(&mut self, index: usize, result: &'a ToolReturn) -> Result<(), Broken> {
        let id = result.call.as_str();
        if let Some(place) = self.waiting.iter().position(|waiting| *waiting == id) {
            self.waiting.remove(place);
            self.answered.insert(id);
            return Ok(());
        }
        let id = id.to_owned();
        Err(if self.answered.contains(id.as_str()) {
            Broken::SecondResult { index, id }
        } else {
            Broken::NoCall { index, id }
        })
    }

    fn closed_before(&self, index: usize) -> Result<(), Broken> {
        let (reply, id) = match self.waiting.first() {
            Some(id) => (self.reply, (*id).to_owned()),
            None => return Ok(()),
        };
        Err(Broken::Between { index, reply, id })
    }
}

/// Answers calls that have no result, right after their reply: such a conversation was interrupted. Says how many.
pub fn answer_dangling(messages: &mut Vec<Message>) -> usize {
    let is_answered = |messages: &[Message], reply: usize| {
        let results = messages.iter().skip(reply + 1);
        let results = results.map_while(|message| match message {
            Message::Tool(result) => Some(result.call.clone()),
            Message::System(_) | Message::User(_) | Message::Assistant(_) => None,
        });
        results.collect::<HashSet<_>>()
    };
    let mut added = 0;
    for reply in (0..messages.len()).rev() {
        let Some(Message::Assistant(said)) = messages.get(reply) else { continue };
        if said.calls().next().is_none() {
            continue;
        }
        let answered = is_answered(messages, reply);
        let missing = said.calls().filter(|call| !answered.contains(&call.id));
        let missing: Vec<_> =
            missing.map(|call| Message::Tool(ToolReturn::failed(call, UNKNOWN_RESULT))).collect();
        added += missing.len();
        let place = reply + 1 + answered.len();
        messages.splice(place.min(messages.len())..place.min(messages.len()), missing);
        in_call_order(messages, reply);
    }
    added
}

/// Puts the results of a reply into the order of its calls.
fn in_call_order(messages: &mut [Message], reply: usize) {
    let Some((Message::Assistant(said), results)) =
        messages.get_mut(reply..).and_then(<[_]>::split_first_mut)
    else {
        return;
    };
    let order: HashMap<_, _> =
        said.calls().enumerate().map(|(place, call)| (call.id.clone(), place)).collect();
    let place = |message: &Message| match message {
        Message::Tool(result) => Some(order.get(&result.call).copied().unwrap_or(usize::MAX)),
        Message::System(_) | Message::User(_) | Message::Assistant(_) => None,
    };
    let count = results.iter().take_while(|message| place(message).is_some()).count();
    if let Some(results) = results.get_mut(..count) {
        results.sort_by_key(|message| place(message).unwrap_or(usize::MAX));
    }
}
