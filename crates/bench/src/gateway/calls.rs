//! `tools/call` directly to the server, through the bare proxy and through the gateway, in both eras. Each connection of a
//! session-era client has a session of its own.

use std::io::Write;

use super::contest::{Contestant, Measured, run};
use super::process::Process;
use super::upstream::{ECHO, ECHO_EVENTS};
use super::wire::{Client, Era, Place, Question};

const MANY: usize = 32;

/// The processes that take part in a call.
pub(crate) struct Cast<'a> {
    pub(crate) upstream: &'a Process,
    pub(crate) proxy: &'a Process,
    pub(crate) gateway: &'a Process,
}

/// A measured configuration: target, era, and the baseline that it is compared with.
pub(crate) struct Part<'a> {
    pub(crate) name: &'static str,
    pub(crate) process: &'a Process,
    path: &'static str,
    tool: &'static str,
    era: Era,
    direct: usize,
    pub(crate) proxy: usize,
}

impl<'a> Cast<'a> {
    /// The servers of the gateway are named after the eras that they speak; `events` is one of the session era that
    /// answers with event streams.
    pub(crate) fn parts(&self) -> [Part<'a>; 13] {
        use Era::{Session, Stateless};
        let part = |name, process, path, tool, era, direct| Part {
            name,
            process,
            path,
            tool,
            era,
            direct,
            proxy: 3 + direct,
        };
        let direct = |name, path, era| part(name, self.upstream, path, "echo", era, 0);
        let proxy = |name, path, era| part(name, self.proxy, path, "echo", era, 0);
        let gateway = |name, tool, era, like| part(name, self.gateway, "/mcp", tool, era, like);
        [
            direct("direct, session", ECHO, Session),
            direct("direct, stateless", ECHO, Stateless),
            direct("direct, session, events", ECHO_EVENTS, Session),
            proxy("bare proxy, session", ECHO, Session),
            proxy("bare proxy, stateless", ECHO, Stateless),
            proxy("bare proxy, session, events", ECHO_EVENTS, Session),
            gateway("gateway, session to session", "session__echo", Session, 0),
            gateway("gateway, session to stateless", "stateless__echo", Session, 0),
            gateway("gateway, session to both", "both__echo", Session, 0),
            gateway("gateway, session to events", "events__echo", Session, 2),
            gateway("gateway, stateless to session", "session__echo", Stateless, 1),
            gateway("gateway, stateless to stateless", "stateless__echo", Stateless, 1),
            gateway("gateway, stateless to both", "both__echo", Stateless, 1),
        ]
    }
}

impl Part<'_> {
    /// The clients of this part, each with a connection and, in the session era, a session of its own.
    pub(crate) async fn clients(&self, connections: usize) -> anyhow::Result<Vec<Client>> {
        let place = Place { address: self.process.address.clone(), path: self.path.into() };
        let mut clients = Vec::new();
        for number in 0..connections {
            let text = format!("what connection {number} says");
            let question = Question::Call { tool: self.tool.into(), text };
            clients.push(Client::open(&place, self.era, question).await?);
        }
        Ok(clients)
    }

    pub(crate) fn is_compared(&self) -> bool {
        self.path == "/mcp"
    }
}

async fn measure(parts: &[Part<'_>], connections: usize) -> anyhow::Result<Vec<Measured>> {
    let mut contestants = Vec::new();
    for part in parts {
        let clients = part.clients(connections).await?;
        contestants.push(Contestant { name: part.name.into(), process: part.process, clients });
    }
    run(contestants).await
}

pub(crate) async fn one_connection(cast: &Cast<'_>, out: &mut impl Write) -> anyhow::Result<()> {
    let parts = cast.parts();
    let measured = measure(&parts, 1).await?;
    writeln!(out, "\ntools/call, 1 connection; added to the direct call; aim: added p50 < 150 µs")?;
    writeln!(
        out,
        "{:<32} {:>10} {:>10} {:>12} {:>12}",
        "", "p50 µs", "p99 µs", "added p50", "added p99"
    )?;
    for (part, this) in parts.iter().zip(&measured) {
        write!(out, "{:<32} {:>10.0} {:>10.0}", this.name, this.p50, this.p99)?;
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
        "{:<32} {:>10} {:>10} {:>12} {:>12} {:>10} {:>12}",
        "", "calls/s", "p50 µs", "sleeps/call", "CPU µs/call", "in kernel", "x proxy CPU"
    )?;
    for (part, this) in parts.iter().zip(&measured) {
        write!(
            out,
            "{:<32} {:>10.0} {:>10.0} {:>12.2} {:>12.1} {:>10.1}",
            this.name, this.per_second, this.p50, this.sleeps, this.cpu, this.system
        )?;
        match measured.get(part.proxy).filter(|_| part.is_compared()) {
            Some(proxy) => writeln!(out, " {:>12.2}", this.cpu / proxy.cpu)?,
            None => writeln!(out)?,
        }
    }
    Ok(())
}
