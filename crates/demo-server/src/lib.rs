//! A small demo MCP server: over HTTP in both eras, and over stdio.
//!
//! Its tools demonstrate progress, failures, large results, and a list that changes while it is used.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::serve::ListenerExt;
use futures::Future;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation,
    ListToolsResult, PaginatedRequestParams, ProgressNotificationParam, ServerCapabilities,
    ServerConfig, SubscriptionFilter, Tool,
};
use rmcp::service::{RequestContext, SubscriptionContext};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt};
use serde_json::{Map, Value, json};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// The largest text that `lorem` writes.
const MAX_LOREM_BYTES: u64 = 8 * 1024 * 1024;

/// The demo server. Clones share whether the tool `surprise` is listed.
#[derive(Debug, Clone)]
pub struct DemoServer {
    surprise: Arc<AtomicBool>,
    changes: watch::Sender<u64>,
}

impl Default for DemoServer {
    fn default() -> Self {
        Self { surprise: Arc::default(), changes: watch::Sender::new(0) }
    }
}

/// Serves the demo at `/mcp` until `shutdown` completes, and reports the bound address.
pub async fn serve_http(
    address: SocketAddr,
    shutdown: impl Future<Output = ()> + Send + 'static,
    ready: impl FnOnce(SocketAddr),
) -> std::io::Result<()> {
    let listener = tokio::net::TcpListener::bind(address).await?;
    let local = listener.local_addr()?;
    let demo = DemoServer::default();
    let stop = CancellationToken::new();
    let mut config = StreamableHttpServerConfig::default().with_cancellation_token(stop.clone());
    config.json_response = true;
    let config = config.enforce_origin_validation();
    let sessions = Arc::new(LocalSessionManager::default());
    let service = StreamableHttpService::new(move || Ok(demo.clone()), sessions, config);
    let router = axum::Router::new().nest_service("/mcp", service);
    // Without this, small responses on kept connections wait for the peer's delayed acknowledgement.
    let listener = listener.tap_io(|stream| {
        let _unsupported = stream.set_nodelay(true);
    });
    ready(local);
    axum::serve(listener, router)
        .with_graceful_shutdown(async move {
            shutdown.await;
            stop.cancel();
        })
        .await
}

/// Serves the demo over standard input and output until the input ends.
pub async fn serve_stdio() -> Result<(), String> {
    let service = DemoServer::default().serve(rmcp::transport::stdio()).await;
    let service = service.map_err(|error| error.to_string())?;
    service.waiting().await.map(drop).map_err(|error| error.to_string())
}

impl DemoServer {
    fn tools(&self) -> Vec<Tool> {
        let mut tools = vec![
            tool(
                "echo",
                "Answers with the text that it was given",
                &json!({
                    "properties": {"text": {"type": "string", "description": "What to say back"}},
                    "required": ["text"],
                }),
            ),
            tool(
                "add",
                "Adds two numbers",
                &json!({
                    "properties": {"a": {"type": "number"}, "b": {"type": "number"}},
                    "required": ["a", "b"],
                }),
            ),
            tool(
                "wait",
                "Waits, and reports its progress every 100 ms",
                &json!({
                    "properties": {"ms": {"type": "integer", "minimum": 0, "maximum": 600_000}},
                    "required": ["ms"],
                }),
            ),
            tool(
                "fail",
                "Always fails, to show what an error looks like",
                &json!({
                    "properties": {"message": {"type": "string"}},
                }),
            ),
            tool(
                "lorem",
                "Writes a text of the given size",
                &json!({
                    "properties": {"bytes": {"type": "integer", "minimum": 0, "maximum": MAX_LOREM_BYTES}},
                    "required": ["bytes"],
                }),
            ),
            tool(
                "toggle_surprise",
                "Adds the tool `surprise` to the list, or takes it away again",
                &json!({
                    "properties": {},
                }),
            ),
        ];
        if self.surprise.load(Ordering::Relaxed) {
            tools.push(tool("surprise", "Was not there before", &json!({"properties": {}})));
        }
        tools
    }

    async fn run(
        &self,
        name: &str,
        arguments: &Map<String, Value>,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResult, ErrorData> {
        let text = |key: &str| arguments.get(key).and_then(Value::as_str).unwrap_or_default();
        let number = |key: &str| arguments.get(key).and_then(Value::as_f64).unwrap_or_default();
        let whole = |key: &str| arguments.get(key).and_then(Value::as_u64).unwrap_or_default();
        match name {
            "echo" => Ok(said(text("text"))),
            "add" => {
                let sum = number("a") + number("b");
                let mut result = said(sum.to_string());
                result.structured_content = Some(json!({"sum": sum}));
                Ok(result)
            }
            "wait" => {
                wait(Duration::from_millis(whole("ms")), context).await;
                Ok(said(format!("waited {} ms", whole("ms"))))
            }
            "fail" => Ok(CallToolResult::error(vec![ContentBlock::text(match text("message") {
                "" => "this tool always fails",
                message => message,
            })])),
            "lorem" => Ok(said(lorem(whole("bytes").min(MAX_LOREM_BYTES)))),
            "toggle_surprise" => {
                let is_there = !self.surprise.fetch_xor(true, Ordering::Relaxed);
                self.changes.send_modify(|count| *count += 1);
                // Fails for a client of the stateless era, which gets the notification on its subscription instead.
                let _modern = context.peer.notify_tool_list_changed().await;
                Ok(said(if is_there { "surprise!" } else { "no surprise any more" }))
            }
            "surprise" if self.surprise.load(Ordering::Relaxed) => Ok(said("boo")),
            other => Err(ErrorData::invalid_params(format!("Unknown tool: {other}"), None)),
        }
    }
}

impl ServerHandler for DemoServer {
    fn get_info(&self) -> ServerConfig {
        let capabilities =
            ServerCapabilities::builder().enable_tools().enable_tool_list_changed().build();
        let us = Implementation::new("switchboard-demo", env!("CARGO_PKG_VERSION"));
        ServerConfig::new(capabilities).with_server_info(us)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.tools()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        let cancelled = context.ct.clone();
        let running = self.run(&request.name, &arguments, &context);
        match cancelled.run_until_cancelled(running).await {
            Some(result) => Ok(CallToolResponse::Complete(result?)),
            None => Err(ErrorData::internal_error("cancelled", None)),
        }
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        let ours = SubscriptionFilter::builder().tools_list_changed().build();
        Some(requested.intersection(&ours))
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let mut changes = self.changes.subscribe();
        loop {
            tokio::select! {
                () = context.cancelled() => return Ok(()),
                changed = changes.changed() => {
                    if changed.is_err() || context.sink().notify_tool_list_changed().await.is_err() {
                        return Ok(());
                    }
                }
            }
        }
    }
}

fn tool(name: &'static str, description: &'static str, schema: &Value) -> Tool {
    let mut object = schema.as_object().cloned().unwrap_or_default();
    object.insert("type".into(), json!("object"));
    object.insert("additionalProperties".into(), json!(false));
    Tool::new(name, description, object)
}

fn said(text: impl Into<String>) -> CallToolResult {
    CallToolResult::success(vec![ContentBlock::text(text)])
}

async fn wait(time: Duration, context: &RequestContext<RoleServer>) {
    const STEP: Duration = Duration::from_millis(100);
    let token = context.meta.get_progress_token();
    let start = tokio::time::Instant::now();
    while start.elapsed() < time {
        tokio::time::sleep(STEP.min(time.saturating_sub(start.elapsed()))).await;
        if let Some(token) = &token {
            let progress = start.elapsed().min(time).as_secs_f64();
            let params = ProgressNotificationParam::new(token.clone(), progress)
                .with_total(time.as_secs_f64());
            // A caller that is gone cancels the call elsewhere.
            let _gone = context.peer.notify_progress(params).await;
        }
    }
}

fn lorem(bytes: u64) -> String {
    const TEXT: &str = "The board joins every caller with the line that was asked for. ";
    let length = usize::try_from(bytes).unwrap_or(usize::MAX);
    TEXT.chars().cycle().take(length).collect()
}
