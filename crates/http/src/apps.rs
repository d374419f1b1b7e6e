//! Requests of apps that speak the API of a model provider: `/openai/v1`, `/anthropic/v1`, `/gemini/v1beta`, each also below
//! `/s/{session}`. Errors are in the words of that API, also those of the checks before the handler.

use std::convert::Infallible;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::{Extension, FromRequest, Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures::StreamExt;
use percent_encoding::percent_decode_str;
use switchboard_api::Problem;
use switchboard_auth::Principal;
use switchboard_inject::{AnswerBody, ApiFamily, AppCall, AppRoute, Failure};
use switchboard_model::{Caller, ClientInfo, Face};
use switchboard_sessions::Session;
use switchboard_splice::{Refusal, RefusalKind};

use crate::app_credentials;
use crate::board_place::StartedParts;
use crate::problem::ProblemResponse;
use crate::ready::ReadyParts;
use crate::server_state::Shared;
use crate::sessions::owner;

/// The paths of apps, for the router.
pub(crate) const ROUTES: [&str; 10] = [
    "/openai/v1/{*rest}",
    "/anthropic/v1/{*rest}",
    "/gemini/v1beta/{*rest}",
    "/gemini/v1/{*rest}",
    "/gemini/v1alpha/{*rest}",
    "/s/{session}/openai/v1/{*rest}",
    "/s/{session}/anthropic/v1/{*rest}",
    "/s/{session}/gemini/v1beta/{*rest}",
    "/s/{session}/gemini/v1/{*rest}",
    "/s/{session}/gemini/v1alpha/{*rest}",
];

/// Answers a request of an app.
pub(crate) async fn answer(
    State(shared): State<Shared>,
    ReadyParts(parts): ReadyParts,
    Extension(principal): Extension<Principal>,
    request: Request,
) -> Response {
    let Some(route) = AppRoute::of(request.uri().path()) else {
        let detail = "this path is no address of an API for apps";
        return ProblemResponse::new("not_found", StatusCode::NOT_FOUND, detail).into_response();
    };
    let family = route.family;
    match answered(&shared, &parts, principal, route, request).await {
        Ok(response) => response,
        Err(Refused::Problem(problem)) => problem.into_response(),
        Err(Refused::Failure(failure)) => failed(family, &failure),
    }
}

/// Why a request has no answer.
enum Refused {
    Problem(ProblemResponse),
    Failure(Failure),
}

impl<E: Into<ProblemResponse>> From<E> for Refused {
    fn from(error: E) -> Self {
        Self::Problem(error.into())
    }
}

async fn answered(
    shared: &Shared,
    parts: &StartedParts,
    principal: Principal,
    route: AppRoute,
    request: Request,
) -> Result<Response, Refused> {
    let operation =
        route.operation(request.method()).map_err(|refusal| Refused::Failure(refusal.into()))?;
    let session = session_of(parts, &principal, &route).await?;
    let (head, body) = request.into_parts();
    let (headers, query) = (head.headers, head.uri.query().map(str::to_owned));
    let body = Bytes::from_request(Request::new(body), &()).await.map_err(|rejected| {
        ProblemResponse::new("bad_request", rejected.status(), rejected.body_text())
    })?;
    let is_open = shared.gatekeeper.is_open();
    let call = AppCall {
        family: route.family,
        version: route.version,
        operation,
        session,
        caller: Caller { client: client_of(&headers), ..principal.caller(Face::Http) },
        app_credential: app_credentials::of_provider(&headers, query.as_deref(), is_open),
        query: query.as_deref().and_then(app_credentials::without_key),
        headers,
        body,
    };
    let answer = parts.injection.answer(call).await.map_err(Refused::Failure)?;
    let body = match answer.body {
        AnswerBody::Whole(body) => Body::from(body),
        AnswerBody::Stream(pieces) => Body::from_stream(pieces.map(Ok::<_, Infallible>)),
    };
    let mut response = body.into_response();
    *response.headers_mut() = answer.headers;
    let no_cache = HeaderValue::from_static("no-cache");
    response.headers_mut().insert(header::CACHE_CONTROL, no_cache);
    Ok(response)
}

/// The session that the path names, else the one of the credential.
async fn session_of(
    parts: &StartedParts,
    principal: &Principal,
    route: &AppRoute,
) -> Result<Arc<Session>, ProblemResponse> {
    parts.sessions.note_access(&principal.id, &principal.access);
    match &route.session {
        Some(id) => {
            let id = percent_decode_str(id).decode_utf8_lossy();
            Ok(parts.sessions.session(&id, owner(principal)).await?)
        }
        None => Ok(parts.sessions.sessions().for_principal(&principal.id).await?),
    }
}

/// The program behind a request, as it names itself, such as `OpenAI/Python 3.49.0`.
fn client_of(headers: &HeaderMap) -> ClientInfo {
    let agent = headers.get(header::USER_AGENT).and_then(|agent| agent.to_str().ok());
    let short: Option<String> = agent.map(|agent| agent.chars().take(128).collect());
    ClientInfo { name: short.filter(|name| !name.is_empty()).map(Arc::from), version: None }
}

fn failed(family: ApiFamily, failure: &Failure) -> Response {
    let mut response = refused(family, &failure.refusal);
    for (name, value) in failure.headers.iter() {
        // The body is not always the provider's.
        if name != header::CONTENT_TYPE {
            response.headers_mut().insert(name.clone(), value.clone());
        }
    }
    response
}

fn refused(family: ApiFamily, refusal: &Refusal) -> Response {
    let status = StatusCode::from_u16(refusal.status()).unwrap_or(StatusCode::BAD_GATEWAY);
    let json = HeaderValue::from_static("application/json");
    (status, [(header::CONTENT_TYPE, json)], refusal.to_body(family.api())).into_response()
}

/// A problem in the words of the API of an app, with the headers of its response.
pub(crate) fn in_words_of(family: ApiFamily, problem: &Problem, headers: &HeaderMap) -> Response {
    let kind = match problem.status {
        401 => RefusalKind::Unauthorized,
        403 => RefusalKind::Forbidden,
        404 => RefusalKind::NotFound,
        413 => RefusalKind::TooLarge,
        429 => RefusalKind::RateLimited,
        503 => RefusalKind::Overloaded,
        400..=499 => RefusalKind::Invalid,
        _ => RefusalKind::Internal,
    };
    let hint = problem.hint.as_ref().map(|hint| format!("; {hint}")).unwrap_or_default();
    let message = format!("{}{hint}", problem.detail);
    let refusal = Refusal { status: Some(problem.status), ..Refusal::new(kind, message) };
    let mut answer = refused(family, &refusal);
    // The problem may have been compressed. What describes its body does not describe this one.
    let of_body = [header::CONTENT_TYPE, header::CONTENT_LENGTH, header::CONTENT_ENCODING];
    for (name, value) in headers {
        if !of_body.contains(name) {
            answer.headers_mut().insert(name.clone(), value.clone());
        }
    }
    answer
}
