//! Checks of dependencies: allowed licences, sources and crates, and declared dependencies that are unused.
//!
//! `cargo deny` checks the first three as well, and known vulnerabilities besides; it takes as long to compile as
//! Switchboard, and its database needs a network.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, ensure};
use serde_json::Value;

/// Licences that allow distributing the binary under MIT or Apache-2.0. Exceptions after `WITH` only add permissions.
const LICENCES: &[&str] = &[
    "0BSD",
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    // The list of root certificates in webpki-roots.
    "CDLA-Permissive-2.0",
    "ISC",
    "LLVM-exception",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// Crates that must not be dependencies, direct or transitive.
const BANNED: &[(&str, &str)] = &[
    ("native-tls", "TLS is rustls: the same everywhere, and nothing to install"),
    ("openssl-sys", "TLS is rustls: the same everywhere, and nothing to install"),
];

/// A dependency of the binary, and its source.
#[derive(Debug, Clone)]
pub struct Dependency {
    pub name: String,
    pub licence: Option<String>,
    /// `None` for a crate of this workspace.
    pub source: Option<String>,
}

/// A dependency that a crate of the workspace declares.
#[derive(Debug, Clone)]
pub struct Declared {
    /// The crate that declares it, by the path of its directory.
    pub directory: String,
    /// The name by which sources use it.
    pub name: String,
}

/// Checks licences, sources and banned crates. Each returned sentence names a dependency and the rule that it breaks.
pub fn unwanted_dependencies(dependencies: &[Dependency]) -> Vec<String> {
    let mut unwanted = Vec::new();
    for Dependency { name, licence, source } in dependencies {
        let Some(source) = source else { continue };
        if !source.starts_with("registry+") {
            unwanted.push(format!("{name} comes from {source}, not from the registry"));
        }
        let licence = licence.as_deref().unwrap_or_default();
        let words = licence.split([' ', '/', '(', ')']);
        let mut words = words.filter(|word| !matches!(*word, "" | "OR" | "AND" | "WITH"));
        if licence.is_empty() {
            unwanted.push(format!("{name} names no licence"));
        } else if let Some(other) = words.find(|word| !LICENCES.contains(word)) {
            unwanted.push(format!("{name} is under {other}, which is not in the list of licences"));
        }
        if let Some((_, reason)) = BANNED.iter().find(|(banned, _)| banned == name) {
            unwanted.push(format!("{name} is banned: {reason}"));
        }
    }
    unwanted
}

/// Declared dependencies whose name occurs in no source of their crate.
pub fn unused_dependencies(root: &Path, declared: &[Declared]) -> Vec<String> {
    let mut unused = Vec::new();
    for Declared { directory, name } in declared {
        let ident = name.replace('-', "_");
        if !is_named(&root.join(directory), &ident) {
            unused.push(format!("{directory} declares {name} and does not use it"));
        }
    }
    unused
}

fn is_named(directory: &Path, ident: &str) -> bool {
    let Ok(entries) = std::fs::read_dir(directory) else { return false };
    entries.flatten().any(|entry| {
        let path = entry.path();
        if path.is_dir() {
            return path.file_name().is_some_and(|name| name != "target") && is_named(&path, ident);
        }
        path.extension().is_some_and(|extension| extension == "rs")
            && std::fs::read_to_string(&path).is_ok_and(|text| text.contains(ident))
    })
}

/// The dependencies of the binary on this machine, and the declared ones of each crate in the workspace.
pub fn dependencies(root: &Path) -> anyhow::Result<(Vec<Dependency>, Vec<Declared>)> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--offline", "--format-version", "1"])
        .args(["--filter-platform", "x86_64-unknown-linux-gnu"])
        .current_dir(root)
        .output()
        .context("cargo metadata does not start")?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout)?;
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let packages = metadata["packages"].as_array().context("no packages")?;
    let mut all = Vec::new();
    let mut declared = Vec::new();
    for package in packages {
        let name = text(&package["name"]).unwrap_or_default();
        let source = text(&package["source"]);
        if source.is_none() {
            let manifest = text(&package["manifest_path"]).unwrap_or_default();
            let directory = Path::new(&manifest).parent().and_then(|it| it.strip_prefix(root).ok());
            let directory = directory.context("a crate outside of the workspace")?;
            let used = package["dependencies"].as_array().into_iter().flatten();
            declared.extend(used.filter_map(|dependency| {
                let name = text(&dependency["rename"]).or_else(|| text(&dependency["name"]))?;
                Some(Declared { directory: directory.display().to_string(), name })
            }));
        }
        all.push(Dependency { name, licence: text(&package["license"]), source });
    }
    Ok((all, declared))
}
