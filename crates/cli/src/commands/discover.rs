//! `discover`: shows which servers the sources name, from where, and why some of them are not added.

use std::process::ExitCode;

use comfy_table::Cell;
use switchboard_api::{SourceList, SourceView};
use switchboard_discovery::AutoChoice;
use switchboard_http::source_list;

use crate::args::Globals;
use crate::discovered::discover;
use crate::embedded::load_config;
use crate::failure::{EXIT_UNREACHABLE, Failure};
use crate::output::{Output, cell, state_cell};
use crate::remote::Remote;

pub(crate) async fn run(globals: &Globals, output: Output) -> Result<ExitCode, Failure> {
    let (list, choice): (SourceList, _) = if let Some(url) = globals.instance() {
        (Remote::new(url)?.get(&["sources"], &[]).await?, None)
    } else {
        let found = discover(globals, &load_config(globals, output)?).await;
        (source_list(&found.sources, &found.plan, &found.left_out), found.choice)
    };
    if output.is_json() {
        output.json(&list);
    } else {
        show(&list, choice.as_ref(), output);
    }
    let is_failing = list.sources.iter().any(|source| source.state == "failing");
    Ok(if is_failing { ExitCode::from(EXIT_UNREACHABLE) } else { ExitCode::SUCCESS })
}

fn show(list: &SourceList, choice: Option<&AutoChoice>, output: Output) {
    if list.sources.is_empty() {
        let why = match choice {
            Some(AutoChoice::Nothing { because, .. }) => format!(": {because}"),
            Some(AutoChoice::Manifest { .. } | AutoChoice::Gateway { .. }) | None => String::new(),
        };
        return output.note(&format!("there is no source of servers{why}"));
    }
    let header = ["source", "type", "state", "servers", "refresh", "place"];
    output.table(&header, list.sources.iter().map(source_row).collect());
    let added = list.sources.iter().flat_map(|source| {
        let name = &source.name;
        source.servers.iter().map(move |it| [&it.name, name, &it.original_name, &it.place])
    });
    let added: Vec<_> = added.map(|row| row.map(cell).to_vec()).collect();
    if !added.is_empty() {
        output.data("");
        output.table(&["server", "source", "name in the source", "place"], added);
    }
    let left_out = list.sources.iter().flat_map(|source| {
        let name = &source.name;
        source.left_out.iter().map(move |it| [&it.name, name, &it.reason])
    });
    let left_out: Vec<_> = left_out.map(|row| row.map(cell).to_vec()).collect();
    if !left_out.is_empty() {
        output.data("");
        output.table(&["left out", "source", "reason"], left_out);
    }
    for source in &list.sources {
        show_notes(source, output);
    }
}

fn source_row(source: &SourceView) -> Vec<Cell> {
    vec![
        cell(&source.name),
        cell(&source.kind),
        state_cell(&source.state),
        cell(source.servers.len()),
        cell(&source.refresh),
        cell(&source.place),
    ]
}

fn show_notes(source: &SourceView, output: Output) {
    let name = &source.name;
    if let Some(because) = &source.chosen_because {
        output.note(&format!("{name}: chosen because {because}"));
    }
    for warning in &source.warnings {
        output.note(&format!("{name}: {warning}"));
    }
    if let Some(error) = &source.error {
        // Continuation lines are indented, so that text from a gateway cannot look like a line about another source.
        output.note(&format!("{name}: {}", error.replace('\n', "\n  ")));
    }
    if let Some(hint) = &source.hint {
        output.note(&format!("  hint: {hint}"));
    }
}
