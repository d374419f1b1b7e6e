//! `tool show`: one tool, its limits and its arguments.

use std::process::ExitCode;

use comfy_table::Cell;
use serde_json::Value;
use switchboard_api::ToolView;

use crate::args::Globals;
use crate::backend::Backend;
use crate::failure::Failure;
use crate::output::{Output, cell};

pub(crate) async fn run(
    globals: &Globals,
    name: &str,
    output: Output,
) -> Result<ExitCode, Failure> {
    let backend = Backend::open_for_tool(globals, output, name).await?;
    let found = backend.tool(name).await;
    backend.close().await;
    let tool = found?;
    if output.is_json() {
        output.json(&tool);
    } else {
        show(&tool, output);
    }
    Ok(ExitCode::SUCCESS)
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
