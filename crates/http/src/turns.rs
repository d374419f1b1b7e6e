//! Turns in the API: start, follow, cancel.

use std::convert::Infallible;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::{Bytes, BytesMut};
use futures::{StreamExt, stream};
use serde::Deserialize;
use switchboard_model::Face;
use switchboard_turns::{
    LiveTurn, NewTurn, Recorded, TurnError, TurnList, TurnStreamEvent, TurnView,
};
use tokio::sync::watch;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

use crate::answers::{
    BadRequest, Busy, Guarded, RefusedTurn, StoreFailed, TakesConversation, UnknownSession,
    UnknownTurn,
};
use crate::extract::{FromBody, FromPath};
use crate::problem::ProblemResponse;
use crate::sessions::{Asker, SessionId, SessionPath};

/// The interval of comments that keep proxies from closing an idle stream. A busy stream has them too.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
const EVENT_STREAM: &str = "text/event-stream";

/// Names a turn of a session.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct TurnOfSession {
    /// The id of the session.
    #[param(min_length = 1, max_length = 256, example = "work")]
    id: String,
    /// The id of the turn.
    #[param(min_length = 1, max_length = 256)]
    turn: String,
}

/// Start a turn
///
/// The session's model responds, calls the session's tools, and responds again until it is done. With
/// `Accept: text/event-stream` the events are sent as they happen; otherwise the response is sent when the turn has ended.
/// In both cases the turn goes on when the client disconnects: it can be followed and cancelled by its id.
#[utoipa::path(
    post,
    path = "/api/v1/sessions/{id}/turns",
    operation_id = "beginTurn",
    tag = "turns",
    params(SessionId),
    request_body(content = NewTurn, description = "The message, and the options of the turn."),
    responses(
        (
            status = 200,
            description = "The turn, once it has ended, or its events.",
            content((TurnView = "application/json"), (TurnStreamEvent = "text/event-stream"))
        ),
        Guarded,
        TakesConversation,
        UnknownSession,
        Busy,
        RefusedTurn,
        StoreFailed,
    )
)]
pub(crate) async fn begin(
    meant: SessionPath,
    headers: HeaderMap,
    FromBody(wanted): FromBody<NewTurn>,
) -> Result<Response, ProblemResponse> {
    let turn =
        meant.turns.begin(&meant.session, meant.principal.caller(Face::Http), wanted).await?;
    let accepts = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    if accepts.flat_map(|value| value.split(',')).any(|kind| kind.trim().starts_with(EVENT_STREAM))
    {
        return Ok(events(&meant, turn, 0));
    }
    turn.ended().await;
    Ok(Json(TurnView::from(&*turn)).into_response())
}

/// List the turns of a session
///
/// The running turn, and those that ended in the last ten minutes. The conversation of all turns is in the history.
#[utoipa::path(
    get,
    path = "/api/v1/sessions/{id}/turns",
    operation_id = "listTurns",
    tag = "turns",
    params(SessionId),
    responses(
        (status = 200, description = "The turns that are kept.", body = TurnList),
        Guarded,
        BadRequest,
        UnknownSession,
        StoreFailed,
    )
)]
pub(crate) async fn list(meant: SessionPath) -> Json<TurnList> {
    let turns = meant.turns.of(&meant.session.id);
    Json(TurnList { turns: turns.iter().map(|turn| TurnView::from(&**turn)).collect() })
}

/// Show a turn
///
/// The progress of a running turn, or its result. A turn is kept for ten minutes after its end; its messages stay in the
/// history.
#[utoipa::path(
    get,
    path = "/api/v1/sessions/{id}/turns/{turn}",
    operation_id = "getTurn",
    tag = "turns",
    params(TurnOfSession),
    responses(
        (status = 200, description = "The turn.", body = TurnView),
        Guarded,
        BadRequest,
        UnknownTurn,
        StoreFailed,
    )
)]
pub(crate) async fn show(
    asker: Asker,
    FromPath(TurnOfSession { id, turn }): FromPath<TurnOfSession>,
) -> Result<Json<TurnView>, ProblemResponse> {
    let (_, turn) = found(asker, &id, &turn).await?;
    Ok(Json(TurnView::from(&*turn)))
}

/// Cancel a turn
///
/// The text that the model has produced so far is kept; running calls are cancelled. A turn that has ended does not change.
#[utoipa::path(
    post,
    path = "/api/v1/sessions/{id}/turns/{turn}/cancel",
    operation_id = "cancelTurn",
    tag = "turns",
    params(TurnOfSession),
    responses(
        (status = 200, description = "The turn, which has ended.", body = TurnView),
        Guarded,
        BadRequest,
        UnknownTurn,
        StoreFailed,
    )
)]
pub(crate) async fn cancel(
    asker: Asker,
    FromPath(TurnOfSession { id, turn }): FromPath<TurnOfSession>,
) -> Result<Json<TurnView>, ProblemResponse> {
    let (_, turn) = found(asker, &id, &turn).await?;
    turn.cancel();
    turn.ended().await;
    Ok(Json(TurnView::from(&*turn)))
}

/// Follow a turn
///
/// Server-sent events, from the first one, or from the one after `Last-Event-ID`. The last event is `done`.
#[utoipa::path(
    get,
    path = "/api/v1/sessions/{id}/turns/{turn}/events",
    operation_id = "followTurn",
    tag = "turns",
    params(
        TurnOfSession,
        ("Last-Event-ID" = Option<String>, Header, description = "The id of the last event that the client received."),
    ),
    responses(
        (status = 200, description = "The stream.", body = TurnStreamEvent, content_type = "text/event-stream"),
        Guarded,
        BadRequest,
        UnknownTurn,
        StoreFailed,
    )
)]
pub(crate) async fn follow(
    asker: Asker,
    FromPath(TurnOfSession { id, turn }): FromPath<TurnOfSession>,
    headers: HeaderMap,
) -> Result<Response, ProblemResponse> {
    let (meant, turn) = found(asker, &id, &turn).await?;
    // An invalid id is ignored: the client gets all events.
    let read = |id: &HeaderValue| id.to_str().ok().and_then(|id| id.parse().ok());
    let last = headers.get("last-event-id").and_then(read);
    let last = last.filter(|last| *last <= *turn.follow().borrow()).unwrap_or(0);
    Ok(events(&meant, turn, last))
}

async fn found(
    asker: Asker,
    session: &str,
    turn: &str,
) -> Result<(SessionPath, Arc<LiveTurn>), ProblemResponse> {
    let meant = asker.session(session).await?;
    let found = meant.turns.find(&meant.session.id, turn);
    let found = found.ok_or_else(|| TurnError::Unknown(turn.to_owned()))?;
    Ok((meant, found))
}

/// The position of a client in the event stream of a turn.
struct Listening {
    turn: Arc<LiveTurn>,
    news: watch::Receiver<u64>,
    told: u64,
    keep_alive: Interval,
}

fn events(meant: &SessionPath, turn: Arc<LiveTurn>, last: u64) -> Response {
    // A fixed interval: resetting it at each event would cost a timer each time.
    let mut keep_alive = interval_at(Instant::now() + KEEP_ALIVE, KEEP_ALIVE);
    keep_alive.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let listening = Listening { news: turn.follow(), turn, told: last, keep_alive };
    let frames = stream::unfold(listening, |mut listening| async move {
        let frames = listening.next().await?;
        Some((Ok::<_, Infallible>(frames), listening))
    });
    let frames = frames.take_until(meant.sessions.stopping());
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(EVENT_STREAM)),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
    ];
    (headers, Body::from_stream(frames)).into_response()
}

impl Listening {
    /// All new events in one buffer; `None` after the last one.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            self.news.borrow_and_update();
            let is_over = self.turn.end().is_some();
            let events = self.turn.events_after(self.told);
            if let Some(last) = events.last() {
                self.told = last.id;
                return Some(frames(&events));
            }
            if is_over && self.told >= *self.news.borrow() {
                return None;
            }
            tokio::select! {
                biased;
                changed = self.news.changed() => changed.ok()?,
                _ = self.keep_alive.tick() => return Some(Bytes::from_static(b":\n\n")),
            }
        }
    }
}

/// The approximate size of an event's frame.
const FRAME_BYTES: usize = 64;

fn frames(events: &[Recorded]) -> Bytes {
    let size = |event: &Recorded| event.json.len() + FRAME_BYTES;
    let mut frames = BytesMut::with_capacity(events.iter().map(size).sum());
    for Recorded { id, name, json } in events {
        // Writing into memory does not fail.
        let _written = write!(frames, "id: {id}\nevent: {name}\ndata: ");
        frames.extend_from_slice(json);
        frames.extend_from_slice(b"\n\n");
    }
    frames.freeze()
}

impl From<TurnError> for ProblemResponse {
    fn from(error: TurnError) -> Self {
        let status = match &error {
            TurnError::Busy { .. } | TurnError::Raced | TurnError::HasRun(_) => {
                StatusCode::CONFLICT
            }
            TurnError::Unknown(_) => StatusCode::NOT_FOUND,
            TurnError::BadName(_)
            | TurnError::NothingSaid
            | TurnError::OutOfBounds { .. }
            | TurnError::Provider(_)
            | TurnError::Overlay(_)
            | TurnError::History(_) => StatusCode::UNPROCESSABLE_ENTITY,
            TurnError::Stopping => StatusCode::SERVICE_UNAVAILABLE,
            TurnError::NotStored(failure) => return failure.clone().into(),
            TurnError::Damaged { .. } | TurnError::Store(_) => {
                tracing::error!(%error, "a conversation could not be read or stored");
                let detail = "the store failed; the log says why";
                return Self::new(error.kind(), StatusCode::INTERNAL_SERVER_ERROR, detail);
            }
        };
        Self::new(error.kind(), status, error.to_string())
    }
}
