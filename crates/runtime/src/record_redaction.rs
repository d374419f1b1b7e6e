//! Removes secrets from what records keep of a call: its error, and its contents where the configuration asks for them.

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Map, Value};
use switchboard_model::{Plan, RecordedContent};

use crate::check_redaction::CheckRedaction;

/// Maximum size of the recorded arguments of a call, and of its recorded result.
pub(crate) const MAX_CONTENT_BYTES: usize = 8 * 1024;

/// The members of MCP content that hold base64, which tells a reader nothing.
const BINARY: [&str; 2] = ["data", "blob"];

/// Stands for a text that cannot be redacted.
const WITHHELD: &str = "(withheld: the redaction of secrets could not be prepared)";

/// A plan and its redaction; `None` if that could not be prepared.
type RedactionOfPlan = (Arc<Plan>, Option<Arc<CheckRedaction>>);

/// The redaction of the plan that was used last. Preparing it takes long, so calls that need none never do.
#[derive(Debug, Default)]
pub(crate) struct RecordRedaction(Mutex<Option<RedactionOfPlan>>);

impl RecordRedaction {
    /// An error message without secrets.
    pub(crate) fn message(&self, plan: &Arc<Plan>, text: &str) -> String {
        self.of(plan).map_or_else(|| WITHHELD.to_owned(), |redaction| redaction.redact(text))
    }

    /// A JSON text as records keep it: without secrets and binary data, and cut at the limit.
    pub(crate) fn content(&self, plan: &Arc<Plan>, json: &str) -> RecordedContent {
        let Some(redaction) = self.of(plan) else {
            return RecordedContent::cut(WITHHELD.to_owned(), MAX_CONTENT_BYTES);
        };
        // Parsed first: an escape could hide a secret.
        let text = match serde_json::from_str(json) {
            Ok(value) => redacted(&redaction, value).to_string(),
            Err(_) => redaction.redact(json),
        };
        RecordedContent::cut(text, MAX_CONTENT_BYTES)
    }

    fn of(&self, plan: &Arc<Plan>) -> Option<Arc<CheckRedaction>> {
        if let Some((known, redaction)) = &*self.0.lock()
            && Arc::ptr_eq(known, plan)
        {
            return redaction.clone();
        }
        // Without the lock: two calls may prepare it at the same time, and no call waits for another one.
        let redaction = CheckRedaction::for_records(plan).ok().map(Arc::new);
        *self.0.lock() = Some((plan.clone(), redaction.clone()));
        redaction
    }
}

fn redacted(redaction: &CheckRedaction, value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(redaction.redact(&text)),
        Value::Array(items) => {
            Value::Array(items.into_iter().map(|item| redacted(redaction, item)).collect())
        }
        Value::Object(members) => {
            let is_media = members.contains_key("mimeType") || members.contains_key("blob");
            let member = |(key, value): (String, Value)| match value {
                Value::String(data) if is_media && BINARY.contains(&key.as_str()) => {
                    (key, Value::String(format!("({} characters of base64)", data.len())))
                }
                value => (redaction.redact(&key), redacted(redaction, value)),
            };
            Value::Object(members.into_iter().map(member).collect::<Map<_, _>>())
        }
        other @ (Value::Null | Value::Bool(_) | Value::Number(_)) => other,
    }
}

#[cfg(test)]
mod tests {
    use switchboard_model::{Secret, ThreatProtectionPlan};

    use super::*;

    fn plan() -> Arc<Plan> {
        let token = Some(Secret::new("s3cret-token"));
        let threat_protection = ThreatProtectionPlan { token, ..ThreatProtectionPlan::default() };
        Arc::new(Plan { threat_protection, ..Plan::default() })
    }

    #[track_caller]
    fn check(json: &str, expected: &str) {
        let content = RecordRedaction::default().content(&plan(), json);
        assert_eq!((content.text.as_str(), content.is_cut), (expected, false));
    }

    #[test]
    fn contents_stay_json_without_secrets() {
        check(r#"{"a": [1, "x"]}"#, r#"{"a":[1,"x"]}"#);
        check(r#"{"a": "my s3cret-token"}"#, r#"{"a":"my ***"}"#);
        check(r#"{"a": "\u0073\u0033cret-token"}"#, r#"{"a":"***"}"#);
        check(r#"{"s3cret-token": {"b": "Bearer abcdefgh"}}"#, r#"{"***":{"b":"***"}}"#);
        let image = r#"{"type":"image","data":"AAAA","mimeType":"image/png"}"#;
        let shown = r#"{"type":"image","data":"(4 characters of base64)","mimeType":"image/png"}"#;
        check(image, shown);
        check("not json s3cret-token", "not json ***");
    }

    #[test]
    fn long_contents_are_cut_and_marked_after_redaction() {
        let json = Value::from("s3cret-token ".repeat(4000)).to_string();
        let content = RecordRedaction::default().content(&plan(), &json);
        assert!(content.is_cut && content.text.len() <= MAX_CONTENT_BYTES);
        assert!(!content.text.contains("s3cret"), "{}", content.text);
    }
}
