//! The tooling gateway of Microsoft's Agent 365: agents built on its SDK ask here for their MCP servers.
//!
//! Version 2 of the SDK reads the address of a server from `url`. Older clients ask at other paths and expect it in
//! `mcpServerUniqueName`.

use axum::Json;
use axum::extract::Extension;
use serde::Deserialize;
use switchboard_agent365::{ToolServerEntry, ToolServersAnswer};
use switchboard_auth::Principal;
use switchboard_sessions::SessionService;
use url::Url;

use crate::agents;
use crate::extract::{FromPath, FromQuery};
use crate::present_agents::{agent_name, connectivity, server_url};
use crate::problem::{ProblemResponse, bad_query};
use crate::public_address::PublicAddress;
use crate::ready::AwaitedSessions;

/// The query of the oldest path.
#[derive(Debug, Deserialize)]
pub(crate) struct ServersQuery {
    #[serde(rename = "agentId")]
    agent_id: Option<String>,
}

/// What `mcpServerUniqueName` holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum UniqueName {
    Name,
    Url,
}

/// `GET /agents/v2/{agent}/mcpServers`
pub(crate) async fn servers(
    AwaitedSessions(sessions): AwaitedSessions,
    Extension(principal): Extension<Principal>,
    PublicAddress(base): PublicAddress,
    FromPath(agent): FromPath<String>,
) -> Result<Json<ToolServersAnswer>, ProblemResponse> {
    answer(&sessions, &agent, &principal, &base, UniqueName::Name).await
}

/// `GET /agents/{agent}/mcpServers`
pub(crate) async fn servers_by_url(
    AwaitedSessions(sessions): AwaitedSessions,
    Extension(principal): Extension<Principal>,
    PublicAddress(base): PublicAddress,
    FromPath(agent): FromPath<String>,
) -> Result<Json<ToolServersAnswer>, ProblemResponse> {
    answer(&sessions, &agent, &principal, &base, UniqueName::Url).await
}

/// `GET /mcp/servers?agentId={agent}`
pub(crate) async fn servers_by_query(
    AwaitedSessions(sessions): AwaitedSessions,
    Extension(principal): Extension<Principal>,
    PublicAddress(base): PublicAddress,
    FromQuery(query): FromQuery<ServersQuery>,
) -> Result<Json<ToolServersAnswer>, ProblemResponse> {
    let agent = query.agent_id.unwrap_or_default();
    answer(&sessions, &agent, &principal, &base, UniqueName::Url).await
}

async fn answer(
    sessions: &SessionService,
    agent: &str,
    principal: &Principal,
    base: &Url,
    unique_name: UniqueName,
) -> Result<Json<ToolServersAnswer>, ProblemResponse> {
    if agent.trim().is_empty() {
        let detail = "the agent id is blank: give the name of an agent of the configuration, or the id of a session";
        return Err(bad_query(detail.into()));
    }
    let agent = agents::find(sessions, agent, principal).await?;
    let mut is_pending = false;
    let servers = sessions.agent_servers(&agent, &principal.access).into_iter().map(|server| {
        is_pending |= server.needs_sign_in;
        let url = String::from(server_url(base, agent_name(&agent), &server.name));
        ToolServerEntry {
            connectivity_status: Some(connectivity(&server).into()),
            mcp_server_unique_name: match unique_name {
                UniqueName::Name => server.name.clone(),
                UniqueName::Url => url.clone(),
            },
            mcp_server_name: server.name,
            url: Some(url),
            ..ToolServerEntry::default()
        }
    });
    let mcp_servers = servers.collect();
    let status = if is_pending { "Pending" } else { "Ready" };
    Ok(Json(ToolServersAnswer {
        mcp_servers,
        connectivity_status: Some(status.into()),
        ..ToolServersAnswer::default()
    }))
}
