//! Finds out which era a streamable HTTP server speaks, without a handshake.
//!
//! Only a positive sign of 2026-07-28 selects the stateless era. After an unclear response the handshake of the session
//! era is tried once, and nothing is remembered.

use std::sync::Arc;

use futures::StreamExt;
use http::StatusCode;
use reqwest::{RequestBuilder, Response};
use serde_json::{Value, json};
use switchboard_model::{ConnectError, Era};
use switchboard_oauth::Authorization;
use switchboard_outbound::describe_failure;

use crate::bounds::MAX_MESSAGE_BYTES;
use crate::http_client::{bounded_events, content_type, read_bounded};

const MODERN: &str = "2026-07-28";
const PROBE_ID: &str = "switchboard-era-probe";

/// The result of `server/discover`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The server speaks this era.
    Speaks(Era),
    /// The response does not tell: try the session era, and remember nothing.
    Unclear,
}

/// Sends one `server/discover`. An error means that there was no response at all.
pub(crate) async fn probe_era(
    request: RequestBuilder,
    authorization: Option<&Arc<Authorization>>,
) -> Result<Verdict, ConnectError> {
    let request = discover_request(request);
    let response = match authorization {
        Some(authorization) => Box::pin(authorization.send(request)).await?,
        None => request.send().await.map_err(|error| describe_failure(&error))?,
    };
    let status = response.status();
    Ok(classify(status, read_answer(response).await.as_ref()))
}

/// The `server/discover` request.
pub(crate) fn discover_request(request: RequestBuilder) -> RequestBuilder {
    let body = json!({
        "jsonrpc": "2.0",
        "id": PROBE_ID,
        "method": "server/discover",
        "params": {"_meta": {
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": {"name": "switchboard", "version": env!("CARGO_PKG_VERSION")},
        }},
    });
    request
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", MODERN)
        .header("mcp-method", "server/discover")
        .json(&body)
}

fn classify(status: StatusCode, answer: Option<&Value>) -> Verdict {
    let error = answer.and_then(|answer| answer.get("error"));
    if let Some(code) = error.and_then(|error| error.get("code")).and_then(Value::as_i64)
        && (-32_022..=-32_020).contains(&code)
    {
        return Verdict::Speaks(if speaks_only_older(error) { Era::Legacy } else { Era::Modern });
    }
    if let Some(result) = answer.and_then(|answer| answer.get("result")) {
        let supports = result
            .get("supportedVersions")
            .and_then(Value::as_array)
            .is_some_and(|versions| versions.iter().any(|version| version == MODERN));
        let unfinished = result.get("resultType").is_some_and(|kind| kind != "complete");
        return Verdict::Speaks(if supports || unfinished { Era::Modern } else { Era::Legacy });
    }
    match status {
        StatusCode::UNAUTHORIZED
        | StatusCode::FORBIDDEN
        | StatusCode::PROXY_AUTHENTICATION_REQUIRED
        | StatusCode::REQUEST_TIMEOUT
        | StatusCode::TOO_MANY_REQUESTS => Verdict::Unclear,
        status if status.is_server_error() => Verdict::Unclear,
        _ => Verdict::Speaks(Era::Legacy),
    }
}

/// Whether an `UnsupportedProtocolVersion` error lists only versions of the session era.
fn speaks_only_older(error: Option<&Value>) -> bool {
    error.and_then(|error| error.pointer("/data/supported")).and_then(Value::as_array).is_some_and(
        |versions| {
            !versions.is_empty()
                && versions.iter().all(|version| version.as_str().is_some_and(|v| v < MODERN))
        },
    )
}

async fn read_answer(response: Response) -> Option<Value> {
    if content_type(&response).starts_with("text/event-stream") {
        let mut events = bounded_events(response.bytes_stream(), MAX_MESSAGE_BYTES);
        while let Some(Ok(event)) = events.next().await {
            let message = event.data.and_then(|data| serde_json::from_str::<Value>(&data).ok());
            if let Some(message) = message.filter(|message| message.get("id").is_some()) {
                return Some(message);
            }
        }
        return None;
    }
    let body = read_bounded(response, MAX_MESSAGE_BYTES).await.ok()?;
    serde_json::from_slice(&body).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(status: u16, answer: &str, expected: Verdict) {
        let answer = serde_json::from_str::<Value>(answer).ok();
        assert_eq!(classify(StatusCode::from_u16(status).unwrap(), answer.as_ref()), expected);
    }

    #[test]
    fn only_a_positive_sign_makes_a_server_modern() {
        let (modern, legacy) = (Verdict::Speaks(Era::Modern), Verdict::Speaks(Era::Legacy));
        check(200, r#"{"result":{"supportedVersions":["2025-11-25","2026-07-28"]}}"#, modern);
        check(200, r#"{"result":{"supportedVersions":["2025-11-25"]}}"#, legacy);
        check(200, r#"{"result":{"resultType":"input_required"}}"#, modern);
        check(200, r#"{"result":{}}"#, legacy);
        check(400, r#"{"error":{"code":-32020}}"#, modern);
        check(400, r#"{"error":{"code":-32022,"data":{"supported":["2027-01-01"]}}}"#, modern);
        check(400, r#"{"error":{"code":-32022,"data":{"supported":["2025-11-25"]}}}"#, legacy);
        check(400, r#"{"error":{"code":-32000,"message":"Server not initialized"}}"#, legacy);
        check(404, "", legacy);
        check(405, "", legacy);
        check(200, "<html>", legacy);
    }

    #[test]
    fn trouble_on_the_way_says_nothing() {
        for status in [401, 403, 407, 408, 429, 500, 502, 503] {
            check(status, "", Verdict::Unclear);
        }
    }
}
