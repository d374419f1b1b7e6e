//! Serialises a tool definition for `tools/list`.

use switchboard_model::ToolDescriptor;
use switchboard_protocol::{Members, push_string};

/// The protocol era that a list is written for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListEra {
    /// 2025-11-25 and older: the client has a session.
    Session,
    /// 2026-07-28: every request stands alone.
    Stateless,
}

/// Appends the definition of a tool under its exposed name. Members that strict clients accept keep their bytes.
pub fn render_tool(json: &mut String, name: &str, tool: &ToolDescriptor, era: ListEra) {
    json.push_str("{\"name\":");
    push_string(json, name);
    let texts = [("title", &tool.title), ("description", &tool.description)];
    for (key, text) in texts {
        if let Some(text) = text {
            push_key(json, key);
            push_string(json, text);
        }
    }
    push_key(json, "inputSchema");
    json.push_str(tool.shown_schema().as_str());
    let output = tool.output_schema.as_ref().map(switchboard_model::JsonText::as_str);
    // Clients of the session era accept only output schemas of objects, and validate every result against them.
    if let Some(schema) = output.filter(|schema| era == ListEra::Stateless || is_of_object(schema))
    {
        push_key(json, "outputSchema");
        json.push_str(schema);
    }
    if let Some(annotations) = &tool.annotations {
        push_key(json, "annotations");
        json.push_str(annotations.as_str());
    }
    if let Some(extra) = &tool.extra
        && let Ok(members) = Members::read(extra.as_str())
    {
        for (key, value) in members.iter() {
            json.push(',');
            push_string(json, key);
            json.push(':');
            json.push_str(value);
        }
    }
    json.push('}');
}

fn push_key(json: &mut String, key: &str) {
    json.push_str(",\"");
    json.push_str(key);
    json.push_str("\":");
}

fn is_of_object(schema: &str) -> bool {
    Members::read(schema).is_ok_and(|members| members.string("type").as_deref() == Some("object"))
}

#[cfg(test)]
mod tests {
    use switchboard_model::JsonText;

    use super::*;

    #[test]
    fn a_definition_keeps_what_the_server_wrote() {
        let tool = ToolDescriptor {
            title: Some("T".into()),
            output_schema: Some(JsonText::from(&serde_json::json!({"type": "array"}))),
            annotations: Some(JsonText::from(&serde_json::json!({"readOnlyHint": true}))),
            extra: Some(JsonText::from(&serde_json::json!({"icons": [{"src": "data:,"}]}))),
            ..ToolDescriptor::named("get")
        };
        let render = |era| {
            let mut json = String::new();
            render_tool(&mut json, "s__get", &tool, era);
            json
        };
        assert_eq!(
            render(ListEra::Stateless),
            r#"{"name":"s__get","title":"T","inputSchema":{"type":"object"},"outputSchema":{"type":"array"},"annotations":{"readOnlyHint":true},"icons":[{"src":"data:,"}]}"#
        );
        assert!(!render(ListEra::Session).contains("outputSchema"));
    }
}
