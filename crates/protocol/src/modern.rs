//! Checks of stateless-era requests: required headers, their agreement with the body, protocol version.

use std::borrow::Cow;

use http::{HeaderMap, HeaderName, HeaderValue};

use crate::mirror::decode_header;
use crate::{MODERN_VERSION, Members};

const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");

/// The protocol headers of a request.
#[derive(Debug, Clone, Copy)]
pub struct Headers;

impl Headers {
    pub const VERSION: HeaderName = VERSION;
    pub const METHOD: HeaderName = METHOD;
    pub const NAME: HeaderName = NAME;
    pub const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
}

/// Why a stateless-era request is rejected before it is routed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModernFault {
    /// Error code -32020: a header is missing, occurs twice, or differs from the body.
    Header(String),
    /// Error code -32022: unsupported protocol version, with the requested one.
    Version(String),
}

/// The member of `params` that the `Mcp-Name` header repeats.
pub fn name_member(method: &str) -> Option<&'static str> {
    match method {
        "tools/call" | "prompts/get" => Some("name"),
        "resources/read" => Some("uri"),
        "tasks/get" | "tasks/update" | "tasks/cancel" => Some("taskId"),
        _ => None,
    }
}

/// Checks that the headers agree with the body of a request.
pub fn check_headers(
    headers: &HeaderMap,
    method: &str,
    params: &Members<'_>,
    version: &str,
) -> Result<(), ModernFault> {
    compare(headers, &VERSION, "MCP-Protocol-Version", version)?;
    compare(headers, &METHOD, "Mcp-Method", method)?;
    if let Some(member) = name_member(method)
        && let Some(named) = params.string(member)
    {
        compare(headers, &NAME, "Mcp-Name", &named)?;
    }
    Ok(())
}

/// Checks that the `Mcp-Method` header of a notification, if present, agrees with its body.
pub fn check_notification(headers: &HeaderMap, method: &str) -> Result<(), ModernFault> {
    if headers.contains_key(METHOD) {
        compare(headers, &METHOD, "Mcp-Method", method)?;
    }
    Ok(())
}

fn compare(
    headers: &HeaderMap,
    name: &HeaderName,
    shown: &str,
    expected: &str,
) -> Result<(), ModernFault> {
    let mut values = headers.get_all(name).iter();
    let fault = |reason: &str| Err(ModernFault::Header(format!("the header {shown} {reason}")));
    let Some(value) = values.next() else { return fault("is missing") };
    if values.next().is_some() {
        return fault("occurs twice");
    }
    match said(value) {
        Some(said) if said == expected => Ok(()),
        Some(_) => fault("does not match the body"),
        None => fault("cannot be read"),
    }
}

fn said(value: &HeaderValue) -> Option<Cow<'_, str>> {
    // Only values marked as base64 are decoded; others are compared as they are.
    let text = value.to_str().ok()?;
    if text.starts_with("=?") { decode_header(value).map(Cow::Owned) } else { Some(text.into()) }
}

/// Checks that the requested protocol version is supported.
pub fn check_version(version: &str) -> Result<(), ModernFault> {
    if version == MODERN_VERSION { Ok(()) } else { Err(ModernFault::Version(version.into())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(headers: &[(&str, &str)], expected: Result<(), &str>) {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(
                HeaderName::try_from(*name).unwrap(),
                HeaderValue::try_from(*value).unwrap(),
            );
        }
        let params = Members::read(r#"{"name":"grüße"}"#).unwrap();
        let checked = check_headers(&map, "tools/call", &params, MODERN_VERSION);
        let expected = expected.map_err(|reason| ModernFault::Header(reason.into()));
        assert_eq!(checked, expected);
    }

    #[test]
    fn headers_must_say_what_the_body_says() {
        let version = ("MCP-Protocol-Version", "2026-07-28");
        let (method, name) =
            (("mcp-method", "tools/call"), ("Mcp-Name", "=?base64?Z3LDvMOfZQ==?="));
        check(&[version, method, name], Ok(()));
        check(&[method, name], Err("the header MCP-Protocol-Version is missing"));
        check(&[version, name], Err("the header Mcp-Method is missing"));
        check(&[version, method], Err("the header Mcp-Name is missing"));
        check(&[version, method, name, name], Err("the header Mcp-Name occurs twice"));
        let wrong = "the header Mcp-Method does not match the body";
        check(&[version, ("Mcp-Method", "Tools/Call"), name], Err(wrong));
        check(
            &[version, method, ("Mcp-Name", "=?base64?!?=")],
            Err("the header Mcp-Name cannot be read"),
        );
        let wrong = "the header Mcp-Name does not match the body";
        check(&[version, method, ("Mcp-Name", "other")], Err(wrong));
    }
}
