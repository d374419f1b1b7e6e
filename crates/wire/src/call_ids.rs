//! Call ids that a provider accepts.

use std::collections::{HashMap, HashSet};

use switchboard_chat::{Message, Source};

use crate::tool_results;

/// Maximum length of an id that every provider accepts.
const MAX_ID_LENGTH: usize = 64;

/// Maps every call of a conversation to the id that is sent to one provider. A call that the same provider made keeps
/// its original id, because opaque data may depend on it. An id depends only on earlier messages, so it stays the same
/// in later requests.
#[derive(Debug)]
pub(crate) struct CallIds<'a>(HashMap<&'a str, String>);

impl<'a> CallIds<'a> {
    pub(crate) fn new(messages: &'a [Message], source: &Source) -> Self {
        let mut known = HashMap::new();
        let mut taken = HashSet::new();
        for message in messages {
            let Message::Assistant(reply) = message else { continue };
            let is_own = tool_results::is_own(reply, source);
            for call in reply.calls() {
                let own = call.origin.as_ref().and_then(|origin| origin.id.as_deref());
                let wanted = own.filter(|_| is_own).into_iter().chain([call.id.as_str()]);
                let mut fitting = wanted.filter(|id| is_legal(id) && !taken.contains(*id));
                let id = fitting.next().map_or_else(|| made_up(&call.id, &taken), str::to_owned);
                taken.insert(id.clone());
                known.insert(call.id.as_str(), id);
            }
        }
        Self(known)
    }

    /// The id of a call; an unknown call keeps its own.
    pub(crate) fn of<'b>(&'b self, call: &'b str) -> &'b str {
        self.0.get(call).map_or(call, String::as_str)
    }
}

fn is_legal(id: &str) -> bool {
    let is_legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    (1..=MAX_ID_LENGTH).contains(&id.len()) && id.bytes().all(is_legal)
}

fn made_up(call: &str, taken: &HashSet<String>) -> String {
    let numbers = std::iter::successors(Some(0_u64), |number| number.checked_add(1));
    let made = numbers.map(|number| {
        let mut hasher = blake3::Hasher::new();
        hasher.update(call.as_bytes()).update(&number.to_le_bytes());
        let hash: String = hasher.finalize().to_hex().chars().take(24).collect();
        format!("call_{hash}")
    });
    made.into_iter().find(|id| !taken.contains(id)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use proptest::prelude::*;
    use serde_json::json;
    use switchboard_chat::{Block, CallOrigin, Reply, ToolCall};
    use switchboard_model::ProviderKind;

    use super::*;

    fn source(model: &str) -> Source {
        Source {
            kind: ProviderKind::OpenAi,
            provider: "openai".into(),
            model: model.into(),
            credential: None,
        }
    }

    fn call(id: &str, own: Option<&str>) -> Message {
        let origin = own.map(|id| CallOrigin { id: Some(id.into()), ..CallOrigin::default() });
        Message::Assistant(Reply {
            content: vec![Block::ToolCall(Box::new(ToolCall {
                id: id.into(),
                name: "t".into(),
                arguments: json!({}),
                unreadable: None,
                origin,
                opaque: None,
            }))],
            source: Some(source("m")),
            ..Reply::default()
        })
    }

    #[test]
    fn a_provider_knows_its_own_calls_by_its_own_ids_and_the_others_by_ours() {
        let messages = [call("c1", Some("toolu_1")), call("c2", None)];
        let own = CallIds::new(&messages, &source("m"));
        assert_eq!((own.of("c1"), own.of("c2")), ("toolu_1", "c2"));
        let foreign = CallIds::new(&messages, &source("another"));
        assert_eq!((foreign.of("c1"), foreign.of("c2")), ("c1", "c2"));
    }

    #[test]
    fn ids_that_are_given_twice_or_that_no_provider_takes_are_made_unique_and_legal() {
        let long = "x".repeat(65);
        let messages = [call("c1", Some("call_0")), call("c2", Some("call_0")), call(&long, None)];
        let ids = CallIds::new(&messages, &source("m"));
        assert_eq!((ids.of("c1"), ids.of("c2")), ("call_0", "c2"));
        assert!(is_legal(ids.of(&long)));
        let more = CallIds::new(&messages[..2], &source("m"));
        assert_eq!(more.of("c2"), "c2", "what comes later changes nothing before it");
    }

    proptest! {
        #[test]
        fn any_ids_become_legal_and_stay_apart_and_in_place(
            given in proptest::collection::vec(("[ab]{0,2}|.{0,70}", proptest::option::of("[ab]{0,2}|.{0,70}")), 0..8),
        ) {
            let mut given = given;
            given.dedup_by(|one, other| one.0 == other.0);
            let mut ids = HashSet::new();
            given.retain(|(id, _)| ids.insert(id.clone()));
            let messages: Vec<_> = given.iter().map(|(id, own)| call(id, own.as_deref())).collect();
            for source in [source("m"), source("another")] {
                let known = CallIds::new(&messages, &source);
                let made: Vec<_> = given.iter().map(|(id, _)| known.of(id)).collect();
                prop_assert!(made.iter().all(|id| is_legal(id)), "{:?}", made);
                let apart: HashSet<_> = made.iter().collect();
                prop_assert_eq!(apart.len(), made.len());
                for count in 0..messages.len() {
                    let fewer = CallIds::new(&messages[..count], &source);
                    prop_assert!(given.iter().take(count).zip(&made).all(|((id, _), made)| fewer.of(id) == *made));
                }
            }
        }
    }
}
