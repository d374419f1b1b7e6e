//! Real servers and clients for end-to-end tests, and the programs of this crate.
//!
//! `e2e/install-peers.sh` installs them into `.tools/e2e` of the workspace; `E2E_PEERS_DIR` names another directory. A
//! missing peer causes a panic that says how to install it.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const MISSING: &str = "end-to-end peers are missing: run `make e2e-peers`";

/// The program of an npm package, such as `mcp-server-everything`.
pub fn npm_bin(name: &str) -> PathBuf {
    present(directory().join("npm/node_modules/.bin").join(name))
}

/// The Python interpreter with `mcp` and `fastmcp`.
pub fn python() -> PathBuf {
    present(directory().join("python/bin/python"))
}

/// A script of `e2e/python`, such as `fastmcp_server.py`. Run it with [`python`].
pub fn script(name: &str) -> PathBuf {
    let path = workspace().join("e2e/python").join(name);
    assert!(path.is_file(), "there is no {}", path.display());
    path
}

/// The Node.js for the conformance suite and the clients, which may be newer than the machine's.
pub fn node() -> PathBuf {
    present(directory().join("npm/node_modules/node/bin/node"))
}

/// A file of an installed npm package, such as `conformance-0.2/dist/index.js`.
pub fn npm_file(path: &str) -> PathBuf {
    present(directory().join("npm/node_modules").join(path))
}

/// A script of `e2e/clients`, such as `typescript-2.mjs`. Its imports are resolved from the directory of the peers, so
/// it is run from there.
pub fn client(name: &str) -> PathBuf {
    let path = workspace().join("e2e/clients").join(name);
    assert!(path.is_file(), "there is no {}", path.display());
    path
}

/// An agent program of `e2e/agents`: `codex`, `claude` or `gemini`. Two of them are scripts that look for `node`.
pub fn agent(name: &str) -> PathBuf {
    present(agents_directory().join("node_modules/.bin").join(name))
}

/// The directory of TrustGraph's commands, such as `tg-set-tool`.
pub fn trustgraph_commands() -> PathBuf {
    present(trustgraph_directory().join("bin"))
}

/// The packages of Microsoft's Agent 365 tooling, for the `PYTHONPATH` of [`python`].
pub fn agent365_packages() -> PathBuf {
    present(agent365_directory().join("python"))
}

/// The packages of Semantic Kernel, with [`agent365_packages`] behind them, for the `PYTHONPATH` of [`python`].
pub fn agent365_semantic_kernel() -> OsString {
    let own = present(agent365_directory().join("semantic-kernel"));
    env::join_paths([own, agent365_packages()]).expect("the paths have no separator in them")
}

/// The program that lets one of the extensions give an agent its servers.
pub fn agent365_extension() -> PathBuf {
    workspace().join("e2e/agent365/extension.py")
}

/// The program that calls these packages: operations as JSON on its standard input, results as JSON on its output.
pub fn agent365_tooling() -> PathBuf {
    workspace().join("e2e/agent365/tooling.py")
}

/// A program of `e2e/apps`, such as `openai_app.py`: an app with the library of a model provider. It takes the address of the
/// board, a key, the address of the fake backends, and the name of a case if not all are to run.
pub fn app(name: &str) -> Command {
    let file = workspace().join("e2e/apps").join(name);
    assert!(file.is_file(), "there is no {}", file.display());
    let is_python = file.extension().is_some_and(|extension| extension == "py");
    let mut command = Command::new(if is_python { python() } else { node() });
    command.arg(file);
    command.env("PYTHONPATH", present(apps_directory().join("python")));
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    command.env("APPS_NPM", present(apps_directory().join("npm")));
    command
}

/// The program of the linter for the API document; run it with [`node`].
pub fn api_linter() -> PathBuf {
    present_checker(api_directory().join("npm/node_modules/@redocly/cli/bin/cli.js"))
}

/// The packages of the API fuzzer, for the `PYTHONPATH` of [`python`].
pub fn api_fuzzer() -> PathBuf {
    present_checker(api_directory().join("python"))
}

/// The misbehaving stdio server of this crate.
pub fn stdio_peer() -> PathBuf {
    own_program("switchboard-stdio-peer", "stdio-peer.rs")
}

/// The server for the conformance suite.
pub fn conformance_fixture() -> PathBuf {
    own_program("switchboard-conformance-fixture", "conformance-fixture")
}

/// The client command that the conformance suite runs.
pub fn conformance_driver() -> PathBuf {
    own_program("switchboard-conformance-driver", "conformance-driver")
}

/// A program of this crate. Builds it if it is missing or older than its source, because Cargo does not build the
/// programs of a dependency.
fn own_program(name: &str, source: &str) -> PathBuf {
    let test = env::current_exe().expect("a running program has a path");
    let profile_directory = test.ancestors().nth(2).expect("tests run in target/PROFILE/deps");
    let program = profile_directory.join(format!("{name}{}", env::consts::EXE_SUFFIX));
    if !is_fresh(&program, &workspace().join("crates/test-support/src/bin").join(source)) {
        build(name, profile_directory);
    }
    program
}

fn is_fresh(program: &Path, source: &Path) -> bool {
    let modified = |path: &Path| fs::metadata(path).and_then(|file| file.modified()).ok();
    let parts = fs::read_dir(source).into_iter().flatten().flatten().map(|entry| entry.path());
    let written = parts.chain([source.to_owned()]).filter_map(|path| modified(&path)).max();
    modified(program).is_some_and(|built| written.is_none_or(|written| written <= built))
}

fn build(name: &str, profile_directory: &Path) {
    let profile = match profile_directory.file_name().and_then(|name| name.to_str()) {
        Some("debug") | None => "dev",
        Some(name) => name,
    };
    let target = profile_directory.parent().expect("a profile directory is in a target directory");
    let status = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["build", "--quiet", "--package", "switchboard-test-support"])
        .args(["--bin", name, "--profile", profile, "--target-dir"])
        .arg(target)
        .current_dir(workspace())
        .status()
        .expect("cargo starts");
    assert!(status.success(), "{name} does not build");
}

fn directory() -> PathBuf {
    env::var_os("E2E_PEERS_DIR").map_or_else(|| workspace().join(".tools/e2e"), PathBuf::from)
}

fn agents_directory() -> PathBuf {
    env::var_os("E2E_AGENTS_DIR").map_or_else(|| workspace().join(".tools/agents"), PathBuf::from)
}

fn trustgraph_directory() -> PathBuf {
    let named = env::var_os("E2E_TRUSTGRAPH_DIR");
    named.map_or_else(|| workspace().join(".tools/trustgraph"), PathBuf::from)
}

fn agent365_directory() -> PathBuf {
    env::var_os("E2E_AGENT365_DIR")
        .map_or_else(|| workspace().join(".tools/agent365"), PathBuf::from)
}

fn apps_directory() -> PathBuf {
    env::var_os("E2E_APPS_DIR").map_or_else(|| workspace().join(".tools/apps"), PathBuf::from)
}

fn api_directory() -> PathBuf {
    env::var_os("E2E_API_DIR").map_or_else(|| workspace().join(".tools/api"), PathBuf::from)
}

fn workspace() -> PathBuf {
    let crate_directory = Path::new(env!("CARGO_MANIFEST_DIR"));
    crate_directory.ancestors().nth(2).expect("the crate is in crates/ of the workspace").to_owned()
}

fn present_checker(path: PathBuf) -> PathBuf {
    assert!(path.exists(), "the checkers of the API are missing: run `make e2e-peers`");
    path
}

fn present(path: PathBuf) -> PathBuf {
    assert!(path.exists(), "{MISSING}");
    path
}
