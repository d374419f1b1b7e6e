//! The events of the board as one stream.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Extension, State};
use axum::http::HeaderMap;
use axum::response::IntoResponse;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures::{Stream, StreamExt, stream};
use serde::Deserialize;
use switchboard_api::{BoardEvent, BoardStreamEvent};
use switchboard_auth::Principal;
use switchboard_sessions::SessionService;
use tokio::sync::watch;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ArrayBuilder, ObjectBuilder, Schema, Type};

use crate::answers::{BadRequest, Guarded};
use crate::event_feed::revisions;
use crate::event_hub::{EventHub, KeptEvent, Topic};
use crate::extract::FromQuery;
use crate::problem::{ProblemResponse, bad_query};
use crate::ready::ReadyParts;
use crate::render_targets::{MAX_NAMES, listed};
use crate::server_state::Shared;

const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Options of the event stream of the board.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct EventsQuery {
    /// The subjects of the events, separated by commas. If absent or empty, all.
    #[serde(default)]
    #[param(value_type = Option<TopicWords>, inline, nullable = false, style = Form, explode = false, example = json!(["catalog", "server"]))]
    topics: Option<String>,
    /// Whether the stream stays open for later events. Otherwise it ends after the events that are there already.
    #[serde(default = "stay")]
    #[param(default = true)]
    follow: bool,
}

fn stay() -> bool {
    true
}

/// The schema of a list of topics.
struct TopicWords;

impl utoipa::PartialSchema for TopicWords {
    fn schema() -> RefOr<Schema> {
        let words = Topic::ALL.map(Topic::as_str);
        let word = ObjectBuilder::new().schema_type(Type::String).enum_values(Some(words));
        ArrayBuilder::new().items(word).max_items(Some(MAX_NAMES)).into()
    }
}

impl utoipa::ToSchema for TopicWords {}

fn topics(words: Option<&str>) -> Result<Vec<Topic>, ProblemResponse> {
    let words = listed("topics", words)?.into_iter();
    let read = |word: &str| {
        Topic::ALL.into_iter().find(|topic| topic.as_str() == word).ok_or_else(|| {
            let known = Topic::ALL.map(|topic| format!("`{}`", topic.as_str()));
            bad_query(format!("`topics` has an unknown topic; there are: {}", known.join(", ")))
        })
    };
    let read: Vec<_> = words.map(read).collect::<Result<_, _>>()?;
    Ok(if read.is_empty() { Topic::ALL.to_vec() } else { read })
}

/// Follow the board
///
/// Server-sent events: what changes in the catalog, servers, calls, sessions and turns, as far as the caller may see it; for
/// operators also the configuration and the log messages of servers. The first event is `hello`. The id of an event rises: a
/// client that reconnects with it in `Last-Event-ID` gets all events since then after `hello`, or `reset` instead of it when some of
/// them are no longer known. A comment is sent every 15 seconds without an event.
#[utoipa::path(
    get,
    path = "/api/v1/events",
    operation_id = "followBoard",
    tag = "board",
    params(
        EventsQuery,
        ("Last-Event-ID" = Option<String>, Header, description = "The id of the last event that the client received."),
    ),
    responses(
        (status = 200, description = "The stream.", body = BoardStreamEvent, content_type = "text/event-stream"),
        Guarded,
        BadRequest,
    )
)]
pub(crate) async fn follow(
    State(shared): State<Shared>,
    ReadyParts(parts): ReadyParts,
    Extension(principal): Extension<Principal>,
    FromQuery(EventsQuery { topics: words, follow }): FromQuery<EventsQuery>,
    headers: HeaderMap,
) -> Result<impl IntoResponse, ProblemResponse> {
    let topics = topics(words.as_deref())?;
    let hub = shared.events.hub(&shared.board, &parts);
    // An id that is not a number is treated as an unknown one, which leads to `reset`.
    let last = headers.get("last-event-id");
    let last = last.map(|id| id.to_str().ok().and_then(|id| id.parse().ok()).unwrap_or(u64::MAX));
    let news = hub.follow();
    let current = hub.last();
    let known = last.filter(|last| hub.after(*last).is_some());
    let now = revisions(&parts.board, shared.board.config().map(|config| &**config));
    let (first, told) = match (last, known) {
        (None, _) => (BoardEvent::Hello(now), current),
        (Some(_), Some(told)) => (BoardEvent::Hello(now), told),
        (Some(_), None) => (BoardEvent::Reset(now), current),
    };
    let data = serde_json::to_string(&first).unwrap_or_default();
    let first = Event::default().event(first.name()).id(told.to_string()).data(data);
    let sessions = parts.sessions.clone();
    let stopping = sessions.stopping();
    let cursor = BoardCursor {
        hub,
        news,
        sessions,
        principal,
        topics,
        told,
        stays: follow,
        waiting: VecDeque::new(),
        place: shared.clone(),
    };
    let events = stream::once(async { Ok::<_, Infallible>(first) }).chain(cursor.events());
    let events = events.take_until(stopping);
    Ok(Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)))
}

/// The position of a client in the stream.
struct BoardCursor {
    hub: Arc<EventHub>,
    news: watch::Receiver<u64>,
    sessions: Arc<SessionService>,
    principal: Principal,
    topics: Vec<Topic>,
    /// The id of the last event.
    told: u64,
    /// Whether the stream waits for later events.
    stays: bool,
    waiting: VecDeque<KeptEvent>,
    place: Shared,
}

impl BoardCursor {
    fn events(self) -> impl Stream<Item = Result<Event, Infallible>> {
        stream::unfold(self, |mut cursor| async move {
            let event = cursor.next().await?;
            Some((Ok(event), cursor))
        })
    }

    /// The next event that the client asked for and may see; `None` at the end of the stream.
    async fn next(&mut self) -> Option<Event> {
        loop {
            while let Some(kept) = self.waiting.pop_front() {
                self.told = kept.id;
                if !self.topics.contains(&kept.topic) {
                    continue;
                }
                if let Some(json) = kept.json_for(&self.principal, &self.sessions) {
                    let event = Event::default().event(kept.name).id(kept.id.to_string());
                    return Some(event.data(json));
                }
            }
            self.news.borrow_and_update();
            match self.hub.after(self.told) {
                None => return Some(self.reset()),
                Some(events) if !events.is_empty() => self.waiting = events.into(),
                Some(_) if !self.stays => return None,
                Some(_) => self.news.changed().await.ok()?,
            }
        }
    }

    /// The client was too slow, or the board was: some of its next events are no longer kept.
    fn reset(&mut self) -> Event {
        self.told = self.hub.last();
        let config = self.place.board.config().map(|config| &**config);
        let data = BoardEvent::Reset(revisions(self.sessions.board(), config));
        let json = serde_json::to_string(&data).unwrap_or_default();
        Event::default().event(data.name()).id(self.told.to_string()).data(json)
    }
}
