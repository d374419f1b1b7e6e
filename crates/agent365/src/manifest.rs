//! `ToolingManifest.json` as text.

use serde_json::Value;

use crate::entry::{FoundServers, parse_entries};
use crate::environment::Environment;
use crate::error::ToolingError;

/// The name of the file.
pub const MANIFEST_FILE_NAME: &str = "ToolingManifest.json";

/// Reads the servers of a manifest. Text that is no JSON is an error; a manifest without a list of servers has none, and
/// a warning says so.
pub fn parse_manifest(text: &str, environment: &Environment) -> Result<FoundServers, ToolingError> {
    // Editors on Windows begin files with a byte order mark.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let manifest: Value = serde_json::from_str(text)
        .map_err(|error| ToolingError::Manifest { reason: error.to_string() })?;
    let section = match manifest {
        Value::Object(mut members) => members.remove("mcpServers"),
        _ => None,
    };
    Ok(match section {
        Some(Value::Array(entries)) => parse_entries(entries, environment),
        Some(_) => FoundServers::without_list(
            "'mcpServers' in ToolingManifest.json is not a list — skipping",
        ),
        None => FoundServers::without_list("No 'mcpServers' section found in ToolingManifest.json"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<FoundServers, ToolingError> {
        parse_manifest(text, &Environment::from_lookup(|_| None))
    }

    #[test]
    fn the_manifest_of_the_documentation_is_read() {
        let found = parse(
            r#"{"mcpServers": [
                {"mcpServerName": "mailMCPServer", "mcpServerUniqueName": "mcp_MailTools"},
                {"mcpServerName": "sharePointMCPServer", "mcpServerUniqueName": "mcp_SharePointTools"}
            ]}"#,
        )
        .unwrap();
        let servers: Vec<_> =
            found.servers.iter().map(|it| (it.mcp_server_name.as_str(), it.url.as_str())).collect();
        let base = "https://agent365.svc.cloud.microsoft/agents/servers";
        assert_eq!(
            servers,
            [
                ("mailMCPServer", format!("{base}/mcp_MailTools").as_str()),
                ("sharePointMCPServer", format!("{base}/mcp_SharePointTools").as_str()),
            ]
        );
        assert_eq!((found.problems.len(), found.warnings.len(), found.is_list), (0, 0, true));
    }

    #[test]
    fn a_manifest_that_is_no_json_is_an_error_with_the_place() {
        for text in ["", "{", "<html>", "{\"mcpServers\": [}"] {
            let error = parse(text).unwrap_err().to_string();
            let begin = "Failed to read MCP servers from ToolingManifest.json: ";
            assert!(error.starts_with(begin) && error.contains("line 1 column"), "{error}");
        }
    }

    #[test]
    fn a_manifest_without_the_section_warns() {
        for text in ["{}", "{\"servers\": []}", "[]", "null", "7"] {
            let found = parse(text).unwrap();
            let warning = "No 'mcpServers' section found in ToolingManifest.json";
            assert_eq!(
                (found.warnings, found.is_list),
                (vec![warning.to_owned()], false),
                "{text}"
            );
        }
    }

    #[test]
    fn a_section_that_is_no_list_warns() {
        for text in ["{}", "null", "\"x\"", "7"] {
            let found = parse(&format!("{{\"mcpServers\": {text}}}")).unwrap();
            let warning = "'mcpServers' in ToolingManifest.json is not a list — skipping";
            assert_eq!(
                (found.warnings, found.is_list),
                (vec![warning.to_owned()], false),
                "{text}"
            );
        }
    }

    #[test]
    fn a_byte_order_mark_is_no_part_of_the_json() {
        assert!(parse("\u{feff}{\"mcpServers\": []}").unwrap().is_list);
    }
}
