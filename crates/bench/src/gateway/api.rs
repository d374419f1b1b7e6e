//! Lists and renderings over the HTTP API, compared with the same bytes from a server with fixed responses.

use std::io::Write;
use std::path::Path;

use super::contest::{Contestant, Measured, run};
use super::process::Process;
use super::wire::{Client, Place, Question};
use super::{config, server};

const TOOLS: usize = 1000;

/// Paths of the API, and the member of each response that has the tools.
const PATHS: [(&str, &str); 3] = [
    ("/api/v1/tools", "tools"),
    ("/api/v1/sessions/bench/tools", "tools"),
    ("/api/v1/sessions/bench/render?provider=anthropic", "tools"),
];

pub(crate) async fn measure(
    program: &Path,
    upstream: &Process,
    directory: &Path,
    out: &mut impl Write,
) -> anyhow::Result<()> {
    writeln!(
        out,
        "\nGET of lists and renderings with 1,000 tools, 1 connection; aim: within 20 % of the same bytes as a fixed answer"
    )?;
    writeln!(
        out,
        "{:<52} {:>10} {:>10} {:>12} {:>8} {:>8}",
        "", "bytes", "p50 µs", "CPU µs/GET", "x p50", "x CPU"
    )?;
    let directory = directory.join("api");
    let tools = server("many", "legacy", upstream, &format!("/tools/{TOOLS}"));
    let board = Process::gateway(program, &directory, &config(&[tools]))?;
    create_session(&board).await?;
    for (path, list) in PATHS {
        let question = || Question::Get { list, size: TOOLS };
        let place = Place { address: board.address.clone(), path: path.into() };
        let client = Client::of_fixed(&place, question()).await?;
        let file = directory.join("fixed.json");
        std::fs::write(&file, client.answer())?;
        let fixed = Process::peer(&["fixed", &file.display().to_string()])?;
        let place = Place { address: fixed.address.clone(), path: "/".into() };
        let fixed_client = Client::of_fixed(&place, question()).await?;
        let bytes = client.answer().len();
        let contestant =
            |name: String, process, client| Contestant { name, process, clients: vec![client] };
        let measured = run(vec![
            contestant("fixed answer".into(), &fixed, fixed_client),
            contestant(path.into(), &board, client),
        ]);
        show(&measured.await?, bytes, out)?;
    }
    Ok(())
}

/// The session whose tools are read.
async fn create_session(board: &Process) -> anyhow::Result<()> {
    let place = Place { address: board.address.clone(), path: "/api/v1/sessions".into() };
    Client::create(&place, r#"{"id": "bench"}"#).await
}

fn show(measured: &[Measured], bytes: usize, out: &mut impl Write) -> anyhow::Result<()> {
    for this in measured {
        write!(out, "{:<52} {bytes:>10} {:>10.0} {:>12.1}", this.name, this.p50, this.cpu)?;
        match measured.first().filter(|fixed| fixed.name != this.name) {
            Some(fixed) => {
                writeln!(out, " {:>8.2} {:>8.2}", this.p50 / fixed.p50, this.cpu / fixed.cpu)?;
            }
            None => writeln!(out)?,
        }
    }
    Ok(())
}
