//! A configuration file in a temporary directory that is removed with the value.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

#[derive(Debug)]
pub struct TempConfig {
    directory: TempDir,
}

impl TempConfig {
    pub fn new(yaml: impl AsRef<str>) -> Self {
        let config = Self { directory: tempfile::tempdir().expect("a directory can be made") };
        config.rewrite(yaml);
        config
    }

    pub fn path(&self) -> PathBuf {
        self.directory.path().join("switchboard.yaml")
    }

    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Replaces the file atomically, as careful editors do.
    pub fn rewrite(&self, yaml: impl AsRef<str>) {
        let draft = self.file("switchboard.yaml.draft", yaml);
        fs::rename(draft, self.path()).expect("the configuration can be replaced");
    }

    /// Writes a further file into the same directory.
    pub fn file(&self, name: &str, text: impl AsRef<str>) -> PathBuf {
        let path = self.directory.path().join(name);
        fs::write(&path, text.as_ref()).expect("a file can be written");
        restrict(&path);
        path
    }
}

#[cfg(unix)]
fn restrict(path: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).expect("its mode can be set");
}

#[cfg(not(unix))]
fn restrict(_path: &Path) {}
