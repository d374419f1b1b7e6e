//! Authorization: checks the credentials of a request, then the role that its path requires.

use axum::Json;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::Value;
use switchboard_auth::{Gatekeeper, Principal, Refusal, Role};
use switchboard_inject::AppRoute;

use crate::app_credentials;
use crate::content_checks::CHAT_MESSAGE_PATH;
use crate::origin_check::names_this_machine;
use crate::problem::ProblemResponse;
use crate::server_state::Shared;
use crate::trustgraph_socket;
use crate::workbench;

const METADATA_PATH: &str = "/.well-known/oauth-protected-resource";

/// The result of the authorization of a request.
pub(crate) enum AuthDecision {
    /// The path needs no credentials.
    Public,
    Principal(Principal),
}

/// Admits a request whose credentials allow its path; the error is the response that refuses it.
pub(crate) async fn admit<B>(
    shared: &Shared,
    is_peer_local: bool,
    request: &Request<B>,
) -> Result<AuthDecision, Response> {
    if request.uri().path() == CHAT_MESSAGE_PATH && may_report(shared, is_peer_local, request) {
        return Ok(AuthDecision::Public);
    }
    let (method, path) = (request.method(), request.uri().path());
    if workbench::is_page(method, path, request.headers()) {
        return Ok(AuthDecision::Public);
    }
    let Some(needed) = needed_role(method, path) else {
        return Ok(AuthDecision::Public);
    };
    let principal = if AppRoute::of(path).is_some() {
        let headers = app_credentials::of_board(request.headers(), request.uri().query());
        authenticate(shared, &headers).await?
    } else {
        authenticate(shared, request.headers()).await?
    };
    if principal.effective_role() < needed {
        let detail = format!(
            "this needs the role {}, and the credentials have {}",
            needed.as_str(),
            principal.effective_role().as_str()
        );
        let mut response =
            ProblemResponse::new("forbidden", StatusCode::FORBIDDEN, detail).into_response();
        if let Some(needed) = shared.gatekeeper.scopes_of(needed) {
            challenge(shared, &Refusal::InsufficientScope { needed }, &mut response);
        }
        return Err(response);
    }
    Ok(AuthDecision::Principal(principal))
}

/// Headers that a proxy on this machine adds to requests from elsewhere.
const PROXY_HEADERS: [&str; 4] = ["forwarded", "via", "x-forwarded-for", "x-real-ip"];

/// Whether a chat message needs no credentials. The Microsoft Agent 365 SDK sends none; they are checked where there are
/// some. Without them the agent must be on this machine, unless the configuration says otherwise.
fn may_report<B>(shared: &Shared, is_peer_local: bool, request: &Request<B>) -> bool {
    let headers = request.headers();
    if shared.gatekeeper.is_open()
        || Gatekeeper::HEADERS.iter().any(|header| headers.contains_key(header))
    {
        return false;
    }
    let is_configured = || {
        let board = shared.board.board();
        board.is_some_and(|board| board.plan().threat_protection.accept_without_key)
    };
    let is_local = is_peer_local
        && names_this_machine(headers, request.uri().authority())
        && !PROXY_HEADERS.iter().any(|header| headers.contains_key(*header));
    is_local || is_configured()
}

/// The role that a path requires; `None` for public paths.
fn needed_role(method: &Method, path: &str) -> Option<Role> {
    let is_public = path.starts_with("/.well-known/")
        // These pages check the person themselves.
        || path.starts_with(crate::connect_browser::PAGES)
        || path == crate::connect_browser::CALLBACK
        || matches!(path, "/healthz" | "/readyz" | "/api/v1/openapi.json" | "/api/v1/docs")
        // Its first frame carries the credentials.
        || path == trustgraph_socket::PATH;
    if is_public {
        return None;
    }
    // Results are not listed here: they are read by a handle that only the caller of the tool has.
    let is_about_others = path == "/metrics"
        // Other records are those of the caller itself, unless it is an operator.
        || path == "/api/v1/calls/export"
        || path.starts_with("/api/v1/content-checks");
    let parts: Vec<_> = path.trim_end_matches('/').split('/').skip(1).collect();
    let is_about_configuration = matches!(
        *parts,
        ["api", "v1", "config" | "sources" | "server-tests", ..]
            | ["api", "v1", "tools", _, "declaration", ..]
            | ["api", "v1", "servers", _, ..]
    );
    let is_model_list =
        *method == Method::GET && matches!(*parts, ["api", "v1", "providers", _, "models"]);
    let is_for_admins =
        matches!(*parts, ["api", "v1", "keys", ..] | ["api", "v1", "providers", _, ..]);
    if is_for_admins && !is_model_list {
        return Some(Role::Admin);
    }
    let changes = matches!(*method, Method::PUT | Method::PATCH | Method::DELETE);
    // Everybody reads them.
    let is_toolset = matches!(*parts, ["api", "v1", "toolsets", _]);
    Some(match (is_about_configuration || (is_toolset && changes), changes) {
        (true, true) => Role::Admin,
        (true, false) => Role::Operator,
        (false, _) if is_about_others => Role::Operator,
        (false, _) => Role::Client,
    })
}

/// The principal of the credentials, or the response that refuses them.
pub(crate) async fn authenticate(
    shared: &Shared,
    headers: &HeaderMap,
) -> Result<Principal, Response> {
    if shared.gatekeeper.is_open() {
        return Ok(shared.local.clone());
    }
    shared.grants.apply(&shared.board, &shared.gatekeeper);
    // Boxed: the future is large, and not needed when no credentials are required.
    let admitted = Box::pin(shared.gatekeeper.admit(headers)).await;
    if let (Ok(principal), Some(board)) = (&admitted, shared.board.board()) {
        board.note_subject_token(&principal.identity, || Gatekeeper::token_of(headers));
    }
    admitted.map_err(|refusal| refused(shared, &refusal))
}

fn refused(shared: &Shared, refusal: &Refusal) -> Response {
    let status = StatusCode::from_u16(refusal.status()).unwrap_or(StatusCode::UNAUTHORIZED);
    let mut response =
        ProblemResponse::new("unauthorized", status, refusal.message()).into_response();
    challenge(shared, refusal, &mut response);
    response
}

/// Adds `WWW-Authenticate`, which says which token is needed.
fn challenge(shared: &Shared, refusal: &Refusal, response: &mut Response) {
    let challenge = refusal
        .www_authenticate(metadata_url(shared).as_deref(), shared.gatekeeper.required_scopes());
    if let Ok(challenge) = HeaderValue::try_from(challenge) {
        response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
    }
}

/// The URL of the protected resource metadata (RFC 9728): the well-known path, followed by the path of the resource.
fn metadata_url(shared: &Shared) -> Option<String> {
    let document = shared.gatekeeper.resource_metadata()?;
    let resource = document.get("resource")?.as_str()?;
    let at = resource.find("://")? + 3;
    let (scheme, rest) = resource.split_at_checked(at)?;
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let path = if path.is_empty() { String::new() } else { format!("/{path}") };
    Some(format!("{scheme}{authority}{METADATA_PATH}{path}"))
}

/// The protected resource metadata (RFC 9728), which tells clients where to get a token.
pub(crate) async fn resource_metadata(
    State(shared): State<Shared>,
) -> Result<Json<Value>, ProblemResponse> {
    shared.gatekeeper.resource_metadata().map(Json).ok_or_else(|| {
        let detail = "no tokens are accepted here: `security.jwt` is not configured";
        ProblemResponse::new("not_found", StatusCode::NOT_FOUND, detail)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_path_needs_its_role() {
        let rows = [
            (Method::GET, "/healthz", None),
            (Method::GET, "/api/v1/tools", Some(Role::Client)),
            (Method::POST, "/api/v1/tools/a.b/call", Some(Role::Client)),
            (Method::POST, "/api/v1/tools/a.b/check", Some(Role::Client)),
            (Method::GET, "/api/v1/tools/a.b/declaration", Some(Role::Operator)),
            (Method::POST, "/api/v1/tools/a.b/declaration/preview", Some(Role::Operator)),
            (Method::PUT, "/api/v1/tools/a.b/declaration", Some(Role::Admin)),
            (Method::PUT, "/api/v1/tools/a.b/declaration/", Some(Role::Admin)),
            (Method::DELETE, "/api/v1/tools/a.b/declaration", Some(Role::Admin)),
            (Method::GET, "/api/v1/servers", Some(Role::Client)),
            (Method::GET, "/api/v1/servers/a", Some(Role::Operator)),
            (Method::PUT, "/api/v1/servers/a", Some(Role::Admin)),
            (Method::DELETE, "/api/v1/servers/a", Some(Role::Admin)),
            (Method::POST, "/api/v1/servers/a/reconnect", Some(Role::Operator)),
            (Method::GET, "/api/v1/toolsets", Some(Role::Client)),
            (Method::GET, "/api/v1/toolsets/a", Some(Role::Client)),
            (Method::PUT, "/api/v1/toolsets/a", Some(Role::Admin)),
            (Method::DELETE, "/api/v1/toolsets/a/", Some(Role::Admin)),
            (Method::PUT, "/api/v1/sessions/s/toolsets/a", Some(Role::Client)),
            (Method::GET, "/api/v1/config", Some(Role::Operator)),
            (Method::GET, "/api/v1/config/schema", Some(Role::Operator)),
            (Method::POST, "/api/v1/config/reload", Some(Role::Operator)),
            (Method::POST, "/api/v1/server-tests", Some(Role::Operator)),
            (Method::POST, "/api/v1/servers/a/refresh", Some(Role::Operator)),
            (Method::GET, "/api/v1/servers/a/log", Some(Role::Operator)),
            (Method::GET, "/api/v1/sources", Some(Role::Operator)),
            (Method::GET, "/api/v1/providers", Some(Role::Client)),
            (Method::GET, "/api/v1/providers/a/models", Some(Role::Client)),
            (Method::POST, "/api/v1/providers/a/models", Some(Role::Admin)),
            (Method::POST, "/api/v1/providers/a/sign-ins", Some(Role::Admin)),
            (Method::DELETE, "/api/v1/providers/a/account", Some(Role::Admin)),
            (Method::DELETE, "/api/v1/sessions/a", Some(Role::Client)),
            (Method::GET, "/api/v1/calls", Some(Role::Client)),
            (Method::GET, "/api/v1/calls/export", Some(Role::Operator)),
            (Method::GET, "/api/v1/content-checks", Some(Role::Operator)),
            (Method::POST, CHAT_MESSAGE_PATH, Some(Role::Client)),
        ];
        for (method, path, role) in rows {
            assert_eq!(needed_role(&method, path), role, "{method} {path}");
        }
    }
}
