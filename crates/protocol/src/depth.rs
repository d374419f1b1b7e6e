//! Limits the nesting depth of JSON before it is parsed.

/// Maximum nesting depth that `serde_json` accepts. Deeper JSON is refused here, because other parsers that the text is
/// forwarded to may recurse without a limit.
pub const MAX_DEPTH: usize = 127;

/// Whether brackets outside of strings are nested deeper than [`MAX_DEPTH`].
pub fn is_too_deep(json: &[u8]) -> bool {
    // Each level needs an opening and a closing bracket, so a text this short cannot be too deep.
    if json.len() <= 2 * MAX_DEPTH {
        return false;
    }
    // Counting all brackets is much faster than tracking strings, and few messages have more than `MAX_DEPTH` brackets.
    let brackets = json.iter().filter(|byte| matches!(byte, b'{' | b'[')).count();
    if brackets <= MAX_DEPTH {
        return false;
    }
    let (mut depth, mut in_string, mut escaped) = (0usize, false, false);
    for byte in json {
        if in_string {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => in_string = false,
                _ => {}
            }
            continue;
        }
        match byte {
            b'"' => in_string = true,
            b'{' | b'[' => {
                depth += 1;
                if depth > MAX_DEPTH {
                    return true;
                }
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_is_counted_outside_of_strings() {
        let nested = |levels: usize| format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
        assert!(!is_too_deep(nested(MAX_DEPTH).as_bytes()));
        assert!(is_too_deep(nested(MAX_DEPTH + 1).as_bytes()));
        assert!(!is_too_deep(format!(r#"{{"a\"{}":1}}"#, "[{".repeat(200)).as_bytes()));
        assert!(!is_too_deep("[],".repeat(500).as_bytes()));
        // `serde_json` has the same limit.
        assert!(serde_json::from_str::<serde_json::Value>(&nested(MAX_DEPTH)).is_ok());
        assert!(serde_json::from_str::<serde_json::Value>(&nested(MAX_DEPTH + 1)).is_err());
    }
}
