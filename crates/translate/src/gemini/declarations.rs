//! Names and schemas of Gemini, as other APIs have them.

use serde_json::{Map, Value, json};

/// Members that hold values of the app, whose names stay as they are.
const VALUES: [&str; 8] = [
    "args",
    "response",
    "parameters",
    "parametersJsonSchema",
    "responseSchema",
    "responseJsonSchema",
    "responseFormat",
    "labels",
];

/// The value with the names of its members in camel case: the API takes both.
pub(super) fn camel_case(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let members = members.iter().map(|(name, value)| {
                let name = camel_name(name);
                let is_value = VALUES.contains(&name.as_str());
                let value = if is_value { value.clone() } else { camel_case(value) };
                (name, value)
            });
            Value::Object(members.collect())
        }
        Value::Array(items) => items.iter().map(camel_case).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

fn camel_name(name: &str) -> String {
    let mut camel = String::with_capacity(name.len());
    let mut is_next_upper = false;
    for letter in name.chars() {
        match letter {
            '_' => is_next_upper = true,
            letter if is_next_upper => {
                camel.push(letter.to_ascii_uppercase());
                is_next_upper = false;
            }
            letter => camel.push(letter),
        }
    }
    camel
}

/// A declared function with the JSON Schema of its parameters.
pub(super) fn function(declaration: &Value) -> Value {
    let schema = match (&declaration["parametersJsonSchema"], &declaration["parameters"]) {
        (Value::Null, Value::Null) => Value::Null,
        (Value::Null, own) => json_schema(own),
        (schema, _) => schema.clone(),
    };
    json!({
        "name": declaration["name"],
        "description": declaration["description"],
        "parameters": schema,
    })
}

/// Gemini's own schema as JSON Schema: types in lower case, and `nullable` as a type.
fn json_schema(schema: &Value) -> Value {
    let Value::Object(members) = schema else { return schema.clone() };
    let mut read = Map::new();
    for (name, value) in members {
        let name = camel_name(name);
        let value = match (name.as_str(), value) {
            ("nullable" | "propertyOrdering", _) => continue,
            ("type", Value::String(kind)) if kind == "TYPE_UNSPECIFIED" => continue,
            ("type", Value::String(kind)) => kind.to_ascii_lowercase().into(),
            ("properties" | "defs", Value::Object(properties)) => Value::Object(
                properties
                    .iter()
                    .map(|(name, schema)| (name.clone(), json_schema(schema)))
                    .collect(),
            ),
            ("anyOf", Value::Array(schemas)) => schemas.iter().map(json_schema).collect(),
            ("items" | "additionalProperties", schema) => json_schema(schema),
            // These counts are strings in Google's JSON.
            ("minItems" | "maxItems" | "minLength" | "maxLength", Value::String(count)) => {
                count.parse::<u64>().map_or(Value::Null, Value::from)
            }
            (_, value) => value.clone(),
        };
        read.insert(name, value);
    }
    if members.get("nullable") == Some(&Value::Bool(true))
        && let Some(kind) = read.get_mut("type")
    {
        *kind = json!([kind.clone(), "null"]);
    }
    Value::Object(read)
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn own_schemas_become_json_schemas() {
        let own = json!({
            "type": "OBJECT",
            "properties": {"max_count": {"type": "INTEGER", "nullable": true}, "type": {"type": "STRING"}},
            "property_ordering": ["type"],
            "required": ["type"],
            "any_of": [{"type": "ARRAY", "items": {"type": "NUMBER"}, "min_items": "1"}],
        });
        let expected = json!({
            "type": "object",
            "properties": {"max_count": {"type": ["integer", "null"]}, "type": {"type": "string"}},
            "required": ["type"],
            "anyOf": [{"type": "array", "items": {"type": "number"}, "minItems": 1}],
        });
        assert_eq!(json_schema(&own), expected);
    }

    #[test]
    fn values_of_the_app_keep_their_names() {
        let written = json!({"function_call": {"name": "f", "args": {"a_b": {"c_d": 1}}}, "max_output_tokens": 1});
        let expected = json!({"functionCall": {"name": "f", "args": {"a_b": {"c_d": 1}}}, "maxOutputTokens": 1});
        assert_eq!(camel_case(&written), expected);
    }
}
