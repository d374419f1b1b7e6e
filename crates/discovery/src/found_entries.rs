//! The entries of a manifest or a gateway as found servers.

use switchboard_agent365::{EntryProblem, FoundServers, McpServerConfig};
use switchboard_model::{FoundServer, HttpTransport};

use crate::source::{FetchedServers, SourceError, UnusableEntry};

/// Maximum length of a server's name.
const LONGEST_NAME: usize = 256;

/// Converts the entries. An answer without a list is an error here, so that the last known servers stay.
pub(crate) fn fetched(found: FoundServers) -> Result<FetchedServers, SourceError> {
    if !found.is_list {
        return Err(SourceError::Shape(found.warnings.join("; ")));
    }
    let mut fetched = FetchedServers { warnings: found.warnings, ..FetchedServers::default() };
    for server in found.servers {
        match usable(&server) {
            Ok(()) => fetched.servers.push(found_server(server)),
            Err(reason) => {
                let name = server.mcp_server_name.chars().take(LONGEST_NAME).collect();
                fetched.unusable.push(UnusableEntry { name, reason });
            }
        }
    }
    fetched.unusable.extend(found.problems.into_iter().map(problem));
    Ok(fetched)
}

fn usable(server: &McpServerConfig) -> Result<(), String> {
    if server.mcp_server_name.len() > LONGEST_NAME {
        return Err(format!("its name is longer than {LONGEST_NAME} bytes"));
    }
    if server.connectivity.is_pending() {
        let page = server.connectivity.missing_connections_url.as_deref();
        let page = page.map(|page| format!(": set them up at {page}")).unwrap_or_default();
        return Err(format!("its connections are not set up (connectivityStatus=Pending){page}"));
    }
    Ok(())
}

fn found_server(server: McpServerConfig) -> FoundServer {
    FoundServer {
        name: server.mcp_server_name,
        url: server.url,
        transport: HttpTransport::StreamableHttp,
        headers: server.headers,
    }
}

fn problem(problem: EntryProblem) -> UnusableEntry {
    let name = problem.name.filter(|name| !name.trim().is_empty());
    let name = name.unwrap_or_else(|| format!("entry {}", problem.index));
    UnusableEntry { name, reason: problem.message }
}
