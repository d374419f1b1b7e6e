//! An MCP endpoint that records its requests.

use axum::body::Bytes;
use axum::http::Response;
use bytes::Buf as _;
use http_body_util::Full;
use parking_lot::Mutex;
use switchboard_http::{BodyChunk, McpEndpoint, McpRequest, McpRoute};

/// Records the route and the principal of each request, and answers `{}`.
#[derive(Debug, Default)]
pub(crate) struct RecordingMcp(pub(crate) Mutex<Vec<(McpRoute, String)>>);

impl RecordingMcp {
    fn record(&self, request: McpRequest) -> Response<Full<BodyChunk>> {
        self.0.lock().push((request.route, request.principal.id.to_string()));
        let nothing = Bytes::new();
        Response::new(Full::new(Bytes::from("{}").chain(nothing.clone()).chain(nothing)))
    }
}

impl McpEndpoint for RecordingMcp {
    type Body = Full<BodyChunk>;

    fn max_body_bytes(&self) -> usize {
        1024
    }

    async fn post(&self, request: McpRequest, _: Bytes) -> Response<Self::Body> {
        self.record(request)
    }

    async fn get(&self, request: McpRequest) -> Response<Self::Body> {
        self.record(request)
    }

    async fn delete(&self, request: McpRequest) -> Response<Self::Body> {
        self.record(request)
    }
}
