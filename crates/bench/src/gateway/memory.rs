//! The gateway's memory per tool and per session.

use std::io::Write;
use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::process::Process;
use super::wire::{Connection, Place};
use super::{config, server};

const SESSIONS: usize = 1000;
/// File limit: both ends of a thousand streams need a descriptor each, in two processes.
const FILES: u64 = 4096;
/// Time until temporary memory of a step is freed.
const SETTLING: Duration = Duration::from_secs(2);

/// Raises the limit of open files for this process and its children.
pub(crate) fn allow_many_files() -> anyhow::Result<()> {
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= FILES) {
        return Ok(());
    }
    let wanted = limit.maximum.map_or(FILES, |maximum| maximum.min(FILES));
    setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum: limit.maximum })
        .context("cannot open enough connections: raise `ulimit -n`")
}

pub(crate) async fn measure(
    program: &Path,
    upstream: &Process,
    directory: &Path,
    out: &mut impl Write,
) -> anyhow::Result<()> {
    writeln!(out, "\nRSS of the gateway")?;
    let mut show = |what: &str, process: &Process, aim: &str| -> anyhow::Result<()> {
        writeln!(out, "{what:<48} {:>8.1} MB {aim:>12}", process.resident()?)?;
        Ok(())
    };
    // With one tool, and with a thousand, whose serialised lists are in memory too.
    let mut kept = None;
    for (tools, path, aim) in [("1 tool", "/echo", "< 40 MB"), ("1,000 tools", "/tools/1000", "")] {
        let server = server("one", "legacy", upstream, path);
        let home = directory.join(tools);
        let gateway = Process::gateway(program, &home, &config(&[server]))?;
        tokio::time::sleep(SETTLING).await;
        show(&format!("{tools}, after the start"), &gateway, "")?;
        let place = Place { address: gateway.address.clone(), path: "/mcp".into() };
        let mut connection = Connection::open(&place).await?;
        let mut sessions = Vec::new();
        for _ in 0..SESSIONS {
            sessions.push(connection.initialize().await?);
        }
        tokio::time::sleep(SETTLING).await;
        show(&format!("{tools}, 1,000 idle sessions"), &gateway, aim)?;
        kept = Some((gateway, place, sessions));
    }
    let Some((gateway, place, sessions)) = kept else { return Ok(()) };
    let mut streams = Vec::new();
    for session in sessions {
        let mut connection = Connection::open(&place).await?;
        let stream = connection.listen(session).await?;
        streams.push((connection, stream));
    }
    tokio::time::sleep(SETTLING).await;
    show("1,000 tools, 1,000 sessions with an open stream", &gateway, "")?;
    drop(streams);
    Ok(())
}
