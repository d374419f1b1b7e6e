//! What an HTTP request narrows itself to: by its path, its query and its headers.

use http::StatusCode;
use switchboard_view::Scope;

use crate::http_answer::Refused;
use crate::http_face::{HttpRequest, Route};

pub(crate) fn read_scope(request: &HttpRequest) -> Result<Scope, Refused> {
    let bad = |message: String| Refused(StatusCode::BAD_REQUEST, message);
    let mut scope = Scope::default();
    match &request.route {
        Route::All | Route::Session(_) => {}
        Route::Server(server) => scope.server = Some(server.clone()),
        Route::Toolsets(sets) => scope.toolsets.push(names(sets)),
    }
    let query = request.query.as_deref().unwrap_or_default();
    for (key, value) in url::form_urlencoded::parse(query.as_bytes()) {
        match key.to_ascii_lowercase().as_str() {
            "toolsets" | "tool_sets" => scope.toolsets.push(names(&value)),
            "tools" => scope.tools = Some(names(&value)),
            "readonly" | "read_only" => scope.read_only |= flag(&value).map_err(bad)?,
            "dynamic" | "dynamic_tool_discovery" => scope.dynamic = flag(&value).map_err(bad)?,
            _ => {}
        }
    }
    let header =
        |name: &str| request.headers.get(name).map(|value| value.to_str().unwrap_or("\u{0}"));
    if let Some(sets) = header("x-mcp-toolsets") {
        scope.toolsets.push(names(sets));
    }
    if let Some(tools) = header("x-mcp-tools") {
        let tools = names(tools);
        // Two lists of tools narrow each other.
        scope.tools = Some(match scope.tools {
            Some(other) => other.into_iter().filter(|tool| tools.contains(tool)).collect(),
            None => tools,
        });
    }
    if let Some(value) = header("x-mcp-readonly") {
        scope.read_only |= flag(value).map_err(bad)?;
    }
    // An empty list names nothing, which is no wish at all.
    scope.toolsets.retain(|sets| !sets.is_empty());
    Ok(scope)
}

pub(crate) fn names(list: &str) -> Vec<String> {
    list.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

pub(crate) fn flag(text: &str) -> Result<bool, String> {
    match text.trim().to_ascii_lowercase().as_str() {
        "true" | "1" | "yes" | "on" | "" => Ok(true),
        "false" | "0" | "no" | "off" => Ok(false),
        other => Err(format!("'{other}' is neither true nor false")),
    }
}
