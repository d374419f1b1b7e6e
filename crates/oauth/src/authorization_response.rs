//! The answer of an authorization server to the browser: the query of the redirect, or what a person pasted of it. Pure.

use std::fmt;

use switchboard_model::Secret;
use url::Url;
use url::form_urlencoded;

/// Longest text that is read.
const LONGEST: usize = 16 * 1024;

/// The parameters of an authorization response. Codes are secret: it prints without them.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct AuthorizationResponse {
    /// `None` only for a code that was pasted without its state.
    pub(crate) state: Option<String>,
    pub(crate) code: Option<String>,
    pub(crate) iss: Option<String>,
    pub(crate) error: Option<String>,
    pub(crate) description: Option<String>,
}

impl fmt::Debug for AuthorizationResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuthorizationResponse").finish_non_exhaustive()
    }
}

impl AuthorizationResponse {
    /// Reads the query of the redirect URI. Of a repeated parameter the first one counts.
    pub fn from_query(query: &str) -> Self {
        let mut read = Self::default();
        if query.len() > LONGEST {
            return read;
        }
        for (key, value) in form_urlencoded::parse(query.as_bytes()) {
            let place = match &*key {
                "state" => &mut read.state,
                "code" => &mut read.code,
                "iss" => &mut read.iss,
                "error" => &mut read.error,
                "error_description" => &mut read.description,
                _ => continue,
            };
            place.get_or_insert_with(|| value.into_owned());
        }
        read
    }

    /// The response as [`Self::from_pasted`] reads it, to be handed to another process. It has the code.
    pub fn to_secret(&self) -> Secret {
        let address = "http://127.0.0.1/?".to_owned();
        let start = address.len();
        let mut query = form_urlencoded::Serializer::for_suffix(address, start);
        for (key, value) in [
            ("state", &self.state),
            ("code", &self.code),
            ("iss", &self.iss),
            ("error", &self.error),
            ("error_description", &self.description),
        ] {
            if let Some(value) = value {
                query.append_pair(key, value);
            }
        }
        Secret::new(query.finish())
    }

    /// Reads what a person pasted: the address that the browser ended at, `code#state` as some issuers show it, or the
    /// code alone. `None` if it is none of these.
    pub fn from_pasted(text: &str) -> Option<Self> {
        let text = text.trim();
        if text.is_empty() || text.len() > LONGEST {
            return None;
        }
        if let Some(url) =
            Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https"))
        {
            let read = Self::from_query(url.query().unwrap_or_default());
            return (read.code.is_some() || read.error.is_some()).then_some(read);
        }
        if text.contains('=') && text.contains("code") {
            let read = Self::from_query(text.trim_start_matches('?'));
            return read.code.is_some().then_some(read);
        }
        if text.chars().any(|c| c.is_whitespace() || c.is_control()) {
            return None;
        }
        let (code, state) = match text.split_once('#') {
            Some((code, state)) => (code, Some(state.to_owned())),
            None => (text, None),
        };
        let code = (!code.is_empty()).then(|| code.to_owned())?;
        Some(Self { code: Some(code), state, ..Self::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pasted_answer_is_an_address_or_a_code() {
        let rows = [
            (
                "http://127.0.0.1:1/callback?code=a%20b&state=s&iss=https%3A%2F%2Fas\n",
                Some(("a b", Some("s"))),
            ),
            ("https://board/oauth/callback?state=s&code=c", Some(("c", Some("s")))),
            ("code=c&state=s", Some(("c", Some("s")))),
            ("c0de#st4te", Some(("c0de", Some("st4te")))),
            ("  c0de ", Some(("c0de", None))),
            ("http://127.0.0.1:1/callback", None),
            ("two words", None),
            ("#state", None),
            ("", None),
        ];
        for (text, expected) in rows {
            let read = AuthorizationResponse::from_pasted(text);
            let read = read.map(|read| (read.code.unwrap_or_default(), read.state));
            let expected =
                expected.map(|(code, state)| (code.to_owned(), state.map(str::to_owned)));
            assert_eq!(read, expected, "{text:?}");
        }
        for query in [
            "code=a%26b&state=s&iss=https%3A%2F%2Fas",
            "error=access_denied&error_description=no&state=s",
        ] {
            let response = AuthorizationResponse::from_query(query);
            let again = AuthorizationResponse::from_pasted(response.to_secret().expose());
            assert!(again == Some(response), "{query}");
        }
        let long = "x".repeat(LONGEST + 1);
        assert_eq!(AuthorizationResponse::from_pasted(&long), None);
        let shown = format!("{:?}", AuthorizationResponse::from_pasted("s3cret#s3cret"));
        assert!(!shown.contains("s3cret"), "{shown}");
    }
}
