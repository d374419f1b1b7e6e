//! What each API does with an app's request.

use std::fmt::Debug;
use std::ops::Range;

use bytes::Bytes;
use serde_json::Value;
use serde_json::value::RawValue;
use switchboard_chat::ToolReturn;

use crate::Refusal;
use crate::app_request::RequestFacts;
use crate::put_back::TurnRecord;
use crate::raw_json::Raw;
use crate::splicer::PendingCall;

/// An app's request in the format of one API.
pub(crate) trait RequestFormat: Send + Sync + Debug {
    fn facts(&self) -> &RequestFacts;

    /// The messages, items or contents of the conversation, as the app wrote them.
    fn conversation(&self) -> &[Raw];

    fn set_conversation(&mut self, conversation: Vec<Raw>);

    /// The conversation as units whose digests identify it. See [`ConversationUnit`].
    fn units(&self) -> Vec<ConversationUnit>;

    /// The ids in a reply by which its record is found, as [`crate::splicer::Splicer::handles`] gave them.
    fn handles(&self, unit: &[Raw]) -> Vec<String> {
        let _ = unit;
        Vec::new()
    }

    /// The ids of the app's calls in a reply. The app's results name them, so the record of the reply must have them.
    fn call_ids(&self, unit: &[Raw]) -> Vec<String> {
        self.handles(unit)
    }

    /// Whether the calls of a record are those of a reply with these ids.
    fn has_calls(&self, real: &[Raw], ids: &[String]) -> bool {
        ids.iter().all(|id| real.iter().any(|element| element.get().contains(id.as_str())))
    }

    /// A reply of the app's conversation for which there is no record: session calls that the app was shown, and sends back,
    /// become text of the app, because their results may be invented. Unchanged if there are none.
    fn without_claims(&self, unit: &[Raw]) -> Vec<Raw>;

    /// Puts the results of session calls of a mixed round with the app's results. `after` is the index of the first element
    /// after the reply that has the calls.
    fn put_results(&self, conversation: &mut Vec<Raw>, after: usize, results: &[Raw]);

    /// Goes on from the earlier answer that the request names. `record` is what is known of it.
    fn go_on_from(&mut self, record: Option<&TurnRecord>) -> Result<(), Refusal> {
        let _ = record;
        Ok(())
    }

    /// Members of the request that hold for those that go on from its answer.
    fn kept_members(&self) -> Option<Raw> {
        None
    }

    /// Removes sealed thinking from the conversation, if the provider refused the request because of it. Returns whether the
    /// request has changed.
    fn drop_thinking(&mut self, refusal: &Refusal) -> bool {
        let _ = refusal;
        false
    }

    /// The results of session calls as elements of results, one for each call: an item, a message, a block or a part.
    fn results(&self, results: &[(PendingCall, ToolReturn)]) -> Vec<Raw>;

    /// The results that [`RequestFormat::results`] made, as elements of the conversation.
    fn results_as_elements(&self, results: Vec<Raw>) -> Vec<Raw>;

    /// The body of a request to the provider.
    fn body(&self, round: &RoundBody<'_>) -> Bytes;

    /// The body of a request that counts tokens.
    fn count_body(&self, round: &RoundBody<'_>) -> Bytes {
        self.body(round)
    }

    /// The declaration of a tool under another name.
    fn renamed(&self, declaration: &str, name: &str) -> Option<Box<str>>;
}

/// A part of a conversation that is one thing for its identity: a reply of the model, or anything else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ConversationUnit {
    /// The elements of the conversation that it consists of.
    pub(crate) range: Range<usize>,
    pub(crate) is_reply: bool,
    /// What identifies it, without what clients change: for a reply [`ShownReply::identity`], else the role and the content
    /// with text merged and without `cache_control`.
    pub(crate) identity: String,
}

/// What the app was shown of the model's reply.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ShownReply {
    /// All text, joined.
    pub(crate) text: String,
    /// Calls of the app's tools: name and arguments as compact JSON, in their order. Ids are left out: some clients make
    /// their own.
    pub(crate) calls: Vec<(String, String)>,
}

impl ShownReply {
    pub(crate) fn identity(&self) -> String {
        let mut identity = format!("reply\n{}", self.text);
        for (name, arguments) in &self.calls {
            // The same arguments may come back in another order or spacing of JSON.
            let arguments = serde_json::from_str::<Value>(arguments)
                .map_or_else(|_| arguments.clone(), |value| sorted(&value));
            identity.push_str("\ncall\n");
            identity.push_str(name);
            identity.push('\n');
            identity.push_str(&arguments);
        }
        identity
    }
}

/// JSON with the members of every object in the order of their names. `1.0` is `1`, as clients in JavaScript write it.
pub(crate) fn sorted(value: &Value) -> String {
    let mut value = value.clone();
    value.sort_all_objects();
    shorten_numbers(&mut value);
    value.to_string()
}

fn shorten_numbers(value: &mut Value) {
    match value {
        Value::Number(number) if number.is_f64() => {
            let whole = number.as_f64().filter(|number| number.fract() == 0.0);
            if let Some(whole) = whole.and_then(|whole| format!("{whole:.0}").parse::<i64>().ok()) {
                *number = whole.into();
            }
        }
        Value::Array(items) => items.iter_mut().for_each(shorten_numbers),
        Value::Object(members) => members.values_mut().for_each(shorten_numbers),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// What one request to the provider has beyond the app's request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RoundBody<'a> {
    /// Declarations of the session's tools, in their order.
    pub(crate) tools: &'a [Box<str>],
    /// Elements of the conversation from earlier rounds of this turn.
    pub(crate) appended: &'a [Raw],
    /// A forced choice of a tool holds for the first round only.
    pub(crate) is_first: bool,
    /// Output tokens that are left of the app's maximum.
    pub(crate) output_left: Option<u64>,
    /// Where the provider ran code in the round before.
    pub(crate) container: Option<&'a RawValue>,
}
