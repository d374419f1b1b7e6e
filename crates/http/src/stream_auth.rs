//! Ends event streams when the credentials that opened them become invalid.
//!
//! A request is checked when it arrives. An event stream may stay open for days, so its credentials are checked again
//! each time the keys are read: the stream ends when its key is revoked, has expired or has another role, or its token has expired. A running
//! call is not interrupted: it was allowed when it began, and it has limits of its own.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use axum::body::HttpBody;
use axum::http::{HeaderMap, HeaderValue, Response, header};
use http_body::{Frame, SizeHint};
use parking_lot::{Mutex, MutexGuard};
use switchboard_auth::{Gatekeeper, Refusal, Role};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

const EVENT_STREAM: &[u8] = b"text/event-stream";

/// All open event streams with their credentials.
#[derive(Debug, Default)]
pub(crate) struct Leases {
    open: Mutex<HashMap<u64, AuthorizedStream>>,
    next: AtomicU64,
}

#[derive(Debug, Clone)]
struct AuthorizedStream {
    shown: Credentials,
    role: Role,
    ended: CancellationToken,
}

/// The headers with credentials that opened a stream. Never logged.
#[derive(Clone)]
pub(crate) struct Credentials(Arc<HeaderMap>);

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Credentials(***)")
    }
}

impl Credentials {
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let mut shown = HeaderMap::new();
        for name in Gatekeeper::HEADERS {
            for value in headers.get_all(&name) {
                shown.append(name.clone(), value.clone());
            }
        }
        Self(Arc::new(shown))
    }
}

impl Leases {
    fn open(&self) -> MutexGuard<'_, HashMap<u64, AuthorizedStream>> {
        self.open.lock()
    }

    /// Returns the response; if it is an event stream, it ends with its credentials.
    pub(crate) fn lease<B>(
        self: &Arc<Self>,
        shown: Credentials,
        role: Role,
        answer: Response<B>,
    ) -> Response<Leased<B>> {
        let kind = answer.headers().get(header::CONTENT_TYPE).map(HeaderValue::as_bytes);
        if !kind.is_some_and(|kind| kind.starts_with(EVENT_STREAM)) {
            return answer.map(|body| Leased { body: Some(body), lease: None });
        }
        let ended = CancellationToken::new();
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.open().insert(number, AuthorizedStream { shown, role, ended: ended.clone() });
        let lease = Lease { leases: self.clone(), number };
        let lease = Some((Box::pin(ended.cancelled_owned()), lease));
        answer.map(|body| Leased { body: Some(body), lease })
    }

    /// Ends the streams whose credentials are no longer accepted.
    pub(crate) async fn check(&self, gatekeeper: &Gatekeeper) {
        if gatekeeper.is_open() {
            return;
        }
        let open: Vec<AuthorizedStream> = self.open().values().cloned().collect();
        for AuthorizedStream { shown, role, ended } in open {
            match gatekeeper.admit(&shown.0).await {
                // A stream shows what its role permitted when it began.
                Ok(principal) if principal.role != role => ended.cancel(),
                // An issuer that cannot be asked now is asked at the next check.
                Ok(_) | Err(Refusal::Unavailable(_)) => {}
                Err(
                    Refusal::Missing
                    | Refusal::BadCredentials(_)
                    | Refusal::InsufficientScope { .. },
                ) => ended.cancel(),
            }
        }
    }
}

/// The registration of a stream in [`Leases`]; removed when it is dropped.
#[derive(Debug)]
struct Lease {
    leases: Arc<Leases>,
    number: u64,
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.leases.open().remove(&self.number);
    }
}

/// A body that ends early when its credentials become invalid.
#[derive(Debug)]
pub(crate) struct Leased<B> {
    body: Option<B>,
    lease: Option<(Pin<Box<WaitForCancellationFutureOwned>>, Lease)>,
}

impl<B: HttpBody + Unpin> HttpBody for Leased<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        let this = self.get_mut();
        if let Some((ended, _)) = &mut this.lease
            && ended.as_mut().poll(context).is_ready()
        {
            (this.body, this.lease) = (None, None);
        }
        match &mut this.body {
            Some(body) => Pin::new(body).poll_frame(context),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(HttpBody::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map(HttpBody::size_hint).unwrap_or_default()
    }
}
