//! Compares every case in every format with its golden file. `UPDATE_GOLDEN=1` rewrites the files.

use std::fs;

use pretty_assertions::assert_eq;
use serde_json::{Map, Value, json};
use switchboard_render::{NotShown, Provider, Rendering};

use crate::cases::cases;
use crate::{crate_root, render};

/// The content of a golden file: the list and its explanation.
fn golden(rendering: &Rendering) -> Value {
    let tools: Value = serde_json::from_slice(&rendering.json()).unwrap();
    let reasons = |tools: &[NotShown]| -> Vec<Value> {
        tools.iter().map(|tool| json!({"name": tool.name, "reason": tool.reason})).collect()
    };
    let rewrites: Map<String, Value> = rendering
        .tools
        .iter()
        .filter(|tool| !tool.rewrites.is_empty())
        .map(|tool| {
            let lines = tool.rewrites.iter();
            let lines = lines.map(|one| format!("{}: {} ({})", one.path, one.what, one.reason));
            (tool.name.to_string(), lines.collect())
        })
        .collect();
    json!({"tools": tools, "quarantined": reasons(&rendering.quarantined), "rewrites": rewrites})
}

#[test]
fn renderings_are_as_they_were() {
    let directory = crate_root().join("tests/golden");
    for (case, tools) in cases() {
        for provider in Provider::ALL {
            let golden = golden(&render(provider, &tools));
            let text = format!("{}\n", serde_json::to_string_pretty(&golden).unwrap());
            let file = directory.join(format!("{case}.{provider}.json"));
            if std::env::var_os("UPDATE_GOLDEN").is_some() {
                fs::create_dir_all(&directory).unwrap();
                fs::write(&file, &text).unwrap();
            }
            let known = fs::read_to_string(&file).unwrap_or_default();
            assert_eq!(known, text, "{}: UPDATE_GOLDEN=1 writes it anew", file.display());
        }
    }
}
