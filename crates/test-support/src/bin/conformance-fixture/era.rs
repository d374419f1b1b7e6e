//! The protocol era of the fixture, and its refusals of the other era.

use std::borrow::Cow;
use std::str::FromStr;

use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Json, Response};
use rmcp::model::ProtocolVersion;
use serde_json::{Value, json};

const BODY_LIMIT: usize = 4 * 1024 * 1024;
const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Era {
    /// 2026-07-28 only.
    Modern,
    /// Up to 2025-11-25, by `initialize`.
    Legacy,
    Dual,
}

impl FromStr for Era {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "modern" => Ok(Self::Modern),
            "legacy" => Ok(Self::Legacy),
            "dual" => Ok(Self::Dual),
            other => Err(format!("{other} is no era; there are modern, legacy and dual")),
        }
    }
}

impl Era {
    pub(crate) fn versions(self) -> Cow<'static, [ProtocolVersion]> {
        match self {
            Self::Modern => Cow::Borrowed(&[ProtocolVersion::V_2026_07_28]),
            Self::Legacy => {
                Cow::Borrowed(ProtocolVersion::known_up_to(&ProtocolVersion::V_2025_11_25))
            }
            Self::Dual => Cow::Borrowed(ProtocolVersion::KNOWN_VERSIONS),
        }
    }

    /// The HTTP response of a server that does not support the other era.
    fn refusal(self, method: &Method, message: &Value, header: Option<&str>) -> Option<Response> {
        let is_initialize = message["method"] == "initialize";
        let is_discover = message["method"] == "server/discover";
        let meta = message["params"]["_meta"][META_VERSION].as_str();
        let newest = ProtocolVersion::V_2026_07_28;
        let speaks_modern = is_discover
            || [meta, header].into_iter().flatten().any(|version| version == newest.as_str());
        match self {
            Self::Legacy if speaks_modern => {
                let error =
                    json!({"code": -32000, "message": "Bad Request: Server not initialized"});
                Some(refused(StatusCode::BAD_REQUEST, &Value::Null, &error))
            }
            Self::Modern if method != Method::POST => {
                Some(StatusCode::METHOD_NOT_ALLOWED.into_response())
            }
            Self::Modern if is_initialize && meta.is_none() => {
                let requested = &message["params"]["protocolVersion"];
                let data = json!({"supported": [newest], "requested": requested});
                let error = json!({"code": -32022, "message": "Unsupported protocol version", "data": data});
                Some(refused(StatusCode::BAD_REQUEST, &message["id"], &error))
            }
            _ => None,
        }
    }
}

fn refused(status: StatusCode, id: &Value, error: &Value) -> Response {
    (status, Json(json!({"jsonrpc": "2.0", "id": id, "error": error}))).into_response()
}

/// Middleware that hides one era of the library's service.
pub(crate) async fn only(State(era): State<Era>, request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    let Ok(bytes) = to_bytes(body, BODY_LIMIT).await else {
        return StatusCode::PAYLOAD_TOO_LARGE.into_response();
    };
    let message: Value = serde_json::from_slice(&bytes).unwrap_or_default();
    let header = parts.headers.get("mcp-protocol-version").and_then(|value| value.to_str().ok());
    if let Some(response) = era.refusal(&parts.method, &message, header) {
        return response;
    }
    next.run(Request::from_parts(parts, Body::from(bytes))).await
}
