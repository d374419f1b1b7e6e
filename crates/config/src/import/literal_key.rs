//! Detects API keys in plain text in an imported file, so that the user gets a note about them.

use url::Url;

use super::variables;

/// Parts of names that suggest a key.
const WORDS: [&str; 6] = ["key", "token", "secret", "passw", "credential", "bearer"];

/// Prefixes of the keys of well-known services.
const PREFIXES: [&str; 12] = [
    "sk-",
    "pk_",
    "rk_",
    "ghp_",
    "gho_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "AKIA",
    "AIza",
    "hf_",
];

/// Whether a value under this name is probably a literal key.
pub(super) fn is_key(name: &str, value: &str) -> bool {
    let value = value.trim();
    if value.is_empty() || variables::has_reference(value) || value.starts_with("file:") {
        return false;
    }
    let name = name.to_ascii_lowercase();
    WORDS.iter().any(|word| name.contains(word)) || looks_like_key(value)
}

/// Whether an argument, given the one before it, is probably a key: `--api-key x`, `--token=x`, `sk-...`.
pub(super) fn is_key_argument(before: Option<&str>, argument: &str) -> bool {
    match argument.strip_prefix('-').and_then(|flag| flag.split_once('=')) {
        Some((flag, value)) => is_key(flag, value),
        None if argument.starts_with('-') => false,
        None => is_key(before.filter(|flag| flag.starts_with('-')).unwrap_or_default(), argument),
    }
}

/// The names of URL query parameters that probably hold a key.
pub(super) fn keys_of_address(address: &str) -> Vec<String> {
    let Ok(url) = Url::parse(address) else { return Vec::new() };
    let named = url.query_pairs().filter(|(name, value)| is_key(name, value));
    named.map(|(name, _)| name.into_owned()).collect()
}

fn looks_like_key(value: &str) -> bool {
    value.len() >= 16 && PREFIXES.iter().any(|prefix| value.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_told_from_ordinary_values() {
        let rows = [
            ("API_KEY", "abc", true),
            ("GITHUB_PERSONAL_ACCESS_TOKEN", "abc", true),
            ("API_KEY", "${API_KEY}", false),
            ("API_KEY", "file:/run/key", false),
            ("API_KEY", "", false),
            ("LEVEL", "debug", false),
            ("ANYTHING", "ghp_0123456789abcdef", true),
            ("ANYTHING", "sk-short", false),
        ];
        for (name, value, expected) in rows {
            assert_eq!(is_key(name, value), expected, "{name}={value}");
        }
        assert!(is_key_argument(Some("--api-key"), "abc"));
        assert!(is_key_argument(None, "--token=abc"));
        assert!(!is_key_argument(Some("--token"), "--verbose"));
        assert!(!is_key_argument(Some("keys.txt"), "abc"));
        assert_eq!(keys_of_address("https://h/mcp?apikey=x&tools=a"), ["apikey"]);
        assert_eq!(keys_of_address("https://h/mcp?apikey=${KEY}"), Vec::<String>::new());
    }
}
