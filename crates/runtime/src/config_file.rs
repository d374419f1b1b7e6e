//! Replaces a configuration file atomically.

use std::io::{ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, fchown};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

/// Why a file cannot be replaced.
#[derive(Debug, thiserror::Error)]
pub enum ReplaceError {
    #[error("cannot write {}: {why}", .path.display())]
    Unwritable { path: PathBuf, why: String, hint: &'static str },
    #[error("{} was changed by another program in the meantime; nothing was written", .path.display())]
    Changed { path: PathBuf },
}

impl ReplaceError {
    /// The way out.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Unwritable { hint, .. } => hint,
            Self::Changed { .. } => "look at the file as it is now, then repeat the change",
        }
    }
}

/// A new version of a file, written beside the old one and not in its place yet. Dropping it removes it.
#[derive(Debug)]
pub(crate) struct PreparedFile {
    target: PathBuf,
    fresh: NamedTempFile,
}

impl PreparedFile {
    /// Writes `text` to the disk, with the mode and the owner of the file at `path`. A link is followed.
    pub(crate) fn new(path: &Path, text: &str) -> Result<Self, ReplaceError> {
        let target = path.canonicalize().map_err(|error| unwritable(path, &error))?;
        let before = target.metadata().map_err(|error| unwritable(path, &error))?;
        // A rename needs no permission on the file itself, so the mode is checked here.
        if before.permissions().readonly() {
            let hint = "make it writable (`chmod u+w FILE`), or change it where it comes from";
            let why = "the file is read-only".to_owned();
            return Err(ReplaceError::Unwritable { path: path.to_owned(), why, hint });
        }
        let directory = target.parent().unwrap_or(Path::new("."));
        let prepare = || {
            let mut fresh = tempfile::Builder::new()
                .prefix(".switchboard-")
                .suffix(".new")
                .tempfile_in(directory)?;
            fresh.write_all(text.as_bytes())?;
            let own = fresh.as_file().metadata()?;
            if (own.uid(), own.gid()) != (before.uid(), before.gid()) {
                fchown(fresh.as_file(), Some(before.uid()), Some(before.gid()))?;
            }
            fresh.as_file().set_permissions(before.permissions())?;
            fresh.as_file().sync_all()?;
            Ok(fresh)
        };
        let fresh = prepare().map_err(|error| unwritable(path, &error))?;
        Ok(Self { target, fresh })
    }

    /// Puts the new version in the place of the old one, whose text must still be `expected`.
    pub(crate) fn commit(self, expected: &str) -> Result<(), ReplaceError> {
        let path = self.target;
        let directory = path.parent().unwrap_or(Path::new(".")).to_owned();
        // Other Switchboards take the same lock, so between the comparison and the rename none of them writes.
        let locked = std::fs::File::open(&directory).and_then(|it| it.lock().map(|()| it));
        let locked = locked.map_err(|error| unwritable(&path, &error))?;
        let present = std::fs::read_to_string(&path).map_err(|error| unwritable(&path, &error))?;
        if present != expected {
            return Err(ReplaceError::Changed { path });
        }
        self.fresh.persist(&path).map_err(|failed| unwritable(&path, &failed.error))?;
        // The file is in its place already; a directory that cannot be synced costs durability only.
        let _synced = locked.sync_all();
        Ok(())
    }
}

fn unwritable(path: &Path, error: &std::io::Error) -> ReplaceError {
    let hint = match error.kind() {
        ErrorKind::PermissionDenied => {
            "a new version is written beside the file: its directory must be writable and its owner the same"
        }
        ErrorKind::ReadOnlyFilesystem => {
            "the file system is read-only: change the file where it comes from"
        }
        ErrorKind::ResourceBusy => {
            "the file is a mount of its own and cannot be replaced: mount its directory instead"
        }
        _ => "the file and its directory must be readable and writable",
    };
    ReplaceError::Unwritable { path: path.to_owned(), why: error.to_string(), hint }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn write(path: &Path, expected: &str, text: &str) -> Result<(), String> {
        let prepared = PreparedFile::new(path, text).map_err(|error| error.to_string())?;
        prepared.commit(expected).map_err(|error| error.to_string())
    }

    #[test]
    fn a_file_is_replaced_with_its_mode_and_through_links() {
        let directory = tempfile::tempdir().unwrap();
        let (file, link) = (directory.path().join("a.yaml"), directory.path().join("link.yaml"));
        fs::write(&file, "old").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        symlink("a.yaml", &link).unwrap();
        write(&link, "old", "new").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
        assert!(link.symlink_metadata().unwrap().is_symlink());
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o640);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2, "nothing is left behind");
    }

    #[test]
    fn a_file_that_changed_or_is_read_only_stays() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("a.yaml");
        fs::write(&file, "theirs").unwrap();
        let refused = write(&file, "old", "new").unwrap_err();
        assert!(refused.contains("was changed by another program"), "{refused}");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o444)).unwrap();
        let refused = write(&file, "theirs", "new").unwrap_err();
        assert!(refused.ends_with("a.yaml: the file is read-only"), "{refused}");
        assert_eq!(fs::read_to_string(&file).unwrap(), "theirs");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "nothing is left behind");
    }
}
