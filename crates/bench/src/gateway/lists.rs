//! `tools/list` through the gateway, compared with the same bytes from a server with fixed responses.

use std::io::Write;
use std::path::Path;

use super::contest::{Contestant, Measured, run};
use super::process::Process;
use super::wire::{Client, Era, Place, Question};
use super::{config, server};

pub(crate) const SIZES: [usize; 3] = [10, 250, 1000];

pub(crate) async fn measure(
    program: &Path,
    upstream: &Process,
    directory: &Path,
    out: &mut impl Write,
) -> anyhow::Result<()> {
    writeln!(
        out,
        "\ntools/list, 1 connection; aim: 1,000 tools within 10 % of the same bytes as a fixed answer"
    )?;
    writeln!(
        out,
        "{:<30} {:>10} {:>10} {:>12} {:>8} {:>8}",
        "", "bytes", "p50 µs", "CPU µs/list", "x p50", "x CPU"
    )?;
    for size in SIZES {
        let directory = directory.join(format!("list{size}"));
        let tools = server("many", "legacy", upstream, &format!("/tools/{size}"));
        let gateway = Process::gateway(program, &directory, &config(&[tools]))?;
        let place = Place { address: gateway.address.clone(), path: "/mcp".into() };
        let session = Client::open(&place, Era::Session, Question::List { size }).await?;
        let stateless = Client::open(&place, Era::Stateless, Question::List { size }).await?;
        let file = directory.join("fixed.json");
        std::fs::write(&file, session.answer())?;
        let fixed = Process::peer(&["fixed", &file.display().to_string()])?;
        let place = Place { address: fixed.address.clone(), path: "/".into() };
        let client = Client::of_fixed(&place, Question::List { size }).await?;
        let bytes = session.answer().len();
        let contestant = |name: &str, process, client| Contestant {
            name: format!("{size} tools, {name}"),
            process,
            clients: vec![client],
        };
        let measured = run(vec![
            contestant("fixed answer", &fixed, client),
            contestant("gateway, session", &gateway, session),
            contestant("gateway, stateless", &gateway, stateless),
        ]);
        show(&measured.await?, bytes, out)?;
    }
    Ok(())
}

fn show(measured: &[Measured], bytes: usize, out: &mut impl Write) -> anyhow::Result<()> {
    for this in measured {
        write!(out, "{:<30} {bytes:>10} {:>10.0} {:>12.1}", this.name, this.p50, this.cpu)?;
        match measured.first().filter(|fixed| fixed.name != this.name) {
            Some(fixed) => {
                writeln!(out, " {:>8.2} {:>8.2}", this.p50 / fixed.p50, this.cpu / fixed.cpu)?;
            }
            None => writeln!(out)?,
        }
    }
    Ok(())
}
