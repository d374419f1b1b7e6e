//! `tool list`.

use std::collections::BTreeMap;
use std::process::ExitCode;

use switchboard_api::{QuarantinedToolView, SlotHolderView, ToolView};
use switchboard_model::ServerName;

use crate::args::Globals;
use crate::backend::Backend;
use crate::failure::Failure;
use crate::output::{Output, cell, harmless};

/// Maximum number of characters of a description in the table.
const SHOWN_DESCRIPTION: usize = 60;

pub(crate) async fn run(
    globals: &Globals,
    server: Option<&str>,
    shows_quarantined: bool,
    output: Output,
) -> Result<ExitCode, Failure> {
    let backend = match server {
        Some(_) => Backend::open_to_look(globals, output, server).await?,
        None => Backend::open(globals, output).await?,
    };
    let mut list = backend.tools().await?;
    if let Some(server) = server {
        let known: Vec<_> = backend.servers().await?.servers;
        let is_known = |name: &str| known.iter().any(|server| server.name == name);
        if !is_known(server) && server != ServerName::local().as_str() {
            backend.close().await;
            return Err(Failure::usage(format!("no server '{server}' is configured")));
        }
        list.tools.retain(|tool| tool.server == server);
        list.quarantined.retain(|tool| tool.server == server);
    }
    if output.is_json() {
        output.json(&list);
    } else if list.tools.is_empty() {
        output.note("no tools are registered");
    } else {
        show(&list.tools, &backend.slot_holders().await, output);
    }
    if !output.is_json() && !list.quarantined.is_empty() {
        show_quarantined(&list.quarantined, shows_quarantined, output);
    }
    backend.close().await;
    Ok(ExitCode::SUCCESS)
}

type SlotHolders = BTreeMap<String, Vec<SlotHolderView>>;

/// With a column of who holds slots, if boards share them and some are held.
fn show(tools: &[ToolView], holders: &SlotHolders, output: Output) {
    let shows_holders = tools.iter().any(|tool| holders.contains_key(&tool.name));
    let mut header = vec!["tool", "limits", "configured", "description"];
    if shows_holders {
        header.insert(2, "slots held");
    }
    let rows = tools.iter().map(|tool| {
        let limits = format!("{} x {}", tool.limits.max_instances, tool.limits.timeout);
        let about = harmless(tool.description.as_deref().unwrap_or_default());
        let mut about: String =
            about.lines().next().unwrap_or_default().chars().take(SHOWN_DESCRIPTION).collect();
        if !tool.available {
            about = format!("(unavailable) {about}");
        }
        let mut row = vec![tool.name.clone(), limits, tool.configured.clone(), about];
        if shows_holders {
            row.insert(2, held_by(holders.get(&tool.name).map(Vec::as_slice).unwrap_or_default()));
        }
        row.into_iter().map(cell).collect()
    });
    output.table(&header, rows.collect());
}

/// `2 by one (1 in use, 3 waiting), 1 by two`.
fn held_by(holders: &[SlotHolderView]) -> String {
    let texts = holders.iter().map(|holder| {
        let mut more = Vec::new();
        if holder.used > 0 {
            more.push(format!("{} in use", holder.used));
        }
        if holder.waiting > 0 {
            more.push(format!("{} waiting", holder.waiting));
        }
        if holder.silent {
            more.push("silent".to_owned());
        }
        let more = if more.is_empty() { String::new() } else { format!(" ({})", more.join(", ")) };
        format!("{} by {}{more}", holder.held, harmless(&holder.name))
    });
    texts.collect::<Vec<_>>().join(", ")
}

fn show_quarantined(tools: &[QuarantinedToolView], is_wanted: bool, output: Output) {
    if !is_wanted {
        let count = tools.len();
        return output.note(&format!("{count} more are quarantined: `tool list --all` says why"));
    }
    let rows = tools.iter().map(|tool| {
        let name = tool.tool.as_deref().unwrap_or("(no name)");
        let name = harmless(&format!("{}.{name}", tool.server));
        [name, harmless(&tool.reason)].map(cell).to_vec()
    });
    output.table(&["quarantined", "reason"], rows.collect());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holders_of_slots_are_named_with_what_they_do() {
        let holder = |name: &str, held, used, waiting, silent| SlotHolderView {
            board: "id".into(),
            name: name.into(),
            held,
            used,
            waiting,
            silent,
        };
        let holders = [holder("one", 2, 1, 3, false), holder("two", 1, 0, 0, true)];
        assert_eq!(held_by(&holders), "2 by one (1 in use, 3 waiting), 1 by two (silent)");
        assert_eq!(
            (held_by(&holders[..0]), held_by(&[holder("x", 1, 0, 0, false)])),
            (String::new(), "1 by x".into())
        );
    }
}
