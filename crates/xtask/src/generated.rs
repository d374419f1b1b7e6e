//! Files that are made from the code.

use std::path::{Path, PathBuf};

/// A file that is made from the code and committed, so that people and editors find it.
#[derive(Debug)]
pub struct GeneratedFile {
    /// Below the root of the workspace.
    pub path: &'static str,
    pub text: String,
}

/// All of them, as they should be.
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
