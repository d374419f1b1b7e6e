//! Results above the size limit: stored in full, and answered with their beginning and a handle.

use serde_json::{Map, Value, json};
use switchboard_mcp_client::RawResult;
use switchboard_model::{CallError, CallErrorKind, CallId, CanonicalName, Face, ToolResult};
use switchboard_protocol::{Members, ResultKind, params_text};
use switchboard_registry::CatalogTool;
use switchboard_store::{NewResult, ResultBounds, Store, StoreError};

use crate::board::Board;
use crate::call::typed;
use crate::call_accounting::CallAccounting;
use crate::call_errors::not_kept;
use crate::call_result::{RawCallResult, ResultHandle};

/// Limits for all stored results, which are kept for a day. One session can use at most a quarter of the space.
pub(crate) const KEPT_RESULTS: ResultBounds =
    ResultBounds { total_bytes: 256 << 20, owner_bytes: 64 << 20, count: 8192 };

/// Characters of a large result that the answer shows.
const PREVIEW_CHARS: usize = 2_000;

impl Board {
    /// Returns the result of a call, or its beginning and a handle if it is too large.
    pub(crate) async fn cap(
        &self,
        tool: &CatalogTool,
        answer: RawCallResult,
        accounting: &mut CallAccounting<'_>,
    ) -> Result<RawCallResult, CallError> {
        let limit = tool.limits.max_result_bytes;
        accounting.result_bytes = answer.json.len() as u64;
        // A request for input or a task is not a result yet, and a handle cannot stand for it.
        if accounting.result_bytes <= limit || answer.head.kind != ResultKind::Complete {
            return Ok(answer);
        }
        // Boxed: writing to the store is a large future, and few results need it.
        Box::pin(self.offload(tool, &answer, accounting)).await
    }

    /// Stores a result that is too large, and returns its beginning.
    async fn offload(
        &self,
        tool: &CatalogTool,
        answer: &RawCallResult,
        accounting: &mut CallAccounting<'_>,
    ) -> Result<RawCallResult, CallError> {
        let limit = tool.limits.max_result_bytes;
        let result = typed(answer)?;
        let owner = owner_of(accounting.caller.session.as_deref(), accounting.caller.face);
        let origin = ResultOrigin { handle: new_handle(), call: &accounting.id, owner: &owner };
        let kept = offload(&self.store, origin, &result, &answer.json, limit).await;
        let (capped, handle) = kept.map_err(|error| not_kept(tool, &error))?;
        accounting.whole_result = Some(handle);
        Ok(RawCallResult::of(&capped))
    }

    /// Caps the result inside a task's state like the result of a call of its tool. `secret` identifies the task and
    /// must not be guessable.
    pub async fn cap_task(
        &self,
        tool: &CanonicalName,
        session: Option<&str>,
        secret: &str,
        said: RawResult,
    ) -> Result<RawResult, CallError> {
        let published = self.published.load_full();
        let Ok(tool) = published.catalog().exactly_for(session, tool) else { return Ok(said) };
        let limit = tool.limits.max_result_bytes;
        let members = Members::read(said.as_str()).unwrap_or_default();
        let Some(result) = members.get("result").filter(|it| it.len() as u64 > limit) else {
            return Ok(said);
        };
        let typed = ToolResult::from_text(result)
            .map_err(|reason| CallError::new(CallErrorKind::Upstream, reason))?;
        // A repeated request gives the same handle, and the result is stored once.
        let (handle, call) = (handle_of(secret), CallId("task".into()));
        let owner = owner_of(session, Face::Mcp);
        let origin = ResultOrigin { handle, call: &call, owner: &owner };
        let kept = offload(&self.store, origin, &typed, result.as_bytes(), limit).await;
        let (capped, _) = kept.map_err(|error| not_kept(tool, &error))?;
        let capped = capped.to_value().to_string();
        let all = members.iter().map(|(key, value)| match key {
            "result" => (key, capped.as_str()),
            _ => (key, value),
        });
        Ok(RawResult(format!("{{{}}}", params_text(&all.collect::<Vec<_>>())).into()))
    }
}

/// A random handle that cannot be guessed.
fn new_handle() -> ResultHandle {
    ResultHandle(format!("result-{}", uuid::Uuid::now_v7().simple()))
}

/// A handle derived from a secret: the same each time.
fn handle_of(secret: &str) -> ResultHandle {
    let hash = blake3::hash(secret.as_bytes()).to_hex();
    // The same length as a random handle.
    ResultHandle(format!("result-{hash:.32}"))
}

/// The origin of a result that is to be stored.
struct ResultOrigin<'a> {
    handle: ResultHandle,
    call: &'a CallId,
    owner: &'a str,
}

/// The owner that a stored result is charged to: its session, or all callers of the face without one.
fn owner_of(session: Option<&str>, face: Face) -> String {
    match session {
        Some(session) => format!("session:{session}"),
        None => format!("face:{}", face.as_str()),
    }
}

/// Stores `body`, which is `result` as MCP JSON, and returns the shortened answer.
async fn offload(
    store: &Store,
    ResultOrigin { handle, call, owner }: ResultOrigin<'_>,
    result: &ToolResult,
    body: &[u8],
    limit: u64,
) -> Result<(ToolResult, ResultHandle), StoreError> {
    let now_ms = jiff::Timestamp::now().as_millisecond();
    let new = NewResult { handle: &handle.0, call, owner, body, now_ms };
    store.keep_result(&new, &KEPT_RESULTS).await?;
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
