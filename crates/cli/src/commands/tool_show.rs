//! `tool show`: one tool, its limits and its arguments; for a tool that is not there, its entry and the reason.

use std::process::ExitCode;

use comfy_table::Cell;
use serde_json::Value;
use switchboard_api::{ToolDeclarationView, ToolView};

use crate::args::Globals;
use crate::backend::Backend;
use crate::entry_fields::show_fields;
use crate::failure::Failure;
use crate::output::{Output, cell};

pub(crate) async fn run(
    globals: &Globals,
    name: &str,
    output: Output,
) -> Result<ExitCode, Failure> {
    let backend = Backend::open_to_look_at_tool(globals, output, name).await?;
    let found = backend.tool(name).await;
    let absent = match &found {
        // An error here, such as for a role that may not see entries, adds nothing.
        Err(failure) if failure.kind() == "unknown_tool" => {
            backend.declaration(globals, name).await.ok().filter(|view| view.absent.is_some())
        }
        Ok(_) | Err(_) => None,
    };
    backend.close().await;
    match (found, absent) {
        (Ok(tool), _) if output.is_json() => output.json(&tool),
        (Ok(tool), _) => show(&tool, output),
        (Err(_), Some(absent)) if output.is_json() => output.json(&absent),
        (Err(_), Some(absent)) => show_absent(&absent, output),
        (Err(failure), None) => return Err(failure),
    }
    Ok(ExitCode::SUCCESS)
}

/// Shows a tool that is not in the catalog: the reason, and its entry with the place of each value.
fn show_absent(view: &ToolDeclarationView, output: Output) {
    output.data(&view.name);
    if let Some(absent) = &view.absent {
        output.data(&format!("not available: {}", absent.message));
        if let Some(hint) = &absent.hint {
            output.data(&format!("hint: {hint}"));
        }
    }
    let Some(Value::Object(declared)) = &view.declared else { return };
    output.data("\nin the file:");
    // The file has the limits of a tool beside its other fields.
    let mut fields = declared.clone();
    if let Some(Value::Object(limits)) = fields.shift_remove("limits") {
        fields.extend(limits);
    }
    let in_file = |pointer: &str| pointer.strip_prefix("/limits").unwrap_or(pointer).to_owned();
    let origins = view.origins.iter().map(|(pointer, place)| (in_file(pointer), place.clone()));
    show_fields(&fields, &origins.collect(), output);
}

fn show(tool: &ToolView, output: Output) {
    output.data(&tool.name);
    if let Some(description) = &tool.description {
        output.data(description);
    }
    let limits = &tool.limits;
    output.data(&format!(
        "\nserver         {} ({}{})",
        tool.server,
        tool.mode,
        if tool.available { "" } else { ", unavailable" }
    ));
    let toolset = tool.toolset.as_deref().unwrap_or("none (its server has `toolset: none`)");
    output.data(&format!("toolset        {toolset}"));
    output.data(&format!("configured     {}", tool.configured));
    output.data(&format!("max_instances  {}", limits.max_instances));
    output.data(&format!("timeout        {} (queue {})", limits.timeout, limits.queue_timeout));
    output.data(&format!("max_timeout    {} (with progress)", limits.max_timeout));
    if let Some(inactivity) = &limits.inactivity_timeout {
        output.data(&format!("inactivity     {inactivity}"));
    }
    output.data(&format!("max_result     {} bytes", limits.max_result_bytes));
    if !tool.validates_arguments {
        output.data("arguments      not checked (`validate_arguments: false`)");
    }
    let texts = |texts: &[String]| if texts.is_empty() { "none".into() } else { texts.join(", ") };
    if let Some(groups) = &tool.group {
        output.data(&format!("groups         {}", texts(groups)));
    }
    if let Some(states) = &tool.applicable_states {
        output.data(&format!("available in   {}", texts(states)));
    }
    if let Some(state) = &tool.state {
        output.data(&format!("next state     {state}"));
    }
    for repair in &tool.repairs {
        output.data(&format!("repaired       {repair}"));
    }
    let arguments = arguments(&tool.input_schema);
    if arguments.is_empty() {
        return output.data("\nIt takes no arguments.");
    }
    output.data("");
    output.table(&["argument", "type", "required", "description"], arguments);
}

fn arguments(schema: &Value) -> Vec<Vec<Cell>> {
    let required = |name: &str| {
        let names = schema.get("required").and_then(Value::as_array);
        names.is_some_and(|names| names.iter().any(|required| required == name))
    };
    let properties = schema.get("properties").and_then(Value::as_object);
    properties
        .into_iter()
        .flatten()
        .map(|(name, property)| {
            let kind = match property.get("type") {
                Some(Value::String(kind)) => kind.clone(),
                Some(kinds) => kinds.to_string(),
                None => "any".into(),
            };
            let about = property.get("description").and_then(Value::as_str).unwrap_or_default();
            let is_required = if required(name) { "yes" } else { "no" };
            [name, &*kind, is_required, about].map(cell).to_vec()
        })
        .collect()
}
