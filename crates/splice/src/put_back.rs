//! Hidden rounds, put back into the conversation that an app sends.
//!
//! An app sees one reply where the model gave several, with calls and results between them. When the app sends the
//! conversation again, the real messages take the place of the one that it was shown: the model sees what it did, and the
//! provider's prompt cache and signed thinking stay valid.

use std::collections::HashMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::raw_json::Raw;
use crate::request_format::{ConversationUnit, RequestFormat, ShownReply};
use crate::{Api, Refusal};

const MIN_HANDLE: usize = 9;
/// Maximum number of ids of one reply by which records are looked for.
const MAX_HANDLES: usize = 4;

/// Identifies a conversation up to and with one reply, as the app sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RecordKey([u8; 32]);

impl RecordKey {
    /// The key of a stored answer that the app names by its id.
    pub fn of_answer(api: Api, id: &str) -> Self {
        Self(chained(&chained(&[0; 32], api.as_str()), &format!("answer\n{id}")))
    }

    /// The key of a reply by an id in it. It holds for exactly this reply, whatever comes before it.
    fn of_reply(api: Api, handle: &str, identity: &str) -> Self {
        let state = chained(&chained(&[0; 32], api.as_str()), &format!("handle\n{handle}"));
        Self(chained(&state, identity))
    }

    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for RecordKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        blake3::Hash::from_bytes(self.0).to_hex().fmt(f)
    }
}

/// What really happened in a turn of which the app saw one reply.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct TurnRecord {
    /// The elements of the conversation that take the place of the shown reply.
    pub(crate) real: Vec<Raw>,
    /// Results of session calls of the last round, which wait for the results of the app.
    pub(crate) pending: Vec<Raw>,
    /// The conversation before them, where the provider does not store it and the app may go on from the answer by its id.
    #[serde(default)]
    pub(crate) conversation: Vec<Raw>,
    /// Members of the request that hold for those that go on from the answer.
    #[serde(default)]
    pub(crate) kept: Option<Raw>,
    /// The answer as the app got it, where it may ask for it by its id.
    #[serde(default)]
    pub(crate) answer: Option<Raw>,
    /// The id under which the provider stored the last answer.
    #[serde(default)]
    pub(crate) upstream_id: Option<String>,
}

impl TurnRecord {
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// The answer as the app got it, if it may ask for it by its id.
    pub fn answer(&self) -> Option<&str> {
        self.answer.as_ref().map(|answer| answer.get())
    }

    /// A stored record; `None` if it is damaged.
    pub fn read(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }
}

/// The keys of all replies of a conversation, in their order.
pub(crate) fn keys(
    api: Api,
    request: &dyn RequestFormat,
    units: &[ConversationUnit],
) -> Vec<RecordKey> {
    keys_by_reply(api, request, units).concat()
}

/// The keys of each reply: that of the conversation, then those of the ids in the reply.
fn keys_by_reply(
    api: Api,
    request: &dyn RequestFormat,
    units: &[ConversationUnit],
) -> Vec<Vec<RecordKey>> {
    let mut state = chained(&[0; 32], api.as_str());
    let mut keys = Vec::new();
    for unit in units {
        state = chained(&state, &unit.identity);
        if !unit.is_reply {
            continue;
        }
        let elements = request.conversation().get(unit.range.clone()).unwrap_or_default();
        let handles = request.handles(elements).into_iter();
        let handles = handles.filter(|handle| is_telling(handle)).take(MAX_HANDLES);
        let by_handle = handles.map(|handle| RecordKey::of_reply(api, &handle, &unit.identity));
        keys.push(std::iter::once(RecordKey(state)).chain(by_handle).collect());
    }
    keys
}

/// The keys of a reply with which a conversation goes on, by the conversation and by the first id in the reply.
pub(crate) fn keys_after(
    api: Api,
    units: &[ConversationUnit],
    reply: &ShownReply,
    handles: &[String],
) -> Vec<RecordKey> {
    let start = chained(&[0; 32], api.as_str());
    let state = units.iter().fold(start, |state, unit| chained(&state, &unit.identity));
    let identity = reply.identity();
    let by_handle = handles.iter().find(|handle| is_telling(handle));
    let by_handle = by_handle.map(|handle| RecordKey::of_reply(api, handle, &identity));
    std::iter::once(RecordKey(chained(&state, &identity))).chain(by_handle).collect()
}

/// Whether an id is long enough to be the only one of its kind. Some servers count their calls from 0 in each answer.
fn is_telling(handle: &str) -> bool {
    handle.len() >= MIN_HANDLE
}

fn chained(state: &[u8; 32], identity: &str) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(state).update(identity.as_bytes());
    *hasher.finalize().as_bytes()
}

/// Puts the real messages of recorded turns in the place of what the app was shown.
pub(crate) fn put_back(
    api: Api,
    request: &mut dyn RequestFormat,
    records: &HashMap<RecordKey, TurnRecord>,
) -> Result<(), Refusal> {
    let units = request.units();
    let keys = keys_by_reply(api, request, &units);
    let replies: Vec<_> = units.into_iter().filter(|unit| unit.is_reply).zip(keys).collect();
    let mut conversation = request.conversation().to_vec();
    // From the end, so that the ranges of earlier units stay valid.
    for (unit, keys) in replies.into_iter().rev() {
        let Some(shown) = conversation.get(unit.range.clone()) else { continue };
        let ids = request.call_ids(shown);
        // The key by the id of a call is the last one, and the most exact: equal conversations differ in their calls' ids.
        let mut found = keys.iter().rev().filter_map(|key| records.get(key));
        let (real, pending) = match found.find(|record| request.has_calls(&record.real, &ids)) {
            Some(record) => (record.real.clone(), record.pending.as_slice()),
            None => (request.without_claims(shown), [].as_slice()),
        };
        let after = unit.range.start + real.len();
        conversation.splice(unit.range, real);
        if !pending.is_empty() {
            request.put_results(&mut conversation, after, pending);
        }
    }
    request.set_conversation(conversation);
    match request.facts().previous_answer.clone() {
        Some(id) => request.go_on_from(records.get(&RecordKey::of_answer(api, &id))),
        None => Ok(()),
    }
}
