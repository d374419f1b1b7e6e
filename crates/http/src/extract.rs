//! What handlers take out of a request. A request that cannot be read is answered with a problem, never with
//! the plain text of axum.

use axum::extract::{FromRequest, FromRequestParts};

use crate::problem::ProblemResponse;

/// The JSON of a body.
#[derive(Debug, FromRequest)]
#[from_request(via(axum::Json), rejection(ProblemResponse))]
pub(crate) struct FromBody<T>(pub(crate) T);

/// What stands in place of `{...}` in the path.
#[derive(Debug, FromRequestParts)]
#[from_request(via(axum::extract::Path), rejection(ProblemResponse))]
pub(crate) struct FromPath<T>(pub(crate) T);

/// What stands behind the `?`.
#[derive(Debug, FromRequestParts)]
#[from_request(via(axum::extract::Query), rejection(ProblemResponse))]
pub(crate) struct FromQuery<T>(pub(crate) T);
