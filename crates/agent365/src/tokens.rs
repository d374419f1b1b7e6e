//! Which token goes to which server. No token reaches a server that it is not for:
//!
//! - A server's own token (`BEARER_TOKEN_<NAME>`) goes to that server alone. Servers whose names give the same
//!   variable get none.
//! - A token of the platform (`BEARER_TOKEN`, or the one that the gateway was asked with) goes to servers without an
//!   audience of their own, and only to the origins that the operator configured as the platform's. An entry may name
//!   any `url`.
//! - A token for an audience is asked for once per audience and origin, and goes to these servers alone.

use std::collections::{BTreeMap, HashMap, HashSet};

use futures::future::BoxFuture;
use http::HeaderValue;
use switchboard_model::Secret;
use url::{Origin, Url};

use crate::entry::{EntryProblem, FoundServers};
use crate::environment::Environment;
use crate::error::ToolingError;
use crate::models::McpServerConfig;
use crate::urls::{get_mcp_base_url, platform_url};

/// The application of the platform itself. Servers with this audience take the platform's token.
pub const PLATFORM_APP_ID: &str = "ea9ffc3e-8a23-4a7d-836d-234d7c7565c1";

const AUTHORIZATION: &str = "Authorization";

/// Gets tokens for servers, such as by an on-behalf-of exchange.
pub trait TokenExchange: Send + Sync {
    /// A token with this scope for this server. `None` when there is none; the server is left out then.
    fn token_for<'a>(
        &'a self,
        server: &'a McpServerConfig,
        scope: &'a str,
    ) -> BoxFuture<'a, Option<Secret>>;
}

/// The token without one leading `Bearer `, in any case.
pub fn bare_token(token: &str) -> &str {
    let token = token.trim();
    let (scheme, rest) = token.split_once(char::is_whitespace).unwrap_or((token, ""));
    if scheme.eq_ignore_ascii_case("bearer") { rest.trim_start() } else { token }
}

/// Whether the server requires a token for an audience of its own (V2). The others take the platform's.
pub fn needs_audience_token(server: &McpServerConfig) -> bool {
    own_audience(server).is_some()
}

/// The OAuth scope of tokens for the server.
pub fn token_scope(server: &McpServerConfig, environment: &Environment) -> String {
    match (own_audience(server), &server.scope) {
        (Some(audience), Some(scope)) => format!("{audience}/{scope}"),
        (Some(audience), None) => format!("{audience}/.default"),
        (None, _) => environment.platform_scope(),
    }
}

/// Attaches the tokens of environment variables. A server without a token stays, without the header.
pub fn attach_environment_tokens(found: &mut FoundServers, environment: &Environment) {
    let own: Vec<_> = found
        .servers
        .iter()
        .map(|server| environment.server_token(&server.mcp_server_name))
        .collect();
    let mut users: BTreeMap<&str, usize> = BTreeMap::new();
    for (variable, _) in own.iter().flatten() {
        *users.entry(variable).or_default() += 1;
    }
    let is_ambiguous = |variable: &str| users.get(variable).is_some_and(|count| *count > 1);
    let shared = environment.shared_token();
    let origins = platform_origins(environment);
    let mut foreign = Vec::new();
    for (server, token) in found.servers.iter_mut().zip(&own) {
        let warning = match (token, &shared) {
            (Some((variable, _)), _) if is_ambiguous(variable) => Some(format!(
                "{variable} fits more than one MCP server and is sent to none of them"
            )),
            (Some((variable, token)), _) => attach(server, token, variable),
            (None, None) => None,
            (None, Some(_)) if needs_audience_token(server) => {
                Some(only_shared(server, environment))
            }
            (None, Some(_)) if !origins.contains(&server.url.origin()) => {
                foreign.push(server.mcp_server_name.clone());
                None
            }
            (None, Some(token)) => attach(server, token, "BEARER_TOKEN"),
        };
        found.warnings.extend(warning.filter(|it| !found.warnings.contains(it)));
    }
    found.warnings.extend(not_sent("BEARER_TOKEN", &foreign));
}

/// Attaches the token that the gateway was asked with. Servers with an audience of their own are left out and reported:
/// this token is not for them, and without one they would only refuse.
pub(crate) fn attach_platform_token(
    found: &mut FoundServers,
    environment: &Environment,
    token: &Secret,
) {
    leave_out(found, |server| {
        let servers = vec![server.mcp_server_name.clone()];
        needs_audience_token(server).then_some(ToolingError::AudienceTokensRequired { servers })
    });
    let origins = platform_origins(environment);
    let mut foreign = Vec::new();
    for server in &mut found.servers {
        if origins.contains(&server.url.origin()) {
            found.warnings.extend(attach(server, token, "auth_token"));
        } else {
            foreign.push(server.mcp_server_name.clone());
        }
    }
    found.warnings.extend(not_sent("the platform's token", &foreign));
}

/// The headers that [`attach_platform_token`] gives a server at this address.
pub(crate) fn platform_headers(
    server: &Url,
    environment: &Environment,
    token: &Secret,
) -> BTreeMap<String, Secret> {
    let is_platform = platform_origins(environment).contains(&server.origin());
    let value = is_platform.then(|| authorization(token)).flatten();
    value.map(|value| (AUTHORIZATION.to_owned(), value)).into_iter().collect()
}

/// Attaches tokens from an exchange: one for all servers of the platform, and one for each other audience. A server
/// whose exchange fails is left out and reported.
pub async fn attach_tokens(
    found: &mut FoundServers,
    environment: &Environment,
    exchange: &dyn TokenExchange,
) {
    let origins = platform_origins(environment);
    let mut tokens: HashMap<(String, Origin), Option<Secret>> = HashMap::new();
    let (mut failed, mut foreign) = (HashMap::new(), Vec::new());
    for server in &mut found.servers {
        if !needs_audience_token(server) && !origins.contains(&server.url.origin()) {
            foreign.push(server.mcp_server_name.clone());
            continue;
        }
        let scope = token_scope(server, environment);
        let key = (scope.clone(), server.url.origin());
        let token = match tokens.get(&key) {
            Some(known) => known.clone(),
            None => exchange.token_for(server, &scope).await,
        };
        tokens.insert(key, token.clone());
        if let Some(token) = token {
            found.warnings.extend(attach(server, &token, "the exchanged token"));
        } else {
            failed.insert(server.mcp_server_name.clone(), scope);
        }
    }
    found.warnings.extend(not_sent("the platform's token", &foreign));
    leave_out(found, |server| {
        let name = &server.mcp_server_name;
        let scope = failed.get(name)?;
        Some(ToolingError::TokenExchange { server: name.clone(), scope: scope.clone() })
    });
}

/// The audience of a V2 server, in lower case: ids differ in case between sources.
fn own_audience(server: &McpServerConfig) -> Option<String> {
    let audience = server.audience.as_deref()?.trim().to_lowercase();
    let is_platform = audience.strip_prefix("api://").unwrap_or(&audience) == PLATFORM_APP_ID;
    (!audience.is_empty() && audience != "default" && !is_platform).then_some(audience)
}

/// The origins that the operator named as the platform's.
fn platform_origins(environment: &Environment) -> HashSet<Origin> {
    let addresses = [get_mcp_base_url(environment), platform_url(environment)];
    addresses.into_iter().flatten().map(|url| url.origin()).collect()
}

/// The warning about a server with an audience of its own, for which there is only the shared token.
fn only_shared(server: &McpServerConfig, environment: &Environment) -> String {
    let name = &server.mcp_server_name;
    format!(
        "Dev: MCP server '{name}' requires scope '{}' but only BEARER_TOKEN is set. The shared token is scoped to a \
         different audience and is not sent. Set BEARER_TOKEN_{} to a token acquired for the correct audience.",
        token_scope(server, environment),
        name.to_uppercase()
    )
}

/// One warning for all servers that a token is not sent to, because there may be thousands.
fn not_sent(token: &str, foreign: &[String]) -> Option<String> {
    const NAMED: usize = 10;
    let names: Vec<_> = foreign.iter().take(NAMED).map(String::as_str).collect();
    let more = match foreign.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let names = names.join(", ");
    (!foreign.is_empty()).then(|| {
        format!("{token} is not sent to MCP servers [{names}]{more}: their addresses are not the platform's")
    })
}

/// Sets the header, or says why the token cannot be one.
fn attach(server: &mut McpServerConfig, token: &Secret, source: &str) -> Option<String> {
    let Some(value) = authorization(token) else {
        let name = &server.mcp_server_name;
        return Some(format!(
            "{source} is not sent to MCP server '{name}': it is empty, or holds a character that an HTTP header \
             cannot have"
        ));
    };
    server.headers.insert(AUTHORIZATION.to_owned(), value);
    None
}

/// The value of the header; `None` if the token cannot be one.
fn authorization(token: &Secret) -> Option<Secret> {
    let token = bare_token(token.expose());
    let value = format!("Bearer {token}");
    let is_usable = !token.is_empty() && HeaderValue::from_str(&value).is_ok();
    is_usable.then(|| Secret::new(value))
}

/// Turns the servers with an error into problems at their places in the list.
fn leave_out(
    found: &mut FoundServers,
    error_of: impl Fn(&McpServerConfig) -> Option<ToolingError>,
) {
    let unusable: HashSet<usize> = found.problems.iter().map(|problem| problem.index).collect();
    let mut places = (0..).filter(|index| !unusable.contains(index));
    let servers = std::mem::take(&mut found.servers);
    for server in servers {
        let index = places.next().unwrap_or_default();
        match error_of(&server) {
            None => found.servers.push(server),
            Some(error) => found.problems.push(EntryProblem {
                index,
                name: Some(server.mcp_server_name),
                message: error.to_string(),
            }),
        }
    }
    found.problems.sort_by_key(|problem| problem.index);
}

#[cfg(test)]
#[path = "tokens_tests.rs"]
mod tests;
