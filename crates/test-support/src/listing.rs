//! `tools/list`: pages, cursors, and lists that clients should refuse.
//!
//! Pages are built as text, because recursive code cannot handle a schema of ten thousand levels.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::fault::Fault;
use crate::frame::Frame;
use crate::state::{Shared, Wire};
use crate::tool::Tool;

/// The page for a `tools/list` request.
pub(crate) fn page(shared: &Shared, wire: Wire, id: &Value, params: &Value) -> Frame {
    let cursor = params["cursor"].as_str();
    shared.recorder.count(|stats| {
        stats.list_count += usize::from(cursor.is_none());
        stats.page_count += 1;
    });
    let Some(number) = page_number(cursor) else {
        return rpc_error(id, -32602, "unknown cursor").into();
    };
    let fault = shared.strike(Fault::shapes_list);
    let (mut entries, more) = entries(shared, number);
    let mut next = more.then(|| format!("page-{}", number + 1));
    match fault {
        Some(Fault::EndlessPages) => next = Some(format!("page-{}", number + 1)),
        Some(Fault::SecondPageFails) if number > 0 => {
            return rpc_error(id, -32603, "scripted failure of the second page").into();
        }
        Some(Fault::CursorLoop | Fault::SecondPageFails) => next = Some("page-1".to_owned()),
        Some(Fault::DeepSchema(levels)) => entries.push(deep_entry(levels)),
        Some(Fault::HugeList(bytes)) => return huge_page(shared, wire, id, bytes),
        _ => {}
    }
    let members = members(shared, wire, next.as_deref());
    let tools = entries.join(",");
    Frame::Message(format!(
        r#"{{"jsonrpc":"2.0","id":{id},"result":{{"tools":[{tools}]{members}}}}}"#
    ))
}

pub(crate) fn rpc_error(id: &Value, code: i64, message: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
}

fn page_number(cursor: Option<&str>) -> Option<usize> {
    cursor.map_or(Some(0), |cursor| cursor.strip_prefix("page-")?.parse().ok())
}

/// The entries of one page, and whether there is another page.
fn entries(shared: &Shared, number: usize) -> (Vec<String>, bool) {
    let script = &shared.script;
    let size = script.tools_per_page.unwrap_or(usize::MAX);
    if script.generated_pages > 0 {
        let size = script.tools_per_page.unwrap_or(100);
        let page = number * size..(number + 1) * size;
        let entries = page.map(|index| Tool::new(format!("tool_{index:07}")).entry().to_string());
        return (entries.collect(), number + 1 < script.generated_pages);
    }
    let tools = shared.tools();
    let skipped = number.saturating_mul(size);
    let entries = tools.iter().skip(skipped).take(size).map(|tool| tool.entry().to_string());
    (entries.collect(), tools.len() > skipped.saturating_add(size))
}

/// The members of the result after `tools`, as text.
fn members(shared: &Shared, wire: Wire, next: Option<&str>) -> String {
    let script = &shared.script;
    let mut text = String::new();
    if let Some(next) = next {
        write!(text, r#","nextCursor":"{next}""#).unwrap();
    }
    if wire == Wire::Modern {
        write!(
            text,
            r#","resultType":"complete","ttlMs":{},"cacheScope":"{}","_meta":{}"#,
            script.ttl_ms,
            script.cache_scope,
            json!({"io.modelcontextprotocol/serverInfo": server_info(shared)}),
        )
        .unwrap();
    }
    text
}

pub(crate) fn server_info(shared: &Shared) -> Value {
    json!({"name": shared.script.server_name, "version": "1.0.0"})
}

fn deep_entry(levels: usize) -> String {
    let open = r#"{"type":"object","properties":{"deeper":"#.repeat(levels);
    let close = "}}".repeat(levels);
    format!(r#"{{"name":"deep","description":"d","inputSchema":{open}{{}}{close}}}"#)
}

fn huge_page(shared: &Shared, wire: Wire, id: &Value, bytes: usize) -> Frame {
    let members = members(shared, wire, None);
    Frame::Padded {
        head: format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":{{"tools":[{{"name":"huge","inputSchema":{{"type":"object"}},"description":""#
        ),
        filler: bytes,
        tail: format!(r#""}}]{members}}}}}"#),
    }
}
