//! The version of the program.

use std::sync::LazyLock;

/// The version of the workspace.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The commit that the program was built from. Packages set it; an ordinary build does not know it, so that it needs not be
/// repeated for each commit.
pub(crate) const COMMIT: &str = match option_env!("SWITCHBOARD_COMMIT") {
    Some(commit) => commit,
    None => "",
};

/// What `--version` prints after the name.
pub(crate) fn shown() -> &'static str {
    static SHOWN: LazyLock<String> = LazyLock::new(|| format!("{VERSION} ({COMMIT})"));
    if COMMIT.is_empty() { VERSION } else { &SHOWN }
}
