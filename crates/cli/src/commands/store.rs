//! `store`: brings the layout up to date, copies, backs up and restores what a board keeps.

use std::path::{Path, PathBuf};

use serde_json::json;
use switchboard_model::Secret;
use switchboard_store::{CopiedTable, CopyError, PostgresSettings, Store};

use crate::args::{Globals, StoreCommand};
use crate::embedded::open_store;
use crate::failure::Failure;
use crate::output::{Output, cell};

pub(crate) async fn run(
    globals: &Globals,
    wanted: &StoreCommand,
    output: Output,
) -> Result<(), Failure> {
    if globals.instance().is_some() {
        let hint = "leave out --url, and run it where the configuration of the board is";
        return Err(
            Failure::usage("`store` works on the database itself").with_hint(Some(hint.into()))
        );
    }
    match wanted {
        StoreCommand::Migrate => migrate(globals, output).await,
        StoreCommand::Backup { file } => {
            refuse_existing(file)?;
            let (from, to) = (open_store(globals).await?, Store::open_file(file).await?);
            let copied = copy(&from, &to, output).await;
            if copied.is_err() {
                remove_incomplete(file);
            }
            copied
        }
        StoreCommand::Restore { file } => {
            if !file.is_file() {
                return Err(Failure::usage(format!("there is no file {}", file.display())));
            }
            let (from, to) = (Store::open_file(file).await?, open_store(globals).await?);
            copy(&from, &to, output).await
        }
        StoreCommand::Copy { to } => {
            let from = open_store(globals).await?;
            let to = open_target(to).await?;
            copy(&from, &to, output).await
        }
    }
}

async fn migrate(globals: &Globals, output: Output) -> Result<(), Failure> {
    let store = open_store(globals).await?;
    let place = store.location().to_string();
    store.close().await;
    if output.is_json() {
        output.json(&json!({ "database": place, "up_to_date": true }));
    } else {
        output.data(&format!("{place} has the layout of this version"));
    }
    Ok(())
}

/// A data directory, a `postgres://` address, or `file:PATH` with such an address in it, which keeps the password out of the
/// list of processes.
async fn open_target(to: &str) -> Result<Store, Failure> {
    let address = match to.strip_prefix("file:") {
        Some(path) => {
            let text = std::fs::read_to_string(path);
            let text =
                text.map_err(|error| Failure::usage(format!("cannot read {path}: {error}")))?;
            text.trim().to_owned()
        }
        None => to.to_owned(),
    };
    if address.contains("://") {
        return Ok(Store::connect(&PostgresSettings::new(Secret::new(address))).await?);
    }
    Ok(Store::open(Path::new(&address)).await?)
}

async fn copy(from: &Store, to: &Store, output: Output) -> Result<(), Failure> {
    let copied = from.copy_to(to).await;
    let (source, target) = (from.location().to_string(), to.location().to_string());
    from.close().await;
    to.close().await;
    show(&copied?, &source, &target, output);
    Ok(())
}

fn show(copied: &[CopiedTable], source: &str, target: &str, output: Output) {
    let rows: u64 = copied.iter().map(|table| table.rows).sum();
    if output.is_json() {
        let tables: Vec<_> = copied
            .iter()
            .map(|table| json!({ "table": table.name, "rows": table.rows, "digest": table.digest }))
            .collect();
        output.json(&json!({ "from": source, "to": target, "rows": rows, "tables": tables }));
        return;
    }
    let filled = copied.iter().filter(|table| table.rows > 0);
    let lines = filled.map(|table| vec![cell(table.name), cell(table.rows)]).collect();
    output.table(&["TABLE", "ROWS"], lines);
    output.note(&format!("copied {rows} rows from {source} to {target}, and compared them"));
}

fn refuse_existing(file: &Path) -> Result<(), Failure> {
    if file.exists() {
        return Err(Failure::usage(format!("{} is there already", file.display())));
    }
    Ok(())
}

/// Removes a backup that failed, with the files that the database keeps beside it.
fn remove_incomplete(file: &Path) {
    for end in ["", "-wal", "-shm"] {
        let path = PathBuf::from(format!("{}{end}", file.display()));
        if let Err(error) = std::fs::remove_file(&path) {
            tracing::debug!(%error, "no such part of the backup");
        }
    }
}

impl From<CopyError> for Failure {
    fn from(error: CopyError) -> Self {
        match error {
            CopyError::Store(error) => error.into(),
            error @ CopyError::NotEmpty { .. } => Self::start(error.to_string())
                .with_hint(Some("choose an empty database or a new directory".into())),
            error @ CopyError::Differs { .. } => Self::start(error.to_string()),
        }
    }
}
