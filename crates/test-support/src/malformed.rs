//! Tools with definitions that strict clients reject, one fault each, and their expected treatment.

use serde_json::{Map, Value, json};

/// One tool of the table.
#[derive(Debug, Clone)]
pub struct Malformed {
    /// The name of the case, and of the tool if it has one.
    pub case: &'static str,
    /// The definition as the server lists it.
    pub entry: Value,
    pub fate: Fate,
}

/// The expected treatment of a tool.
#[derive(Debug, Clone)]
pub enum Fate {
    /// Listed with exactly these members besides its name.
    Listed(Value),
    /// Kept out of the catalog for this reason.
    Quarantined(&'static str),
}

impl Malformed {
    /// Whether clients see the tool.
    pub fn is_listed(&self) -> bool {
        matches!(self.fate, Fate::Listed(_))
    }
}

/// Every case. Tools are named after their case.
pub fn malformed_tools() -> Vec<Malformed> {
    let mut table = schemas();
    table.extend(members());
    table.extend(output_schemas());
    table.extend(unusable_schemas());
    table.extend(unusable_names());
    table
}

/// A tool with these members and a name.
fn tool(case: &'static str, members: &Value, listed: &Value) -> Malformed {
    Malformed { case, entry: named(case, members), fate: Fate::Listed(listed.clone()) }
}

fn named(name: &str, members: &Value) -> Value {
    let mut entry = Map::from_iter([("name".to_owned(), json!(name))]);
    entry.extend(members.as_object().cloned().unwrap_or_default());
    Value::Object(entry)
}

fn input(case: &'static str, written: &Value, listed: &Value) -> Malformed {
    tool(case, &json!({ "inputSchema": written }), &json!({ "inputSchema": listed }))
}

fn schemas() -> Vec<Malformed> {
    let object = json!({"type": "object"});
    let with = |member: &str, value: Value| {
        let mut schema = object.clone();
        schema[member] = value;
        schema
    };
    let property =
        |schema: Value| with("properties", json!({"a": schema, "b": {"type": "string"}}));
    let empty = with("properties", json!({}));
    vec![
        input("property_true", &property(json!(true)), &property(json!({}))),
        input("property_false", &property(json!(false)), &property(json!({"not": {}}))),
        input("property_null", &property(json!(null)), &property(json!({}))),
        input("schema_empty", &json!({}), &object),
        tool("schema_missing", &json!({}), &json!({ "inputSchema": object })),
        input("schema_null", &json!(null), &object),
        input("schema_true", &json!(true), &object),
        input(
            "type_missing",
            &json!({"properties": {"a": {}}}),
            &json!({"properties": {"a": {}}, "type": "object"}),
        ),
        input("type_null", &json!({"type": null}), &object),
        input("type_of_several", &json!({"type": ["object", "null"]}), &object),
        input("type_in_capitals", &json!({"type": "OBJECT"}), &object),
        input("required_null", &with("required", json!(null)), &object),
        input("required_false", &with("required", json!(false)), &object),
        input("required_true", &with("required", json!(true)), &object),
        input("required_empty_map", &with("required", json!({})), &object),
        input("properties_empty_list", &with("properties", json!([])), &empty),
        input("properties_null", &with("properties", json!(null)), &empty),
        input("dialect_number", &with("$schema", json!(7)), &object),
        input("dialect_null", &with("$schema", json!(null)), &object),
        // Invalid JSON Schema that no client checks: it is listed unchanged.
        input(
            "additional_properties_text",
            &with("additionalProperties", json!("no")),
            &with("additionalProperties", json!("no")),
        ),
        input(
            "several_at_once",
            &json!({"required": null, "properties": {"a": true, "b": false}, "$schema": []}),
            &json!({"properties": {"a": {}, "b": {"not": {}}}, "type": "object"}),
        ),
    ]
}

fn members() -> Vec<Malformed> {
    let object = json!({"inputSchema": {"type": "object"}});
    let with = |member: &str, value: Value| {
        let mut members = object.clone();
        members[member] = value;
        members
    };
    let left_out = |case, member: &str, value: Value| tool(case, &with(member, value), &object);
    let icon = |case, value: Value, listed: Value| {
        tool(case, &with("icons", json!([value])), &with("icons", json!([listed])))
    };
    let no_icon =
        |case, value: Value| tool(case, &with("icons", json!([value])), &with("icons", json!([])));
    let hint = |case, member: &str, value: Value| {
        let mut hints = json!({"openWorldHint": true});
        let listed = with("annotations", hints.clone());
        hints[member] = value;
        tool(case, &with("annotations", hints), &listed)
    };
    let plain = json!({"src": "data:,"});
    vec![
        left_out("title_number", "title", json!(7)),
        left_out("title_null", "title", json!(null)),
        left_out("description_list", "description", json!(["a"])),
        left_out("description_null", "description", json!(null)),
        left_out("icons_null", "icons", json!(null)),
        left_out("icons_map", "icons", json!({"src": "data:,"})),
        no_icon("icon_text", json!("data:,")),
        no_icon("icon_without_src", json!({"mimeType": "image/png"})),
        no_icon("icon_src_number", json!({"src": 7})),
        icon("icon_sizes_text", json!({"src": "data:,", "sizes": "48x48"}), plain.clone()),
        icon("icon_sizes_numbers", json!({"src": "data:,", "sizes": [48]}), plain.clone()),
        icon("icon_theme_unknown", json!({"src": "data:,", "theme": "blue"}), plain.clone()),
        icon("icon_mime_number", json!({"src": "data:,", "mimeType": 1}), plain.clone()),
        left_out("meta_list", "_meta", json!([])),
        left_out("meta_null", "_meta", json!(null)),
        left_out("meta_text", "_meta", json!("x")),
        left_out("annotations_text", "annotations", json!("read only")),
        left_out("annotations_null", "annotations", json!(null)),
        left_out("annotations_list", "annotations", json!([])),
        hint("hint_text", "readOnlyHint", json!("yes")),
        hint("hint_null", "destructiveHint", json!(null)),
        hint("hint_number", "idempotentHint", json!(1)),
        hint("hint_title_number", "title", json!(1)),
        left_out("execution_text", "execution", json!("fast")),
        left_out("execution_null", "execution", json!(null)),
        left_out("execution_unknown", "execution", json!({"taskSupport": "sometimes"})),
        left_out("execution_of_null", "execution", json!({"taskSupport": null})),
        left_out("execution_list", "execution", json!([])),
    ]
}

fn output_schemas() -> Vec<Malformed> {
    let object = json!({"inputSchema": {"type": "object"}});
    let with = |schema: &Value| {
        let mut members = object.clone();
        members["outputSchema"] = schema.clone();
        members
    };
    let left_out = |case, schema: Value| tool(case, &with(&schema), &object);
    let of_property = |schema: Value| json!({"type": "object", "properties": {"a": schema}});
    let repaired = |case, schema: Value, listed: Value| tool(case, &with(&schema), &with(&listed));
    vec![
        left_out("output_list", json!([])),
        left_out("output_null", json!(null)),
        left_out("output_text", json!("object")),
        left_out("output_true", json!(true)),
        // The session era does not allow these; the stateless era lists them.
        repaired("output_of_list", json!({"type": "array"}), json!({"type": "array"})),
        repaired("output_without_type", json!({"$comment": "any"}), json!({"$comment": "any"})),
        repaired("output_property_true", of_property(json!(true)), of_property(json!({}))),
        repaired(
            "output_required_null",
            json!({"type": "object", "required": null}),
            json!({"type": "object"}),
        ),
        repaired(
            "output_properties_list",
            json!({"type": "object", "properties": []}),
            json!({"type": "object", "properties": {}}),
        ),
        left_out("output_ref_to_nothing", of_property(json!({"$ref": "#/$defs/none"}))),
        left_out(
            "output_ref_elsewhere",
            of_property(json!({"$ref": "https://example.com/s.json"})),
        ),
        left_out("output_pattern_broken", of_property(json!({"pattern": "("}))),
        left_out("output_pattern_of_python", of_property(json!({"pattern": "(?P<a>x)"}))),
        left_out("output_pattern_escape", of_property(json!({"pattern": "^\\-$"}))),
        left_out("output_key_pattern", json!({"type": "object", "patternProperties": {"[": {}}})),
        left_out("output_id_of_draft_4", json!({"type": "object", "id": "http://example.com/x"})),
        left_out("output_inner_id", of_property(json!({"$id": "inner", "type": "string"}))),
        left_out("output_type_number", of_property(json!({"type": 7}))),
        left_out("output_type_unknown", of_property(json!({"type": "any"}))),
        left_out("output_enum_empty", of_property(json!({"enum": []}))),
        left_out("output_enum_text", of_property(json!({"enum": "a"}))),
        left_out("output_nullable", of_property(json!({"nullable": true}))),
        left_out(
            "output_draft_4_bound",
            of_property(json!({"minimum": 1, "exclusiveMinimum": true})),
        ),
        left_out("output_property_text", of_property(json!("string"))),
        left_out("output_additional_text", json!({"type": "object", "additionalProperties": "no"})),
        left_out("output_required_text", json!({"type": "object", "required": "a"})),
    ]
}

fn unusable_schemas() -> Vec<Malformed> {
    let bad = |case, schema: Value, reason| Malformed {
        case,
        entry: named(case, &json!({ "inputSchema": schema })),
        fate: Fate::Quarantined(reason),
    };
    let with = |member: &str, value: Value| {
        let mut schema = json!({"type": "object"});
        schema[member] = value;
        schema
    };
    vec![
        bad("schema_list", json!([1]), "its inputSchema is a list, not an object"),
        bad("schema_text", json!("object"), "its inputSchema is a string, not an object"),
        bad("schema_number", json!(7), "its inputSchema is a number, not an object"),
        bad("schema_false", json!(false), "its inputSchema is a boolean, not an object"),
        bad(
            "type_string",
            json!({"type": "string"}),
            "its inputSchema is of type \"string\", and arguments are always an object",
        ),
        bad(
            "type_number",
            json!({"type": 7}),
            "its inputSchema is of type 7, and arguments are always an object",
        ),
        bad(
            "type_unknown",
            json!({"type": "dict"}),
            "its inputSchema is of type \"dict\", and arguments are always an object",
        ),
        bad(
            "properties_text",
            with("properties", json!("a, b")),
            "`properties` of its inputSchema is a string, not an object",
        ),
        bad(
            "properties_list",
            with("properties", json!([{"name": "a"}])),
            "`properties` of its inputSchema is a list, not an object",
        ),
        bad(
            "property_text",
            with("properties", json!({"a": "string"})),
            "`properties.a` of its inputSchema is a string, not a schema",
        ),
        bad(
            "property_list",
            with("properties", json!({"a": ["string"]})),
            "`properties.a` of its inputSchema is a list, not a schema",
        ),
        bad(
            "property_number",
            with("properties", json!({"a": 1})),
            "`properties.a` of its inputSchema is a number, not a schema",
        ),
        bad(
            "required_text",
            with("required", json!("a")),
            "`required` of its inputSchema is \"a\", not a list of names",
        ),
        bad(
            "required_numbers",
            with("required", json!([1, 2])),
            "`required` of its inputSchema is [1,2], not a list of names",
        ),
    ]
}

fn unusable_names() -> Vec<Malformed> {
    let nameless = |case, name: Value, reason| Malformed {
        case,
        entry: json!({"name": name, "inputSchema": {"type": "object"}}),
        fate: Fate::Quarantined(reason),
    };
    vec![
        nameless("name_number", json!(7), "it has no name"),
        nameless("name_null", json!(null), "it has no name"),
        nameless("name_empty", json!(""), "it has no name"),
        nameless(
            "name_with_escape",
            json!("a\u{1b}b"),
            "its name 'a\\u{1b}b' is too long or has control characters",
        ),
    ]
}
