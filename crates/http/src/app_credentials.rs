//! The credentials in an app's request, as the SDKs of model providers send them.
//!
//! An SDK sends one key, in the header of its provider. It is a key or token of the board. An app that also has a key of its own
//! for the provider sends the board's key in `X-Switchboard-Key`; then the SDK's header is the provider's.

use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use switchboard_inject::AppCredential;
use url::form_urlencoded;

const BOARD_KEY: HeaderName = HeaderName::from_static("x-switchboard-key");
const API_KEY: HeaderName = HeaderName::from_static("x-api-key");
const GOOGLE_KEY: HeaderName = HeaderName::from_static("x-goog-api-key");
/// The name of the key in the query of a request to Gemini.
const QUERY_KEY: &str = "key";

/// The headers by which the board checks an app's request.
pub(crate) fn of_board(headers: &HeaderMap, query: Option<&str>) -> HeaderMap {
    let mut checked = HeaderMap::new();
    let add = |checked: &mut HeaderMap, key: &[u8]| {
        let value = [b"Bearer ", key].concat();
        if let Ok(value) = HeaderValue::from_bytes(&value) {
            checked.append(header::AUTHORIZATION, value);
        }
    };
    if headers.contains_key(BOARD_KEY) {
        headers.get_all(BOARD_KEY).iter().for_each(|key| add(&mut checked, key.as_bytes()));
        return checked;
    }
    for value in headers.get_all(header::AUTHORIZATION) {
        checked.append(header::AUTHORIZATION, value.clone());
    }
    for name in [API_KEY, GOOGLE_KEY] {
        headers.get_all(name).iter().for_each(|key| add(&mut checked, key.as_bytes()));
    }
    for key in keys_of(query) {
        add(&mut checked, key.as_bytes());
    }
    checked
}

/// The app's own credential for the provider. On a board without keys it is what the SDK sends.
pub(crate) fn of_provider(
    headers: &HeaderMap,
    query: Option<&str>,
    is_open: bool,
) -> Option<AppCredential> {
    if !is_open && !headers.contains_key(BOARD_KEY) {
        return None;
    }
    let sent = [header::AUTHORIZATION, API_KEY, GOOGLE_KEY].into_iter().find_map(|name| {
        let value = headers.get(&name)?.clone();
        Some(AppCredential { header: name, value })
    });
    sent.or_else(|| {
        let value = HeaderValue::try_from(keys_of(query).next()?).ok()?;
        Some(AppCredential { header: GOOGLE_KEY, value })
    })
}

/// The query without credentials.
pub(crate) fn without_key(query: &str) -> Option<String> {
    let is_key = |part: &str| part.split('=').next() == Some(QUERY_KEY);
    let others: Vec<_> =
        query.split('&').filter(|part| !part.is_empty() && !is_key(part)).collect();
    (!others.is_empty()).then(|| others.join("&"))
}

fn keys_of(query: Option<&str>) -> impl Iterator<Item = String> {
    let pairs = form_urlencoded::parse(query.unwrap_or_default().as_bytes());
    pairs.filter(|(name, _)| name == QUERY_KEY).map(|(_, value)| value.into_owned())
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let pairs = pairs
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
        pairs.collect()
    }

    fn shown(headers: &HeaderMap) -> Vec<&str> {
        let values = headers.get_all(header::AUTHORIZATION).iter();
        values.filter_map(|value| value.to_str().ok()).collect()
    }

    #[test]
    fn the_key_of_each_sdk_is_the_boards() {
        for (sent, query) in [
            (vec![("authorization", "Bearer k")], None),
            (vec![("x-api-key", "k")], None),
            (vec![("x-goog-api-key", "k")], None),
            (vec![], Some("alt=sse&key=k")),
            (vec![("x-switchboard-key", "k"), ("authorization", "Bearer sk-provider")], None),
            (vec![("x-switchboard-key", "k"), ("x-api-key", "sk-provider")], Some("key=x")),
        ] {
            assert_eq!(shown(&of_board(&headers(&sent), query)), ["Bearer k"], "{sent:?}");
        }
        let two = headers(&[("x-api-key", "a"), ("authorization", "Bearer b")]);
        assert_eq!(shown(&of_board(&two, None)).len(), 2, "refused by the gatekeeper");
        assert_eq!(shown(&of_board(&HeaderMap::new(), None)), [] as [&str; 0]);
    }

    #[test]
    fn the_boards_key_never_goes_to_a_provider() {
        let name = |sent: &[_], query, is_open| {
            let credential = of_provider(&headers(sent), query, is_open)?;
            Some((credential.header.to_string(), credential.value.to_str().unwrap().to_owned()))
        };
        assert_eq!(name(&[("x-api-key", "board")], None, false), None);
        assert_eq!(name(&[("authorization", "Bearer board")], Some("key=board"), false), None);
        let both = [("x-switchboard-key", "board"), ("x-api-key", "own")];
        assert_eq!(name(&both, None, false), Some(("x-api-key".into(), "own".into())));
        assert_eq!(name(&[("x-switchboard-key", "board")], None, false), None);
        let own = Some(("x-goog-api-key".to_owned(), "own".to_owned()));
        assert_eq!(name(&[], Some("key=own"), true), own);
    }

    #[test]
    fn the_key_is_taken_out_of_the_query() {
        assert_eq!(without_key("alt=sse&key=k&x=1").as_deref(), Some("alt=sse&x=1"));
        assert_eq!(without_key("key=k"), None);
        assert_eq!(without_key("keys=1").as_deref(), Some("keys=1"));
    }
}
