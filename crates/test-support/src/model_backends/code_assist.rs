//! The methods of Code Assist that find the project of a user.

use serde_json::{Value, json};

use super::findings::Findings;
use super::heard::text_of;
use super::state::{Onboarding, Shared};

const PROJECT: &str = "fake-project-123";

/// The response to a method or an operation; `None` if it does not exist.
pub(crate) fn answer(
    shared: &Shared,
    method: &str,
    body: &Value,
    findings: &mut Findings,
) -> Option<Value> {
    match method {
        ":loadCodeAssist" => {
            if !body["metadata"].is_object() {
                findings.add("metadata", "Request contains an invalid argument: metadata");
            }
            Some(load(shared))
        }
        ":onboardUser" => {
            let tier = text_of(body, "tierId");
            if tier.is_empty() {
                findings.add("tier", "Request contains an invalid argument: tierId");
            }
            if tier == "free-tier" && !body["cloudaicompanionProject"].is_null() {
                let words = "Precondition check failed: a project must not be set on the free tier";
                findings.add("free_tier_project", words);
            }
            shared.set_onboarding(Onboarding::Done);
            Some(json!({"name": "operations/op-1", "done": false}))
        }
        "/operations/op-1" => Some(json!({
            "name": "operations/op-1", "done": true,
            "response": {"cloudaicompanionProject": {"id": PROJECT, "name": PROJECT}},
        })),
        ":countTokens" => Some(json!({"totalTokens": 100})),
        ":retrieveUserQuota" => Some(json!({"buckets": []})),
        ":listExperiments" => Some(json!({"experimentIds": [], "flags": []})),
        _ => None,
    }
}

fn load(shared: &Shared) -> Value {
    let free = json!({"id": "free-tier", "name": "Free", "isDefault": true});
    let mut loaded = json!({
        "allowedTiers": [free, {"id": "standard-tier", "name": "Standard"}], "ineligibleTiers": [],
    });
    if shared.onboarding() == Onboarding::Done {
        loaded["currentTier"] = json!({"id": "free-tier", "name": "Free"});
        loaded["cloudaicompanionProject"] = json!(PROJECT);
    }
    loaded
}

/// Checks the envelope, and returns the model and the request in it.
pub(crate) fn open_envelope<'a>(body: &'a Value, findings: &mut Findings) -> (&'a str, &'a Value) {
    let known = ["model", "project", "user_prompt_id", "request", "enabled_credit_types"];
    for key in body.as_object().into_iter().flatten().map(|(key, _)| key) {
        if !known.contains(&key.as_str()) {
            let words = format!(
                "Invalid JSON payload received. Unknown name \"{key}\": Cannot find field."
            );
            findings.add("unknown_field", words);
        }
    }
    let model = text_of(body, "model");
    if model.is_empty() || model.contains('/') {
        findings.add("model", format!("Invalid model: {model:?}"));
    }
    if text_of(body, "project").is_empty() {
        findings.add("project", "Request contains an invalid argument: project");
    }
    (model, &body["request"])
}
