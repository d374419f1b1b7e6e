//! The `WWW-Authenticate` challenge of a response.

use http::{HeaderMap, header};

/// The first bearer challenge of a response.
pub(crate) fn bearer_challenge(headers: &HeaderMap) -> Option<String> {
    let all = headers.get_all(header::WWW_AUTHENTICATE).iter();
    let texts = all.filter_map(|value| value.to_str().ok());
    let mut bearer = texts
        .filter(|text| text.get(..6).is_some_and(|scheme| scheme.eq_ignore_ascii_case("bearer")));
    bearer.next().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn the_first_bearer_challenge_counts() {
        let said = |challenges: &[&'static str]| {
            let value =
                |text: &&'static str| (header::WWW_AUTHENTICATE, HeaderValue::from_static(text));
            let mut headers = HeaderMap::new();
            headers.extend(challenges.iter().map(value));
            bearer_challenge(&headers)
        };
        assert_eq!(said(&["Basic", "bearer a", "Bearer b"]).as_deref(), Some("bearer a"));
        assert_eq!(said(&["Basic realm=x", "Be"]), None);
        assert_eq!(said(&[]), None);
    }
}
