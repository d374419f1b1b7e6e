//! Checks of the dependencies between crates, and of conventions that no lint covers.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, ensure};
use serde_json::Value;

/// A crate of the workspace and its dependencies.
#[derive(Debug)]
pub struct Package {
    pub name: String,
    /// Normal dependencies, without dev-dependencies.
    pub dependencies: Vec<String>,
}

/// The layers, lowest first. A crate may depend on crates of lower layers only.
const LEVELS: &[&[&str]] = &[
    &["model", "api", "telemetry", "template", "workbench"],
    &["react"],
    &["schema", "config", "registry", "protocol", "chat", "loopback", "demo-server"],
    &["view", "render", "trustgraph", "outbound", "store"],
    &["oauth", "agent365"],
    &["mcp-client", "discovery"],
    &["auth", "runtime", "wire", "splice"],
    &["sessions", "providers", "translate"],
    &["mcp-server", "turns", "inject"],
    &["http"],
    &["cli"],
];

const PREFIX: &str = "switchboard-";

/// Crates that run, measure or check the product; no crate of the product may depend on them.
const OUTSIDE: &[&str] = &["test-support", "test-program", "xtask", "bench"];

/// Home directories: a path below one of them is valid on one machine only.
const HOMES: &[&str] = &["/root/", "/Users/"];

/// Pure crates: neither they nor their dependencies use network, clock, disk or tasks.
pub const PURE_CRATES: &[&str] = &[
    "model",
    "api",
    "template",
    "react",
    "schema",
    "config",
    "registry",
    "protocol",
    "chat",
    "view",
    "render",
    "trustgraph",
    "wire",
    "splice",
    "translate",
];
const IMPURE_DEPENDENCIES: &[&str] =
    &["tokio", "reqwest", "rmcp", "sqlx", "axum", "tracing", "notify", "uuid"];

/// Checks the dependencies between crates. Each returned sentence names a crate and the violation.
pub fn broken_arrows(packages: &[Package]) -> Vec<String> {
    let mut broken = Vec::new();
    for package in packages {
        let name = package.name.strip_prefix(PREFIX).unwrap_or(&package.name);
        if OUTSIDE.contains(&name) {
            continue;
        }
        let Some(own) = level(name) else {
            broken.push(format!("{name} has no level: add it to the list in xtask"));
            continue;
        };
        for dependency in &package.dependencies {
            broken.extend(broken_arrow(name, own, dependency));
        }
    }
    broken
}

fn broken_arrow(name: &str, own: usize, dependency: &str) -> Option<String> {
    if let Some(ours) = dependency.strip_prefix(PREFIX) {
        return match level(ours) {
            Some(theirs) if theirs < own => None,
            Some(_) => Some(format!("{name} knows {ours}, which is not below it")),
            None => Some(format!("{name} knows {ours}, which is not part of the product")),
        };
    }
    if dependency == "rmcp" && !matches!(name, "mcp-client" | "oauth" | "demo-server") {
        return Some(format!("{name} names rmcp; only mcp-client, oauth and demo-server may"));
    }
    let is_impure = PURE_CRATES.contains(&name) && IMPURE_DEPENDENCIES.contains(&dependency);
    is_impure.then(|| format!("{name} is pure and must not use {dependency}"))
}

fn level(name: &str) -> Option<usize> {
    LEVELS.iter().position(|crates| crates.contains(&name))
}

/// Checks conventions in files. Each returned sentence names a file and the violation.
pub fn broken_habits(root: &Path, files: &[String]) -> Vec<String> {
    let mut broken = Vec::new();
    for file in files {
        let name = file.rsplit('/').next().unwrap_or(file);
        if matches!(name, "utils.rs" | "helpers.rs" | "common.rs" | "manager.rs") {
            broken.push(format!("{file}: a file is named after what it holds"));
        }
        let Ok(text) = std::fs::read_to_string(root.join(file)) else { continue };
        if file.starts_with("crates/")
            && name == "Cargo.toml"
            && !text.contains("[lints]\nworkspace = true")
        {
            broken.push(format!("{file}: every crate takes the lints of the workspace"));
        }
        // `resolved` holds the registry of one machine.
        let is_npm_lock = name == "package-lock.json" && text.contains("\"resolved\":");
        let is_home = HOMES.iter().any(|home| text.contains(home)) && !file.ends_with("tidy.rs");
        if is_npm_lock || is_home {
            broken.push(format!("{file}: holds a place that only one machine has"));
        }
    }
    broken
}

/// The crates of the workspace, as cargo knows them.
pub fn packages(root: &Path) -> anyhow::Result<Vec<Package>> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .current_dir(root)
        .output()
        .context("cargo metadata does not start")?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout)?;
    let packages = metadata["packages"].as_array().context("no packages")?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    Ok(packages
        .iter()
        .map(|package| Package {
            name: text(&package["name"]),
            dependencies: package["dependencies"]
                .as_array()
                .into_iter()
                .flatten()
                .filter(|dependency| dependency["kind"].is_null())
                .map(|dependency| text(&dependency["name"]))
                .collect(),
        })
        .collect())
}

/// The files that git tracks; empty without git, as in an unpacked archive.
pub fn tracked_files(root: &Path) -> Vec<String> {
    let listed = Command::new("git").args(["ls-files", "-z"]).current_dir(root).output();
    let listed = listed.map(|output| output.stdout).unwrap_or_default();
    let names = String::from_utf8_lossy(&listed);
    names.split('\0').filter(|name| !name.is_empty()).map(str::to_owned).collect()
}
