//! Sessions and toolsets in the API.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::{Extension, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use serde::Deserialize;
use switchboard_api::{
    Bindings, FieldError, NewSession, OwnServerBody, RegistrySnapshot, SessionChange, SessionList,
    SessionView, ToolsetList,
};
use switchboard_auth::Principal;
use switchboard_sessions::{
    ATTACH_WAIT, Session, SessionError, SessionKind, SessionService, Summary,
};
use switchboard_turns::Turns;

use crate::answers::{
    BadRequest, Guarded, Refused, SessionConflict, StaleRevision, StoreFailed, TakesBody,
    TooManySessions, UnknownServer, UnknownSession, WrongShape,
};
use crate::extract::{FromBody, FromPath, FromQuery};
use crate::made_answers::{AnswerKey, AnswerStamp};
use crate::present_sessions as present;
use crate::problem::{ProblemResponse, bad_query};
use crate::ready::{Ready, ReadySessions, ReadyTurns};
use crate::server_state::Shared;

/// The maximum number of sessions in one response, if it is limited, and of characters of a text in the query.
const MAX_LISTED: usize = 1000;
const MAX_LENGTH: usize = 512;

/// Names a session.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct SessionId {
    /// The id of the session.
    #[param(min_length = 1, max_length = 256, example = "work")]
    pub(crate) id: String,
}

/// Selects sessions.
#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct SessionsQuery {
    /// Only sessions of this kind.
    #[param(inline, nullable = false)]
    kind: Option<KindWord>,
    /// Only sessions that have this text in their id, title, owner, provider or model, in upper or lower case.
    #[param(max_length = 512, nullable = false)]
    q: Option<String>,
    /// The maximum number of sessions: the newest that match. If absent, all.
    #[param(minimum = 1, maximum = 1000, nullable = false)]
    limit: Option<usize>,
    /// Only sessions that were created before this one: the id of the first session of the previous page.
    #[param(max_length = 512, nullable = false)]
    before: Option<String>,
}

/// A kind of sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum KindWord {
    Endpoint,
    Client,
    Principal,
}

impl KindWord {
    fn is(self, kind: SessionKind) -> bool {
        match self {
            Self::Endpoint => kind == SessionKind::Endpoint,
            Self::Client => kind == SessionKind::Client,
            Self::Principal => kind == SessionKind::Principal,
        }
    }
}

impl SessionsQuery {
    /// The sessions that match, oldest first.
    fn page(self, mut all: Vec<Summary>) -> Result<Vec<Summary>, ProblemResponse> {
        if self.limit.is_some_and(|limit| !(1..=MAX_LISTED).contains(&limit)) {
            return Err(bad_query(format!("`limit` is 1 to {MAX_LISTED}")));
        }
        for (name, word) in [("q", &self.q), ("before", &self.before)] {
            if word.as_ref().is_some_and(|word| word.chars().count() > MAX_LENGTH) {
                return Err(bad_query(format!("`{name}` has at most {MAX_LENGTH} characters")));
            }
        }
        if let Some(before) = &self.before {
            let end = all.iter().position(|session| session.id == *before).unwrap_or(0);
            all.truncate(end);
        }
        let wanted = self.q.map(|text| text.to_lowercase());
        let has = |text: Option<&String>, wanted: &str| {
            text.is_some_and(|text| text.to_lowercase().contains(wanted))
        };
        all.retain(|session| {
            let about = &session.draft.about;
            let texts = [
                Some(&session.id),
                Some(&session.owner),
                about.title.as_ref(),
                about.provider.as_ref(),
                about.model.as_ref(),
            ];
            self.kind.is_none_or(|kind| kind.is(session.kind))
                && wanted.as_ref().is_none_or(|wanted| texts.into_iter().any(|it| has(it, wanted)))
        });
        let surplus = self.limit.map_or(0, |limit| all.len().saturating_sub(limit));
        all.drain(..surplus);
        Ok(all)
    }
}

/// Names an attached server of a session.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct ServerOfSession {
    /// The id of the session.
    #[param(min_length = 1, max_length = 256, example = "work")]
    pub(crate) id: String,
    /// The name that the session gives the server.
    #[param(pattern = "^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$", example = "notes")]
    pub(crate) server: String,
}

/// List the toolsets
///
/// The toolsets that MCP clients can enable and disable, the number of tools in each, and the default exposure of clients
/// with its reason.
#[utoipa::path(
    get,
    path = "/api/v1/toolsets",
    operation_id = "listToolsets",
    tag = "sessions",
    params(("If-None-Match" = Option<String>, Header, description = "The `ETag` of the version that the client has.")),
    responses(
        (
            status = 200,
            description = "All toolsets.",
            body = ToolsetList,
            headers(("etag" = String, description = "The version of the answer.")),
        ),
        (status = 304, description = "The client has the present version, which `If-None-Match` names."),
        Guarded,
    )
)]
pub(crate) async fn toolsets(
    State(shared): State<Shared>,
    ReadySessions(sessions): ReadySessions,
    Extension(principal): Extension<Principal>,
    headers: HeaderMap,
) -> Response {
    let key = AnswerKey::Toolsets(principal.access.tools());
    let stamp = AnswerStamp::of_board(sessions.board());
    let make = || present::toolsets(&sessions, &principal.access);
    shared.answers.get_or_make(key, stamp, make).respond(&headers)
}

/// List the sessions
///
/// Those that were created, and those of connected MCP clients, oldest first. An operator sees all sessions, others their own.
#[utoipa::path(
    get,
    path = "/api/v1/sessions",
    operation_id = "listSessions",
    tag = "sessions",
    params(SessionsQuery),
    responses(
        (status = 200, description = "The sessions.", body = SessionList),
        Guarded,
        BadRequest,
        StoreFailed,
    )
)]
pub(crate) async fn list(
    ReadySessions(sessions): ReadySessions,
    ReadyTurns(turns): ReadyTurns,
    Extension(principal): Extension<Principal>,
    FromQuery(query): FromQuery<SessionsQuery>,
) -> Result<Json<SessionList>, ProblemResponse> {
    let listed = query.page(sessions.sessions().list(owner(&principal)).await?)?;
    let clients = sessions.session_clients(owner(&principal)).await?;
    let mut list = present::sessions(&sessions, listed, &clients);
    for session in &mut list.sessions {
        session.running_turn = turns.running(&session.id).map(|turn| turn.id.clone());
    }
    Ok(Json(list))
}

/// Create a session
///
/// For a chat, or for MCP clients, which connect to its `path`. It belongs to the credentials that created it, and exists
/// until it is deleted, also over restarts.
#[utoipa::path(
    post,
    path = "/api/v1/sessions",
    operation_id = "createSession",
    tag = "sessions",
    params(WaitQuery),
    request_body(content = NewSession, description = "Its settings; all are optional."),
    responses(
        (
            status = 201,
            description = "The new session.",
            body = SessionView,
            links(
                ("end" = (operation_id = "endSession", parameters(("id" = "$response.body#/id")))),
                ("show" = (operation_id = "getSession", parameters(("id" = "$response.body#/id")))),
                ("change" = (operation_id = "changeSession", parameters(("id" = "$response.body#/id")))),
                ("tools" = (operation_id = "listSessionTools", parameters(("id" = "$response.body#/id")))),
            )
        ),
        Guarded,
        TakesBody,
        SessionConflict,
        WrongShape,
        TooManySessions,
        StoreFailed,
    )
)]
pub(crate) async fn create(
    ReadySessions(sessions): ReadySessions,
    Extension(principal): Extension<Principal>,
    FromQuery(WaitQuery { wait }): FromQuery<WaitQuery>,
    FromBody(wanted): FromBody<NewSession>,
) -> Result<(StatusCode, Json<SessionView>), ProblemResponse> {
    let id = wanted.id.clone();
    let beginning = present::beginning(wanted);
    let wait = wait_of(wait);
    sessions.note_access(&principal.id, &principal.access);
    let session = sessions.new_session(id.as_deref(), &principal.id, beginning, wait).await?;
    Ok((StatusCode::CREATED, Json(present::session(&sessions, Summary::of(&session)))))
}

/// Show a session
///
/// Its settings and the revision of its tools. The header values of its servers are not shown.
#[utoipa::path(
    get,
    path = "/api/v1/sessions/{id}",
    operation_id = "getSession",
    tag = "sessions",
    params(SessionId),
    responses(
        (status = 200, description = "The session.", body = SessionView),
        Guarded,
        BadRequest,
        UnknownSession,
        StoreFailed,
    )
)]
pub(crate) async fn show(meant: SessionPath) -> Result<Json<SessionView>, ProblemResponse> {
    let clients = meant.sessions.session_clients(Some(&meant.session.owner)).await?;
    Ok(Json(present::with_clients(meant.view(), &clients)))
}

/// Change a session
///
/// Fields that are absent do not change. The whole change is one step of `tools_revision`, or nothing is changed. If
/// `tools_revision` is given and is not the current revision, the change is refused.
#[utoipa::path(
    patch,
    path = "/api/v1/sessions/{id}",
    operation_id = "changeSession",
    tag = "sessions",
    params(SessionId, ApplyQuery),
    request_body(content = SessionChange, description = "The fields to change."),
    responses(
        (status = 200, description = "The session after the change.", body = SessionView),
        Guarded,
        TakesBody,
        UnknownSession,
        StaleRevision,
        Refused,
        StoreFailed,
    )
)]
pub(crate) async fn change(
    meant: SessionPath,
    FromQuery(apply): FromQuery<ApplyQuery>,
    FromBody(wanted): FromBody<SessionChange>,
) -> Result<Json<SessionView>, ProblemResponse> {
    meant.change(wanted, apply).await
}

/// Bind a session to servers
///
/// The session then sees the tools of these servers only. `null` removes the binding.
#[utoipa::path(
    put,
    path = "/api/v1/sessions/{id}/bindings",
    operation_id = "bindSession",
    tag = "sessions",
    params(SessionId, ApplyQuery),
    request_body(content = Bindings, description = "The servers."),
    responses(
        (status = 200, description = "The session after the change.", body = SessionView),
        Guarded,
        TakesBody,
        UnknownSession,
        StaleRevision,
        Refused,
        StoreFailed,
    )
)]
pub(crate) async fn bind(
    meant: SessionPath,
    FromQuery(apply): FromQuery<ApplyQuery>,
    FromBody(wanted): FromBody<Bindings>,
) -> Result<Json<SessionView>, ProblemResponse> {
    let Bindings { servers, tools_revision } = wanted;
    let servers = Some(servers);
    let change = SessionChange { servers, tools_revision, ..SessionChange::default() };
    meant.change(change, apply).await
}

/// Attach a server to a session
///
/// Only this session sees the server's tools. It is reached over HTTP, within the limits of `security.egress`.
#[utoipa::path(
    put,
    path = "/api/v1/sessions/{id}/servers/{server}",
    operation_id = "putSessionServer",
    tag = "sessions",
    params(ServerOfSession, ApplyQuery),
    request_body(content = OwnServerBody, description = "The URL of the server."),
    responses(
        (
            status = 200,
            description = "The server is attached. `state` and `error` say whether it has connected or failed, or is still connecting.",
            body = SessionView
        ),
        Guarded,
        TakesBody,
        UnknownSession,
        Refused,
        StoreFailed,
    )
)]
pub(crate) async fn put_server(
    asker: Asker,
    FromPath(ServerOfSession { id, server }): FromPath<ServerOfSession>,
    FromQuery(apply): FromQuery<ApplyQuery>,
    FromBody(body): FromBody<OwnServerBody>,
) -> Result<Json<SessionView>, ProblemResponse> {
    let own_servers = BTreeMap::from([(server, Some(body))]);
    let meant = asker.session(&id).await?;
    meant.change(SessionChange { own_servers, ..SessionChange::default() }, apply).await
}

/// Detach a server from a session
///
/// Its connection is closed, and its tools are removed from the session.
#[utoipa::path(
    delete,
    path = "/api/v1/sessions/{id}/servers/{server}",
    operation_id = "deleteSessionServer",
    tag = "sessions",
    params(ServerOfSession, ApplyQuery),
    responses(
        (status = 200, description = "The server is detached.", body = SessionView),
        Guarded,
        BadRequest,
        UnknownServer,
        Refused,
        StoreFailed,
    )
)]
pub(crate) async fn delete_server(
    asker: Asker,
    FromPath(ServerOfSession { id, server }): FromPath<ServerOfSession>,
    FromQuery(apply): FromQuery<ApplyQuery>,
) -> Result<Json<SessionView>, ProblemResponse> {
    let meant = asker.session(&id).await?;
    if !meant.session.now().draft.servers.contains_key(&server) {
        let detail = format!("the session has no server '{server}' of its own");
        return Err(ProblemResponse::new("unknown_server", StatusCode::NOT_FOUND, detail));
    }
    let own_servers = BTreeMap::from([(server, None)]);
    meant.change(SessionChange { own_servers, ..SessionChange::default() }, apply).await
}

/// Show the registry snapshot of a session
///
/// Its tools in the compact format in which they are stored: canonical names, the name that each provider sees, parameters.
/// `last_seen_at` is the time at which the server last listed the tool.
#[utoipa::path(
    get,
    path = "/api/v1/sessions/{id}/snapshot",
    operation_id = "getSessionSnapshot",
    tag = "sessions",
    params(SessionId),
    responses(
        (status = 200, description = "The snapshot.", body = RegistrySnapshot),
        Guarded,
        BadRequest,
        UnknownSession,
        StoreFailed,
    )
)]
pub(crate) async fn snapshot(Ready(board): Ready, meant: SessionPath) -> Json<RegistrySnapshot> {
    Json(present::snapshot(&board, &meant.session.id, &meant.now()))
}

/// End a session
///
/// Its MCP clients must initialize again. An operator can end any session, others their own.
#[utoipa::path(
    delete,
    path = "/api/v1/sessions/{id}",
    operation_id = "endSession",
    tag = "sessions",
    params(SessionId),
    responses(
        (status = 204, description = "The session has ended."),
        Guarded,
        BadRequest,
        UnknownSession,
        StoreFailed,
    )
)]
pub(crate) async fn end(meant: SessionPath) -> Result<StatusCode, ProblemResponse> {
    meant.turns.end_of(&meant.session.id).await?;
    meant.sessions.end_session(&meant.session).await?;
    meant.turns.forget(&meant.session.id);
    Ok(StatusCode::NO_CONTENT)
}

/// When a change applies to a running turn.
#[derive(Debug, Clone, Copy, Default, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ApplyQuery {
    /// `next_turn`: a running turn goes on with the session as it was. `now`: the model's current response is discarded and
    /// requested again with the changed session; calls that have run keep their results.
    #[serde(default)]
    #[param(inline)]
    apply: ApplyWhen,
    /// How many seconds to wait for the servers that the change attaches; 0 does not wait.
    #[serde(default, deserialize_with = "at_most_longest_wait")]
    #[param(maximum = 60, default = 15)]
    wait: Option<u64>,
}

/// How long to wait for the servers of a new session.
#[derive(Debug, Clone, Copy, Default, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct WaitQuery {
    /// How many seconds to wait for its attached servers; 0 does not wait.
    #[serde(default, deserialize_with = "at_most_longest_wait")]
    #[param(maximum = 60, default = 15)]
    pub(crate) wait: Option<u64>,
}

/// The maximum time that a request waits for a server, in seconds.
const LONGEST_WAIT: u64 = 60;

fn at_most_longest_wait<'de, D: serde::Deserializer<'de>>(
    wait: D,
) -> Result<Option<u64>, D::Error> {
    let seconds = Option::<u64>::deserialize(wait)?;
    if seconds.is_some_and(|seconds| seconds > LONGEST_WAIT) {
        let message = format!("it must be at most {LONGEST_WAIT}");
        return Err(serde::de::Error::custom(message));
    }
    Ok(seconds)
}

pub(crate) fn wait_of(seconds: Option<u64>) -> Duration {
    seconds.map_or(ATTACH_WAIT, Duration::from_secs)
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ApplyWhen {
    #[default]
    NextTurn,
    Now,
}

/// Extracts the session that the path names. An operator with access to all tools may name any, others their own.
pub(crate) struct SessionPath {
    pub(crate) sessions: Arc<SessionService>,
    pub(crate) turns: Arc<Turns>,
    pub(crate) session: Arc<Session>,
    /// The principal of the request.
    pub(crate) principal: Principal,
}

/// Extracts the principal and the sessions, to look sessions up.
pub(crate) struct Asker {
    sessions: Arc<SessionService>,
    turns: Arc<Turns>,
    principal: Principal,
}

impl axum::extract::FromRequestParts<Shared> for Asker {
    type Rejection = ProblemResponse;

    async fn from_request_parts(
        parts: &mut axum::http::request::Parts,
        shared: &Shared,
    ) -> Result<Self, ProblemResponse> {
        let ReadySessions(sessions) = ReadySessions::from_request_parts(parts, shared).await?;
        let ReadyTurns(turns) = ReadyTurns::from_request_parts(parts, shared).await?;
        // The dispatcher sets it before any handler runs.
        let principal = parts.extensions.get::<Principal>().cloned();
        let nobody = || {
            let detail = "the request was not authorized before its handler";
            ProblemResponse::new("unauthorized", StatusCode::UNAUTHORIZED, detail)
        };
        let principal = principal.ok_or_else(nobody)?;
        Ok(Self { sessions, turns, principal })
    }
}

impl Asker {
    /// The session of this id in its newest state.
    pub(crate) async fn session(self, id: &str) -> Result<SessionPath, ProblemResponse> {
        let meant = self.session_to_call(id).await?;
        meant.sessions.newest(&meant.session).await?;
        Ok(meant)
    }

    /// The session of this id in a state that may be a second old.
    pub(crate) async fn session_to_call(self, id: &str) -> Result<SessionPath, ProblemResponse> {
        self.sessions.note_access(&self.principal.id, &self.principal.access);
        let session = self.sessions.session(id, owner(&self.principal)).await?;
        let principal = self.principal;
        Ok(SessionPath { sessions: self.sessions, turns: self.turns, session, principal })
    }
}

impl SessionPath {
    /// The state of the session at the current snapshot.
    pub(crate) fn now(&self) -> switchboard_sessions::SessionState {
        self.sessions.sessions().view_of(&self.session);
        self.session.now()
    }

    pub(crate) fn view(&self) -> SessionView {
        self.sessions.sessions().view_of(&self.session);
        let running_turn = self.turns.running(&self.session.id).map(|turn| turn.id.clone());
        let view = present::session(&self.sessions, Summary::of(&self.session));
        SessionView { running_turn, ..view }
    }

    pub(crate) async fn change(
        &self,
        wanted: SessionChange,
        ApplyQuery { apply, wait }: ApplyQuery,
    ) -> Result<Json<SessionView>, ProblemResponse> {
        let (expected, change) = present::change(wanted);
        let wait = wait_of(wait);
        self.sessions.change_session(&self.session, expected, change, wait).await?;
        if apply == ApplyWhen::Now {
            self.turns.apply_now(&self.session.id);
        }
        Ok(Json(self.view()))
    }
}

impl axum::extract::FromRequestParts<Shared> for SessionPath {
    type Rejection = ProblemResponse;

    async fn from_request_parts(
        parts: &mut axum::http::request::Parts,
        shared: &Shared,
    ) -> Result<Self, ProblemResponse> {
        let asker = Asker::from_request_parts(parts, shared).await?;
        let FromPath(SessionId { id }) = FromPath::from_request_parts(parts, shared).await?;
        asker.session(&id).await
    }
}

pub(crate) fn owner(principal: &Principal) -> Option<&str> {
    (!principal.oversees()).then_some(&principal.id)
}

impl From<SessionError> for ProblemResponse {
    fn from(error: SessionError) -> Self {
        let (kind, status) = match &error {
            SessionError::Unknown(_) => ("unknown_session", StatusCode::NOT_FOUND),
            SessionError::Taken(_) => ("session_exists", StatusCode::CONFLICT),
            SessionError::Stale { .. } | SessionError::Contended => {
                ("stale_revision", StatusCode::CONFLICT)
            }
            SessionError::BadName(_) | SessionError::Refused(_) | SessionError::Invalid { .. } => {
                ("bad_request", StatusCode::UNPROCESSABLE_ENTITY)
            }
            SessionError::TooMany => ("too_many_sessions", StatusCode::TOO_MANY_REQUESTS),
            SessionError::Store(failure) => return failure.clone().into(),
        };
        let mut problem = Self::new(kind, status, error.to_string());
        problem.0.errors = match error {
            SessionError::BadName(_) => vec![field("/id", problem.0.detail.clone())],
            SessionError::Invalid { path, reason } => vec![field(path, reason)],
            SessionError::Unknown(_)
            | SessionError::Taken(_)
            | SessionError::Stale { .. }
            | SessionError::Contended
            | SessionError::Refused(_)
            | SessionError::TooMany
            | SessionError::Store(_) => Vec::new(),
        };
        problem
    }
}

fn field(path: impl Into<String>, message: String) -> FieldError {
    FieldError { path: path.into(), message }
}
