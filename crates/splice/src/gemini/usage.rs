//! The usage of several rounds as one.
//!
//! `promptTokenCount` is that of the app's own request. The prompts of later rounds, which hold what the tools gave, count as
//! `toolUsePromptTokenCount`. The total is the sum of all rounds.

use serde_json::{Map, Value};

use crate::raw_json::{Raw, to_raw};

#[derive(Debug, Default)]
pub(super) struct UsageSum {
    sum: Option<Map<String, Value>>,
    rounds: u32,
    only: Option<Raw>,
}

/// Counts that are added over rounds, with their lists by modality.
const ADDED: [(&str, &str); 4] = [
    ("candidatesTokenCount", "candidatesTokensDetails"),
    ("toolUsePromptTokenCount", "toolUsePromptTokensDetails"),
    ("thoughtsTokenCount", ""),
    ("totalTokenCount", ""),
];

impl UsageSum {
    /// Adds the usage of a round: the last that its stream told.
    pub(super) fn add(&mut self, usage: Option<Raw>) {
        self.rounds += 1;
        let Some(usage) = usage else { return };
        let Ok(round) = serde_json::from_str::<Map<String, Value>>(usage.get()) else { return };
        self.only = Some(usage);
        let Some(sum) = &mut self.sum else {
            self.sum = Some(round);
            return;
        };
        let to_tools = [
            ("promptTokenCount", "toolUsePromptTokenCount"),
            ("promptTokensDetails", "toolUsePromptTokensDetails"),
        ];
        for (from, to) in to_tools {
            add(sum, to, round.get(from));
        }
        for (count, details) in ADDED {
            add(sum, count, round.get(count));
            add(sum, details, round.get(details));
        }
        for (name, value) in round {
            sum.entry(name).or_insert(value);
        }
    }

    pub(super) fn total(&self) -> Option<Raw> {
        match &self.only {
            Some(only) if self.rounds <= 1 => Some(only.clone()),
            _ => self.sum.as_ref().map(to_raw),
        }
    }
}

fn add(sum: &mut Map<String, Value>, name: &str, more: Option<&Value>) {
    let Some(more) = more else { return };
    match (sum.get_mut(name), more) {
        (Some(Value::Number(old)), Value::Number(new)) => {
            if let (Some(a), Some(b)) = (old.as_u64(), new.as_u64()) {
                *old = a.saturating_add(b).into();
            }
        }
        (Some(Value::Array(old)), Value::Array(new)) => add_details(old, new),
        (None, more) => {
            sum.insert(name.to_owned(), more.clone());
        }
        _ => {}
    }
}

/// Adds counts by their modality.
fn add_details(sum: &mut Vec<Value>, more: &[Value]) {
    for entry in more {
        match sum.iter_mut().find(|known| known["modality"] == entry["modality"]) {
            Some(known) => {
                let counts = (known["tokenCount"].as_u64(), entry["tokenCount"].as_u64());
                if let (Some(a), Some(b)) = counts {
                    known["tokenCount"] = a.saturating_add(b).into();
                }
            }
            None => sum.push(entry.clone()),
        }
    }
}

/// Output tokens of a round. Thoughts count towards the maximum.
pub(super) fn output_tokens(usage: &Raw) -> Option<u64> {
    let usage: Map<String, Value> = serde_json::from_str(usage.get()).ok()?;
    let count = |name: &str| usage.get(name).and_then(Value::as_u64);
    let (answer, thoughts) = (count("candidatesTokenCount"), count("thoughtsTokenCount"));
    (answer.is_some() || thoughts.is_some())
        .then(|| answer.unwrap_or(0).saturating_add(thoughts.unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use serde_json::json;

    use super::*;

    #[test]
    fn later_prompts_count_as_prompts_of_tools() {
        let round = |prompt: u64| {
            let details = json!([{"modality": "TEXT", "tokenCount": prompt}]);
            Some(to_raw(&json!({
                "promptTokenCount": prompt, "candidatesTokenCount": 2, "thoughtsTokenCount": 1,
                "totalTokenCount": prompt + 3, "promptTokensDetails": details, "cachedContentTokenCount": 5,
            })))
        };
        let mut sum = UsageSum::default();
        sum.add(round(10));
        assert_eq!(
            sum.total().map(|usage| usage.to_string()),
            round(10).map(|usage| usage.to_string())
        );
        sum.add(round(20));
        sum.add(round(30));
        let total: Value = serde_json::from_str(sum.total().unwrap().get()).unwrap();
        assert_eq!(
            total,
            json!({
                "promptTokenCount": 10, "toolUsePromptTokenCount": 50, "candidatesTokenCount": 6,
                "thoughtsTokenCount": 3, "totalTokenCount": 69, "cachedContentTokenCount": 5,
                "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 10}],
                "toolUsePromptTokensDetails": [{"modality": "TEXT", "tokenCount": 50}],
            })
        );
    }
}
