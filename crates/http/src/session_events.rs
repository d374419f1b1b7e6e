//! The revisions of a session as an event stream.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::http::{HeaderMap, HeaderValue};
use axum::response::IntoResponse;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures::{Stream, StreamExt, stream};
use serde::Deserialize;
use switchboard_api::{CurrentRevision, SessionEvent, SessionEventData};
use switchboard_sessions::Session;
use tokio::sync::watch;

use crate::answers::{BadRequest, Guarded, StoreFailed, UnknownSession};
use crate::extract::FromQuery;
use crate::present_sessions as present;
use crate::sessions::{SessionId, SessionPath};

const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Options of the event stream.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct FollowQuery {
    /// Whether the stream stays open for later events. Otherwise it ends after the events that are there already.
    #[serde(default = "stay")]
    #[param(default = true)]
    follow: bool,
}

fn stay() -> bool {
    true
}

/// Follow the revisions of a session
///
/// Server-sent events. The first one is `current` with the current revision. Then each step of the revision is one event
/// `revision`. The id of an event is the revision: a client that reconnects with it in `Last-Event-ID` gets all steps since
/// then first, or `reset` when some of them are no longer known. The stream ends with the session.
#[utoipa::path(
    get,
    path = "/api/v1/sessions/{id}/events",
    operation_id = "followSession",
    tag = "sessions",
    params(
        SessionId,
        FollowQuery,
        ("Last-Event-ID" = Option<String>, Header, description = "The id of the last event that the client received."),
    ),
    responses(
        (status = 200, description = "The stream.", body = SessionEvent, content_type = "text/event-stream"),
        Guarded,
        BadRequest,
        UnknownSession,
        StoreFailed,
    )
)]
pub(crate) async fn follow(
    meant: SessionPath,
    FromQuery(FollowQuery { follow }): FromQuery<FollowQuery>,
    headers: HeaderMap,
) -> impl IntoResponse {
    // An id that is not a number is treated as an unknown revision, which leads to `reset`.
    let read = |id: &HeaderValue| id.to_str().ok().and_then(|id| id.parse().ok());
    let last = headers.get("last-event-id").map(|id| read(id).unwrap_or(u64::MAX));
    meant.sessions.sessions().view_of(&meant.session);
    let ended = meant.sessions.stopping();
    let events = events(meant.session, last, follow).take_until(ended);
    Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE))
}

/// The position of a client in the stream.
struct EventCursor {
    session: Arc<Session>,
    news: watch::Receiver<u64>,
    /// The revision of the last event.
    told: u64,
    /// Whether the stream waits for later steps.
    stays: bool,
}

fn events(
    session: Arc<Session>,
    last: Option<u64>,
    stays: bool,
) -> impl Stream<Item = Result<Event, Infallible>> {
    let news = session.follow();
    let current = session.revision();
    // A client that reconnects gets the steps that it missed, if all of them are known.
    let known = last.filter(|last| session.steps_after(*last).is_some());
    let first = match (last, known) {
        (Some(_), Some(_)) => None,
        (None, _) => Some(current_event(current)),
        (Some(_), None) => Some(reset_event(current)),
    };
    let following = EventCursor { session, news, told: known.unwrap_or(current), stays };
    let steps = stream::unfold(following, |mut following| async move {
        let event = following.next().await?;
        Some((Ok(event), following))
    });
    stream::iter(first.map(Ok)).chain(steps)
}

impl EventCursor {
    /// The next event; `None` at the end of the stream.
    async fn next(&mut self) -> Option<Event> {
        loop {
            let Some(steps) = self.session.steps_after(self.told) else {
                // The client was too slow: some of its next steps are no longer kept.
                self.told = self.session.revision();
                return Some(reset_event(self.told));
            };
            if let Some(step) = steps.first() {
                self.told = step.revision;
                let data = SessionEventData::Revision(present::step(step));
                return Some(event("revision", step.revision, &data));
            }
            if !self.stays || self.session.is_ended() {
                return None;
            }
            self.news.changed().await.ok()?;
        }
    }
}

fn current_event(tools_revision: u64) -> Event {
    let data = SessionEventData::Current(CurrentRevision { tools_revision });
    event("current", tools_revision, &data)
}

fn reset_event(tools_revision: u64) -> Event {
    let data = SessionEventData::Reset(CurrentRevision { tools_revision });
    event("reset", tools_revision, &data)
}

fn event(name: &str, revision: u64, data: &SessionEventData) -> Event {
    let data = serde_json::to_string(data).unwrap_or_default();
    Event::default().event(name).id(revision.to_string()).data(data)
}
