//! `toolset draft`: proposes toolsets for a server.

use std::process::ExitCode;

use serde_json::{Value, json};
use switchboard_api::{CallBody, ToolView};
use switchboard_config::{DraftTool, ToolsetDraft};

use crate::args::{Globals, ToolsetDraftArguments};
use crate::backend::Backend;
use crate::failure::Failure;
use crate::output::Output;

/// The tool that returns a server's own grouping, where it exists.
const LIST_TOOLSETS: &str = "list_toolsets";

pub(crate) async fn run(
    globals: &Globals,
    wanted: &ToolsetDraftArguments,
    output: Output,
) -> Result<ExitCode, Failure> {
    let given = wanted.from.as_deref().map(read).transpose()?;
    let backend = Backend::open_to_look(globals, output, Some(&wanted.server)).await?;
    let found = look(&backend, &wanted.server, given).await;
    backend.close().await;
    let (tools, grouping) = found?;
    if tools.is_empty() {
        let hint = format!("`switchboard server test {}` shows what it has", wanted.server);
        return Err(Failure::usage(format!("there are no tools of a server '{}'", wanted.server))
            .with_hint(Some(hint)));
    }
    let drafted: Vec<_> = tools.iter().map(draft_tool).collect();
    let draft = ToolsetDraft::propose(&wanted.server, &drafted, grouping.as_ref());
    if output.is_json() {
        let sets = draft.sets.iter().map(|set| {
            json!({"name": set.name, "description": set.description, "when_to_use": set.when_to_use, "tools": set.tools})
        });
        let sets: Vec<_> = sets.collect();
        output.json(&json!({"toolsets": sets, "yaml": draft.to_yaml(), "notes": draft.notes}));
    } else {
        for note in &draft.notes {
            output.note(&format!("note: {note}"));
        }
        output.document(&draft.to_yaml());
        output.note(&match &draft.comment {
            Some(_) => "Edit it, and paste it into the configuration.".to_owned(),
            None => format!(
                "Paste it into the configuration and edit it; `toolset: none` at the server `{}` hides its own set.",
                wanted.server
            ),
        });
    }
    Ok(ExitCode::SUCCESS)
}

/// The tools of the server, and its grouping: the given one, or the server's own.
async fn look(
    backend: &Backend,
    server: &str,
    given: Option<Value>,
) -> Result<(Vec<ToolView>, Option<Value>), Failure> {
    let tools = backend.tools().await?.tools;
    let tools: Vec<_> = tools.into_iter().filter(|tool| tool.server == server).collect();
    let lists_sets = tools.iter().find(|tool| tool.tool == LIST_TOOLSETS);
    let grouping = match (given, lists_sets) {
        (Some(given), _) => Some(given),
        (None, Some(tool)) => {
            let answer = backend
                .call(&tool.name, CallBody { arguments: json!({}), ..CallBody::default() })
                .await?;
            grouping_of(&answer.result)
        }
        (None, None) => None,
    };
    Ok((tools, grouping))
}

/// The structured content of a result, or the JSON in its text.
fn grouping_of(result: &Value) -> Option<Value> {
    if let Some(structure) = result.get("structuredContent").filter(|it| it.is_object()) {
        return Some(structure.clone());
    }
    let content = result.get("content")?.as_array()?;
    content.iter().find_map(|block| serde_json::from_str(block.get("text")?.as_str()?).ok())
}

/// Reads a file with a grouping: the JSON itself, or a `tools/call` result that contains it.
fn read(file: &std::path::Path) -> Result<Value, Failure> {
    let text = std::fs::read_to_string(file)
        .map_err(|error| Failure::start(format!("cannot read {}: {error}", file.display())))?;
    let json: Value = serde_json::from_str(&text).map_err(|error| {
        Failure::usage(format!("{} is not valid JSON: {error}", file.display()))
    })?;
    Ok(if json.get("content").is_some() { grouping_of(&json).unwrap_or(json) } else { json })
}

fn draft_tool(tool: &ToolView) -> DraftTool {
    let annotations = tool.annotations.as_ref();
    let hint = annotations.and_then(|annotations| annotations.get("readOnlyHint"));
    DraftTool { name: tool.tool.clone(), is_read_only: hint == Some(&Value::Bool(true)) }
}
