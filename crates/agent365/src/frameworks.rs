//! The servers of an agent as the frameworks take them that Microsoft's SDK has extensions for.
//!
//! Each extension discovers servers and hands them to its framework. This module writes down the same objects as data:
//! the class and its arguments, or the body that the framework's service gets. No credentials are in it.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

/// Stands for the API key. `os.path.expandvars` and a shell replace it.
const AUTHORIZATION: &str = "Bearer ${SWITCHBOARD_API_KEY}";

/// How long the HTTP client of the `agentframework` extension waits, in seconds.
const AGENT_FRAMEWORK_TIMEOUT: f64 = 90.0;

/// A framework with an extension of the SDK.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framework {
    /// The OpenAI Agents SDK.
    OpenAi,
    /// Semantic Kernel.
    SemanticKernel,
    /// Microsoft Agent Framework.
    AgentFramework,
    /// The agent service of Azure AI Foundry.
    AzureAiFoundry,
}

/// A server of an agent: its name, and the address of its MCP endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrameworkServer {
    /// The name of the server.
    pub name: String,
    /// The address of its MCP endpoint.
    pub url: String,
}

impl Framework {
    /// All frameworks.
    pub const ALL: [Self; 4] =
        [Self::OpenAi, Self::SemanticKernel, Self::AgentFramework, Self::AzureAiFoundry];

    /// The word for the framework in paths and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::SemanticKernel => "semantic-kernel",
            Self::AgentFramework => "agent-framework",
            Self::AzureAiFoundry => "azure-ai-foundry",
        }
    }

    /// Reads the word, also without its hyphens, as the extensions are named.
    pub fn from_word(word: &str) -> Option<Self> {
        let is_it = |it: &Self| it.as_str() == word || it.as_str().replace('-', "") == word;
        Self::ALL.into_iter().find(is_it)
    }

    /// The extension of the SDK.
    pub fn package(self) -> &'static str {
        match self {
            Self::OpenAi => "microsoft-agents-a365-tooling-extensions-openai",
            Self::SemanticKernel => "microsoft-agents-a365-tooling-extensions-semantickernel",
            Self::AgentFramework => "microsoft-agents-a365-tooling-extensions-agentframework",
            Self::AzureAiFoundry => "microsoft-agents-a365-tooling-extensions-azureaifoundry",
        }
    }

    /// The name that the extension sends as orchestrator in its `User-Agent`.
    pub fn orchestrator_name(self) -> &'static str {
        match self {
            Self::OpenAi => "OpenAI",
            Self::SemanticKernel => "SemanticKernel",
            Self::AgentFramework => "AgentFramework",
            Self::AzureAiFoundry => "AzureAIFoundry",
        }
    }

    /// The servers as the framework takes them. Of servers with the same address only the first is rendered, as the
    /// extensions do it.
    pub fn config(self, servers: &[FrameworkServer]) -> Map<String, Value> {
        let mut addresses = HashSet::new();
        let servers: Vec<_> =
            servers.iter().filter(|server| addresses.insert(&server.url)).collect();
        let each = |of: fn(&FrameworkServer) -> Value| -> Value {
            servers.iter().map(|server| of(server)).collect()
        };
        match self {
            Self::OpenAi => members([("servers", each(openai))]),
            Self::SemanticKernel => members([("servers", semantic_kernel(&servers))]),
            Self::AgentFramework => members([("servers", each(agent_framework))]),
            Self::AzureAiFoundry => members([
                ("tools", each(azure_definition)),
                ("tool_resources", json!({"mcp": each(azure_resource)})),
            ]),
        }
    }
}

fn members<const N: usize>(members: [(&str, Value); N]) -> Map<String, Value> {
    members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn headers() -> Value {
    json!({"Authorization": AUTHORIZATION})
}

fn openai(server: &FrameworkServer) -> Value {
    json!({
        "class": "agents.mcp.MCPServerStreamableHttp",
        "arguments": {
            "name": server.name,
            "params": {"url": server.url, "headers": headers()},
        },
    })
}

/// Plugins need distinct names of letters, digits and underscores.
fn semantic_kernel(servers: &[&FrameworkServer]) -> Value {
    let mut taken = HashSet::new();
    let plugins = servers.iter().map(|server| {
        let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
        let name: String = server.name.chars().map(plain).collect();
        let numbered = (2..).map(|number: usize| format!("{name}_{number}"));
        let free = std::iter::once(name.clone()).chain(numbered).find(|it| !taken.contains(it));
        let name = free.unwrap_or(name);
        taken.insert(name.clone());
        json!({
            "class": "semantic_kernel.connectors.mcp.MCPStreamableHttpPlugin",
            "arguments": {"name": name, "url": server.url, "headers": headers()},
        })
    });
    plugins.collect()
}

fn agent_framework(server: &FrameworkServer) -> Value {
    json!({
        "class": "agent_framework.MCPStreamableHTTPTool",
        "arguments": {
            "name": server.name,
            "url": server.url,
            "description": format!("MCP tools from {}", server.name),
        },
        // The argument `http_client`.
        "http_client": {
            "class": "httpx.AsyncClient",
            "arguments": {"headers": headers(), "timeout": AGENT_FRAMEWORK_TIMEOUT},
        },
    })
}

fn azure_definition(server: &FrameworkServer) -> Value {
    json!({"type": "mcp", "server_label": azure_label(&server.name), "server_url": server.url})
}

fn azure_resource(server: &FrameworkServer) -> Value {
    json!({
        "server_label": azure_label(&server.name),
        "headers": headers(),
        "require_approval": "never",
    })
}

/// The extension leaves out the prefix that the names of Microsoft's own servers have.
fn azure_label(name: &str) -> &str {
    match name.split_at_checked(4) {
        Some((prefix, rest)) if prefix.eq_ignore_ascii_case("mcp_") => rest,
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    fn server(name: &str) -> FrameworkServer {
        FrameworkServer { name: name.into(), url: format!("http://board.test/{name}") }
    }

    #[track_caller]
    fn check(framework: Framework, names: &[&str], expected: &Value) {
        let servers: Vec<_> = names.iter().map(|name| server(name)).collect();
        assert_eq!(Value::Object(framework.config(&servers)), *expected);
    }

    #[test]
    fn each_framework_gets_the_arguments_of_its_class() {
        let auth = json!({"Authorization": "Bearer ${SWITCHBOARD_API_KEY}"});
        check(
            Framework::OpenAi,
            &["crm"],
            &json!({"servers": [{
                "class": "agents.mcp.MCPServerStreamableHttp",
                "arguments": {"name": "crm", "params": {"url": "http://board.test/crm", "headers": auth}},
            }]}),
        );
        check(
            Framework::SemanticKernel,
            &["crm"],
            &json!({"servers": [{
                "class": "semantic_kernel.connectors.mcp.MCPStreamableHttpPlugin",
                "arguments": {"name": "crm", "url": "http://board.test/crm", "headers": auth},
            }]}),
        );
        check(
            Framework::AgentFramework,
            &["crm"],
            &json!({"servers": [{
                "class": "agent_framework.MCPStreamableHTTPTool",
                "arguments": {
                    "name": "crm",
                    "url": "http://board.test/crm",
                    "description": "MCP tools from crm",
                },
                "http_client": {
                    "class": "httpx.AsyncClient",
                    "arguments": {"headers": auth, "timeout": 90.0},
                },
            }]}),
        );
        check(
            Framework::AzureAiFoundry,
            &["mcp_MailTools", "MCP_x", "mcp", "ümcp_"],
            &json!({
                "tools": [
                    {"type": "mcp", "server_label": "MailTools", "server_url": "http://board.test/mcp_MailTools"},
                    {"type": "mcp", "server_label": "x", "server_url": "http://board.test/MCP_x"},
                    {"type": "mcp", "server_label": "mcp", "server_url": "http://board.test/mcp"},
                    {"type": "mcp", "server_label": "ümcp_", "server_url": "http://board.test/ümcp_"},
                ],
                "tool_resources": {"mcp": [
                    {"server_label": "MailTools", "headers": auth, "require_approval": "never"},
                    {"server_label": "x", "headers": auth, "require_approval": "never"},
                    {"server_label": "mcp", "headers": auth, "require_approval": "never"},
                    {"server_label": "ümcp_", "headers": auth, "require_approval": "never"},
                ]},
            }),
        );
    }

    #[test]
    fn an_agent_without_servers_is_rendered_too() {
        for framework in Framework::ALL {
            let config = framework.config(&[]);
            let list = config.get("servers").or(config.get("tools"));
            assert_eq!(list, Some(&json!([])), "{framework:?}");
        }
    }

    #[test]
    fn one_address_is_rendered_once() {
        let twice = [server("crm"), FrameworkServer { name: "again".into(), ..server("crm") }];
        for framework in Framework::ALL {
            let config = framework.config(&twice);
            let list = config.get("servers").or(config.get("tools"));
            assert_eq!(list.and_then(Value::as_array).map(Vec::len), Some(1), "{framework:?}");
        }
    }

    #[test]
    fn plugins_of_semantic_kernel_have_distinct_plain_names() {
        let servers = ["a-b", "a_b", "a b", "ü"].map(server);
        let config = Framework::SemanticKernel.config(&servers);
        let names = config["servers"].as_array().into_iter().flatten();
        let names: Vec<_> = names.map(|plugin| plugin["arguments"]["name"].clone()).collect();
        assert_eq!(names, ["a_b", "a_b_2", "a_b_3", "_"]);
    }

    #[test]
    fn words_are_read_with_and_without_hyphens() {
        for framework in Framework::ALL {
            assert_eq!(Framework::from_word(framework.as_str()), Some(framework));
            let extension = framework.package().rsplit('-').next().unwrap_or_default();
            assert_eq!(Framework::from_word(extension), Some(framework));
        }
        for word in ["", "OpenAI", "langchain", "semantic kernel"] {
            assert_eq!(Framework::from_word(word), None, "{word}");
        }
    }
}
