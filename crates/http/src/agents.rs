//! Agents in the API: the profiles of the configuration and their servers.

use axum::Json;
use axum::extract::Extension;
use axum::http::StatusCode;
use serde::Deserialize;
use switchboard_agent365::Framework;
use switchboard_api::{AgentFrameworkView, AgentList, AgentView};
use switchboard_auth::Principal;
use switchboard_sessions::{Agent, AgentUser, SessionError, SessionService};

use crate::answers::{BadRequest, Guarded, StoreFailed, UnknownAgent, UnknownFramework};
use crate::extract::FromPath;
use crate::present_agents as present;
use crate::problem::ProblemResponse;
use crate::public_address::PublicAddress;
use crate::ready::ReadySessions;

/// Names an agent.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct AgentName {
    /// The name of a profile, or the id of a session of the same credentials.
    #[param(min_length = 1, example = "invoicing")]
    pub(crate) agent: String,
}

/// Names an agent and a framework.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct AgentFramework {
    /// The name of a profile, or the id of a session of the same credentials.
    #[param(min_length = 1, example = "invoicing")]
    pub(crate) agent: String,
    /// `openai`, `semantic-kernel`, `agent-framework` or `azure-ai-foundry`.
    #[param(min_length = 1, example = "openai")]
    pub(crate) framework: String,
}

/// List the agents
///
/// The agent profiles of the configuration that the credentials may use.
#[utoipa::path(
    get,
    path = "/api/v1/agents",
    operation_id = "listAgents",
    tag = "agents",
    responses(
        (
            status = 200,
            description = "The agents.",
            body = AgentList,
            links(("one" = (operation_id = "getAgent", parameters(("agent" = "$response.body#/agents/0/name")))))
        ),
        Guarded,
    )
)]
pub(crate) async fn list(
    ReadySessions(sessions): ReadySessions,
    Extension(principal): Extension<Principal>,
) -> Json<AgentList> {
    Json(present::agents(&sessions, user(&principal)))
}

/// Show one agent
///
/// Its limits and its servers, each with the MCP endpoint at which the agent finds it. A session is an agent too: its
/// servers are those that the session sees.
#[utoipa::path(
    get,
    path = "/api/v1/agents/{agent}",
    operation_id = "getAgent",
    tag = "agents",
    params(AgentName),
    responses(
        (status = 200, description = "The agent.", body = AgentView),
        Guarded,
        StoreFailed,
        BadRequest,
        UnknownAgent,
    )
)]
pub(crate) async fn show(
    ReadySessions(sessions): ReadySessions,
    Extension(principal): Extension<Principal>,
    PublicAddress(base): PublicAddress,
    FromPath(AgentName { agent }): FromPath<AgentName>,
) -> Result<Json<AgentView>, ProblemResponse> {
    let agent = find(&sessions, &agent, &principal).await?;
    Ok(Json(present::agent(&sessions, &agent, &principal.access, &base)))
}

/// Render the servers of an agent for a framework
///
/// The classes and arguments, or the bodies, with which the framework uses the servers without Microsoft's SDK. The API key
/// is written as `${SWITCHBOARD_API_KEY}`.
#[utoipa::path(
    get,
    path = "/api/v1/agents/{agent}/frameworks/{framework}",
    operation_id = "renderAgent",
    tag = "agents",
    params(AgentFramework),
    responses(
        (status = 200, description = "The servers.", body = AgentFrameworkView),
        Guarded,
        StoreFailed,
        BadRequest,
        UnknownFramework,
    )
)]
pub(crate) async fn framework(
    ReadySessions(sessions): ReadySessions,
    Extension(principal): Extension<Principal>,
    PublicAddress(base): PublicAddress,
    FromPath(AgentFramework { agent, framework }): FromPath<AgentFramework>,
) -> Result<Json<AgentFrameworkView>, ProblemResponse> {
    let agent = find(&sessions, &agent, &principal).await?;
    let framework = Framework::from_word(&framework).ok_or_else(|| {
        let known: Vec<_> = Framework::ALL.iter().map(|known| known.as_str()).collect();
        let detail =
            format!("there is no framework '{framework}'; there are: {}", known.join(", "));
        ProblemResponse::new("unknown_framework", StatusCode::NOT_FOUND, detail)
    })?;
    let view = present::agent(&sessions, &agent, &principal.access, &base);
    Ok(Json(present::agent_framework(&view, framework)))
}

/// The agent of this name, if the principal may use it.
pub(crate) async fn find(
    sessions: &SessionService,
    name: &str,
    principal: &Principal,
) -> Result<Agent, ProblemResponse> {
    sessions.note_access(&principal.id, &principal.access);
    sessions.agent(name, user(principal)).await.map_err(|error| match error {
        SessionError::Store(failure) => failure.into(),
        SessionError::Unknown(_)
        | SessionError::Taken(_)
        | SessionError::BadName(_)
        | SessionError::TooMany
        | SessionError::Stale { .. }
        | SessionError::Contended
        | SessionError::Refused(_)
        | SessionError::Invalid { .. } => {
            let detail = format!("there is no agent '{name}'");
            ProblemResponse::new("unknown_agent", StatusCode::NOT_FOUND, detail)
        }
    })
}

fn user(principal: &Principal) -> AgentUser<'_> {
    AgentUser {
        principal: &principal.id,
        name: principal.name.as_deref(),
        role: principal.effective_role(),
        access: &principal.access,
    }
}
