//! The answer of a tooling gateway as bytes.

use serde_json::Value;

use crate::entry::{FoundServers, parse_connectivity, parse_entries};
use crate::environment::Environment;
use crate::error::ToolingError;

/// The most bytes of a gateway's answer or of a manifest; 10,000 servers take about 2 MiB.
pub const MAX_BODY_BYTES: usize = 16 * 1024 * 1024;

/// Reads the servers of an answer: an object with `mcpServers`, or the bare list of older gateways. An answer that is
/// no JSON is an error. One of another shape, or an empty one, has no servers, and a warning says so.
pub fn parse_gateway_answer(
    body: &[u8],
    environment: &Environment,
) -> Result<FoundServers, ToolingError> {
    if body.len() > MAX_BODY_BYTES {
        return Err(ToolingError::TooLarge { limit: MAX_BODY_BYTES });
    }
    let unexpected = || {
        FoundServers::without_list(
            "Unexpected gateway response format: expected a list or {\"mcpServers\": [...]}",
        )
    };
    if body.trim_ascii().is_empty() {
        return Ok(unexpected());
    }
    let answer: Value = serde_json::from_slice(body)
        .map_err(|error| ToolingError::Unparsable { reason: error.to_string() })?;
    Ok(match answer {
        Value::Array(entries) => parse_entries(entries, environment),
        Value::Object(mut members) => match members.remove("mcpServers") {
            Some(Value::Array(entries)) => FoundServers {
                connectivity: parse_connectivity(&members),
                ..parse_entries(entries, environment)
            },
            Some(_) | None => unexpected(),
        },
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => unexpected(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(body: &str) -> Result<FoundServers, ToolingError> {
        parse_gateway_answer(body.as_bytes(), &Environment::from_lookup(|_| None))
    }

    #[test]
    fn an_answer_of_another_shape_warns() {
        for body in [
            "",
            " \n",
            "null",
            "7",
            "\"x\"",
            "{}",
            "{\"mcpServers\": {}}",
            "{\"mcpServers\": null}",
        ] {
            let found = parse(body).unwrap();
            let warning =
                "Unexpected gateway response format: expected a list or {\"mcpServers\": [...]}";
            assert_eq!(
                (found.warnings, found.is_list),
                (vec![warning.to_owned()], false),
                "{body}"
            );
            assert!(found.servers.is_empty(), "{body}");
        }
    }

    #[test]
    fn an_answer_that_is_no_json_is_an_error() {
        let deep = "[".repeat(100_000);
        for body in ["<html>no</html>", "[", "{\"mcpServers\": [", deep.as_str()] {
            let error = parse(body).unwrap_err().to_string();
            let begin = "Failed to parse MCP server configuration response: ";
            assert!(error.starts_with(begin), "{error}");
        }
    }

    #[test]
    fn an_answer_that_is_too_large_is_an_error() {
        let body = vec![b' '; MAX_BODY_BYTES + 1];
        let error = parse_gateway_answer(&body, &Environment::from_lookup(|_| None)).unwrap_err();
        assert_eq!(error, ToolingError::TooLarge { limit: MAX_BODY_BYTES });
    }
}
