//! The addresses of the platform: servers by name, the gateway of an agent, the threat-protection endpoint.

use url::Url;

use crate::environment::Environment;
use crate::error::ToolingError;
use crate::gateway_path::{GatewayPath, escaped_segment};

/// The platform when `MCP_PLATFORM_ENDPOINT` is not set.
pub const PLATFORM_URL: &str = "https://agent365.svc.cloud.microsoft";

/// The path of the threat-protection endpoint.
pub const CHAT_HISTORY_PATH: &str = "/agents/real-time-threat-protection/chat-message";

/// The address below which servers are found by their unique names: `MCP_BASE_URL`, or
/// `/agents/servers` of the platform.
pub fn get_mcp_base_url(environment: &Environment) -> Result<Url, ToolingError> {
    if let Some(base) = environment.mcp_base_url() {
        return address("MCP_BASE_URL", &base);
    }
    Ok(below(&platform_url(environment)?, "/agents/servers"))
}

/// The address of a server. A unique name that is an address already, as older gateways send it, is taken as it is.
pub fn build_mcp_server_url(
    environment: &Environment,
    unique_name: &str,
) -> Result<Url, ToolingError> {
    if let Some(url) = absolute(unique_name) {
        return Ok(url);
    }
    let invalid = || ToolingError::InvalidServerName { name: unique_name.to_owned() };
    if matches!(unique_name.trim(), "" | "." | "..") {
        return Err(invalid());
    }
    Ok(below(&get_mcp_base_url(environment)?, &format!("/{}", escaped_segment(unique_name))))
}

/// The address of an agent's list of servers, at the default path.
pub fn get_tooling_gateway_for_digital_worker(
    environment: &Environment,
    agentic_app_id: &str,
) -> Result<Url, ToolingError> {
    GatewayPath::default().url(&platform_url(environment)?, agentic_app_id)
}

/// The threat-protection endpoint. It is an error when no platform is configured: a conversation is not sent to a host
/// that nobody named.
pub fn get_chat_history_endpoint(environment: &Environment) -> Result<Url, ToolingError> {
    let endpoint = environment.platform_endpoint().ok_or(ToolingError::NoChatEndpoint)?;
    Ok(below(&address("MCP_PLATFORM_ENDPOINT", &endpoint)?, CHAT_HISTORY_PATH))
}

/// The address of the platform.
pub(crate) fn platform_url(environment: &Environment) -> Result<Url, ToolingError> {
    let endpoint = environment.platform_endpoint();
    address("MCP_PLATFORM_ENDPOINT", endpoint.as_deref().unwrap_or(PLATFORM_URL))
}

/// A text that is an absolute URL of HTTP.
pub(crate) fn absolute(text: &str) -> Option<Url> {
    let url = Url::parse(text.trim()).ok()?;
    (matches!(url.scheme(), "http" | "https") && url.has_host()).then_some(url)
}

fn address(variable: &'static str, text: &str) -> Result<Url, ToolingError> {
    absolute(text).ok_or(ToolingError::InvalidAddress { variable })
}

/// The address with this path after its own. A query of the base belongs to the base alone.
fn below(base: &Url, path: &str) -> Url {
    let mut url = base.clone();
    url.set_path(&format!("{}{path}", base.path().trim_end_matches('/')));
    url.set_query(None);
    url.set_fragment(None);
    url
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(variables: &'static [(&str, &str)]) -> Environment {
        Environment::from_lookup(|name| {
            variables.iter().find(|(it, _)| *it == name).map(|(_, value)| (*value).to_owned())
        })
    }

    const BOTH: &[(&str, &str)] = &[
        ("MCP_BASE_URL", "http://127.0.0.1:3000/servers/"),
        ("MCP_PLATFORM_ENDPOINT", "https://platform.test/base/"),
    ];

    #[test]
    fn get_mcp_base_url_prefers_mcp_base_url_to_the_platform() {
        for (variables, expected) in [
            (&[][..], "https://agent365.svc.cloud.microsoft/agents/servers"),
            (&BOTH[1..], "https://platform.test/base/agents/servers"),
            (&BOTH[..1], "http://127.0.0.1:3000/servers/"),
            (BOTH, "http://127.0.0.1:3000/servers/"),
            (
                &[("MCP_PLATFORM_ENDPOINT", "")],
                "https://agent365.svc.cloud.microsoft/agents/servers",
            ),
        ] {
            assert_eq!(get_mcp_base_url(&environment(variables)).unwrap().as_str(), expected);
        }
    }

    #[test]
    fn build_mcp_server_url_appends_the_unique_name() {
        for (variables, name, expected) in [
            (BOTH, "mcp_MailTools", "http://127.0.0.1:3000/servers/mcp_MailTools"),
            (
                &BOTH[1..],
                "mcp_MailTools",
                "https://platform.test/base/agents/servers/mcp_MailTools",
            ),
            (BOTH, "my server", "http://127.0.0.1:3000/servers/my%20server"),
            (BOTH, "a/../b", "http://127.0.0.1:3000/servers/a%2F..%2Fb"),
            (BOTH, "münchen", "http://127.0.0.1:3000/servers/m%C3%BCnchen"),
            (BOTH, "https://mail.test/mcp?x=1", "https://mail.test/mcp?x=1"),
        ] {
            let url = build_mcp_server_url(&environment(variables), name).unwrap();
            assert_eq!(url.as_str(), expected);
        }
    }

    #[test]
    fn a_name_that_would_remove_segments_is_refused() {
        for name in ["", " ", ".", ".."] {
            let error = build_mcp_server_url(&environment(BOTH), name).unwrap_err();
            assert_eq!(error, ToolingError::InvalidServerName { name: name.to_owned() });
        }
    }

    #[test]
    fn get_tooling_gateway_for_digital_worker_is_below_the_platform() {
        for (variables, expected) in [
            (&[][..], "https://agent365.svc.cloud.microsoft/agents/v2/app-id-123/mcpServers"),
            (BOTH, "https://platform.test/base/agents/v2/app-id-123/mcpServers"),
        ] {
            let url = get_tooling_gateway_for_digital_worker(&environment(variables), "app-id-123");
            assert_eq!(url.unwrap().as_str(), expected);
        }
    }

    #[test]
    fn a_conversation_is_sent_to_no_host_that_is_not_configured() {
        let error = get_chat_history_endpoint(&environment(&[])).unwrap_err();
        assert_eq!(error, ToolingError::NoChatEndpoint);
        let url = get_chat_history_endpoint(&environment(BOTH)).unwrap();
        assert_eq!(
            url.as_str(),
            "https://platform.test/base/agents/real-time-threat-protection/chat-message"
        );
    }

    #[test]
    fn an_address_that_is_none_is_named_by_its_variable() {
        const BAD: &[(&str, &str)] = &[("MCP_PLATFORM_ENDPOINT", "platform.test/base")];
        const FILE: &[(&str, &str)] = &[("MCP_BASE_URL", "file:///etc")];
        let error = get_tooling_gateway_for_digital_worker(&environment(BAD), "x").unwrap_err();
        assert_eq!(error.to_string(), "MCP_PLATFORM_ENDPOINT is no absolute http or https URL");
        let error = build_mcp_server_url(&environment(FILE), "x").unwrap_err();
        assert_eq!(error.to_string(), "MCP_BASE_URL is no absolute http or https URL");
    }
}
