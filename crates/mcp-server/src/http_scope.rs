//! What an HTTP request narrows itself to: by its path, its query and its headers.

use std::collections::BTreeSet;

use http::StatusCode;
use switchboard_runtime::Snapshot;
use switchboard_view::{Scope, ScopeFault};

use crate::connection_config;
use crate::http_answer::Refused;
use crate::http_endpoint::{HttpRequest, Route};

/// All that a request says counts, however often and wherever it says it: nothing takes back what something else
/// narrowed. A proxy that adds a header to those of its client can rely on that.
pub(crate) fn read_scope(request: &HttpRequest) -> Result<Scope, Refused> {
    let mut scope = Scope::default();
    match &request.route {
        Route::All | Route::Session(_) => {}
        Route::Server(server) => scope.server = Some(server.clone()),
        Route::Toolsets(sets) => {
            let sets = names(sets);
            if sets.is_empty() {
                let message = "the path names no toolset; `/mcp` shows what the configuration does";
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
        // Who passes a request on may write several headers of one name as one, with commas.
        for value in value?.split(',') {
            scope.read_only |= flag("X-MCP-Readonly", value)?;
        }
    }
    // An empty list names nothing, which is no wish at all.
    scope.toolsets.retain(|sets| !sets.is_empty());
    // Who says the same in other words sees the same, and shares it.
    for lists in [&mut scope.toolsets, &mut scope.tools] {
        lists.sort_unstable();
        lists.dedup();
    }
    Ok(scope)
}

/// Whether there is what a request names, and whether it may begin with it.
pub(crate) fn check_scope(
    snapshot: &Snapshot,
    request: &HttpRequest,
    scope: &Scope,
) -> Result<(), Refused> {
    let checked = snapshot.check_scope(scope).and_then(|()| match &request.route {
        // A session has its own sets: what is named only narrows what can be switched.
        Route::Session(_) => Ok(()),
        Route::All | Route::Server(_) | Route::Toolsets(_) => {
            scope.check_first_sets(snapshot.index(), snapshot.exposure())
        }
    });
    let Err(fault) = checked else { return Ok(()) };
    let is_missing = match &fault {
        ScopeFault::UnknownServer(_) => true,
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

pub(crate) fn bad(message: String) -> Refused {
    Refused(StatusCode::BAD_REQUEST, message)
}

/// The names in a list, each once.
pub(crate) fn names(list: &str) -> Vec<String> {
    let names = list.split(',').map(str::trim).filter(|name| !name.is_empty());
    let names: BTreeSet<&str> = names.collect();
    names.into_iter().map(str::to_owned).collect()
}

/// All headers of one name.
fn header<'a>(
    request: &'a HttpRequest,
    name: &'static str,
) -> impl Iterator<Item = Result<&'a str, Refused>> {
    request.headers.get_all(name).iter().map(move |value| {
        value
            .to_str()
            .map_err(|_| bad(format!("the header {name} has other characters than ASCII")))
    })
}

pub(crate) fn flag(name: &str, text: &str) -> Result<bool, Refused> {
    match text.trim().to_ascii_lowercase().as_str() {
        "true" | "1" | "yes" | "on" | "" => Ok(true),
        "false" | "0" | "no" | "off" => Ok(false),
        other => Err(bad(format!(
            "{name}: '{other}' is neither `true`, `1`, `yes`, `on` nor `false`, `0`, `no`, `off`"
        ))),
    }
}
