//! `toolset`: shows, changes and drafts toolsets.

use std::process::ExitCode;

use switchboard_api::{Problem, ToolsetList, ToolsetView};
use switchboard_config::EntryList;
use switchboard_http::present_sessions;
use switchboard_model::LiveAccess;

use super::{toolset_draft, toolset_set};
use crate::args::{Globals, ToolsetCommand};
use crate::entry_change;
use crate::failure::Failure;
use crate::output::{Output, cell, harmless};
use crate::session_backend::SessionBackend;

/// Minimum similarity of a suggested name.
const ALIKE: f64 = 0.7;

pub(crate) async fn run(
    globals: &Globals,
    wanted: ToolsetCommand,
    output: Output,
) -> Result<ExitCode, Failure> {
    let name = match wanted {
        ToolsetCommand::Draft(wanted) => return toolset_draft::run(globals, &wanted, output).await,
        ToolsetCommand::Set(wanted) => return toolset_set::set(globals, &wanted, output).await,
        ToolsetCommand::Delete(wanted) => {
            return entry_change::delete(globals, EntryList::Toolsets, &wanted, output).await;
        }
        ToolsetCommand::List => None,
        ToolsetCommand::Show { name } => Some(name),
    };
    let backend = SessionBackend::open(globals, output).await?;
    let list = match &backend {
        SessionBackend::Remote(remote) => remote.get::<ToolsetList>(&["toolsets"], &[]).await,
        SessionBackend::Embedded(_, sessions, _) => {
            Ok(present_sessions::toolsets(sessions, &LiveAccess::default()))
        }
    };
    backend.close().await;
    let list = list?;
    match name {
        None if output.is_json() => output.json(&list),
        None => show_list(&list, output),
        Some(name) => {
            let set = list.toolsets.iter().find(|set| set.name == name);
            let set = set.ok_or_else(|| unknown(&name, &list))?;
            if output.is_json() {
                output.json(set);
            } else {
                show(set, output);
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn show_list(list: &ToolsetList, output: Output) {
    let rows = list.toolsets.iter().map(|set| {
        [set.name.clone(), set.tools.to_string(), set.description.clone()].map(cell).to_vec()
    });
    output.table(&["toolset", "tools", "description"], rows.collect());
    output.note(&format!("exposure: {}", list.reason));
}

fn show(set: &ToolsetView, output: Output) {
    let mut lines = vec![("toolset", set.name.clone()), ("description", set.description.clone())];
    lines.extend(set.when_to_use.clone().map(|text| ("when to use", text)));
    lines.push(("tools", set.tools.to_string()));
    for (what, text) in lines {
        output.data(&format!("{what:<12} {}", harmless(&text)));
    }
    for tool in &set.members {
        output.data(&format!("  {}", harmless(tool)));
    }
}

fn unknown(name: &str, list: &ToolsetList) -> Failure {
    let nearest = list
        .toolsets
        .iter()
        .map(|set| (strsim::jaro_winkler(name, &set.name), &set.name))
        .filter(|(alike, _)| *alike >= ALIKE)
        .max_by(|one, other| one.0.total_cmp(&other.0));
    let hint = match nearest {
        Some((_, near)) => format!("did you mean '{near}'?"),
        None => "`switchboard toolset list` shows them".into(),
    };
    let problem = Problem::new("bad_request", 404, format!("there is no toolset '{name}'"));
    Failure::from(problem).with_hint(Some(hint))
}
