//! Files that are generated from the code.

use std::path::{Path, PathBuf};

/// A generated file that is committed, so that users and editors find it.
#[derive(Debug)]
pub struct GeneratedFile {
    /// Relative to the root of the workspace.
    pub path: &'static str,
    pub text: String,
}

/// All generated files with their expected content.
pub fn generated_files() -> Vec<GeneratedFile> {
    let schema = switchboard_config::json_schema();
    // A JSON value always serialises.
    let schema = serde_json::to_string_pretty(&schema).unwrap_or_default();
    vec![
        GeneratedFile { path: "schema/switchboard.schema.json", text: format!("{schema}\n") },
        GeneratedFile { path: "docs/openapi.json", text: switchboard_http::openapi_text() },
    ]
}

/// The directory of the root manifest.
pub fn workspace_root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here).to_owned()
}
