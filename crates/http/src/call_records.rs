//! Records of calls: listed, shown one by one, and exported.

use std::time::Duration;

use axum::Json;
use axum::body::Body;
use axum::extract::Extension;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures::stream;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use switchboard_api::{RecordList, RecordView};
use switchboard_auth::Principal;
use switchboard_model::{CallId, CallOutcome, Face};
use switchboard_runtime::Board;
use switchboard_sessions::recorded_session_ids;
use switchboard_store::{CallExport, CallFilter, ExportError};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};

use crate::answers::{BadRequest, Guarded, StoreFailed, UnknownRecord};
use crate::extract::{FromPath, FromQuery};
use crate::present;
use crate::problem::{ProblemResponse, bad_query};
use crate::ready::Ready;

/// The maximum number of records in one response.
const MAX_RECORDS: u32 = 1000;
/// The maximum length of names and ids in the query; every recorded one is shorter.
const MAX_WORD: usize = 512;
/// The longest time that a query may ask for, a year.
const MAX_RUN_MS: u64 = 31_536_000_000;
/// The media type of JSON lines.
const JSON_LINES: &str = "application/x-ndjson";

/// Defines a query that selects records: its own parameters, and between them those that all such queries have.
macro_rules! record_query {
    ($(#[$meta:meta])* $name:ident { $($before:tt)* } { $($after:tt)* }) => {
        $(#[$meta])*
        #[derive(Debug, Deserialize, utoipa::IntoParams)]
        #[serde(deny_unknown_fields)]
        #[into_params(parameter_in = Query)]
        pub(crate) struct $name {
            $($before)*
            /// Only calls of this tool: its canonical or bare name, or the name that the caller used.
            #[param(max_length = 512, nullable = false)]
            tool: Option<String>,
            /// Only calls of tools of this server.
            #[param(max_length = 512, nullable = false)]
            server: Option<String>,
            /// Only calls that were made in this session: its id, or the `Mcp-Session-Id` of one of its clients.
            #[param(max_length = 512, nullable = false)]
            session: Option<String>,
            /// Only calls of this principal, or of the API key of this name.
            #[param(max_length = 512, nullable = false)]
            principal: Option<String>,
            /// Only calls of this person, as `person` of a record has it.
            #[param(max_length = 512, nullable = false)]
            person: Option<String>,
            /// Only calls in sessions of this owner, and calls that it made without a session.
            #[param(max_length = 512, nullable = false)]
            owner: Option<String>,
            /// Only calls with this outcome.
            #[serde(default, deserialize_with = "outcome")]
            #[param(value_type = Option<OutcomeWord>, inline, nullable = false)]
            outcome: Option<CallOutcome>,
            $($after)*
        }

        impl $name {
            /// Checks the lengths of the names and ids that all queries have.
            fn excess_of_words(&self) -> Option<String> {
                too_long([
                    ("tool", &self.tool),
                    ("server", &self.server),
                    ("session", &self.session),
                    ("principal", &self.principal),
                    ("person", &self.person),
                    ("owner", &self.owner),
                ])
            }

            /// The filter of the parameters that all queries have.
            async fn filter(&self, board: &Board) -> Result<CallFilter, ProblemResponse> {
                let sessions = match &self.session {
                    Some(session) => recorded_session_ids(board.store(), session).await?,
                    None => Vec::new(),
                };
                Ok(CallFilter {
                    since_ms: moment("since", self.since.as_deref())?,
                    until_ms: moment("until", self.until.as_deref())?,
                    tool: self.tool.clone(),
                    server: self.server.clone(),
                    sessions,
                    outcome: self.outcome,
                    principal: self.principal.clone(),
                    person: self.person.clone(),
                    owner: self.owner.clone(),
                    ..CallFilter::default()
                })
            }
        }
    };
}

record_query! {
    /// Selects records.
    RecentQuery {
        /// The maximum number of records.
        #[serde(default = "twenty")]
        #[param(minimum = 1, maximum = 1000, default = 20)]
        limit: u32,
    } {
        /// Only calls that came through this interface.
        #[serde(default, deserialize_with = "face")]
        #[param(value_type = Option<FaceWord>, inline, nullable = false)]
        face: Option<Face>,
        /// Only calls that ran at least this long, in milliseconds.
        #[param(maximum = 31_536_000_000_u64, nullable = false)]
        min_run_ms: Option<u64>,
        /// Only calls that started at this time or later, an RFC 3339 timestamp.
        #[param(max_length = 512, nullable = false, format = DateTime, example = "2026-11-17T08:00:00Z")]
        since: Option<String>,
        /// Only calls that started before this time, an RFC 3339 timestamp.
        #[param(max_length = 512, nullable = false, format = DateTime, example = "2026-11-18T08:00:00Z")]
        until: Option<String>,
        /// Only calls that ended at this time or later, an RFC 3339 timestamp. To follow calls, repeat the request with the end
        /// of the newest one: a long call appears late, with an early `started_at`.
        #[param(max_length = 512, nullable = false, format = DateTime, example = "2026-11-17T08:00:00Z")]
        ended_since: Option<String>,
        /// Only calls older than this one: the id of the last record of the previous page.
        #[param(max_length = 512, nullable = false)]
        before: Option<String>,
    }
}

/// Reads an outcome by its name in records.
fn outcome<'de, D: Deserializer<'de>>(word: D) -> Result<Option<CallOutcome>, D::Error> {
    let word = String::deserialize(word)?;
    let outcome = CallOutcome::from_word(&word).ok_or_else(|| {
        let words = CallOutcome::ALL.map(|outcome| format!("`{}`", outcome.as_str()));
        D::Error::custom(format!("unknown outcome, expected one of {}", words.join(", ")))
    });
    outcome.map(Some)
}

/// Reads an interface by its name in records.
fn face<'de, D: Deserializer<'de>>(word: D) -> Result<Option<Face>, D::Error> {
    let word = String::deserialize(word)?;
    let face = Face::from_word(&word).ok_or_else(|| {
        let words = Face::ALL.map(|face| format!("`{}`", face.as_str()));
        D::Error::custom(format!("unknown face, expected one of {}", words.join(", ")))
    });
    face.map(Some)
}

/// The schema of the names of interfaces.
struct FaceWord;

impl utoipa::PartialSchema for FaceWord {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::String)
            .description(Some("The interface of a call, as in its record."))
            .enum_values(Some(Face::ALL.map(Face::as_str)))
            .into()
    }
}

impl utoipa::ToSchema for FaceWord {}

/// The schema of outcome names.
struct OutcomeWord;

impl utoipa::PartialSchema for OutcomeWord {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::String)
            .description(Some("The outcome of a call, as in its record."))
            .enum_values(Some(CallOutcome::ALL.map(CallOutcome::as_str)))
            .into()
    }
}

impl utoipa::ToSchema for OutcomeWord {}

/// A timestamp of the query in milliseconds since 1970.
pub(crate) fn moment(name: &str, text: Option<&str>) -> Result<Option<i64>, ProblemResponse> {
    let parsed = text.map(str::parse::<jiff::Timestamp>).transpose();
    let refuse = |_| bad_query(format!("`{name}` is not an RFC 3339 timestamp"));
    Ok(parsed.map_err(refuse)?.map(jiff::Timestamp::as_millisecond))
}

fn twenty() -> u32 {
    20
}

/// The error for words of a query that are too long.
fn too_long<'w>(
    words: impl IntoIterator<Item = (&'static str, &'w Option<String>)>,
) -> Option<String> {
    words.into_iter().find_map(|(name, word)| {
        let is_long = word.as_ref().is_some_and(|word| word.chars().count() > MAX_WORD);
        is_long.then(|| format!("`{name}` has at most {MAX_WORD} characters"))
    })
}

impl RecentQuery {
    /// The error for a parameter that is out of bounds.
    fn excess(&self) -> Option<String> {
        if self.limit == 0 || self.limit > MAX_RECORDS {
            return Some(format!("`limit` is 1 to {MAX_RECORDS}"));
        }
        if self.min_run_ms.is_some_and(|least| least > MAX_RUN_MS) {
            return Some(format!("`min_run_ms` is at most {MAX_RUN_MS}"));
        }
        self.excess_of_words().or_else(|| too_long([("before", &self.before)]))
    }
}

/// List recent calls
///
/// The records of calls, newest first, including failed and refused calls. With the role `client` only those of the caller
/// itself and those in its sessions.
#[utoipa::path(
    get,
    path = "/api/v1/calls",
    operation_id = "listCalls",
    tag = "calls",
    params(RecentQuery),
    responses(
        (status = 200, description = "The records.", body = RecordList),
        Guarded,
        BadRequest,
        StoreFailed,
    )
)]
pub(crate) async fn recent(
    Ready(board): Ready,
    Extension(principal): Extension<Principal>,
    FromQuery(query): FromQuery<RecentQuery>,
) -> Result<Json<RecordList>, ProblemResponse> {
    if let Some(detail) = query.excess() {
        return Err(bad_query(detail));
    }
    let filter = CallFilter {
        limit: query.limit,
        ended_since_ms: moment("ended_since", query.ended_since.as_deref())?,
        face: query.face,
        min_run: query.min_run_ms.map(Duration::from_millis),
        visible_to: visible_to(&principal),
        before: query.before.clone().map(CallId),
        ..query.filter(&board).await?
    };
    board.flush_records().await;
    let calls = board.store().recent_calls(&filter).await?;
    Ok(Json(RecordList { calls: calls.iter().map(present::record).collect() }))
}

/// The principal whose records are shown; `None` for an operator, who sees all.
pub(crate) fn visible_to(principal: &Principal) -> Option<String> {
    (!principal.oversees()).then(|| principal.id.to_string())
}

/// Names a record.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct RecordPath {
    /// The id of the call.
    #[param(min_length = 1, example = "0190f3c2-0000-7000-8000-000000000000")]
    pub(crate) id: String,
}

/// Show a call
///
/// The record of one call. With the role `client` only a record of the caller itself or in one of its sessions.
#[utoipa::path(
    get,
    path = "/api/v1/calls/{id}",
    operation_id = "showCall",
    tag = "calls",
    params(RecordPath),
    responses(
        (status = 200, description = "The record.", body = RecordView),
        Guarded,
        UnknownRecord,
        StoreFailed,
    )
)]
pub(crate) async fn show(
    Ready(board): Ready,
    Extension(principal): Extension<Principal>,
    FromPath(RecordPath { id }): FromPath<RecordPath>,
) -> Result<Json<RecordView>, ProblemResponse> {
    board.flush_records().await;
    let visible_to = visible_to(&principal);
    let found = board.store().call(&CallId(id.clone()), visible_to.as_deref()).await?;
    found.map(|record| Json(present::record(&record))).ok_or_else(|| no_such_record(&id))
}

fn no_such_record(id: &str) -> ProblemResponse {
    let shown: String = id.chars().take(MAX_WORD).collect();
    let detail = format!("there is no record of a call '{shown}', or it is no longer kept");
    ProblemResponse::new("unknown_record", StatusCode::NOT_FOUND, detail)
}

record_query! {
    /// Selects the records to export.
    ExportQuery {} {
        /// Only calls that started at this time or later, an RFC 3339 timestamp.
        #[param(max_length = 512, nullable = false, format = DateTime, example = "2026-11-01T00:00:00Z")]
        since: Option<String>,
        /// Only calls that started before this time, an RFC 3339 timestamp.
        #[param(max_length = 512, nullable = false, format = DateTime, example = "2026-12-01T00:00:00Z")]
        until: Option<String>,
        /// Only records that were written after this one: the id of the last record of the previous export.
        #[param(max_length = 512, nullable = false)]
        after: Option<String>,
    }
}

/// Export calls
///
/// The records of calls as JSON lines, in the order in which they were written: one record is written when its call ends. The
/// export has the records that were there when it began. To continue it later, use the id of its last record as `after`. If
/// the records cannot be read to the end, the response breaks off without its regular end. Needs the role `operator`.
#[utoipa::path(
    get,
    path = "/api/v1/calls/export",
    operation_id = "exportCalls",
    tag = "calls",
    params(ExportQuery),
    responses(
        (
            status = 200,
            description = "One record per line, as `GET /api/v1/calls/{id}` shows it.",
            content((String = "application/x-ndjson"))
        ),
        Guarded,
        BadRequest,
        UnknownRecord,
        StoreFailed,
    )
)]
pub(crate) async fn export(
    Ready(board): Ready,
    FromQuery(query): FromQuery<ExportQuery>,
) -> Result<Response, ProblemResponse> {
    let excess = query.excess_of_words().or_else(|| too_long([("after", &query.after)]));
    if let Some(detail) = excess {
        return Err(bad_query(detail));
    }
    let filter = query.filter(&board).await?;
    board.flush_records().await;
    let after = query.after.map(CallId);
    let export = board.store().export_calls(filter, after.as_ref()).await;
    let export = export.map_err(|error| match error {
        ExportError::Store(error) => error.into(),
        ExportError::UnknownRecord(CallId(id)) => no_such_record(&id),
        ExportError::Deleted => bad_query(ExportError::Deleted.to_string()),
    })?;
    let lines = stream::try_unfold(export, next_lines);
    Ok(([(header::CONTENT_TYPE, JSON_LINES)], Body::from_stream(lines)).into_response())
}

async fn next_lines(mut export: CallExport) -> Result<Option<(Bytes, CallExport)>, ExportError> {
    let page = export.next().await.inspect_err(|error| {
        tracing::warn!(%error, "an export of call records was broken off");
    })?;
    Ok(page.map(|records| (Bytes::from(present::record_lines(&records)), export)))
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn every_outcome_of_a_record_is_a_word_of_the_query() {
        let read = |word: &str| outcome(Value::from(word));
        for outcome in CallOutcome::ALL {
            assert_eq!(read(outcome.as_str()).ok().flatten(), Some(outcome));
        }
        let refused = read("Ok").unwrap_err().to_string();
        assert!(refused.contains("expected one of `ok`, `tool_error`"), "{refused}");
    }
}
