//! `tools/call` directly to the server, through the bare proxy and through the gateway, in both eras.

use std::io::Write;

use super::contest::{Contestant, Measured, run};
use super::process::Process;
use super::wire::{Client, Era, Place, Question};

const MANY: usize = 32;

/// The processes that take part in a call.
pub(crate) struct Cast<'a> {
    pub(crate) upstream: &'a Process,
    pub(crate) proxy: &'a Process,
    pub(crate) gateway: &'a Process,
}

/// A measured configuration: target, era, and the baseline that it is compared with.
struct Part<'a> {
    name: &'static str,
    process: &'a Process,
    path: &'static str,
    tool: &'static str,
    era: Era,
    direct: usize,
    proxy: usize,
}

impl<'a> Cast<'a> {
    fn parts(&self) -> [Part<'a>; 8] {
        let part = |name, process, path, tool, era| {
            let is_modern = usize::from(era == Era::Modern);
            Part { name, process, path, tool, era, direct: is_modern, proxy: 2 + is_modern }
        };
        let (direct, proxy, gateway) = (self.upstream, self.proxy, self.gateway);
        [
            part("direct, legacy", direct, "/echo", "echo", Era::Legacy),
            part("direct, modern", direct, "/echo", "echo", Era::Modern),
            part("bare proxy, legacy", proxy, "/echo", "echo", Era::Legacy),
            part("bare proxy, modern", proxy, "/echo", "echo", Era::Modern),
            part("gateway, legacy to legacy", gateway, "/mcp", "old__echo", Era::Legacy),
            part("gateway, modern to modern", gateway, "/mcp", "new__echo", Era::Modern),
            part("gateway, legacy to modern", gateway, "/mcp", "new__echo", Era::Legacy),
            part("gateway, modern to legacy", gateway, "/mcp", "old__echo", Era::Modern),
        ]
    }
}

impl<'a> Part<'a> {
    async fn contestant(&self, connections: usize) -> anyhow::Result<Contestant<'a>> {
        let place = Place { address: self.process.address.clone(), path: self.path.into() };
        let mut clients = Vec::new();
        for number in 0..connections {
            let text = format!("what connection {number} says");
            let question = Question::Call { tool: self.tool.into(), text };
            clients.push(Client::open(&place, self.era, question).await?);
        }
        Ok(Contestant { name: self.name.into(), process: self.process, clients })
    }

    fn is_compared(&self) -> bool {
        self.path == "/mcp"
    }
}

async fn measure(parts: &[Part<'_>], connections: usize) -> anyhow::Result<Vec<Measured>> {
    let mut contestants = Vec::new();
    for part in parts {
        contestants.push(part.contestant(connections).await?);
    }
    run(contestants).await
}

pub(crate) async fn one_connection(cast: &Cast<'_>, out: &mut impl Write) -> anyhow::Result<()> {
    let parts = cast.parts();
    let measured = measure(&parts, 1).await?;
    writeln!(out, "\ntools/call, 1 connection; added to the direct call; aim: added p50 < 150 µs")?;
    writeln!(
        out,
        "{:<30} {:>10} {:>10} {:>12} {:>12}",
        "", "p50 µs", "p99 µs", "added p50", "added p99"
    )?;
    for (part, this) in parts.iter().zip(&measured) {
        write!(out, "{:<30} {:>10.0} {:>10.0}", this.name, this.p50, this.p99)?;
        match measured.get(part.direct).filter(|direct| direct.name != this.name) {
            Some(direct) => {
                let (p50, p99) = (this.p50 - direct.p50, this.p99 - direct.p99);
                writeln!(out, " {p50:>12.0} {p99:>12.0}")?;
            }
            None => writeln!(out)?,
        }
    }
    Ok(())
}

pub(crate) async fn many_connections(cast: &Cast<'_>, out: &mut impl Write) -> anyhow::Result<()> {
    let parts = cast.parts();
    let measured = measure(&parts, MANY).await?;
    writeln!(
        out,
        "\ntools/call, {MANY} connections; CPU of the named process alone; aim: CPU at most 1.6 x the bare proxy's"
    )?;
    writeln!(
        out,
        "{:<30} {:>10} {:>10} {:>12} {:>12} {:>10} {:>12}",
        "", "calls/s", "p50 µs", "sleeps/call", "CPU µs/call", "in kernel", "x proxy CPU"
    )?;
    for (part, this) in parts.iter().zip(&measured) {
        write!(
            out,
            "{:<30} {:>10.0} {:>10.0} {:>12.2} {:>12.1} {:>10.1}",
            this.name, this.per_second, this.p50, this.sleeps, this.cpu, this.system
        )?;
        match measured.get(part.proxy).filter(|_| part.is_compared()) {
            Some(proxy) => writeln!(out, " {:>12.2}", this.cpu / proxy.cpu)?,
            None => writeln!(out)?,
        }
    }
    Ok(())
}
