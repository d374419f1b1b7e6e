//! The overhead of the gateway per call, compared with a direct call and a bare proxy in the same run on the same
//! machine.

mod api;
mod calls;
mod contest;
mod fixed;
mod instructions;
mod lists;
mod memory;
mod process;
mod proxy;
mod server;
mod upstream;
mod wire;

use std::path::Path;

use calls::Cast;

pub(crate) use fixed::run as fixed;
pub(crate) use instructions::measure as measure_instructions;
pub(crate) use memory::allow_many_files;
pub(crate) use process::Process;
pub(crate) use proxy::run as proxy;
pub(crate) use upstream::run as upstream;
use upstream::{ECHO, ECHO_EVENTS};

/// Prints the table. A failing request is an error; a slow one is not.
pub(crate) async fn measure(program: &Path) -> anyhow::Result<()> {
    allow_many_files()?;
    let mut out = std::io::stdout();
    let directory = tempfile::tempdir()?;
    let upstream = Process::peer(&["upstream"])?;
    let proxy = Process::peer(&["proxy", &upstream.address])?;
    let gateway = calling(program, &upstream, directory.path())?;
    let cast = Cast { upstream: &upstream, proxy: &proxy, gateway: &gateway };
    calls::one_connection(&cast, &mut out).await?;
    calls::many_connections(&cast, &mut out).await?;
    drop(gateway);
    lists::measure(program, &upstream, directory.path(), &mut out).await?;
    api::measure(program, &upstream, directory.path(), &mut out).await?;
    memory::measure(program, &upstream, directory.path(), &mut out).await
}

/// Measures calls only.
pub(crate) async fn measure_calls(program: &Path) -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let upstream = Process::peer(&["upstream"])?;
    let proxy = Process::peer(&["proxy", &upstream.address])?;
    let gateway = calling(program, &upstream, directory.path())?;
    let cast = Cast { upstream: &upstream, proxy: &proxy, gateway: &gateway };
    calls::many_connections(&cast, &mut std::io::stdout()).await
}

/// Measures lists and renderings of the HTTP API only.
pub(crate) async fn measure_api(program: &Path) -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let upstream = Process::peer(&["upstream"])?;
    api::measure(program, &upstream, directory.path(), &mut std::io::stdout()).await
}

/// Starts a gateway in front of servers of each era and of both.
fn calling(program: &Path, upstream: &Process, directory: &Path) -> anyhow::Result<Process> {
    Process::gateway(program, &directory.join("calls"), &calling_config(upstream))
}

fn calling_config(upstream: &Process) -> String {
    let server = |name, era, path| server(name, era, upstream, path);
    config(&[
        server("session", "legacy", ECHO),
        server("stateless", "modern", ECHO),
        server("both", "auto", ECHO),
        server("events", "legacy", ECHO_EVENTS),
    ])
}

/// A configuration whose limits are never reached, so that the bare path is measured.
fn config(servers: &[String]) -> String {
    let servers = servers.concat();
    format!(
        "switchboard:\n  gateway: {{max_sessions_per_principal: 5000}}\n  toolbox:\n    \
         max_concurrent: 1000\n    mcps:\n{servers}"
    )
}

fn server(name: &str, era: &str, upstream: &Process, path: &str) -> String {
    let address = &upstream.address;
    format!(
        "      - name: {name}\n        url: http://{address}{path}\n        era: {era}\n        \
         mode: dynamic\n        default_tool_config: {{max_instances: 1000}}\n"
    )
}
