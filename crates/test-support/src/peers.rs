//! Real servers for end-to-end tests, and the misbehaving one for stdio.
//!
//! `e2e/install-peers.sh` puts them into `.tools/e2e` of the workspace; `E2E_PEERS_DIR`
//! names another place. A missing peer is a panic that says what to do.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const MISSING: &str = "end-to-end peers are missing: run `make e2e-peers`";

/// The program of an npm package, such as `mcp-server-everything`.
pub fn npm_bin(name: &str) -> PathBuf {
    present(directory().join("npm/node_modules/.bin").join(name))
}

/// The Python that has `mcp` and `fastmcp`.
pub fn python() -> PathBuf {
    present(directory().join("python/bin/python"))
}

/// A script of `e2e/python`, such as `fastmcp_server.py`. Run it with [`python`].
pub fn script(name: &str) -> PathBuf {
    let path = workspace().join("e2e/python").join(name);
    assert!(path.is_file(), "there is no {}", path.display());
    path
}

/// The misbehaving stdio server of this crate. Builds it when it is not there, or older
/// than its source, because Cargo does not build the programs of a dependency.
pub fn stdio_peer() -> PathBuf {
    let test = env::current_exe().expect("a running program has a path");
    let profile_directory = test.ancestors().nth(2).expect("tests run in target/PROFILE/deps");
    let peer = profile_directory.join(format!("switchboard-stdio-peer{}", env::consts::EXE_SUFFIX));
    if !is_fresh(&peer) {
        build_stdio_peer(profile_directory);
    }
    peer
}

fn is_fresh(peer: &Path) -> bool {
    let modified = |path: &Path| fs::metadata(path).and_then(|file| file.modified()).ok();
    let source = workspace().join("crates/test-support/src/bin/stdio-peer.rs");
    modified(peer).is_some_and(|built| modified(&source).is_none_or(|written| written <= built))
}

fn build_stdio_peer(profile_directory: &Path) {
    let profile = match profile_directory.file_name().and_then(|name| name.to_str()) {
        Some("debug") | None => "dev",
        Some(name) => name,
    };
    let target = profile_directory.parent().expect("a profile directory is in a target directory");
    let status = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["build", "--quiet", "--package", "switchboard-test-support"])
        .args(["--bin", "switchboard-stdio-peer", "--profile", profile, "--target-dir"])
        .arg(target)
        .current_dir(workspace())
        .status()
        .expect("cargo starts");
    assert!(status.success(), "the stdio peer does not build");
}

fn directory() -> PathBuf {
    env::var_os("E2E_PEERS_DIR").map_or_else(|| workspace().join(".tools/e2e"), PathBuf::from)
}

fn workspace() -> PathBuf {
    let crate_directory = Path::new(env!("CARGO_MANIFEST_DIR"));
    crate_directory.ancestors().nth(2).expect("the crate is in crates/ of the workspace").to_owned()
}

fn present(path: PathBuf) -> PathBuf {
    assert!(path.exists(), "{MISSING}");
    path
}
