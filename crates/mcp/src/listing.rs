//! Reads a server's whole list of tools, page by page, within bounds.

use std::collections::HashSet;
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::{ClientRequest, ListToolsRequest, PaginatedRequestParams, ServerResult};
use rmcp::service::{Peer, PeerRequestOptions, ServiceError};
use serde_json::{Map, Value};
use switchboard_model::{JsonText, ToolDescriptor, ToolList};

use crate::bounds::{
    KEPT_REASONS, MAX_CURSOR_BYTES, MAX_LIST_BYTES, MAX_LIST_PAGES, MAX_TOOLS_PER_SERVER,
};
use crate::call::describe_service_error;
use crate::error::{ConnectError, ConnectErrorKind};
use crate::http_client::UNREADABLE;

/// All pages, or an error: half a list is worse than the last whole one.
pub(crate) async fn list_tools(peer: &Peer<RoleClient>) -> Result<ToolList, ConnectError> {
    let mut list = ToolList::default();
    let mut cursors = HashSet::new();
    let mut cursor: Option<String> = None;
    let mut size = Size::default();
    for _ in 0..MAX_LIST_PAGES {
        let page = fetch_page(peer, cursor.as_deref()).await?;
        read_page(&page, &mut list, &mut size)?;
        let Some(next) = page.get("nextCursor").and_then(Value::as_str) else {
            return Ok(list);
        };
        if next.len() > MAX_CURSOR_BYTES {
            return Err(broken(format!(
                "the server's cursor is larger than {MAX_CURSOR_BYTES} bytes"
            )));
        }
        if !cursors.insert(next.to_owned()) {
            let shown: String = next.chars().take(60).collect();
            return Err(broken(format!(
                "the server's list goes in circles: cursor {shown:?} came twice"
            )));
        }
        cursor = Some(next.to_owned());
    }
    Err(broken(format!("the server's list has more than {MAX_LIST_PAGES} pages")))
}

async fn fetch_page(peer: &Peer<RoleClient>, cursor: Option<&str>) -> Result<Value, ConnectError> {
    let params =
        cursor.map(|cursor| PaginatedRequestParams::default().with_cursor(Some(cursor.to_owned())));
    let request =
        ClientRequest::ListToolsRequest(ListToolsRequest { params, ..ListToolsRequest::default() });
    let answer = async {
        peer.send_request_with_option(request, PeerRequestOptions::no_options())
            .await?
            .await_response()
            .await
    };
    match answer.await {
        // As JSON again: one tool that rmcp's types cannot hold must not cost the others.
        Ok(ServerResult::CustomResult(result)) => Ok(result.0),
        Ok(result) => serde_json::to_value(&result).map_err(|error| broken(error.to_string())),
        Err(ServiceError::McpError(error)) if error.code == UNREADABLE => {
            Err(broken(error.message))
        }
        Err(ServiceError::McpError(error)) => {
            Err(broken(format!("the server refused to list its tools: {}", error.message)))
        }
        Err(error) => Err(describe_service_error(&error)),
    }
}

/// How much a listing holds so far.
#[derive(Debug, Default)]
struct Size {
    tools: usize,
    bytes: usize,
    left_out: usize,
}

fn read_page(page: &Value, list: &mut ToolList, size: &mut Size) -> Result<(), ConnectError> {
    let Some(tools) = page.get("tools").and_then(Value::as_array) else {
        return Err(broken("the answer to tools/list has no list of tools"));
    };
    for tool in tools {
        size.tools += 1;
        if size.tools > MAX_TOOLS_PER_SERVER {
            return Err(broken(format!("the server lists more than {MAX_TOOLS_PER_SERVER} tools")));
        }
        match read_tool(tool) {
            Ok(tool) => {
                size.bytes += kept_bytes(&tool);
                list.tools.push(tool);
            }
            Err(reason) => {
                size.left_out += 1;
                list.dropped.truncate(KEPT_REASONS - 1);
                list.dropped.push(match size.left_out {
                    ..KEPT_REASONS => reason,
                    many => format!("{reason}; {many} tools were left out in all"),
                });
            }
        }
        if size.bytes > MAX_LIST_BYTES {
            return Err(broken(format!(
                "the server's tools take more than {MAX_LIST_BYTES} bytes"
            )));
        }
    }
    let ttl = page.get("ttlMs").and_then(Value::as_u64).map(Duration::from_millis);
    list.ttl = match (list.ttl, ttl) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    };
    Ok(())
}

/// A tool as far as it can be used; an error says why it cannot.
fn read_tool(tool: &Value) -> Result<ToolDescriptor, String> {
    let text = |key: &str| tool.get(key).and_then(Value::as_str).map(str::to_owned);
    let Some(name) = text("name").filter(|name| !name.is_empty()) else {
        return Err("it has no name".into());
    };
    if name.len() > 512 || name.chars().any(char::is_control) {
        let shown: String = name.chars().take(40).flat_map(char::escape_default).collect();
        return Err(format!("its name '{shown}' is too long or has control characters"));
    }
    let input_schema = match tool.get("inputSchema") {
        None | Some(Value::Null) => {
            Value::Object(Map::from_iter([("type".into(), "object".into())]))
        }
        Some(schema @ (Value::Object(_) | Value::Bool(true))) => schema.clone(),
        Some(_) => return Err(format!("the inputSchema of '{name}' is not an object")),
    };
    let object = |key: &str| tool.get(key).filter(|value| value.is_object()).map(JsonText::from);
    Ok(ToolDescriptor {
        name,
        title: text("title"),
        description: text("description"),
        input_schema: JsonText::from(&input_schema),
        output_schema: object("outputSchema"),
        annotations: object("annotations"),
    })
}

fn kept_bytes(tool: &ToolDescriptor) -> usize {
    let texts = [&tool.title, &tool.description].into_iter().flatten().map(String::len);
    let documents = [&tool.output_schema, &tool.annotations].into_iter().flatten();
    let documents = documents.chain([&tool.input_schema]).map(|json| json.as_str().len());
    tool.name.len() + texts.chain(documents).sum::<usize>()
}

fn broken(message: impl Into<String>) -> ConnectError {
    ConnectError::new(ConnectErrorKind::Protocol, message)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn one_bad_tool_does_not_cost_the_others() {
        let page = json!({"ttlMs": 500, "tools": [
            {"name": "good", "description": "d", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true}},
            {"name": "bare"},
            {"description": "nameless"},
            {"name": "a\u{7}b"},
            {"name": "listed", "inputSchema": [1]},
        ]});
        let mut list = ToolList { ttl: Some(Duration::from_secs(9)), ..Default::default() };
        read_page(&page, &mut list, &mut Size::default()).unwrap();
        let names: Vec<_> = list.tools.iter().map(|tool| tool.name.as_str()).collect();
        assert_eq!(names, ["good", "bare"]);
        assert_eq!(
            list.dropped,
            [
                "it has no name",
                "its name 'a\\u{7}b' is too long or has control characters",
                "the inputSchema of 'listed' is not an object"
            ]
        );
        assert_eq!(list.ttl, Some(Duration::from_millis(500)));
    }

    #[test]
    fn an_answer_without_tools_is_an_error() {
        let (list, size) = (&mut ToolList::default(), &mut Size::default());
        assert!(read_page(&json!({"items": []}), list, size).is_err());
    }

    #[test]
    fn a_list_is_bounded_in_tools_bytes_and_reasons() {
        let read = |tools: Vec<Value>| {
            let mut list = ToolList::default();
            read_page(&json!({ "tools": tools }), &mut list, &mut Size::default()).map(|()| list)
        };
        assert!(read(vec![json!({}); MAX_TOOLS_PER_SERVER + 1]).is_err());
        let fat = json!({"name": "fat", "description": "x".repeat(MAX_LIST_BYTES)});
        assert!(read(vec![fat]).is_err());
        let nameless = read(vec![json!({}); 100]).unwrap();
        assert_eq!(nameless.dropped.len(), KEPT_REASONS);
        assert_eq!(nameless.dropped[19], "it has no name; 100 tools were left out in all");
    }
}
