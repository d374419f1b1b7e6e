//! Validates requests with the types of the providers' own libraries. `e2e/install-peers.sh` installs them; the
//! validators are optional files beside the repository.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::{fs, ops};

use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use switchboard_chat::{Message, ModelFault, Source};
use switchboard_model::{Effort, ModelSettings, ProviderKind};
use switchboard_render::{Delta, Provider};
use switchboard_test_support::peers;

use crate::samples::{Asking, conversations, rendering, source};
use crate::{ModelRequest, ToolChange, Tools, WireRequest, anthropic, gemini};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn validators() -> Option<PathBuf> {
    let places = ["../shared", "../../shared"].map(|place| root().join(place).join("validators"));
    places.into_iter().find(|place| place.exists())
}

/// The errors in these bodies; `None` if no validator is installed.
fn check(bodies: &[(String, Value)]) -> Option<Vec<String>> {
    let validators = validators()?;
    let directory = tempfile::tempdir().unwrap();
    for (name, body) in bodies {
        fs::write(directory.path().join(format!("{name}.json")), body.to_string()).unwrap();
    }
    let output = Command::new(peers::python())
        .arg(root().join("e2e/wire/check_bodies.py"))
        .args([directory.path(), &validators])
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let said: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(said["checked"], bodies.len());
    Some(serde_json::from_value(said["wrong"].clone()).unwrap())
}

fn settings() -> [ModelSettings; 2] {
    let all = ModelSettings {
        instructions: Some("Be short.".into()),
        max_output_tokens: Some(4096),
        temperature: Some(0.5),
        top_p: Some(0.5),
        effort: Some(Effort::High),
        show_thinking: true,
        ..ModelSettings::default()
    };
    [ModelSettings::default(), all]
}

type Request = fn(&ModelRequest<'_>) -> Result<WireRequest, ModelFault>;

/// Every sample conversation, with and without settings and tools.
fn bodies(own: &Source, provider: Provider, kind: &str, request: Request) -> Vec<(String, Value)> {
    let mut all = Vec::new();
    for (name, messages) in conversations(own) {
        for (number, settings) in settings().into_iter().enumerate() {
            let names: &[&str] = if number == 0 { &[] } else { &["find", "drop"] };
            let mut asking =
                Asking::new(own.clone(), Tools::only(rendering(provider, names)), &messages);
            asking.settings = settings;
            if own.kind == ProviderKind::Anthropic {
                // The library no longer knows these settings; older models accept them.
                (asking.settings.temperature, asking.settings.top_p) = (None, None);
            }
            let body = asking.send(request).1;
            all.push((format!("{}-{name}-{number}.{kind}", own.model.replace('.', "_")), body));
        }
    }
    all
}

/// Adds and removes tools at every position of a conversation.
fn changed(own: &Source, messages: &[Message]) -> Vec<(String, Value)> {
    let places: ops::RangeInclusive<usize> = 0..=messages.len();
    let bodies = places.map(|before| {
        let (first, newest) =
            (&["find", "drop"], rendering(Provider::Anthropic, &["find", "more"]));
        let base = rendering(Provider::Anthropic, first);
        let delta = Arc::new(Delta::between(&base, &newest));
        let tools = Tools { base, changes: vec![ToolChange { before, delta }], newest };
        let body = Asking::new(own.clone(), tools, messages).send(anthropic::request).1;
        (format!("changed-{before}.anthropic-beta"), body)
    });
    bodies.collect()
}

#[test]
fn the_types_of_the_official_libraries_take_every_body() {
    let mut all = Vec::new();
    for model in ["claude-opus-5-5", "claude-haiku-4-5"] {
        let own = source(ProviderKind::Anthropic, model);
        all.extend(bodies(&own, Provider::Anthropic, "anthropic", anthropic::request));
    }
    let own = source(ProviderKind::Anthropic, "claude-opus-5-5");
    for (_, messages) in conversations(&own).into_iter().filter(|(name, _)| *name == "foreign") {
        all.extend(changed(&own, &messages));
    }
    for model in ["gemini-2.5-pro", "gemini-3-pro-preview"] {
        let own = source(ProviderKind::Gemini, model);
        all.extend(bodies(&own, Provider::Gemini, "gemini", gemini::request));
    }
    let own = source(ProviderKind::CodeAssist, "gemini-3.1-pro-preview");
    all.extend(bodies(&own, Provider::Gemini, "gemini", gemini::request));
    if let Some(wrong) = check(&all) {
        assert_eq!(wrong, Vec::<String>::new());
    }
}

/// The script must be able to detect errors.
#[test]
fn the_official_types_find_what_is_wrong() {
    let claude = |block: Value| {
        let messages = json!([{"role": "user", "content": [block]}]);
        json!({"model": "m", "max_tokens": 1, "stream": true, "messages": messages})
    };
    let part = json!({"functionResponse": {"name": "n", "response": "no object"}});
    let gemini = json!({"contents": [{"role": "user", "parts": [part]}]});
    let mut unknown = claude(json!({"type": "text", "text": "t"}));
    unknown["unknown"] = json!(1);
    let bodies = [
        ("a.anthropic".to_owned(), unknown),
        ("b.gemini".to_owned(), gemini),
        ("c.anthropic".to_owned(), claude(json!({"type": "tool_result", "content": "no id"}))),
        ("d.anthropic-beta".to_owned(), claude(json!({"type": "text"}))),
    ];
    if let Some(wrong) = check(&bodies) {
        for (name, _) in bodies {
            assert!(wrong.iter().any(|error| error.starts_with(&name)), "{name}: {wrong:#?}");
        }
    }
}
