//! What was read of one round.

use std::collections::BTreeMap;

use super::item::{Item, is_known_to_provider, to_replay};
use crate::openai::readable_arguments;
use crate::raw_json::{Raw, RawObject, to_raw};
use crate::splicer::PendingCall;

/// The items of one round, by the provider's index.
#[derive(Debug, Default)]
pub(super) struct Round {
    pub(super) items: BTreeMap<u64, RoundItem>,
    /// Events of items that wait for the end of the round, in their order.
    pub(super) held: Vec<(u64, RawObject)>,
    /// The provider's response object at the end of the round.
    pub(super) end: Option<(Ending, RawObject)>,
    pub(super) has_shown: bool,
}

/// How a round ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    Completed,
    Incomplete,
}

/// An item of the provider.
#[derive(Debug)]
pub(super) struct RoundItem {
    pub(super) place: ItemPlace,
    /// The item as it was announced, and as it was at its end.
    pub(super) added: Raw,
    pub(super) done: Option<Raw>,
    /// The arguments of a session call so far.
    pub(super) arguments: String,
}

/// Where the app sees an item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ItemPlace {
    /// A session call, which is hidden.
    Hidden,
    /// It waits for the end of the round.
    Held { is_text: bool },
    /// Under this index and this id.
    Shown { index: u64, id: String },
}

impl Round {
    pub(super) fn is_holding(&self) -> bool {
        self.items.values().any(|item| matches!(item.place, ItemPlace::Held { .. }))
    }

    /// The index of a new item that has none.
    pub(super) fn next_index(&self) -> u64 {
        self.items.last_key_value().map_or(0, |(index, _)| index.saturating_add(1))
    }

    /// The session calls, with the provider's index of each.
    pub(super) fn session_calls(&self) -> Vec<(u64, PendingCall)> {
        let hidden = self.items.iter().filter(|(_, item)| item.place == ItemPlace::Hidden);
        let calls = hidden.map(|(index, item)| {
            let call = Item::read(item.whole().get());
            let arguments = call.arguments.as_str().filter(|text| !text.is_empty());
            let arguments = arguments.unwrap_or(&item.arguments).to_owned();
            let id = call.call_id.unwrap_or_default();
            (*index, PendingCall { id, name: call.name.unwrap_or_default(), arguments })
        });
        calls.collect()
    }

    /// The items as the provider takes them back. `calls` are the session calls that run; others are left out.
    pub(super) fn replay(&self, calls: &[(u64, PendingCall)], is_stored: bool) -> Vec<Raw> {
        let kept = self.items.iter().filter_map(|(index, item)| match &item.place {
            ItemPlace::Hidden => {
                let (_, call) = calls.iter().find(|(of, _)| of == index)?;
                Some(called(item.whole(), call))
            }
            ItemPlace::Held { .. } | ItemPlace::Shown { .. } => item.done.as_ref().map(to_replay),
        });
        kept.filter(|item| is_known_to_provider(item, is_stored)).collect()
    }
}

impl RoundItem {
    pub(super) fn new(place: ItemPlace, added: Raw) -> Self {
        Self { place, added, done: None, arguments: String::new() }
    }

    pub(super) fn whole(&self) -> &Raw {
        self.done.as_ref().unwrap_or(&self.added)
    }
}

/// A call as it is sent back, with the id that its result has.
fn called(item: &Raw, call: &PendingCall) -> Raw {
    let known = Item::read(item.get());
    let arguments = readable_arguments(&call.arguments);
    let is_same =
        known.call_id.as_deref() == Some(&*call.id) && known.arguments.as_str() == Some(arguments);
    match RawObject::read(item.get()) {
        Ok(mut object) if !is_same => {
            object.set("call_id", to_raw(&call.id));
            object.set("arguments", to_raw(&arguments));
            object.to_raw()
        }
        Ok(_) | Err(_) => item.clone(),
    }
}
