//! Error responses as `application/problem+json` (RFC 9457).

use std::error::Error;
use std::sync::Arc;

use axum::extract::rejection::{JsonRejection, PathRejection, QueryRejection};
use axum::http::{HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use serde_path_to_error::Segment;
use switchboard_api::{FieldError, Problem, SignInPageView};
use switchboard_model::{ArgumentFault, CallError, CallErrorKind, CallId};
use switchboard_store::{StoreError, StoreFailure};

/// The problem of a response, for answers in other words.
#[derive(Debug, Clone)]
pub(crate) struct SentProblem(pub(crate) Arc<Problem>);

/// An error response.
#[derive(Debug)]
pub(crate) struct ProblemResponse(pub(crate) Box<Problem>);

impl IntoResponse for ProblemResponse {
    fn into_response(self) -> Response {
        let status =
            StatusCode::from_u16(self.0.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let body = serde_json::to_string(&self.0).unwrap_or_default();
        let kind = HeaderValue::from_static("application/problem+json");
        let mut response = (status, [(header::CONTENT_TYPE, kind)], body).into_response();
        response.extensions_mut().insert(SentProblem(Arc::from(self.0.clone())));
        if let Some(seconds) = self.0.retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

impl ProblemResponse {
    pub(crate) fn new(kind: &str, status: StatusCode, detail: impl Into<String>) -> Self {
        Self(Box::new(Problem::new(kind, status.as_u16(), detail)))
    }

    /// The error response of a failed call.
    pub(crate) fn of_call(error: &CallError, call: Option<&CallId>) -> Self {
        let mut problem =
            Problem::new(error.kind.as_str(), status_of(error.kind).as_u16(), &*error.message);
        problem.hint = error.hint();
        let field = |fault: &ArgumentFault| FieldError {
            path: fault.path.clone(),
            message: fault.message.clone(),
        };
        problem.errors = error.faults.iter().map(field).collect();
        problem.call = call.map(ToString::to_string);
        problem.sign_in = error.sign_in.as_deref().map(|page| SignInPageView {
            server: page.server.to_string(),
            url: page.url.clone(),
            code: page.code.clone(),
            expires_at_ms: page.expires_at_ms,
        });
        problem.retry_after = error.retry_after.map(|wait| wait.as_secs());
        Self(Box::new(problem))
    }
}

/// The error response to an invalid query.
pub(crate) fn bad_query(detail: String) -> ProblemResponse {
    ProblemResponse::new("bad_request", StatusCode::BAD_REQUEST, detail)
}

fn status_of(kind: CallErrorKind) -> StatusCode {
    match kind {
        CallErrorKind::UnknownTool => StatusCode::NOT_FOUND,
        CallErrorKind::InvalidArguments => StatusCode::UNPROCESSABLE_ENTITY,
        // A client that cancelled its call gets no response: `Cancelled` is only sent when the board shuts down.
        CallErrorKind::QueueTimeout | CallErrorKind::Unavailable | CallErrorKind::Cancelled => {
            StatusCode::SERVICE_UNAVAILABLE
        }
        CallErrorKind::Timeout | CallErrorKind::InactivityTimeout => StatusCode::GATEWAY_TIMEOUT,
        CallErrorKind::Upstream => StatusCode::BAD_GATEWAY,
        // Not 401: the credentials for this board are fine, and a client must not sign in here again.
        CallErrorKind::Blocked | CallErrorKind::NeedsSignIn => StatusCode::FORBIDDEN,
        CallErrorKind::RateLimited => StatusCode::TOO_MANY_REQUESTS,
        CallErrorKind::Internal => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

impl From<StoreError> for ProblemResponse {
    fn from(error: StoreError) -> Self {
        StoreFailure::from(error).into()
    }
}

impl From<StoreFailure> for ProblemResponse {
    fn from(failure: StoreFailure) -> Self {
        if failure.is_outage {
            // The store logs each of its outages once.
            tracing::debug!(error = failure.in_full, "the store failed");
            let status = StatusCode::SERVICE_UNAVAILABLE;
            return Self::new("store_unavailable", status, failure.to_string());
        }
        tracing::error!(error = failure.in_full, "the store failed");
        // The message contains a path of this machine: it is logged, but not sent.
        Self::new("store", StatusCode::INTERNAL_SERVER_ERROR, "the store failed; the log says why")
    }
}

impl From<JsonRejection> for ProblemResponse {
    fn from(rejection: JsonRejection) -> Self {
        let mut problem = Self::new("bad_request", rejection.status(), rejection.body_text());
        problem.0.errors = field_error(&rejection).into_iter().collect();
        problem
    }
}

/// The value of the body that does not fit, if the body is JSON.
fn field_error(rejection: &JsonRejection) -> Option<FieldError> {
    let mut cause: Option<&(dyn Error + 'static)> = Some(rejection);
    while let Some(error) = cause {
        if let Some(found) = error.downcast_ref::<serde_path_to_error::Error<serde_json::Error>>() {
            let pointer = found.path().iter().filter_map(|segment| match segment {
                Segment::Seq { index } => Some(format!("/{index}")),
                Segment::Map { key } | Segment::Enum { variant: key } => {
                    Some(format!("/{}", key.replace('~', "~0").replace('/', "~1")))
                }
                Segment::Unknown => None,
            });
            let path = pointer.collect();
            return Some(FieldError { path, message: found.inner().to_string() });
        }
        cause = error.source();
    }
    None
}

impl From<QueryRejection> for ProblemResponse {
    fn from(rejection: QueryRejection) -> Self {
        Self::new("bad_request", rejection.status(), rejection.body_text())
    }
}

impl From<PathRejection> for ProblemResponse {
    fn from(rejection: PathRejection) -> Self {
        Self::new("bad_request", rejection.status(), rejection.body_text())
    }
}

pub(crate) fn not_found(uri: &Uri) -> ProblemResponse {
    let detail = format!("there is nothing at {}", uri.path());
    ProblemResponse::new("not_found", StatusCode::NOT_FOUND, detail)
}

pub(crate) async fn method_not_allowed(uri: Uri) -> ProblemResponse {
    let detail = format!("{} does not have this method", uri.path());
    ProblemResponse::new("method_not_allowed", StatusCode::METHOD_NOT_ALLOWED, detail)
}
