//! Reads the credential of a request: exactly one API key or token, none, or an error.

use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::{KEY_PREFIX, Refusal};

const API_KEY_HEADER: &str = "x-api-key";
/// All headers that may carry credentials.
pub(crate) const HEADERS: [HeaderName; 2] =
    [AUTHORIZATION, HeaderName::from_static(API_KEY_HEADER)];
/// The maximum length of a credential; tokens that fit into the headers of common servers are shorter.
const MAX_LENGTH: usize = 8 * 1024;

/// A credential that is not yet checked.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Credential<'r> {
    Key(&'r str),
    Token(&'r str),
}

/// The one credential of a request.
pub(crate) fn shown(headers: &HeaderMap) -> Result<Credential<'_>, Refusal> {
    let authorization = single(headers, AUTHORIZATION.as_str())?;
    let api_key = single(headers, API_KEY_HEADER)?;
    match (authorization, api_key) {
        (None, None) => Err(Refusal::Missing),
        (Some(_), Some(_)) => Err(Refusal::bad(
            "there are two credentials: send either `Authorization` or `X-API-Key`",
        )),
        (Some(value), None) => {
            let token = bearer(text(value)?)?;
            Ok(if token.starts_with(KEY_PREFIX) {
                Credential::Key(token)
            } else {
                Credential::Token(token)
            })
        }
        (None, Some(value)) => Ok(Credential::Key(text(value)?)),
    }
}

/// The only header of this name. Two are refused, because a proxy may have checked the other one.
fn single<'r>(headers: &'r HeaderMap, name: &str) -> Result<Option<&'r HeaderValue>, Refusal> {
    let mut values = headers.get_all(name).iter();
    let first = values.next();
    if values.next().is_some() {
        return Err(Refusal::bad("a header with credentials is sent more than once"));
    }
    Ok(first)
}

fn text(value: &HeaderValue) -> Result<&str, Refusal> {
    if value.len() > MAX_LENGTH {
        return Err(Refusal::bad("the credentials are too long"));
    }
    let text = value.to_str().map_err(|_| Refusal::bad("the credentials are not ASCII text"))?;
    if text.trim().is_empty() {
        return Err(Refusal::bad("the credentials are empty"));
    }
    Ok(text)
}

fn bearer(text: &str) -> Result<&str, Refusal> {
    let (scheme, token) = text.split_once(' ').unwrap_or((text, ""));
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Err(Refusal::bad("only `Authorization: Bearer ...` is supported"));
    }
    let token = token.trim_matches(' ');
    if token.is_empty() {
        return Err(Refusal::bad("the credentials are empty"));
    }
    // The characters of RFC 6750, section 2.1. This also refuses two values that a proxy joined with a comma.
    let allowed = |c: u8| c.is_ascii_alphanumeric() || b"-._~+/=".contains(&c);
    if !token.bytes().all(allowed) {
        return Err(Refusal::bad(
            "the credentials contain characters that are invalid in keys and tokens",
        ));
    }
    Ok(token)
}
