//! `tool show`: one tool, its limits and its arguments; for a tool that is not there, its entry and the reason.

use std::process::ExitCode;

use comfy_table::Cell;
use serde_json::Value;
use switchboard_api::{HiddenArgument, ToolDeclarationView, ToolView};

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
    if let Some(rate) = &limits.rate {
        output.data(&format!("rate           {rate}"));
    }
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
    for (heading, names) in hidden_lines(tool.hidden_arguments.as_deref().unwrap_or_default()) {
        output.data(&format!("{heading:<14} {names}"));
    }
    let arguments = argument_rows(&tool.input_schema);
    if arguments.is_empty() {
        return output.data("\nIt takes no arguments.");
    }
    output.data("");
    let (header, rows) = without_empty_columns(arguments);
    output.table(&header, rows);
}

const COLUMNS: [&str; 6] =
    ["argument", "type", "required", "accepted values", "default", "description"];
/// Columns that are left out where no argument has a value for them.
const OPTIONAL_COLUMNS: [&str; 2] = ["accepted values", "default"];
/// Maximum number of accepted values that are shown.
const MAX_VALUES: usize = 20;

type ArgumentRow = [String; COLUMNS.len()];

fn argument_rows(schema: &Value) -> Vec<ArgumentRow> {
    let required = |name: &str| {
        let names = schema.get("required").and_then(Value::as_array);
        names.is_some_and(|names| names.iter().any(|required| required == name))
    };
    let properties = schema.get("properties").and_then(Value::as_object);
    properties
        .into_iter()
        .flatten()
        .map(|(name, property)| {
            let elements = property.get("items").filter(|_| kind_of(property) == "array");
            let kind = match elements {
                Some(elements) => format!("array of {}", kind_of(elements)),
                None => kind_of(property),
            };
            let about = property.get("description").and_then(Value::as_str).unwrap_or_default();
            let is_required = if required(name) { "yes" } else { "no" };
            let default = property.get("default").map(Value::to_string).unwrap_or_default();
            let values = accepted_values(elements.unwrap_or(property));
            [name.clone(), kind, is_required.into(), values, default, about.into()]
        })
        .collect()
}

fn kind_of(schema: &Value) -> String {
    match schema.get("type") {
        Some(Value::String(kind)) => kind.clone(),
        Some(kinds) => kinds.to_string(),
        None => "any".into(),
    }
}

/// Lines about the arguments that callers do not see: a heading, and the names under it.
fn hidden_lines(arguments: &[HiddenArgument]) -> Vec<(&'static str, String)> {
    let (fixed, hidden): (Vec<_>, Vec<_>) =
        arguments.iter().partition(|argument| argument.source == "fixed");
    let names = |arguments: Vec<&HiddenArgument>| {
        let name = |argument: &HiddenArgument| match argument.source.as_str() {
            "hidden_default" => format!("{} (its default is sent)", argument.name),
            "withheld" => format!("{} (never sent)", argument.name),
            _ => argument.name.clone(),
        };
        arguments.into_iter().map(name).collect::<Vec<_>>().join(", ")
    };
    let mut lines = vec![("fixed", names(fixed)), ("hidden", names(hidden))];
    lines.retain(|(_, names)| !names.is_empty());
    lines
}

/// The values of `enum` or `const`, as JSON.
fn accepted_values(property: &Value) -> String {
    let values: Vec<&Value> = match (property.get("enum"), property.get("const")) {
        (Some(Value::Array(values)), _) => values.iter().collect(),
        (_, Some(only)) => vec![only],
        _ => return String::new(),
    };
    let mut texts: Vec<_> = values.iter().take(MAX_VALUES).map(ToString::to_string).collect();
    if values.len() > MAX_VALUES {
        texts.push(format!("and {} more", values.len() - MAX_VALUES));
    }
    texts.join(", ")
}

fn without_empty_columns(rows: Vec<ArgumentRow>) -> (Vec<&'static str>, Vec<Vec<Cell>>) {
    let is_shown = COLUMNS.map(|column| OPTIONAL_COLUMNS.contains(&column));
    let mut is_shown = is_shown.map(|is_optional| !is_optional);
    for row in &rows {
        for (shown, text) in is_shown.iter_mut().zip(row) {
            *shown |= !text.is_empty();
        }
    }
    let kept = |index: &usize| is_shown[*index];
    let header = (0..COLUMNS.len()).filter(kept).map(|index| COLUMNS[index]).collect();
    let cells = |row: ArgumentRow| -> Vec<Cell> {
        (0..COLUMNS.len()).filter(kept).map(|index| cell(&row[index])).collect()
    };
    (header, rows.into_iter().map(cells).collect())
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use serde_json::json;

    use super::*;

    fn shown(schema: &Value) -> Vec<Vec<String>> {
        let (header, rows) = without_empty_columns(argument_rows(schema));
        let header = header.into_iter().map(str::to_owned).collect();
        let texts = |row: Vec<Cell>| row.iter().map(Cell::content).collect();
        std::iter::once(header).chain(rows.into_iter().map(texts)).collect()
    }

    #[test]
    fn accepted_values_and_defaults_are_shown_where_an_argument_has_them() {
        let plain = json!({"properties": {"a": {"type": "string"}}, "required": ["a"]});
        assert_eq!(
            shown(&plain),
            [vec!["argument", "type", "required", "description"], vec!["a", "string", "yes", ""]]
        );
        let rich = json!({"properties": {
            "unit": {"type": "string", "enum": ["celsius", "kelvin"], "default": "celsius", "description": "Unit"},
            "n": {"const": 1},
        }});
        assert_eq!(
            shown(&rich),
            [
                vec!["argument", "type", "required", "accepted values", "default", "description"],
                vec!["unit", "string", "no", r#""celsius", "kelvin""#, r#""celsius""#, "Unit"],
                vec!["n", "any", "no", "1", "", ""],
            ]
        );
        let lists = json!({"properties": {
            "to": {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}, "default": []},
            "any": {"type": "array"},
            "open": {"type": "array", "items": {}},
        }});
        let rows = &shown(&lists)[1..];
        assert_eq!(rows[0], ["to", "array of string", "no", r#""a", "b""#, "[]", ""]);
        assert_eq!((&*rows[1][1], &*rows[2][1]), ("array", "array of any"));
        let many =
            json!({"properties": {"n": {"enum": (0..25).collect::<Vec<_>>(), "default": false}}});
        let row = &shown(&many)[1];
        assert!(row[3].ends_with("18, 19, and 5 more"), "{row:?}");
        assert_eq!(row[4], "false");
    }
}
