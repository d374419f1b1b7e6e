//! Rewrites older JSON Schema drafts and OpenAPI into draft 2020-12.

use serde_json::{Map, Value};

use crate::rewrite::{Journal, SchemaPath};

const OLD_DRAFT: &str = "an older draft says it this way";

/// Rewrites keywords of older drafts and of OpenAPI. Runs once per schema, before merging.
pub(super) fn modernise(map: &mut Map<String, Value>, at: &SchemaPath<'_>, journal: &mut Journal) {
    bound(map, "minimum", "exclusiveMinimum", at, journal);
    bound(map, "maximum", "exclusiveMaximum", at, journal);
    tuple(map, at, journal);
    dependencies(map, at, journal);
    nullable(map, at, journal);
    if map.get("default").is_some_and(Value::is_null) {
        map.shift_remove("default");
        journal.mention(
            &SchemaPath::Key(at, "default"),
            "`default: null` dropped",
            "it says nothing",
        );
    }
}

/// `minimum: 1, exclusiveMinimum: true` of draft 4.
fn bound(
    map: &mut Map<String, Value>,
    plain: &str,
    exclusive: &str,
    at: &SchemaPath<'_>,
    journal: &mut Journal,
) {
    let Some(Value::Bool(flag)) = map.get(exclusive) else { return };
    let flag = *flag;
    map.shift_remove(exclusive);
    if flag && let Some(limit) = map.shift_remove(plain) {
        map.insert(exclusive.to_owned(), limit);
    }
    journal.mention(&SchemaPath::Key(at, exclusive), "boolean turned into a number", OLD_DRAFT);
}

/// `items: [...], additionalItems: ...` before 2020-12.
fn tuple(map: &mut Map<String, Value>, at: &SchemaPath<'_>, journal: &mut Journal) {
    if !map.get("items").is_some_and(Value::is_array) {
        return;
    }
    let Some(positions) = map.shift_remove("items") else { return };
    let rest = map.shift_remove("additionalItems");
    if positions.as_array().is_some_and(|positions| !positions.is_empty()) {
        map.entry("prefixItems").or_insert(positions);
    }
    if let Some(rest) = rest {
        map.insert("items".into(), rest);
    }
    journal.mention(&SchemaPath::Key(at, "items"), "list turned into `prefixItems`", OLD_DRAFT);
}

/// `dependencies` before 2019-09.
fn dependencies(map: &mut Map<String, Value>, at: &SchemaPath<'_>, journal: &mut Journal) {
    let Some(Value::Object(dependencies)) = map.get_mut("dependencies").map(Value::take) else {
        return;
    };
    map.shift_remove("dependencies");
    for (key, value) in dependencies {
        let keyword = if value.is_array() { "dependentRequired" } else { "dependentSchemas" };
        let place = map.entry(keyword).or_insert_with(|| Value::Object(Map::new()));
        if let Value::Object(place) = place {
            place.insert(key, value);
        }
    }
    journal.mention(
        &SchemaPath::Key(at, "dependencies"),
        "split into `dependentRequired` and `dependentSchemas`",
        OLD_DRAFT,
    );
}

/// `nullable` of OpenAPI 3.0.
fn nullable(map: &mut Map<String, Value>, at: &SchemaPath<'_>, journal: &mut Journal) {
    let Some(Value::Bool(flag)) = map.get("nullable") else { return };
    let flag = *flag;
    map.shift_remove("nullable");
    if flag {
        match map.get_mut("type") {
            Some(Value::Array(names)) if !names.iter().any(|name| name == "null") => {
                names.push("null".into());
            }
            Some(kind @ Value::String(_)) => *kind = Value::from(vec![kind.take(), "null".into()]),
            Some(_) | None => {}
        }
        if let Some(Value::Array(values)) = map.get_mut("enum")
            && !values.contains(&Value::Null)
        {
            values.push(Value::Null);
        }
    }
    journal.note(
        &SchemaPath::Key(at, "nullable"),
        "turned into a type",
        "JSON Schema does not know it",
    );
}
