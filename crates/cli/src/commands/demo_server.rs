//! `demo-server`: a small MCP server for trying things out.

use std::process::ExitCode;

use serde_json::json;
use switchboard_demo_server as demo;

use crate::args::DemoArguments;
use crate::failure::Failure;
use crate::output::Output;

pub(crate) async fn run(wanted: &DemoArguments, output: Output) -> Result<ExitCode, Failure> {
    if wanted.stdio {
        demo::serve_stdio().await.map_err(Failure::start)?;
        return Ok(ExitCode::SUCCESS);
    }
    let stopped = async {
        super::interrupted().await;
    };
    if !switchboard_http::is_loopback(&wanted.listen) {
        let message = format!("{} can be reached from other machines", wanted.listen);
        return Err(Failure::start(message).with_hint(Some("listen on 127.0.0.1 or [::1]".into())));
    }
    let ready = |address| {
        let url = format!("http://{address}/mcp");
        if output.is_json() {
            output.json(&json!({ "url": url }));
        } else {
            output.data(&format!("the demo server answers at {url}"));
        }
    };
    demo::serve_http(wanted.listen, stopped, ready)
        .await
        .map_err(|error| Failure::start(format!("cannot listen on {}: {error}", wanted.listen)))?;
    Ok(ExitCode::SUCCESS)
}
