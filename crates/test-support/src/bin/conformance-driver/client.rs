//! A small MCP client that accepts every request of its server.

use std::error::Error;

use rmcp::model::{
    CallToolRequestParams, ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult,
    ElicitationAction, GetPromptRequestParams, Implementation, ProtocolVersion,
    ReadResourceRequestParams,
};
use rmcp::service::{ClientLifecycleMode, ClientServiceExt, RequestContext, RunningService};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::{ClientHandler, ErrorData, RoleClient};
use serde_json::{Value, json};

use crate::sample;

#[derive(Debug)]
pub(crate) struct Client {
    service: RunningService<RoleClient, Accepting>,
}

#[derive(Debug)]
struct Accepting;

impl ClientHandler for Accepting {
    fn get_info(&self) -> ClientConfig {
        let capabilities = json!({"elicitation": {"form": {"applyDefaults": true}}});
        let capabilities: ClientCapabilities =
            serde_json::from_value(capabilities).unwrap_or_default();
        let us = Implementation::new("switchboard-conformance-driver", env!("CARGO_PKG_VERSION"));
        let mut config = ClientConfig::new(capabilities, us);
        config.protocol_version = ProtocolVersion::LATEST_WITH_INITIALIZE;
        config
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let request = serde_json::to_value(request)
            .map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
        let content = sample::form(&request["requestedSchema"]);
        Ok(ElicitResult::new(ElicitationAction::Accept).with_content(content))
    }
}

impl Client {
    /// Connects as a client of that protocol version.
    pub(crate) async fn connect(url: &str, version: &str) -> Result<Self, Box<dyn Error>> {
        let newest = ProtocolVersion::V_2026_07_28;
        let lifecycle = if version >= newest.as_str() {
            ClientLifecycleMode::Discover { preferred_versions: vec![newest] }
        } else {
            ClientLifecycleMode::Initialize
        };
        let transport = StreamableHttpClientTransport::from_uri(url.to_owned());
        let service = Accepting.serve_with_lifecycle(transport, lifecycle).await?;
        Ok(Self { service })
    }

    pub(crate) async fn tools(&self) -> Result<Vec<Value>, Box<dyn Error>> {
        let tools = self.service.list_all_tools().await?;
        Ok(tools.iter().map(serde_json::to_value).collect::<Result<_, _>>()?)
    }

    /// Calls a tool. The suite judges the result, so it is not checked here.
    pub(crate) async fn call(&self, name: &Value, arguments: &Value) {
        let name = name.as_str().unwrap_or_default().to_owned();
        let mut request = CallToolRequestParams::new(name.clone());
        request.arguments = arguments.as_object().cloned();
        let result = self.service.call_tool(request).await;
        tell("tools/call", &name, &result);
    }

    pub(crate) async fn get_prompts(&self) {
        for prompt in self.service.list_all_prompts().await.unwrap_or_default() {
            let result = self.service.get_prompt(GetPromptRequestParams::new(&*prompt.name)).await;
            tell("prompts/get", &prompt.name, &result);
        }
    }

    pub(crate) async fn read_resources(&self) {
        for resource in self.service.list_all_resources().await.unwrap_or_default() {
            let request = ReadResourceRequestParams::new(&*resource.uri);
            let result = self.service.read_resource(request).await;
            tell("resources/read", &resource.uri, &result);
        }
    }

    pub(crate) async fn close(self) {
        // The suite has seen everything it needs.
        let _ended = self.service.cancel().await;
    }
}

/// Printed for the suite, which shows it when a check fails.
#[expect(clippy::print_stderr, reason = "the only words of this program")]
fn tell(method: &str, name: &str, result: &impl std::fmt::Debug) {
    eprintln!("{method} {name}: {result:?}");
}
