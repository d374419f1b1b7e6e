//! The usage of several rounds as one.

use serde_json::{Map, Value, json};

use crate::raw_json::{Raw, RawObject, to_raw};

/// The members that a final `message_delta` repeats from the start of a message, because they are sums.
const SUMMED: [&str; 5] = [
    "input_tokens",
    "cache_creation_input_tokens",
    "cache_read_input_tokens",
    "output_tokens",
    "cache_creation",
];

/// The usage of all rounds so far.
#[derive(Debug, Default)]
pub(super) struct UsageSum {
    sum: Map<String, Value>,
    /// Entries of `iterations`, which say how large the context of each round was.
    iterations: Vec<Value>,
    rounds: u32,
}

/// The usage of one round.
#[derive(Debug, Clone, Default)]
pub(super) struct RoundUsage {
    members: Map<String, Value>,
    /// The members of the last `message_delta`.
    last: Option<Raw>,
}

impl RoundUsage {
    /// Takes the usage of a message or of an event. Later counts are totals of the round and replace earlier ones.
    pub(super) fn take(&mut self, holder: &RawObject, is_delta: bool) {
        let Some(usage) = holder.get("usage") else { return };
        let Ok(members) = serde_json::from_str::<Map<String, Value>>(usage.get()) else { return };
        self.members.extend(members.into_iter().filter(|(_, value)| !value.is_null()));
        if is_delta {
            self.last = Some(usage.to_owned());
        }
    }

    pub(super) fn output_tokens(&self) -> Option<u64> {
        self.members.get("output_tokens")?.as_u64()
    }
}

impl UsageSum {
    pub(super) fn add(&mut self, round: &RoundUsage) {
        let mut members = round.members.clone();
        match members.remove("iterations") {
            Some(Value::Array(entries)) if !entries.is_empty() => self.iterations.extend(entries),
            _ => self.iterations.push(iteration(&members)),
        }
        add(&mut self.sum, members);
        self.rounds += 1;
    }

    /// The usage of the last `message_delta`.
    pub(super) fn of_delta(&self, last: &RoundUsage, is_beta: bool) -> Raw {
        match &last.last {
            Some(usage) if self.rounds <= 1 => usage.clone(),
            _ => {
                let members = self.sum.iter().filter(|(name, _)| {
                    let is_in_delta = || {
                        let delta = last.last.as_ref();
                        delta
                            .and_then(|usage| RawObject::read(usage.get()).ok())
                            .is_some_and(|usage| usage.get(name).is_some())
                    };
                    SUMMED.contains(&name.as_str()) || is_in_delta()
                });
                let members = members.map(|(name, value)| (name.clone(), value.clone())).collect();
                to_raw(&self.with_iterations(members, is_beta))
            }
        }
    }

    /// The usage of the whole message. `None` if it is that of the only round.
    pub(super) fn of_message(&self, is_beta: bool) -> Option<Raw> {
        (self.rounds > 1).then(|| to_raw(&self.with_iterations(self.sum.clone(), is_beta)))
    }

    fn with_iterations(&self, mut members: Map<String, Value>, is_beta: bool) -> Value {
        if is_beta {
            members.insert("iterations".to_owned(), Value::Array(self.iterations.clone()));
        }
        Value::Object(members)
    }
}

/// An entry of `iterations` for a round whose provider gave none.
fn iteration(usage: &Map<String, Value>) -> Value {
    let count = |name: &str| usage.get(name).and_then(Value::as_u64).unwrap_or(0);
    let mut entry = json!({
        "type": "message",
        "input_tokens": count("input_tokens"),
        "output_tokens": count("output_tokens"),
        "cache_creation_input_tokens": count("cache_creation_input_tokens"),
        "cache_read_input_tokens": count("cache_read_input_tokens"),
    });
    if let Some(created) = usage.get("cache_creation") {
        entry["cache_creation"] = created.clone();
    }
    entry
}

/// Adds counts by their names, at any depth. What is no count is taken from the later round.
fn add(sum: &mut Map<String, Value>, round: Map<String, Value>) {
    for (name, value) in round {
        match (sum.get_mut(&name), value) {
            (Some(Value::Object(old)), Value::Object(new)) => add(old, new),
            (Some(Value::Number(old)), Value::Number(new)) => {
                if let (Some(a), Some(b)) = (old.as_u64(), new.as_u64()) {
                    *old = a.saturating_add(b).into();
                }
            }
            (_, value) => {
                sum.insert(name, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    fn round(start: &Value, delta: &Value) -> RoundUsage {
        let mut usage = RoundUsage::default();
        let holder = |usage: &Value| RawObject::read(&json!({"usage": usage}).to_string()).unwrap();
        usage.take(&holder(start), false);
        usage.take(&holder(delta), true);
        usage
    }

    #[test]
    fn the_usage_of_one_round_passes_as_it_is() {
        let mut sum = UsageSum::default();
        let only =
            round(&json!({"input_tokens": 5, "service_tier": "x"}), &json!({"output_tokens": 7}));
        sum.add(&only);
        assert_eq!(sum.of_delta(&only, true).get(), r#"{"output_tokens":7}"#);
        assert!(sum.of_message(true).is_none());
    }

    #[test]
    fn counts_of_all_rounds_are_added() {
        let mut sum = UsageSum::default();
        let start = json!({
            "input_tokens": 5, "cache_read_input_tokens": 100, "service_tier": "standard",
            "cache_creation": {"ephemeral_5m_input_tokens": 3}, "output_tokens": 1,
        });
        let first = round(&start, &json!({"output_tokens": 7, "server_tool_use": null}));
        let last = round(
            &start,
            &json!({"output_tokens": 10, "server_tool_use": {"web_search_requests": 2}}),
        );
        sum.add(&first);
        sum.add(&last);
        let usage: Value = serde_json::from_str(sum.of_delta(&last, true).get()).unwrap();
        let entry = |output: u64| {
            json!({
                "type": "message", "input_tokens": 5, "output_tokens": output, "cache_creation_input_tokens": 0,
                "cache_read_input_tokens": 100, "cache_creation": {"ephemeral_5m_input_tokens": 3},
            })
        };
        assert_eq!(
            usage,
            json!({
                "input_tokens": 10, "cache_read_input_tokens": 200, "output_tokens": 17,
                "cache_creation": {"ephemeral_5m_input_tokens": 6},
                "server_tool_use": {"web_search_requests": 2},
                "iterations": [entry(7), entry(10)],
            })
        );
        let whole: Value = serde_json::from_str(sum.of_message(false).unwrap().get()).unwrap();
        assert_eq!((&whole["service_tier"], whole.get("iterations")), (&json!("standard"), None));
    }
}
