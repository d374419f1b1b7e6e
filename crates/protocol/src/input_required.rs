//! Recognizes a session-era error that says that a tool needs the `input_required` results of the stateless era.
//!
//! The protocol has no code for it, and the official SDKs use three different ones. What their errors have in common are
//! the protocol's own identifiers for such a result, so these are looked for, and never the sentence around them.

use crate::code;

/// The name of the result's type and the value of its `resultType`, as the protocol writes them.
const IDENTIFIERS: [&str; 2] = ["InputRequiredResult", "input_required"];

/// The codes with which a server rejects a request; a tool's own errors have others.
const REJECTIONS: [i64; 3] = [code::INVALID_REQUEST, code::INVALID_PARAMS, code::INTERNAL_ERROR];

/// Whether a JSON-RPC error of a session-era server names `input_required` results as the reason.
pub fn needs_stateless_era(code: i64, message: &str) -> bool {
    let mut words = message.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    REJECTIONS.contains(&code) && words.any(|word| IDENTIFIERS.contains(&word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_identifiers_of_the_protocol_count_and_no_prose() {
        let rmcp = "InputRequiredResult requires negotiated protocol version 2026-07-28 or newer";
        let fastmcp = "Tool 'ask' returned an InputRequiredResult to request client input, but the multi-round-trip \
                       result type (SEP-2322) only exists at MCP 2026-07-28";
        let typescript = "Handler for tools/call returned an input-required result, but this request is served on \
                          protocol revision 2025-11-25, which has no input_required vocabulary";
        for (code, message, expected) in [
            (-32600, rmcp, true),
            (-32602, fastmcp, true),
            (-32603, typescript, true),
            (-32603, "no `input_required` here", true),
            (-32602, "input required: name", false),
            (-32602, "Input-Required", false),
            (-32602, "inputRequired is missing", false),
            (-32602, "my_input_required_field is missing", false),
            (-32000, rmcp, false),
            (-32600, "", false),
        ] {
            assert_eq!(needs_stateless_era(code, message), expected, "{code} {message}");
        }
    }
}
