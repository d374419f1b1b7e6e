//! A session call as the app sees it: a call of a tool on an MCP server.

use serde_json::{Value, json};
use switchboard_chat::ToolReturn;

use crate::openai::result_text;
use crate::raw_json::{RawObject, to_raw};
use crate::splicer::PendingCall;

/// The events of a call that begins to run.
pub(super) fn begun(id: &str, label: &str, call: &PendingCall) -> [RawObject; 4] {
    let item = json!({
        "id": id,
        "type": "mcp_call",
        "server_label": label,
        "name": call.name,
        "arguments": "",
        "output": null,
        "error": null,
        "status": "in_progress",
        "approval_request_id": null,
    });
    [
        event(&json!({"type": "response.output_item.added", "item": item})),
        event(&json!({"type": "response.mcp_call.in_progress", "item_id": id})),
        event(
            &json!({"type": "response.mcp_call_arguments.delta", "item_id": id, "delta": call.arguments}),
        ),
        event(
            &json!({"type": "response.mcp_call_arguments.done", "item_id": id, "arguments": call.arguments}),
        ),
    ]
}

/// The events of a call that has ended. `item` is the item as it was announced.
pub(super) fn ended(
    mut item: RawObject,
    call: &PendingCall,
    result: &ToolReturn,
) -> [RawObject; 2] {
    let (text, _) = result_text(result);
    let status = if result.is_error { "failed" } else { "completed" };
    item.set("arguments", to_raw(&call.arguments));
    item.set("status", to_raw(&status));
    if result.is_error {
        let content = json!([{"type": "text", "text": text}]);
        item.set("error", to_raw(&json!({"type": "mcp_tool_execution_error", "content": content})));
    } else {
        item.set("output", to_raw(&text));
    }
    let mut done = event(&json!({"type": "response.output_item.done"}));
    let id: Value = item.parsed("id").unwrap_or_default();
    done.set("item", item.to_raw());
    [event(&json!({"type": format!("response.mcp_call.{status}"), "item_id": id})), done]
}

fn event(members: &Value) -> RawObject {
    RawObject::read(&members.to_string()).unwrap_or_default()
}
