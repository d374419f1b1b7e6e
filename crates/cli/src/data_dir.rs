//! The default data directory.

use std::path::PathBuf;

/// The flag or its variable, else the user's data directory, else a hidden directory in the working directory.
pub(crate) fn data_directory(flag: Option<PathBuf>) -> PathBuf {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    flag.or_else(|| variable("XDG_DATA_HOME").map(|base| PathBuf::from(base).join("switchboard")))
        .or_else(|| {
            variable("HOME").map(|home| PathBuf::from(home).join(".local/share/switchboard"))
        })
        .unwrap_or_else(|| PathBuf::from(".switchboard"))
}
