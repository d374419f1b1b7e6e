//! The environment variables of Agent 365 tooling, read through a function so that nothing here touches the process.

use std::fmt;
use std::sync::Arc;

use switchboard_model::Secret;

/// The variables that name the kind of environment. The first that is not empty decides.
const KIND_VARIABLES: [&str; 4] =
    ["PYTHON_ENVIRONMENT", "ENVIRONMENT", "ASPNETCORE_ENVIRONMENT", "DOTNET_ENVIRONMENT"];

/// Where the list of servers comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EnvironmentKind {
    /// From `ToolingManifest.json`.
    Development,
    /// From the tooling gateway: every name but `Development`.
    Production,
}

/// The kind of environment when no variable names one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DefaultEnvironment {
    /// A missing variable must not replace the gateway by a local file.
    #[default]
    Production,
    /// What the Python package does.
    Development,
}

/// Finds the value of a variable.
type Lookup = dyn Fn(&str) -> Option<String> + Send + Sync;

/// The variables' meaning. A variable that is empty or blank counts as absent.
#[derive(Clone)]
pub struct Environment {
    kind: EnvironmentKind,
    kind_variable: Option<&'static str>,
    lookup: Arc<Lookup>,
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Environment")
            .field("kind", &self.kind)
            .field("kind_variable", &self.kind_variable)
            .finish_non_exhaustive()
    }
}

impl Environment {
    /// Reads variables with `lookup`, which is kept: the variables of servers' tokens are known only when servers are.
    pub fn from_lookup(lookup: impl Fn(&str) -> Option<String> + Send + Sync + 'static) -> Self {
        Self::with_default(DefaultEnvironment::default(), lookup)
    }

    /// Like [`Environment::from_lookup`], with the kind for the case that no variable names one.
    pub fn with_default(
        default: DefaultEnvironment,
        lookup: impl Fn(&str) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        let named = KIND_VARIABLES
            .into_iter()
            .find_map(|variable| Some((variable, lookup(variable).filter(|it| !it.is_empty())?)));
        let kind = match (&named, default) {
            (Some((_, name)), _) if name.trim().eq_ignore_ascii_case("development") => {
                EnvironmentKind::Development
            }
            (Some(_), _) | (None, DefaultEnvironment::Production) => EnvironmentKind::Production,
            (None, DefaultEnvironment::Development) => EnvironmentKind::Development,
        };
        let kind_variable = named.map(|(variable, _)| variable);
        Self { kind, kind_variable, lookup: Arc::new(lookup) }
    }

    /// The kind of environment.
    pub fn kind(&self) -> EnvironmentKind {
        self.kind
    }

    /// Whether servers come from `ToolingManifest.json`.
    pub fn is_development(&self) -> bool {
        self.kind == EnvironmentKind::Development
    }

    /// The variable that decided the kind; absent when the default did.
    pub fn kind_variable(&self) -> Option<&'static str> {
        self.kind_variable
    }

    /// `MCP_BASE_URL`: the address below which servers are found by their unique names.
    pub fn mcp_base_url(&self) -> Option<String> {
        self.value("MCP_BASE_URL")
    }

    /// `MCP_PLATFORM_ENDPOINT`: the address of the platform with the tooling gateway.
    pub fn platform_endpoint(&self) -> Option<String> {
        self.value("MCP_PLATFORM_ENDPOINT")
    }

    /// `MCP_PLATFORM_AUTHENTICATION_SCOPE`: the OAuth scope of tokens for the platform.
    pub fn platform_scope(&self) -> String {
        let default = || "ea9ffc3e-8a23-4a7d-836d-234d7c7565c1/.default".to_owned();
        self.value("MCP_PLATFORM_AUTHENTICATION_SCOPE").unwrap_or_else(default)
    }

    /// `AGENT365_APPLICATION_NAME`: the agent's name for the gateway when no token names it.
    pub fn application_name(&self) -> Option<String> {
        self.value("AGENT365_APPLICATION_NAME")
    }

    /// `BEARER_TOKEN`: the token of all servers of the platform.
    pub fn shared_token(&self) -> Option<Secret> {
        self.value("BEARER_TOKEN").map(Secret::new)
    }

    /// `BEARER_TOKEN_<NAME>`: the token of one server, with the name of the variable. The server's name is in upper
    /// case; a variable in which `_` stands for every other character than letters and digits counts too, because a
    /// shell cannot set most others.
    pub fn server_token(&self, server_name: &str) -> Option<(String, Secret)> {
        let upper = server_name.to_uppercase();
        let plain: String =
            upper.chars().map(|it| if it.is_ascii_alphanumeric() { it } else { '_' }).collect();
        [upper, plain].into_iter().find_map(|name| {
            let variable = format!("BEARER_TOKEN_{name}");
            let token = self.value(&variable)?;
            Some((variable, Secret::new(token)))
        })
    }

    fn value(&self, variable: &str) -> Option<String> {
        (self.lookup)(variable).map(|value| value.trim().to_owned()).filter(|it| !it.is_empty())
    }
}

#[cfg(test)]
#[path = "environment_tests.rs"]
mod tests;
