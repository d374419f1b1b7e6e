//! The protocol of 2026-07-28: no handshake, every request complete in itself.

use std::sync::Arc;

use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use futures::stream::{self, StreamExt};
use serde_json::{Value, json};

use crate::base64::plain_header_value;
use crate::call::Call;
use crate::frame::{self, Frame, received};
use crate::http::{call_response, header_text, meta_version, single_response, unknown_tool};
use crate::listing::{page, rpc_error, server_info};
use crate::shelf::{self, Interests};
use crate::state::{MODERN_VERSION, Shared, Subscriptions, Wire, subscription_meta};

const HEADER_MISMATCH: i64 = -32020;
const UNSUPPORTED_VERSION: i64 = -32022;

pub(crate) async fn post(shared: &Arc<Shared>, parts: &Parts, message: &Value) -> Response {
    let (id, params) = (&message["id"], &message["params"]);
    if id.is_null() {
        return StatusCode::ACCEPTED.into_response();
    }
    if let Err(error) = check(shared, parts, message) {
        return frame::json(StatusCode::BAD_REQUEST, &error);
    }
    let meta = &params["_meta"];
    shared.recorder.count(|stats| {
        stats.client_protocol_version = Some(MODERN_VERSION.to_owned());
        stats.client_info = Some(meta["io.modelcontextprotocol/clientInfo"].clone());
    });
    match message["method"].as_str() {
        Some("server/discover") => single_response(shared, discover(shared, id)).await,
        Some("tools/list") => single_response(shared, page(shared, Wire::Modern, id, params)).await,
        Some("tools/call") => {
            match unknown_tool(Call::new(shared, Wire::Modern, id, params), id, params) {
                Ok(call) => {
                    let events = call.needs_events();
                    call_response(shared, events, call.bound_to_its_reader()).await
                }
                Err(error) => single_response(shared, error).await,
            }
        }
        Some("subscriptions/listen") if shared.script.subscriptions == Subscriptions::Served => {
            listen(shared, id, params)
        }
        Some(_) | None => match shelf::answer(shared, Wire::Modern, id, message) {
            Some(answer) => single_response(shared, answer).await,
            None => frame::json(StatusCode::NOT_FOUND, &rpc_error(id, -32601, "Method not found")),
        },
    }
}

fn discover(shared: &Shared, id: &Value) -> Value {
    shared.recorder.count(|stats| stats.discover_count += 1);
    let script = &shared.script;
    let mut result = json!({
        "resultType": "complete",
        "supportedVersions": [MODERN_VERSION],
        "capabilities": shelf::capabilities(shared),
        "ttlMs": script.ttl_ms,
        "cacheScope": script.cache_scope,
        "_meta": {"io.modelcontextprotocol/serverInfo": server_info(shared)},
    });
    if let Some(instructions) = &script.instructions {
        result["instructions"] = json!(instructions);
    }
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

fn listen(shared: &Shared, id: &Value, params: &Value) -> Response {
    let wanted = Interests::read(&params["notifications"]);
    let acknowledged = json!({
        "jsonrpc": "2.0",
        "method": "notifications/subscriptions/acknowledged",
        "params": {"notifications": wanted.honoured(), "_meta": subscription_meta(id)},
    });
    let first = Frame::from(acknowledged);
    if wanted.is_empty() {
        return frame::as_events(stream::iter([first]).chain(stream::pending()).boxed());
    }
    frame::as_events(received(shared.open_stream(None, Some(id.clone()), wanted, Some(first))))
}

/// Checks the rules for every request; an error is answered with status 400.
fn check(shared: &Shared, parts: &Parts, message: &Value) -> Result<(), Value> {
    let (id, params) = (&message["id"], &message["params"]);
    let method = message["method"].as_str().unwrap_or_default();
    let Some(version) = meta_version(message).as_str() else {
        return Err(rpc_error(id, -32602, "_meta lacks the protocol version"));
    };
    if !params["_meta"]["io.modelcontextprotocol/clientCapabilities"].is_object() {
        return Err(rpc_error(id, -32602, "_meta lacks the client capabilities"));
    }
    check_header(parts, id, "mcp-protocol-version", version)?;
    if version != MODERN_VERSION {
        let mut error = rpc_error(id, UNSUPPORTED_VERSION, "Unsupported protocol version");
        error["error"]["data"] = json!({"supported": [MODERN_VERSION], "requested": version});
        return Err(error);
    }
    check_header(parts, id, "mcp-method", method)?;
    if method == "tools/call" {
        check_header(parts, id, "mcp-name", params["name"].as_str().unwrap_or_default())?;
        check_mirrored_arguments(shared, parts, id, params)?;
    }
    Ok(())
}

fn check_header(parts: &Parts, id: &Value, name: &str, expected: &str) -> Result<(), Value> {
    let mut values = parts.headers.get_all(name).iter();
    let value = values.next().and_then(|value| plain_header_value(value.to_str().ok()?));
    if value.as_deref() == Some(expected) && values.next().is_none() {
        return Ok(());
    }
    Err(rpc_error(id, HEADER_MISMATCH, &format!("header {name} does not say {expected:?}")))
}

/// Arguments marked `x-mcp-header` at the top level of the schema must be in a header too.
fn check_mirrored_arguments(
    shared: &Shared,
    parts: &Parts,
    id: &Value,
    params: &Value,
) -> Result<(), Value> {
    let tools = shared.tools();
    let tool = tools.iter().find(|tool| params["name"] == tool.name.as_str());
    let properties = tool.and_then(|tool| tool.input_schema["properties"].as_object());
    for (argument, schema) in properties.into_iter().flatten() {
        let Some(header) = schema["x-mcp-header"].as_str() else { continue };
        let name = format!("mcp-param-{}", header.to_ascii_lowercase());
        match &params["arguments"][argument] {
            Value::Null if header_text(parts, &name).is_none() => {}
            Value::String(text) => check_header(parts, id, &name, text)?,
            other => check_header(parts, id, &name, &other.to_string())?,
        }
    }
    Ok(())
}
