//! Finds and reads `ToolingManifest.json`.

use std::path::{Path, PathBuf};

use crate::entry::FoundServers;
use crate::environment::Environment;
use crate::error::ToolingError;
use crate::gateway_answer::MAX_BODY_BYTES;
use crate::manifest::{MANIFEST_FILE_NAME, parse_manifest};

/// Where the file is looked for: the working directory, its parent, and the directory of the configuration.
pub fn manifest_locations(working_directory: &Path, configuration: Option<&Path>) -> Vec<PathBuf> {
    let directories = [Some(working_directory), working_directory.parent(), configuration];
    let mut locations: Vec<PathBuf> = Vec::new();
    for directory in directories.into_iter().flatten() {
        let location = directory.join(MANIFEST_FILE_NAME);
        if !locations.contains(&location) {
            locations.push(location);
        }
    }
    locations
}

/// The first location with a file.
pub fn find_manifest(locations: &[PathBuf]) -> Option<&Path> {
    locations.iter().map(PathBuf::as_path).find(|location| location.is_file())
}

/// Reads the servers of a manifest. It blocks while the file is read.
pub fn read_manifest(path: &Path, environment: &Environment) -> Result<FoundServers, ToolingError> {
    let shown = path.display();
    let unreadable = |reason: String| ToolingError::Manifest { reason };
    let size =
        std::fs::metadata(path).map_err(|error| unreadable(format!("{shown}: {error}")))?.len();
    if size > MAX_BODY_BYTES as u64 {
        return Err(unreadable(format!("{shown} has more than {MAX_BODY_BYTES} bytes")));
    }
    let text =
        std::fs::read_to_string(path).map_err(|error| unreadable(format!("{shown}: {error}")))?;
    parse_manifest(&text, environment)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_working_directory_comes_first_then_its_parent_then_the_configuration() {
        let names = |working: &str, configuration: Option<&str>| {
            let locations = manifest_locations(Path::new(working), configuration.map(Path::new));
            let shown = locations.iter().map(|it| it.display().to_string());
            shown.collect::<Vec<_>>()
        };
        assert_eq!(
            names("/app/src", Some("/etc/board")),
            [
                "/app/src/ToolingManifest.json",
                "/app/ToolingManifest.json",
                "/etc/board/ToolingManifest.json"
            ]
        );
        assert_eq!(names("/", None), ["/ToolingManifest.json"]);
        assert_eq!(names("/app", Some("/app")).len(), 2, "no place is looked at twice");
    }

    #[test]
    fn the_first_file_is_taken() {
        let root = tempfile::tempdir().unwrap();
        let (working, configuration) = (root.path().join("work"), root.path().join("conf"));
        std::fs::create_dir_all(&working).unwrap();
        std::fs::create_dir_all(&configuration).unwrap();
        let locations = manifest_locations(&working, Some(&configuration));
        assert_eq!(find_manifest(&locations), None);
        for directory in [configuration.as_path(), root.path(), working.as_path()] {
            let file = directory.join(MANIFEST_FILE_NAME);
            std::fs::write(&file, "{}").unwrap();
            assert_eq!(find_manifest(&locations), Some(file.as_path()));
        }
    }

    #[test]
    fn a_file_that_cannot_be_read_is_named() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join(MANIFEST_FILE_NAME);
        let environment = Environment::from_lookup(|_| None);
        for content in [None, Some(&b"\xff\xfe"[..])] {
            if let Some(content) = content {
                std::fs::write(&file, content).unwrap();
            }
            let error = read_manifest(&file, &environment).unwrap_err().to_string();
            let begin = format!(
                "Failed to read MCP servers from ToolingManifest.json: {}: ",
                file.display()
            );
            assert!(error.starts_with(&begin), "{error}");
        }
    }
}
