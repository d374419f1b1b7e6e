//! Reads the scope of an HTTP request from its path, query and headers.

use http::StatusCode;
use switchboard_runtime::Snapshot;
use switchboard_view::{Scope, ScopeFault};

use crate::connection_config;
use crate::http_answer::Refused;
use crate::http_request::{HttpRequest, Route};
use crate::scope_values::{bad, flag, names};

/// Combines everything that the path, the query and the headers say. Each part only narrows: no repetition widens what
/// another part has narrowed. A proxy that adds a header to its client's headers can rely on that.
pub(crate) fn read_scope(request: &HttpRequest) -> Result<Scope, Refused> {
    let mut scope = Scope::default();
    match &request.route {
        Route::All | Route::Session(_) => {}
        Route::Server(server) | Route::Agent { server, .. } => scope.server = Some(server.clone()),
        Route::Toolsets(sets) => {
            let sets = names(sets);
            if sets.is_empty() {
                let message = "the path names no toolset; use `/mcp` for the configured toolsets";
                return Err(Refused(StatusCode::NOT_FOUND, message.into()));
            }
            scope.toolsets.push(sets);
        }
    }
    let query = request.query.as_deref().unwrap_or_default();
    for (key, value) in url::form_urlencoded::parse(query.as_bytes()) {
        match key.to_ascii_lowercase().as_str() {
            "toolsets" | "tool_sets" | "fmp_tool_sets" => scope.toolsets.push(names(&value)),
            "tools" => scope.tools.push(names(&value)),
            "readonly" | "read_only" => scope.read_only |= flag(&key, &value)?,
            "dynamic" | "dynamic_tool_discovery" => scope.dynamic |= flag(&key, &value)?,
            "config" => connection_config::narrow(&mut scope, &value)?,
            _ => {}
        }
    }
    for value in header(request, "X-MCP-Toolsets") {
        scope.toolsets.push(names(value?));
    }
    for value in header(request, "X-MCP-Tools") {
        scope.tools.push(names(value?));
    }
    for value in header(request, "X-MCP-Readonly") {
        // A proxy may join several headers of one name with commas.
        for value in value?.split(',') {
            scope.read_only |= flag("X-MCP-Readonly", value)?;
        }
    }
    // An empty list is ignored.
    scope.toolsets.retain(|sets| !sets.is_empty());
    // Sorted, so that equal scopes in different spellings share one cached view.
    for lists in [&mut scope.toolsets, &mut scope.tools] {
        lists.sort_unstable();
        lists.dedup();
    }
    Ok(scope)
}

/// Checks that the scope names existing things, and that a client may start with them.
pub(crate) fn check_scope(
    snapshot: &Snapshot,
    request: &HttpRequest,
    scope: &Scope,
) -> Result<(), Refused> {
    let checked = snapshot.check_scope(scope).and_then(|()| match &request.route {
        // A session has toolsets of its own: the scope only narrows which can be enabled.
        Route::Session(_) => Ok(()),
        Route::All | Route::Server(_) | Route::Toolsets(_) | Route::Agent { .. } => {
            scope.check_first_sets(snapshot.index(), snapshot.exposure())
        }
    });
    let Err(fault) = checked else { return Ok(()) };
    let is_missing = match &fault {
        ScopeFault::UnknownAgent(_) | ScopeFault::UnknownServer(_) => true,
        ScopeFault::UnknownToolset { name, .. } => {
            matches!(&request.route, Route::Toolsets(sets) if names(sets).contains(name))
        }
        ScopeFault::TooManyToolsets { .. } => false,
    };
    if is_missing {
        return Err(Refused(StatusCode::NOT_FOUND, fault.to_string()));
    }
    Err(bad(fault.to_string()))
}

/// The values of all headers of one name.
fn header<'a>(
    request: &'a HttpRequest,
    name: &'static str,
) -> impl Iterator<Item = Result<&'a str, Refused>> {
    request.headers.get_all(name).iter().map(move |value| {
        value
            .to_str()
            .map_err(|_| bad(format!("the header {name} contains characters other than ASCII")))
    })
}
