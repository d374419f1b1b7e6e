//! Instructions per call, counted by callgrind, for the bare proxy and the gateway.
//!
//! Unlike times, they are nearly the same in each run and on a busy machine. Instructions of the kernel are not counted.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, ensure};
use tokio::task::JoinSet;

use super::calling_config;
use super::calls::{Cast, Part};
use super::process::{Process, Tool};
use super::wire::Client;

const CONNECTIONS: usize = 8;
/// Calls of each connection before the counted ones, until caches and connections are filled.
const WARM_UP: usize = 25;
/// Counted calls of each connection.
const CALLS: usize = 250;

/// Prints the table.
pub(crate) async fn measure(program: &Path) -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let (proxy_counts, gateway_counts) =
        (Counts::new(directory.path(), "proxy"), Counts::new(directory.path(), "gateway"));
    let upstream = Process::peer(&["upstream"])?;
    let proxy = Process::peer_under(&proxy_counts.tool(), &["proxy", &upstream.address])?;
    let (home, config) = (directory.path().join("calls"), calling_config(&upstream));
    let gateway = Process::gateway_under(&gateway_counts.tool(), program, &home, &config)?;
    let cast = Cast { upstream: &upstream, proxy: &proxy, gateway: &gateway };
    let mut out = std::io::stdout();
    writeln!(
        out,
        "\ntools/call, {CONNECTIONS} connections; instructions without those of the kernel"
    )?;
    writeln!(out, "{:<32} {:>16} {:>12}", "", "instructions", "x proxy")?;
    let mut measured = Vec::new();
    for part in cast.parts() {
        let counts = if part.is_compared() { &gateway_counts } else { &proxy_counts };
        if std::ptr::eq(part.process, &raw const upstream) {
            measured.push(0.0);
            continue;
        }
        let instructions = per_call(&part, counts).await?;
        write!(out, "{:<32} {instructions:>16.0}", part.name)?;
        match measured.get(part.proxy).filter(|_| part.is_compared()) {
            Some(proxy) => writeln!(out, " {:>12.2}", instructions / proxy)?,
            None => writeln!(out)?,
        }
        measured.push(instructions);
    }
    Ok(())
}

async fn per_call(part: &Part<'_>, counts: &Counts) -> anyhow::Result<f64> {
    let clients = part.clients(CONNECTIONS).await?;
    let clients = ask(clients, WARM_UP).await?;
    counts.since_last(part.process)?;
    let clients = ask(clients, CALLS).await?;
    let counted = counts.since_last(part.process)?;
    #[expect(clippy::cast_precision_loss, reason = "the counts are far below 2^52")]
    Ok(counted as f64 / (clients.len() * CALLS) as f64)
}

/// Lets each client send its request this many times.
async fn ask(clients: Vec<Client>, times: usize) -> anyhow::Result<Vec<Client>> {
    let mut working = JoinSet::new();
    for mut client in clients {
        working.spawn(async move {
            for _ in 0..times {
                client.ask().await?;
            }
            anyhow::Ok(client)
        });
    }
    working.join_all().await.into_iter().collect()
}

/// The counts of one process under callgrind.
struct Counts(PathBuf);

impl Counts {
    fn new(directory: &Path, name: &str) -> Self {
        Self(directory.join(format!("{name}.counts")))
    }

    fn tool(&self) -> Tool {
        Tool::Callgrind(self.0.clone())
    }

    /// The number of instructions since the last look.
    fn since_last(&self, process: &Process) -> anyhow::Result<u64> {
        let mut command = Command::new("callgrind_control");
        command.arg("--dump").arg(process.id().to_string()).stdout(Stdio::null());
        let status = command.status().context("callgrind_control cannot be started")?;
        ensure!(status.success(), "callgrind_control ended with {status}");
        let newest = (1..).map(|number| self.0.with_extension(format!("counts.{number}")));
        let newest = newest.take_while(|file| file.exists()).last();
        let text = std::fs::read_to_string(newest.context("callgrind wrote no counts")?)?;
        let total = text.lines().find_map(|line| line.strip_prefix("totals: "));
        Ok(total.context("the counts have no total")?.trim().parse()?)
    }
}
