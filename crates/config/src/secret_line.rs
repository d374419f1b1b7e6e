//! Decides which lines of a file may be quoted in a message.
//!
//! If the file can be parsed, the secret fields are known and their lines are hidden. This module is the second check,
//! for files that cannot be parsed and for secrets under misspelt keys: it judges a line by its text. A false positive
//! costs a snippet; a false negative shows a token in a CI log.

/// Parts of keys that suggest a secret.
const WORDS: [&str; 12] = [
    "auth",
    "bearer",
    "cookie",
    "credential",
    "env",
    "header",
    "key",
    "passw",
    "private",
    "secret",
    "session",
    "token",
];

/// Configuration keys that contain one of these words and never hold a secret.
const HARMLESS_KEYS: [&str; 6] = [
    "accept_without_key",
    "session_idle",
    "max_sessions",
    "max_sessions_per_principal",
    "max_session_servers",
    "max_output_tokens",
];

/// How many lines above are searched for parent keys.
const MAX_LOOK_BACK: usize = 2000;

/// Whether `lines[index]` may hold a secret as literal text.
pub(crate) fn looks_secret(lines: &[&str], index: usize) -> bool {
    let Some(line) = lines.get(index) else { return false };
    let (key, value) = split(line);
    if is_harmless(value) && !key.is_empty() {
        return false;
    }
    has_word(key)
        || (value.contains(['{', '[', ',']) && has_word(value))
        || has_credentials(value)
        || is_below_secret_key(lines, index)
}

/// Whether a value reveals nothing: it is empty, or a reference to a variable, a file or a keyring.
pub(crate) fn is_harmless(value: &str) -> bool {
    let value = value.trim();
    let value = value.strip_prefix('"').and_then(|v| v.strip_suffix('"')).unwrap_or(value);
    let value = value.strip_prefix("Bearer ").unwrap_or(value);
    let variable = value.strip_prefix("${").and_then(|rest| rest.strip_suffix('}'));
    let is_name = |name: &str| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let is_reference = value.starts_with("file:") || value.starts_with("keyring:");
    matches!(value, "" | "{}" | "[]") || is_reference || variable.is_some_and(is_name)
}

/// Whether a URL has a user, a password or a query, which often holds a key.
pub(crate) fn has_credentials(value: &str) -> bool {
    value.split_once("://").is_some_and(|(_, rest)| rest.contains(['@', '?']))
}

/// Splits a line into key and value; a line without a key is all value.
fn split(line: &str) -> (&str, &str) {
    line.split_once(": ")
        .or_else(|| line.trim_end().strip_suffix(':').map(|key| (key, "")))
        .unwrap_or(("", line))
}

fn has_word(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    !HARMLESS_KEYS.contains(&text.trim()) && WORDS.iter().any(|word| text.contains(word))
}

/// Whether a parent key of this line suggests a secret.
fn is_below_secret_key(lines: &[&str], index: usize) -> bool {
    let indentation = |line: &str| line.len() - line.trim_start().len();
    let mut innermost = lines.get(index).map_or(0, |line| indentation(line));
    for line in lines.iter().take(index).rev().take(MAX_LOOK_BACK) {
        if innermost == 0 {
            return false;
        }
        if line.trim().is_empty() || indentation(line) >= innermost {
            continue;
        }
        innermost = indentation(line);
        if has_word(split(line).0) {
            return true;
        }
    }
    // If the outermost key was not reached, the line counts as secret.
    index > MAX_LOOK_BACK && innermost > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: bool) {
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(looks_secret(&lines, lines.len() - 1), expected, "{text}");
    }

    #[test]
    fn literal_secrets_are_hidden_whatever_their_shape() {
        check("  bearer: abc", true);
        check("  authh: {bearer: abc}", true);
        check("  - {name: a, header: {x: abc}}", true);
        check("env:\n  PORT: abc", true);
        check("env:\n\n  FOO: |\n    abc", true);
        check("  url: http://me:pw@host/", true);
        check("  url: http://host/?k=abc", true);
        check("  args: [--token, abc]", true);
    }

    #[test]
    fn a_line_far_below_its_key_is_hidden_to_be_safe() {
        check(&format!("tools:\n{}  last: x", "  a: x\n".repeat(MAX_LOOK_BACK + 5)), true);
        check(&format!("tools:\n{}  last: x", "  a: x\n".repeat(10)), false);
    }

    #[test]
    fn ordinary_lines_and_references_are_shown() {
        check("  bearer: ${TOKEN}", false);
        check("  Authorization: \"Bearer ${TOKEN}\"", false);
        check("  bearer: ${TOKEN:-abc}", true);
        check("  bearer: file:/run/token", false);
        check("  auth:", false);
        check("  - name: auth-server", false);
        check("  max_sessions: 0", false);
        check("  max_session_servers: 0", false);
        check("  mcp_session: abc", true);
        check("env:\n  A: x\nurl: http://auth.example.com/mcp", false);
    }
}
