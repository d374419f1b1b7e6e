//! `clientInfo`: the name and the version that an MCP client gives itself.

use switchboard_model::ClientInfo;

use crate::members::Members;

/// Maximum number of characters kept of a name or a version; the rest is cut.
const MAX_CHARACTERS: usize = 64;

/// Reads an object with `name` and `version`. A member that is missing or not a string is `None`.
pub fn read_client_info(text: Option<&str>) -> ClientInfo {
    let members = text.and_then(|text| Members::read(text).ok()).unwrap_or_default();
    let bounded = |key: &str| {
        let text = members.string(key)?;
        let text: String = text.chars().filter(|c| !c.is_control()).take(MAX_CHARACTERS).collect();
        (!text.is_empty()).then(|| text.into())
    };
    ClientInfo { name: bounded("name"), version: bounded("version") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_client_says_about_itself_is_bounded_and_printable() {
        #[track_caller]
        fn check(text: Option<&str>, name: Option<&str>, version: Option<&str>) {
            let info = read_client_info(text);
            assert_eq!((info.name.as_deref(), info.version.as_deref()), (name, version));
        }
        check(None, None, None);
        check(Some("[]"), None, None);
        check(Some(r#"{"name": 1, "version": ""}"#), None, None);
        check(Some(r#"{"name": "codex", "version": "0.1"}"#), Some("codex"), Some("0.1"));
        check(Some(r#"{"name": "a\u001b[31mb\n"}"#), Some("a[31mb"), None);
        let long = format!(r#"{{"name": "{}"}}"#, "x".repeat(1000));
        check(Some(&long), Some(&"x".repeat(MAX_CHARACTERS)), None);
    }
}
