//! Care of servers: tries one that is not configured, reads lists again, and shows what a server has written.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::Deserialize;
use switchboard_api::{
    FieldError, LogLine, OwnServerBody, OwnTransport, ServerLog, ServerTrial, ServerView, TrialStep,
};
use switchboard_model::{AttachedServer, ConnectError, HttpTransport, Secret, ServerName};
use switchboard_runtime::{Board, TrialFailure};
use url::Url;

use crate::answers::{BadRequest, Guarded, TakesBody, TrialsBusy, UnknownConfigServer, WrongShape};
use crate::extract::{FromBody, FromPath, FromQuery};
use crate::present;
use crate::problem::{ProblemResponse, bad_query};
use crate::ready::Ready;
use crate::server_entries::{ConfiguredServer, unknown_server};
use crate::server_state::Shared;

const MAX_LINES: usize = 1000;

/// Try a server
///
/// Connects an MCP server that is not configured, over HTTP and within `security.egress`, lists its tools and closes the
/// connection. Nothing is changed. `steps` says how far it came. Needs the role operator.
#[utoipa::path(
    post,
    path = "/api/v1/server-tests",
    operation_id = "testServer",
    tag = "servers",
    request_body(
        content = OwnServerBody,
        description = "The address of the server, and the headers of every request to it.",
        example = json!({"url": "https://mcp.example.com/mcp"})
    ),
    responses(
        (status = 200, description = "The outcome, also of a failed attempt.", body = ServerTrial),
        Guarded,
        TakesBody,
        TrialsBusy,
        WrongShape,
    )
)]
pub(crate) async fn test(
    State(shared): State<Shared>,
    Ready(board): Ready,
    FromBody(body): FromBody<OwnServerBody>,
) -> Result<Json<ServerTrial>, ProblemResponse> {
    let Ok(_permit) = shared.server_trials.clone().try_acquire_owned() else {
        let detail = "too many servers are being tried now; try again in a moment";
        return Err(ProblemResponse::new("busy", StatusCode::CONFLICT, detail));
    };
    let url = Url::parse(&body.url).map_err(|error| {
        let message = format!("is not an address: {error}");
        let status = StatusCode::UNPROCESSABLE_ENTITY;
        let mut problem = ProblemResponse::new("bad_request", status, format!("`url` {message}"));
        problem.0.errors = vec![FieldError { path: "/url".into(), message }];
        problem
    })?;
    let mut server = AttachedServer::new("tried", url);
    let headers = body.headers.into_iter();
    server.headers = headers.map(|(name, value)| (name, Secret::new(value))).collect();
    if body.transport == OwnTransport::Sse {
        server.transport = HttpTransport::Sse;
    }
    Ok(Json(tried(&board, server).await))
}

async fn tried(board: &Arc<Board>, server: AttachedServer) -> ServerTrial {
    let nothing = ServerTrial {
        ok: false,
        steps: Vec::new(),
        era: None,
        protocol: None,
        reported_name: None,
        reported_version: None,
        tools: Vec::new(),
        quarantined: Vec::new(),
    };
    let address =
        TrialStep { name: "address".into(), ok: true, ms: None, detail: None, hint: None };
    match Box::pin(board.try_server(server)).await {
        Ok(found) => ServerTrial {
            ok: true,
            steps: vec![
                address,
                TrialStep {
                    name: "connection".into(),
                    ok: true,
                    ms: u64::try_from(found.took.as_millis()).ok(),
                    detail: None,
                    hint: None,
                },
            ],
            era: Some(found.era.as_str().into()),
            protocol: Some(found.protocol),
            reported_name: found.reported_name,
            reported_version: found.reported_version,
            tools: found.tools,
            quarantined: found.quarantined.iter().map(ToString::to_string).collect(),
        },
        Err(TrialFailure::Refused(error)) => ServerTrial {
            steps: vec![TrialStep {
                ok: false,
                detail: Some(error.to_string()),
                hint: error.hint().map(str::to_owned),
                ..address
            }],
            ..nothing
        },
        Err(TrialFailure::Failed { error, step, took }) => ServerTrial {
            steps: vec![
                address,
                TrialStep {
                    name: "connection".into(),
                    ok: false,
                    ms: u64::try_from(took.as_millis()).ok(),
                    detail: Some(format!("{step}: {}", error.message)),
                    hint: ConnectError::hint(&error),
                },
            ],
            ..nothing
        },
    }
}

/// Read the lists of a server again
///
/// The server is asked for its tools now, and not after its interval. What has changed appears in the catalog soon after. Needs the
/// role operator.
#[utoipa::path(
    post,
    path = "/api/v1/servers/{name}/refresh",
    operation_id = "refreshServer",
    tag = "servers",
    params(ConfiguredServer),
    responses(
        (status = 202, description = "The state of the server before its lists are read.", body = ServerView),
        Guarded,
        BadRequest,
        UnknownConfigServer,
    )
)]
pub(crate) async fn refresh(
    Ready(board): Ready,
    FromPath(ConfiguredServer { name }): FromPath<ConfiguredServer>,
) -> Result<(StatusCode, Json<ServerView>), ProblemResponse> {
    if !board.refresh_server(&ServerName::new(name.as_str())) {
        return Err(unknown_server(&name));
    }
    let mut servers = present::servers(&board).servers.into_iter();
    let server = servers.find(|server| server.name == name).ok_or_else(|| unknown_server(&name))?;
    Ok((StatusCode::ACCEPTED, Json(server)))
}

/// Selects lines.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct LogQuery {
    /// The maximum number of lines: the last ones.
    #[serde(default = "hundred")]
    #[param(minimum = 1, maximum = 1000, default = 100)]
    lines: usize,
}

fn hundred() -> usize {
    100
}

/// Show what a server has written
///
/// The end of the standard error output of a program, line by line; empty for a server over HTTP. Log messages of the protocol are
/// events of the board. Needs the role operator.
#[utoipa::path(
    get,
    path = "/api/v1/servers/{name}/log",
    operation_id = "getServerLog",
    tag = "servers",
    params(ConfiguredServer, LogQuery),
    responses(
        (status = 200, description = "The last lines.", body = ServerLog),
        Guarded,
        BadRequest,
        UnknownConfigServer,
    )
)]
pub(crate) async fn log(
    Ready(board): Ready,
    FromPath(ConfiguredServer { name }): FromPath<ConfiguredServer>,
    FromQuery(LogQuery { lines }): FromQuery<LogQuery>,
) -> Result<Json<ServerLog>, ProblemResponse> {
    if !(1..=MAX_LINES).contains(&lines) {
        return Err(bad_query(format!("`lines` is 1 to {MAX_LINES}")));
    }
    let mut servers = board.servers().into_iter();
    let found = servers.find(|(plan, _)| plan.spec.name.as_str() == name);
    let (_, status) = found.ok_or_else(|| unknown_server(&name))?;
    let stderr = status.stderr.unwrap_or_default();
    let all: Vec<_> = stderr.lines().collect();
    let last = all.iter().skip(all.len().saturating_sub(lines));
    let lines = last.map(|line| LogLine { text: (*line).to_owned() });
    Ok(Json(ServerLog { lines: lines.collect() }))
}
