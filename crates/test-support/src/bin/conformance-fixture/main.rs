//! A server with every tool, prompt and resource that the conformance suite uses, in either era.
//!
//! With `--listen` it prints its address as the first line. Names and payloads are those of the suite.
#![expect(clippy::print_stdout, reason = "the address is the output of this program")]

mod dialogue;
mod era;
mod listing;
mod server;
mod tasks;
mod tool;

use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::serve::ListenerExt;
use clap::Parser;
use rmcp::ServiceExt;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};

use crate::era::Era;
use crate::server::{Fixture, World};

#[derive(Debug, Parser)]
struct Arguments {
    /// Serves HTTP at this address, under `/mcp`
    #[arg(long, required_unless_present = "stdio")]
    listen: Option<SocketAddr>,
    /// Serves standard input and output
    #[arg(long, conflicts_with = "listen")]
    stdio: bool,
    /// modern, legacy or dual
    #[arg(long, default_value = "dual")]
    era: Era,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::parse();
    let world = Arc::new(World::new(arguments.era));
    if let Some(address) = arguments.listen {
        return serve_http(address, world, arguments.era).await;
    }
    let service = Fixture::new(world).serve(rmcp::transport::stdio()).await?;
    service.waiting().await?;
    Ok(())
}

async fn serve_http(
    address: SocketAddr,
    world: Arc<World>,
    era: Era,
) -> Result<(), Box<dyn Error>> {
    let listener = tokio::net::TcpListener::bind(address).await?;
    println!("http://{}/mcp", listener.local_addr()?);
    let config = StreamableHttpServerConfig::default().with_allowed_origins([
        "http://localhost:*",
        "http://127.0.0.1:*",
        "http://[::1]:*",
    ]);
    let sessions = Arc::new(LocalSessionManager::default());
    let factory = move || Ok(Fixture::new(Arc::clone(&world)));
    let service = StreamableHttpService::new(factory, sessions, config);
    let router = axum::Router::new()
        .nest_service("/mcp", service)
        .layer(axum::middleware::from_fn_with_state(era, era::only));
    // `TCP_NODELAY`: small responses would otherwise wait for the peer's delayed acknowledgement.
    let listener = listener.tap_io(|stream| {
        let _unsupported = stream.set_nodelay(true);
    });
    Ok(axum::serve(listener, router).await?)
}
