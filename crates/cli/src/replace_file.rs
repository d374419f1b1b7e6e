//! Replaces a user's file atomically.

use std::ffi::OsString;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crate::failure::Failure;

/// Checks that a file can be read and replaced: not a device or a pipe, and not a dangling link.
pub(crate) fn check_replaceable(path: &Path) -> Result<(), Failure> {
    let refuse = |why: &str| Err(Failure::start(format!("cannot write {}: {why}", path.display())));
    match (path.symlink_metadata(), path.metadata()) {
        (Ok(_), Err(error)) if error.kind() == std::io::ErrorKind::NotFound => {
            refuse("it is a dangling link")
        }
        (_, Ok(there)) if there.is_dir() => refuse("it is a directory"),
        (_, Ok(there)) if !there.is_file() => refuse("it is not a file"),
        _ => Ok(()),
    }
}

/// Writes a new file beside the old one and renames it, so that a full disk does not destroy the old one.
pub(crate) fn replace_file(path: &Path, text: &str) -> Result<(), Failure> {
    let cannot =
        |error: std::io::Error| Failure::start(format!("cannot write {}: {error}", path.display()));
    // A link is followed, not replaced.
    let target = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let mut fresh = OsString::from(&target);
    fresh.push(".new");
    let mut options = std::fs::File::options();
    // The file may hold secrets, so only its owner may read it.
    let mut file =
        options.write(true).create(true).truncate(true).mode(0o600).open(&fresh).map_err(cannot)?;
    file.write_all(text.as_bytes()).map_err(cannot)?;
    if let Ok(before) = std::fs::metadata(&target) {
        std::fs::set_permissions(&fresh, before.permissions()).map_err(cannot)?;
    }
    std::fs::rename(&fresh, &target).map_err(cannot)
}
