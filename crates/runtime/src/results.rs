//! Results that are too large to be answered: kept whole, answered with their beginning and a handle.

use serde_json::{Map, Value, json};
use switchboard_model::{CallId, ToolResult};
use switchboard_store::{Store, StoreError};

use crate::call::ResultHandle;

/// How much of a large result is shown.
const PREVIEW_CHARS: usize = 2_000;

/// A handle that nobody can guess.
pub(crate) fn new_handle() -> ResultHandle {
    ResultHandle(format!("result-{}", uuid::Uuid::now_v7().simple()))
}

/// The handle of a result of which this is a name that nobody knows: the same each time.
pub(crate) fn handle_of(secret: &str) -> ResultHandle {
    let hash = blake3::hash(secret.as_bytes()).to_hex();
    // As long as the others.
    ResultHandle(format!("result-{hash:.32}"))
}

/// Keeps `body`, which is `result` as MCP writes it, and gives what is answered instead.
pub(crate) async fn offload(
    store: &Store,
    handle: ResultHandle,
    call: &CallId,
    result: &ToolResult,
    body: &[u8],
    limit: u64,
) -> Result<(ToolResult, ResultHandle), StoreError> {
    let now = jiff::Timestamp::now().as_millisecond();
    store.keep_result(&handle.0, call, body, now).await?;
    let text = format!(
        "The result has {} bytes, more than the {limit} that max_result_bytes allows. Nothing was cut: the whole \
         result is kept as {handle} and can be read with `switchboard calls --result {handle}` or \
         GET /api/v1/results/{handle}. It begins:\n{}",
        body.len(),
        preview(result),
    );
    let meta = json!({"switchboard/result": {"handle": handle.0, "bytes": body.len()}});
    let extra = Map::from_iter([("_meta".to_owned(), meta)]);
    Ok((ToolResult { is_error: result.is_error, extra, ..ToolResult::text(text) }, handle))
}

fn preview(result: &ToolResult) -> String {
    let text = result.content.iter().find_map(|block| block.get("text").and_then(Value::as_str));
    match text {
        Some(text) => text.chars().take(PREVIEW_CHARS).collect(),
        None => result.structured.as_ref().map_or_else(
            || "(no text)".into(),
            |value| value.to_string().chars().take(PREVIEW_CHARS).collect(),
        ),
    }
}
