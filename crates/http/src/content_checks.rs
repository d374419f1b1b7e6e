//! Chat messages that agents report here, and the records of content checks.

use std::time::Duration;

use axum::Json;
use axum::body::Bytes;
use axum::extract::Extension;
use axum::http::{HeaderMap, StatusCode};
use serde::Deserialize;
use switchboard_agent365::{ChatMessageRequest, ChatRole};
use switchboard_api::{ChatMessageAnswer, ContentCheckList};
use switchboard_auth::Principal;
use switchboard_model::{CheckHook, ContentCheckRecord, ContentVerdict, FailurePolicy};
use switchboard_runtime::{CheckInput, CheckedMessage, CheckedRole, ContentBlocked, HOOK_HEADER};
use switchboard_store::ContentCheckFilter;
use tokio::time::Instant;

use crate::answers::{BadRequest, Guarded, StoreFailed};
use crate::extract::FromQuery;
use crate::present;
use crate::problem::{ProblemResponse, bad_query};
use crate::ready::Ready;

/// The path of the chat messages of the Microsoft Agent 365 SDK.
pub(crate) const CHAT_MESSAGE_PATH: &str = "/agents/real-time-threat-protection/chat-message";
/// The maximum number of records in one response.
const MAX_RECORDS: u32 = 1000;
/// The maximum length of ids in the query.
const MAX_WORD: usize = 512;
/// Maximum number of characters of an id in a record.
const MAX_RECORDED_ID: usize = 256;

/// `POST /agents/real-time-threat-protection/chat-message`: records the message. With an endpoint in the configuration it
/// also asks that one, and answers with its verdict. 200 means recorded.
pub(crate) async fn report(
    Ready(board): Ready,
    principal: Option<Extension<Principal>>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Json<ChatMessageAnswer>, ProblemResponse> {
    let message = ChatMessageRequest::parse(&body).map_err(|error| {
        ProblemResponse::new("bad_request", StatusCode::BAD_REQUEST, error.to_string())
    })?;
    let started = Instant::now();
    let plan = board.plan();
    // A message that was passed on comes back if the endpoint of the configuration is this instance itself.
    let is_passed_on =
        headers.get(HOOK_HEADER).is_some_and(|hook| hook == CheckHook::Received.as_str());
    let (messages, bytes) = (message.chat_history.len() as u64 + 1, body.len() as u64);
    let (conversation, id) =
        (recorded_id(&message.conversation_id), recorded_id(&message.message_id));
    let verdict =
        if is_passed_on { None } else { board.judge_received(&plan, checked(message)).await };
    let blocked = match &verdict {
        None | Some(ContentVerdict::Allowed) => None,
        Some(ContentVerdict::Refused { reason }) => {
            Some(ContentBlocked::Refused { reason: reason.clone() })
        }
        Some(ContentVerdict::Failed { reason }) => match plan.threat_protection.on_failure {
            FailurePolicy::Open => None,
            FailurePolicy::Closed => Some(ContentBlocked::NoVerdict { reason: reason.clone() }),
        },
    };
    let record = ContentCheckRecord {
        id: uuid::Uuid::now_v7().to_string(),
        at_ms: jiff::Timestamp::now().as_millisecond(),
        hook: CheckHook::Received,
        verdict: verdict.as_ref().map_or("none", ContentVerdict::as_str).to_owned(),
        blocked: blocked.is_some(),
        reason: verdict.as_ref().and_then(ContentVerdict::reason).map(str::to_owned),
        principal: principal.map(|Extension(principal)| principal.id),
        conversation: Some(conversation),
        message: id,
        tool: None,
        messages,
        bytes,
        took: verdict.as_ref().map_or(Duration::ZERO, |_| started.elapsed()),
    };
    let answer = ChatMessageAnswer {
        record: record.id.clone(),
        block_action: blocked.is_some(),
        reason: blocked.as_ref().map(ToString::to_string),
    };
    board.record_received(record).await?;
    Ok(Json(answer))
}

/// An id as a record keeps it: bounded and printable.
fn recorded_id(id: &str) -> String {
    id.chars().filter(|c| !c.is_control()).take(MAX_RECORDED_ID).collect()
}

fn checked(message: ChatMessageRequest) -> CheckInput {
    let history = message.chat_history.into_iter().map(|message| CheckedMessage {
        role: match message.role {
            ChatRole::User => CheckedRole::User,
            ChatRole::Assistant => CheckedRole::Assistant,
            ChatRole::System => CheckedRole::System,
        },
        text: message.content,
    });
    CheckInput {
        hook: CheckHook::Received,
        conversation: message.conversation_id,
        message: message.message_id,
        user_message: message.user_message,
        context: Vec::new(),
        content: history.collect(),
    }
}

/// Selects records.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ChecksQuery {
    /// The maximum number of records.
    #[serde(default = "twenty")]
    #[param(minimum = 1, maximum = 1000, default = 20)]
    limit: u32,
    /// Only records of this session or conversation.
    #[param(max_length = 512, nullable = false)]
    conversation: Option<String>,
    /// Only records older than this one: the id of the last record of the previous page.
    #[param(max_length = 512, nullable = false)]
    before: Option<String>,
}

fn twenty() -> u32 {
    20
}

/// List content checks
///
/// The records of content checks that were refused or failed, and of chat messages that agents reported; newest first. The
/// content itself is not stored. Needs the role `operator`.
#[utoipa::path(
    get,
    path = "/api/v1/content-checks",
    operation_id = "listContentChecks",
    tag = "calls",
    params(ChecksQuery),
    responses(
        (status = 200, description = "The records.", body = ContentCheckList),
        Guarded,
        BadRequest,
        StoreFailed,
    )
)]
pub(crate) async fn recent(
    Ready(board): Ready,
    FromQuery(query): FromQuery<ChecksQuery>,
) -> Result<Json<ContentCheckList>, ProblemResponse> {
    if query.limit == 0 || query.limit > MAX_RECORDS {
        return Err(bad_query(format!("`limit` is 1 to {MAX_RECORDS}")));
    }
    for (name, word) in [("conversation", &query.conversation), ("before", &query.before)] {
        if word.as_ref().is_some_and(|word| word.chars().count() > MAX_WORD) {
            return Err(bad_query(format!("`{name}` has at most {MAX_WORD} characters")));
        }
    }
    let filter = ContentCheckFilter {
        limit: query.limit,
        conversation: query.conversation,
        before: query.before,
    };
    let checks = board.store().content_checks(&filter).await?;
    Ok(Json(ContentCheckList { checks: checks.iter().map(present::content_check).collect() }))
}
