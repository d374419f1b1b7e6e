//! Error messages for responses that are not MCP, and for failures inside rmcp.

use http::{HeaderMap, StatusCode, header};
use rmcp::service::ServiceError;
use rmcp::transport::DynamicTransportError;
use rmcp::transport::streamable_http_client::StreamableHttpError;
use sse_stream::Error as SseError;
use switchboard_model::{ConnectError, ConnectErrorKind};
use switchboard_outbound::error_chain;
use switchboard_protocol::is_too_deep;

use crate::bounds::QUOTED_BYTES;
use crate::envelope::too_deep;

/// The failure of one HTTP exchange.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.message)]
pub(crate) struct HttpFault(pub(crate) ConnectError);

/// Why an event stream cannot be read further.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EventFault<E> {
    #[error("{0}")]
    Lost(#[source] E),
    #[error("the answer is larger than {0} bytes")]
    TooLarge(usize),
}

/// The error of a body above its limit.
pub(crate) fn too_large(limit: usize) -> ConnectError {
    let message = format!("the answer is larger than {limit} bytes");
    ConnectError::new(ConnectErrorKind::Protocol, message)
}

/// The error of an event stream that was read without rmcp.
pub(crate) fn event_fault(error: &SseError) -> ConnectError {
    let fault = match error {
        SseError::Body(fault) => fault.downcast_ref::<EventFault<HttpFault>>(),
        _ => None,
    };
    match fault {
        Some(EventFault::TooLarge(limit)) => too_large(*limit),
        Some(EventFault::Lost(_)) | None => {
            ConnectError::new(ConnectErrorKind::Unreachable, CLOSED)
        }
    }
}

/// The error inside a failure of rmcp's transport, without rmcp's own text.
pub(crate) fn describe_transport(error: &DynamicTransportError) -> ConnectError {
    use ConnectErrorKind::{Protocol, Timeout, Unreachable};
    use StreamableHttpError as E;
    let error = error.error.as_ref();
    if let Some(HttpFault(fault)) = error.downcast_ref() {
        return fault.clone();
    }
    match error.downcast_ref::<E<HttpFault>>() {
        Some(E::Client(HttpFault(fault))) => fault.clone(),
        Some(E::SessionExpired) => {
            let message = "HTTP 404 Not Found within a session that the server had just opened";
            ConnectError::new(Protocol, message)
        }
        Some(E::ReinitializationFailed(error)) => {
            let message = format!("the session was lost, and a new one refused: {}", error.message);
            ConnectError::new(Protocol, message)
        }
        Some(E::SessionRecoveryTimeout) => {
            ConnectError::new(Timeout, "the session was lost, and no new one was opened in time")
        }
        Some(E::TransportChannelClosed | E::UnexpectedEndOfStream) => {
            ConnectError::new(Unreachable, CLOSED)
        }
        _ if is_broken_pipe(error) => {
            ConnectError::new(Unreachable, "the process no longer reads its input")
        }
        _ => ConnectError::new(Unreachable, error_chain(error)),
    }
}

fn is_broken_pipe(error: &(dyn std::error::Error + Send + Sync + 'static)) -> bool {
    error
        .downcast_ref::<std::io::Error>()
        .is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}

/// The message for a truncated response without a known cause.
pub(crate) const CLOSED: &str = "the connection closed before the answer was complete";

/// The error of a response whose status or content type is not that of an MCP message.
pub(crate) fn describe_answer(status: StatusCode, content_type: &str, body: &[u8]) -> ConnectError {
    use ConnectErrorKind::{Overloaded, Protocol, Unauthorized};
    let said = format!("HTTP {status}{}", quote(body, content_type));
    match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => ConnectError::new(Unauthorized, said)
            .with_operator_hint("give the server's credentials in `auth.bearer` or `headers`"),
        StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED => ConnectError::new(Protocol, said)
            .with_operator_hint("check the path of `url`; many servers answer at /mcp, older ones at /sse with `transport: sse`"),
        status if status.is_redirection() => ConnectError::new(Protocol, said)
            .with_operator_hint("the server redirects elsewhere; put the final address into `url`"),
        status if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS => {
            ConnectError::new(Overloaded, said)
        }
        status if status.is_success() && content_type.starts_with("text/html") => {
            let message = format!("{said}: a web page instead of an MCP answer");
            ConnectError::new(Protocol, message)
                .with_operator_hint("this looks like a login or start page; check `url` and the credentials")
        }
        status if status.is_success() => {
            let quoted = quote(body, content_type);
            let message = format!("HTTP {status} with content type {content_type:?} instead of an MCP answer{quoted}");
            ConnectError::new(Protocol, message)
        }
        _ => ConnectError::new(Protocol, said),
    }
}

/// Adds a hint if the response names OAuth metadata: the server wants a sign-in rather than a fixed token.
pub(crate) fn with_oauth_hint(error: ConnectError, headers: &HeaderMap) -> ConnectError {
    let challenges = headers.get_all(header::WWW_AUTHENTICATE).iter();
    let names_metadata = challenges
        .filter_map(|challenge| challenge.to_str().ok())
        .any(|challenge| challenge.to_ascii_lowercase().contains("resource_metadata="));
    if error.kind != ConnectErrorKind::Unauthorized || !names_metadata {
        return error;
    }
    // It takes the place of the hint at fixed credentials.
    ConnectError { hints: Vec::new(), ..error }.with_operator_hint(
        "the server offers OAuth: write `auth: {oauth: {}}` in its entry, then run `switchboard auth login` with its name",
    )
}

pub(crate) fn describe_non_rpc(error: &serde_json::Error, body: &[u8]) -> ConnectError {
    if is_too_deep(body) {
        return too_deep();
    }
    let message = format!("the answer is not a JSON-RPC message ({error}){}", quote(body, ""));
    ConnectError::new(ConnectErrorKind::Protocol, message)
}

/// The beginning of a body for an error message. HTML pages are left out.
fn quote(body: &[u8], content_type: &str) -> String {
    let head: String = String::from_utf8_lossy(body.get(..QUOTED_BYTES).unwrap_or(body))
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    let head = head.trim();
    if head.is_empty() || content_type.starts_with("text/html") {
        return String::new();
    }
    format!(": {head}")
}

/// The error of an rmcp request without a response, without the names of rmcp's internals.
pub(crate) fn describe_service_error(error: &ServiceError) -> ConnectError {
    use ConnectErrorKind::{Protocol, Unreachable};
    match error {
        ServiceError::TransportSend(error) => describe_transport(error),
        ServiceError::TransportClosed => ConnectError::new(Unreachable, CLOSED),
        ServiceError::UnexpectedResponse => {
            ConnectError::new(Protocol, "the response does not match the request")
        }
        other => ConnectError::new(Protocol, other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_with_oauth_metadata_is_signed_in_at() {
        let hint = |status: StatusCode, challenge: &'static str| {
            let headers = HeaderMap::from_iter([(
                header::WWW_AUTHENTICATE,
                http::HeaderValue::from_static(challenge),
            )]);
            with_oauth_hint(describe_answer(status, "", b""), &headers).hint().unwrap_or_default()
        };
        let metadata =
            r#"Bearer Resource_Metadata="https://h/.well-known/oauth-protected-resource""#;
        assert!(hint(StatusCode::UNAUTHORIZED, metadata).contains("`auth: {oauth: {}}`"));
        assert!(hint(StatusCode::UNAUTHORIZED, "Bearer").contains("`auth.bearer`"));
        assert!(!hint(StatusCode::NOT_FOUND, metadata).contains("oauth"));
    }

    fn shown(error: &ConnectError) -> String {
        let hint = error.hint().map(|hint| format!(" -> {hint}")).unwrap_or_default();
        format!("{:?}: {error}{hint}", error.kind)
    }

    #[test]
    fn an_answer_that_is_none_is_described_by_its_status_and_type() {
        let described = |status: u16, kind: &str, body: &str| {
            let status = StatusCode::from_u16(status).unwrap();
            shown(&describe_answer(status, kind, body.as_bytes()))
        };
        let rows = [
            (
                described(400, "text/plain", "bad\r\nsession\u{1b}[0m"),
                "Protocol: HTTP 400 Bad Request: bad  session [0m",
            ),
            (described(502, "text/html", "<html>"), "Overloaded: HTTP 502 Bad Gateway"),
            (described(410, "", ""), "Protocol: HTTP 410 Gone"),
            (
                described(200, "text/plain", "hello"),
                "Protocol: HTTP 200 OK with content type \"text/plain\" instead of an MCP answer: hello",
            ),
            (
                described(403, "text/html; charset=utf-8", "<html>"),
                "Unauthorized: HTTP 403 Forbidden -> give the server's credentials in `auth.bearer` or `headers`",
            ),
        ];
        for (described, expected) in rows {
            assert_eq!(described, expected);
        }
    }

    #[test]
    fn a_body_is_quoted_only_in_part_and_in_one_line() {
        let quoted = quote("é".repeat(500).as_bytes(), "text/plain");
        assert_eq!(quoted.chars().filter(|c| *c == 'é').count(), QUOTED_BYTES / 2);
        assert_eq!(quote(b"  \n ", "text/plain"), "");
        assert_eq!(quote(b"<html>", "text/html"), "");
    }
}
