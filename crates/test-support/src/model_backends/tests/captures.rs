//! Captured requests of real clients, if available, must cause no violation.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::{
    Backend, Findings, anthropic_check, code_assist, gemini_check, object, responses_check,
};

fn captures(client: &str) -> Vec<(PathBuf, Value)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let places =
        ["../shared", "../../shared"].map(|place| root.join(place).join("captures").join(client));
    let Some(directory) = places.into_iter().find(|place| place.is_dir()) else {
        return Vec::new();
    };
    let files = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).unwrap();
        (path, serde_json::from_str(&text).unwrap())
    };
    files.map(read).collect()
}

/// Restores what was removed from a capture. Opaque values are replaced with the result of `opaque`.
fn mended(value: &Value, opaque: &impl Fn(&str, &Value) -> Option<Value>) -> Value {
    match value {
        Value::Object(members) => members
            .iter()
            .filter(|(name, _)| *name != "_cut")
            .map(|(name, member)| {
                let is_schema = ["parameters", "input_schema"].contains(&name.as_str());
                let member = match opaque(name, member) {
                    Some(given) => given,
                    None if is_schema && member.is_string() => object(),
                    None => mended(member, opaque),
                };
                (name.clone(), member)
            })
            .collect(),
        Value::Array(values) => values.iter().map(|value| mended(value, opaque)).collect(),
        _ => value.clone(),
    }
}

/// The violations of a client, without the known ones.
fn broken(findings: &Findings, known: &[&str]) -> Vec<String> {
    let all = findings.violations(Backend::OpenAi);
    let new = all.filter(|found| !known.iter().any(|part| found.message.contains(part)));
    new.map(|found| format!("{}: {}", found.rule, found.message)).collect()
}

#[test]
fn codex_breaks_no_rule() {
    for (path, capture) in captures("codex") {
        if capture["body"].is_null() {
            continue;
        }
        let mut body = mended(&capture["body"], &|_, _| None);
        let backend = if path.to_string_lossy().contains("chatgpt") {
            Backend::ChatGpt
        } else {
            Backend::OpenAi
        };
        // Encrypted values are of another backend and are encrypted anew for what follows them.
        let model = body["model"].as_str().unwrap().to_owned();
        let input = body["input"].as_array_mut().unwrap();
        for place in 0..input.len() {
            if input[place]["type"] == "reasoning" {
                let next = &input[place + 1];
                let follower = next["call_id"].as_str().unwrap_or("assistant");
                let id = input[place]["id"].as_str().unwrap();
                let sealed = responses_check::seal_reasoning(id, &model, "account", follower);
                input[place]["encrypted_content"] = json!(sealed);
            }
        }
        let mut findings = Findings::default();
        responses_check::check(backend, &body, "account", &mut findings);
        // Codex passes on the schemas of its servers; the real backend would refuse these.
        let known = ["'top_anyof'", "'top_oneof'", "'top_ref'"];
        assert_eq!(broken(&findings, &known), Vec::<String>::new(), "{}", path.display());
    }
}

#[test]
fn claude_code_breaks_no_rule() {
    for (path, capture) in captures("claude") {
        let body = mended(&capture["body"], &|_, _| None);
        let betas = capture["headers"]["anthropic-beta"].as_str().unwrap_or_default();
        let mut findings = Findings::default();
        anthropic_check::check(&body, betas, &mut findings);
        // The signatures in the captures are invented; keys of properties are passed on unchanged.
        let known = ["Invalid `signature` in `thinking` block", "Property keys should match"];
        assert_eq!(broken(&findings, &known), Vec::<String>::new(), "{}", path.display());
    }
}

#[test]
fn gemini_cli_breaks_no_rule() {
    for (path, capture) in captures("gemini") {
        let bypass = |name: &str, _: &Value| {
            (name == "thoughtSignature").then(|| json!("skip_thought_signature_validator"))
        };
        let body = mended(&capture["body"], &bypass);
        let address = capture["path"].as_str().unwrap();
        if !address.contains("GenerateContent") {
            continue;
        }
        let mut findings = Findings::default();
        if address.starts_with("/v1internal") {
            let (model, request) = code_assist::open_envelope(&body, &mut findings);
            gemini_check::check(model, request, &mut findings);
        } else {
            let named = address.split('/').next_back().unwrap();
            gemini_check::check(named.split(':').next().unwrap(), &body, &mut findings);
        }
        assert_eq!(broken(&findings, &[]), Vec::<String>::new(), "{}", path.display());
    }
}
