//! A tooling gateway as a source.

use std::collections::BTreeMap;

use futures::FutureExt;
use futures::future::BoxFuture;
use switchboard_agent365::{
    Environment, GatewayPath, InvalidGatewayPath, PLATFORM_URL, ToolOptions, ToolingClient,
};
use switchboard_model::{FoundServer, Secret, redact_url};
use switchboard_outbound::HttpPool;
use url::Url;

use crate::found_entries::fetched;
use crate::source::{FetchedServers, ServerSource, SourceError};

/// The list of servers that a gateway has for an agent.
#[derive(Debug)]
pub(crate) struct GatewayList {
    client: ToolingClient,
    /// The address of the gateway, without credentials.
    place: String,
    agent_id: String,
    token: Secret,
    options: ToolOptions,
    /// Why the path cannot be used.
    invalid_path: Option<InvalidGatewayPath>,
}

impl GatewayList {
    /// `environment` must not be that of development, in which the client reads a manifest.
    pub(crate) fn new(
        http: HttpPool,
        environment: Environment,
        path: Option<&str>,
        agent_id: String,
        token: Secret,
        options: ToolOptions,
    ) -> Self {
        let address = environment.platform_endpoint().unwrap_or_else(|| PLATFORM_URL.into());
        let place =
            Url::parse(&address).map_or_else(|_| "(no address)".into(), |it| redact_url(&it));
        let path = path.map(str::parse::<GatewayPath>).transpose();
        let (path, invalid_path) = match path {
            Ok(path) => (path.unwrap_or_default(), None),
            Err(error) => (GatewayPath::default(), Some(error)),
        };
        let client = ToolingClient::new(http, environment).with_gateway_path(path);
        Self { client, place, agent_id, token, options, invalid_path }
    }

    async fn ask(&self) -> Result<FetchedServers, SourceError> {
        if let Some(error) = &self.invalid_path {
            return Err(SourceError::Setting(error.to_string()));
        }
        let (agent, token) = (&self.agent_id, self.token.expose());
        let found = self.client.list_tool_servers(agent, token, &self.options).await;
        fetched(found.map_err(SourceError::Tooling)?)
    }
}

impl ServerSource for GatewayList {
    fn fetch(&self) -> BoxFuture<'_, Result<FetchedServers, SourceError>> {
        self.ask().boxed()
    }

    fn place(&self) -> String {
        self.place.clone()
    }

    /// All headers of a gateway's servers carry its token.
    fn kept(&self, servers: &[FoundServer]) -> Vec<FoundServer> {
        let bare =
            |server: &FoundServer| FoundServer { headers: BTreeMap::new(), ..server.clone() };
        servers.iter().map(bare).collect()
    }

    fn restored(&self, mut kept: Vec<FoundServer>) -> Vec<FoundServer> {
        for server in &mut kept {
            server.headers = self.client.platform_headers(&server.url, &self.token);
        }
        kept
    }
}
