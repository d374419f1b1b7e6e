//! Tools that resemble those of real servers: names of a verb and a noun, descriptions of a few sentences, and schemas
//! of some hundred bytes.

use serde_json::{Map, Value, json};

use crate::Tool;

const NOUNS: [(&str, &str); 12] = [
    ("customer", "a customer record with contact data and billing address"),
    ("invoice", "an invoice with its lines, taxes and payment state"),
    ("order", "a sales order and the state of its delivery"),
    ("ticket", "a support ticket with its conversation"),
    ("repository", "a source repository and its settings"),
    ("pull_request", "a proposed change with its reviews and checks"),
    ("deployment", "a deployment of one service to one environment"),
    ("document", "a document of the knowledge base"),
    ("calendar_event", "an event in a calendar, with its guests"),
    ("message", "a chat message in a channel or thread"),
    ("dashboard", "a dashboard with its panels and queries"),
    ("employee", "an employee with role, team and manager"),
];

const VERBS: [(&str, &str); 8] = [
    ("get", "Read"),
    ("list", "List page by page, newest first,"),
    ("search", "Search in full text for"),
    ("create", "Create"),
    ("update", "Change some fields of"),
    ("delete", "Delete for good"),
    ("export", "Write to a file"),
    ("archive", "Move to the archive"),
];

/// `count` tools with distinct names, the same on every call. A schema has 300 to 700 bytes.
pub fn demo_catalogue(count: usize) -> Vec<Tool> {
    (0..count).map(demo_tool).collect()
}

fn demo_tool(index: usize) -> Tool {
    let (noun, what) = NOUNS[index % NOUNS.len()];
    let (verb, action) = VERBS[index / NOUNS.len() % VERBS.len()];
    let round = index / (NOUNS.len() * VERBS.len());
    let suffix = if round == 0 { String::new() } else { format!("_v{}", round + 1) };
    let read_only = matches!(verb, "get" | "list" | "search" | "export");
    Tool::new(format!("{verb}_{noun}{suffix}"))
        .description(format!(
            "{action} {what}. Needs the permission `{noun}:{verb}`; answers with the fields the \
             caller may see."
        ))
        .schema(demo_schema(noun, verb, index))
        .member(
            "annotations",
            json!({"readOnlyHint": read_only, "destructiveHint": verb == "delete"}),
        )
}

fn demo_schema(noun: &str, verb: &str, index: usize) -> Value {
    let id = format!("{noun}_id");
    let mut properties = Map::new();
    properties.insert(
        id.clone(),
        json!({"type": "string", "minLength": 1, "maxLength": 64,
               "description": format!("Identifier of the {noun}, as other tools return it.")}),
    );
    properties.insert(
        "fields".into(),
        json!({"type": "array", "items": {"type": "string"}, "maxItems": 50,
               "description": format!("Names of the fields to {verb}; all of them when empty.")}),
    );
    let extra = [
        ("limit", json!({"type": "integer", "minimum": 1, "maximum": 500, "default": 50})),
        ("state", json!({"type": "string", "enum": ["open", "pending", "closed", "archived"]})),
        (
            "since",
            json!({"type": "string", "format": "date-time", "description": "Earliest change."}),
        ),
        ("dry_run", json!({"type": "boolean", "default": false, "description": "Check only."})),
    ];
    for (name, schema) in extra.into_iter().take(1 + index % 4) {
        properties.insert(name.into(), schema);
    }
    json!({"type": "object", "properties": properties, "required": [id], "additionalProperties": false})
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::demo_catalogue;

    #[test]
    fn names_differ_and_schemas_have_a_realistic_size() {
        let tools = demo_catalogue(400);
        let names: HashSet<_> = tools.iter().map(|tool| &tool.name).collect();
        assert_eq!(names.len(), 400);
        for tool in &tools {
            let size = tool.input_schema.to_string().len();
            assert!((300..=700).contains(&size), "{} has a schema of {size} bytes", tool.name);
        }
    }
}
