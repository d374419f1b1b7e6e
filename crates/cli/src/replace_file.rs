//! Writing a file of the user in one step.

use std::ffi::OsString;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crate::failure::Failure;

/// Whether it can be read and replaced: a device or a pipe can be neither, and a link may lead nowhere.
pub(crate) fn check_replaceable(path: &Path) -> Result<(), Failure> {
    let refuse = |why: &str| Err(Failure::start(format!("cannot write {}: {why}", path.display())));
    match (path.symlink_metadata(), path.metadata()) {
        (Ok(_), Err(error)) if error.kind() == std::io::ErrorKind::NotFound => {
            refuse("it is a link that leads nowhere")
        }
        (_, Ok(there)) if there.is_dir() => refuse("it is a directory"),
        (_, Ok(there)) if !there.is_file() => refuse("it is not a file"),
        _ => Ok(()),
    }
}

/// Writes beside the file and renames over it: a full disk must not cost the old one.
pub(crate) fn replace_file(path: &Path, text: &str) -> Result<(), Failure> {
    let cannot =
        |error: std::io::Error| Failure::start(format!("cannot write {}: {error}", path.display()));
    // A link is written through, not replaced.
    let target = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let mut fresh = OsString::from(&target);
    fresh.push(".new");
    let mut options = std::fs::File::options();
    // It may hold secrets: a new file is for its owner only.
    let mut file =
        options.write(true).create(true).truncate(true).mode(0o600).open(&fresh).map_err(cannot)?;
    file.write_all(text.as_bytes()).map_err(cannot)?;
    if let Ok(before) = std::fs::metadata(&target) {
        std::fs::set_permissions(&fresh, before.permissions()).map_err(cannot)?;
    }
    std::fs::rename(&fresh, &target).map_err(cannot)
}
