//! `store`: brings the layout up to date, copies, backs up and restores what a board keeps.

use std::fmt::Display;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::json;
use switchboard_model::Secret;
use switchboard_store::{CopiedTable, CopyError, PostgresSettings, Store, StoreError};

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
            let from = open_store(globals).await?;
            let to = Store::open_file(file).await.map_err(|error| not_written(file, &error))?;
            let source = from.location().to_string();
            let copied = copy(&from, &to, source, output).await;
            if copied.is_err() {
                remove_incomplete(file);
            }
            copied
        }
        StoreCommand::Restore { file } => {
            if !file.is_file() {
                return Err(Failure::usage(format!("there is no file {}", file.display())));
            }
            let scratch = tempfile::tempdir().map_err(|error| not_read(file, error))?;
            let from = open_backup(file, scratch.path()).await?;
            let to = open_store(globals).await?;
            copy(&from, &to, file.display().to_string(), output).await
        }
        StoreCommand::Copy { to } => {
            let from = open_store(globals).await?;
            let to = open_target(to).await?;
            let source = from.location().to_string();
            if source == to.location().to_string() {
                let same = format!("{source} cannot be copied to itself");
                return Err(Failure::usage(same));
            }
            copy(&from, &to, source, output).await
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
    if !address.contains("://") {
        return Ok(Store::open(Path::new(&address)).await?);
    }
    let opened = Store::connect(&PostgresSettings::new(Secret::new(address))).await;
    opened.map_err(|error| match &error {
        StoreError::Address { source } => {
            let message = format!("`--to` is not the address of a PostgreSQL database: {source}");
            Failure::usage(message).with_hint(error.hint())
        }
        _ => error.into(),
    })
}

/// Opens a copy of a backup, in a directory that only this user reads: the backup stays as it is, also where a newer version
/// brings its layout up to date, and need not be writable.
async fn open_backup(file: &Path, scratch: &Path) -> Result<Store, Failure> {
    let copy = scratch.join("backup.db");
    for end in ["", "-wal"] {
        let (from, to) = (with_end(file, end), with_end(&copy, end));
        // A database that was copied as files has its newest changes beside it.
        if end.is_empty() || from.exists() {
            copy_content(&from, &to).map_err(|error| not_read(file, error))?;
        }
    }
    Store::open_file(&copy).await.map_err(|error| match error {
        StoreError::Damaged { .. } => not_read(file, "it is damaged or is not a database")
            .with_hint(Some("choose a file that `store backup` wrote".into())),
        StoreError::Newer { .. } => not_read(file, "a newer version made it")
            .with_hint(Some("restore it with that version, or a later one".into())),
        error => not_read(file, error.in_full()),
    })
}

/// Copies the bytes, not the mode.
fn copy_content(from: &Path, to: &Path) -> io::Result<()> {
    let (mut from, mut to) = (File::open(from)?, File::create(to)?);
    io::copy(&mut from, &mut to).map(drop)
}

fn not_read(file: &Path, why: impl Display) -> Failure {
    Failure::start(format!("cannot read the backup {}: {why}", file.display()))
}

fn not_written(file: &Path, error: &StoreError) -> Failure {
    let message = format!("cannot write the backup {}: {}", file.display(), error.in_full());
    Failure::start(message)
        .with_hint(Some("choose another file, in a directory that exists".into()))
}

async fn copy(from: &Store, to: &Store, source: String, output: Output) -> Result<(), Failure> {
    let copied = from.copy_to(to).await;
    let target = to.location().to_string();
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
        if let Err(error) = std::fs::remove_file(with_end(file, end)) {
            tracing::debug!(%error, "no such part of the backup");
        }
    }
}

fn with_end(file: &Path, end: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(end);
    PathBuf::from(name)
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
