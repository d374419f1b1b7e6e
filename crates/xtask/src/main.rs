//! `cargo xtask generate` writes every generated file; the tests of this crate fail when one is out of date.

use std::io::Write;

use anyhow::{Context, bail};
use switchboard_xtask::{generated_files, workspace_root};

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments != ["generate"] {
        bail!("usage: cargo xtask generate");
    }
    for file in generated_files() {
        let path = workspace_root().join(file.path);
        std::fs::write(&path, file.text).with_context(|| format!("cannot write {}", file.path))?;
        writeln!(std::io::stdout(), "wrote {}", file.path)?;
    }
    Ok(())
}
