//! Which members of a request are carried over.

use serde_json::{Map, Value, json};
use switchboard_chat::Source;
use switchboard_splice::Refusal;

/// What is known of the members of an API's requests.
pub(crate) struct Members {
    /// The name of the API, for people.
    pub(crate) api: &'static str,
    /// Read and carried over.
    pub(crate) carried: &'static [&'static str],
    /// Without a meaning for the answer: they are left out.
    pub(crate) left_out: &'static [&'static str],
    /// Left out where they have their default.
    pub(crate) defaults: fn() -> Value,
}

impl Members {
    /// Refuses a request with members that would be lost, all in one message.
    pub(crate) fn check(&self, body: &Map<String, Value>, source: &Source) -> Result<(), Refusal> {
        let defaults = (self.defaults)();
        let lost = body.iter().filter(|(name, value)| {
            let name = name.as_str();
            let is_known = self.carried.contains(&name) || self.left_out.contains(&name);
            let is_empty = value.is_null() || **value == json!({}) || **value == json!([]);
            let is_default = defaults.get(name).is_some_and(|usual| {
                usual == *value || usual.as_f64().is_some() && usual.as_f64() == value.as_f64()
            });
            !is_known && !is_empty && !is_default
        });
        let names: Vec<_> = lost.map(|(name, _)| name.as_str()).collect();
        let Some(first) = names.first() else { return Ok(()) };
        let listed = names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        Err(Refusal::of_member(first, not_carried(&listed, self.api, source)))
    }
}

/// The text for a part of a request that would be lost.
pub(crate) fn not_carried(what: &str, api: &str, source: &Source) -> String {
    format!(
        "{what} cannot be carried over to the provider `{}` of the kind `{}`: leave this out, or choose a model of a provider that speaks {api}",
        source.provider,
        source.kind.as_str(),
    )
}
