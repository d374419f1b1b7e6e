//! Values that must not appear in output: secrets, and URLs with credentials.

use std::fmt;

use secrecy::{ExposeSecret, SecretString};
use url::Url;

/// Text that is wiped on drop and prints as `***`. Unlike [`SecretString`] it can be compared, which a reload needs to
/// detect changed credentials.
#[derive(Clone)]
pub struct Secret(SecretString);

impl Secret {
    /// Wraps a value.
    pub fn new(value: impl Into<String>) -> Self {
        Self(SecretString::from(value.into()))
    }

    /// The value itself, for the code that sends it.
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }
}

impl PartialEq for Secret {
    fn eq(&self, other: &Self) -> bool {
        self.expose() == other.expose()
    }
}

impl Eq for Secret {}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// A URL without user name, password and query values, for display.
pub fn redact_url(url: &Url) -> String {
    let mut shown = url.clone();
    if !url.username().is_empty() || url.password().is_some() {
        // Both calls fail only for URLs that cannot have credentials.
        let _hidden = shown.set_username("***").and_then(|()| shown.set_password(None));
    }
    if url.query().is_some() {
        let keys: Vec<_> = url.query_pairs().map(|(key, _)| format!("{key}=***")).collect();
        shown.set_query(Some(&keys.join("&")));
    }
    shown.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_compare_but_do_not_print() {
        assert_eq!(Secret::new("a"), Secret::new("a"));
        assert_ne!(Secret::new("a"), Secret::new("b"));
        assert_eq!(format!("{:?}", Secret::new("hunter2")), "***");
        assert_eq!(Secret::new("hunter2").expose(), "hunter2");
    }

    #[test]
    fn a_url_is_shown_without_its_credentials() {
        let shown = |text: &str| redact_url(&Url::parse(text).unwrap());
        assert_eq!(shown("http://127.0.0.1:1/mcp"), "http://127.0.0.1:1/mcp");
        assert_eq!(shown("http://me:pw@h/mcp?key=abc&x=1"), "http://***@h/mcp?key=***&x=***");
    }
}
