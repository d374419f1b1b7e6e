//! Tasks of the repository:
//!
//! - `cargo xtask generate` writes every generated file; the tests of this crate fail when one is out of date.
//! - `cargo xtask pure-crates` prints the names of the crates without IO.
//! - `cargo xtask coverage REPORT` reads a report of cargo-tarpaulin and fails if a pure crate has too little coverage.

use std::io::Write;

use anyhow::{Context, bail, ensure};
use switchboard_xtask::{
    PURE_CRATES, REQUIRED_COVERAGE, coverage_by_crate, coverage_table, generated_files,
    workspace_root,
};

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match *arguments {
        ["generate"] => generate(),
        ["pure-crates"] => Ok(writeln!(std::io::stdout(), "{}", PURE_CRATES.join("\n"))?),
        ["coverage", report] => coverage(report),
        _ => bail!("usage: cargo xtask generate | pure-crates | coverage REPORT"),
    }
}

fn generate() -> anyhow::Result<()> {
    for file in generated_files() {
        let path = workspace_root().join(file.path);
        std::fs::write(&path, file.text).with_context(|| format!("cannot write {}", file.path))?;
        writeln!(std::io::stdout(), "wrote {}", file.path)?;
    }
    Ok(())
}

fn coverage(report: &str) -> anyhow::Result<()> {
    let text = std::fs::read(report).with_context(|| format!("cannot read {report}"))?;
    let parsed = serde_json::from_slice(&text).with_context(|| format!("{report} is not JSON"))?;
    let counts = coverage_by_crate(&parsed, PURE_CRATES)?;
    let (table, low) = coverage_table(&counts);
    write!(std::io::stdout(), "{table}")?;
    ensure!(low.is_empty(), "below {REQUIRED_COVERAGE} %: {}", low.join(", "));
    Ok(())
}
