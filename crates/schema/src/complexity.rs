//! Detects schemas that would take unbearably long to check.
//!
//! A schema can apply several subschemas to the same value, and each of them several others: with forty such levels,
//! which fit on a page, one value needs 2^40 checks. The number of checks per value is therefore computed beforehand,
//! visiting each subschema once however many references lead to it.

use std::collections::HashMap;

use serde_json::Value;

/// Maximum number of subschemas that apply to one value. Handwritten schemas need dozens, generated unions hundreds.
const MAX_CHECKS: u64 = 10_000;
/// Maximum length of a chain of references, because it is followed by recursion.
const MAX_STEPS: usize = 256;
/// Maximum number of subschemas with an `$id`, and of those with the same name: a reference is looked up in each.
const MAX_RESOURCES: usize = 32;

/// Keywords whose subschemas apply to the value itself, not to its members.
const IN_PLACE: [&str; 9] =
    ["allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies"];
/// Keywords for which all in-place subschemas are evaluated again, to find the evaluated members.
const UNEVALUATED: [&str; 2] = ["unevaluatedProperties", "unevaluatedItems"];
const TIMES_UNEVALUATED: u64 = 3;
const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];
const ANCHORS: [&str; 2] = ["$anchor", "$dynamicAnchor"];
const NAMES: &[&str] = &["$id"];
/// Draft 4 and earlier call `$id` `id`. In later drafts `id` is an ordinary name, which is frequent in examples.
const OLD_NAMES: &[&str] = &["$id", "id"];

/// Whether more than [`MAX_CHECKS`] subschemas may apply to one value.
pub(crate) fn exceeds_max_checks(schema: &Value) -> bool {
    let mut objects = Vec::new();
    gather(schema, &mut objects);
    let names = if is_old(schema) { OLD_NAMES } else { NAMES };
    let is_resource =
        |object: &&Value| names.iter().any(|key| object.get(key).is_some_and(Value::is_string));
    let mut resources = vec![schema];
    resources.extend(objects.iter().copied().filter(is_resource));
    if resources.len() > MAX_RESOURCES {
        return true;
    }
    let mut named: HashMap<&str, Vec<&Value>> = HashMap::new();
    for object in &objects {
        for name in names.iter().chain(&ANCHORS).filter_map(|key| object.get(key)?.as_str()) {
            named.entry(name.trim_start_matches('#')).or_default().push(object);
        }
    }
    // A reference to one of these may mean any of them.
    if named.values().any(|same| same.len() > MAX_RESOURCES) {
        return true;
    }
    let mut count = Count { resources, named, known: HashMap::new() };
    objects.into_iter().any(|object| count.of(object, 0) > MAX_CHECKS)
}

fn is_old(schema: &Value) -> bool {
    let draft = schema.get("$schema").and_then(Value::as_str).unwrap_or_default();
    ["draft-03", "draft-04"].iter().any(|old| draft.contains(old))
}

fn gather<'s>(value: &'s Value, objects: &mut Vec<&'s Value>) {
    match value {
        Value::Object(members) => {
            objects.push(value);
            members.values().for_each(|member| gather(member, objects));
        }
        Value::Array(items) => items.iter().for_each(|item| gather(item, objects)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Counts how many subschemas apply to a value, for each subschema of a document.
struct Count<'s> {
    resources: Vec<&'s Value>,
    named: HashMap<&'s str, Vec<&'s Value>>,
    /// Keyed by address, because equal subschemas in two places are two. While a subschema is being counted its entry
    /// is infinite: a schema that applies itself to the same value never terminates.
    known: HashMap<*const Value, u64>,
}

impl<'s> Count<'s> {
    fn of(&mut self, schema: &'s Value, steps: usize) -> u64 {
        let Value::Object(members) = schema else { return 1 };
        let place = std::ptr::from_ref(schema);
        if let Some(known) = self.known.get(&place) {
            return *known;
        }
        if steps > MAX_STEPS {
            return u64::MAX;
        }
        self.known.insert(place, u64::MAX);
        let mut count = 1_u64;
        for (key, member) in members {
            let further = if REFERENCES.contains(&key.as_str()) {
                let meant = self.meant(member.as_str().unwrap_or_default());
                meant.into_iter().map(|meant| self.of(meant, steps + 1)).max().unwrap_or(0)
            } else if !IN_PLACE.contains(&key.as_str()) {
                0
            } else {
                match member {
                    Value::Array(schemas) => self.sum(schemas.iter(), steps),
                    // The older `dependencies` may also hold lists of names.
                    Value::Object(schemas) if key.starts_with("depend") => {
                        self.sum(schemas.values().filter(|schema| !schema.is_array()), steps)
                    }
                    Value::Object(_)
                    | Value::Null
                    | Value::Bool(_)
                    | Value::Number(_)
                    | Value::String(_) => self.of(member, steps + 1),
                }
            };
            count = count.saturating_add(further);
        }
        if UNEVALUATED.iter().any(|key| members.contains_key(*key)) {
            count = count.saturating_mul(TIMES_UNEVALUATED);
        }
        self.known.insert(place, count);
        count
    }

    fn sum(&mut self, schemas: impl Iterator<Item = &'s Value>, steps: usize) -> u64 {
        schemas.fold(0, |sum: u64, schema| sum.saturating_add(self.of(schema, steps + 1)))
    }

    /// Every subschema that a reference may mean. The base URI is not tracked, so the most expensive one counts.
    fn meant(&self, reference: &str) -> Vec<&'s Value> {
        let (resource, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        if fragment.is_empty() {
            return match resource {
                "" => self.resources.clone(),
                name => self.named.get(name).cloned().unwrap_or_default(),
            };
        }
        let Some(pointer) = fragment.strip_prefix('/') else {
            return self.named.get(fragment).cloned().unwrap_or_default();
        };
        let pointer = format!("/{}", unescaped(pointer));
        self.resources.iter().filter_map(|resource| resource.pointer(&pointer)).collect()
    }
}

/// Decodes percent-encoded characters; invalid escapes stay unchanged.
fn unescaped(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let code = after.get(..2).and_then(|code| std::str::from_utf8(code).ok());
        let byte = code.filter(|_| *first == b'%');
        if let Some(byte) = byte.and_then(|code| u8::from_str_radix(code, 16).ok()) {
            bytes.push(byte);
            rest = after.get(2..).unwrap_or_default();
        } else {
            bytes.push(*first);
            rest = after;
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A chain of `steps` schemas, each of which refers to the next one twice.
    fn maze(steps: usize, keyword: &str, reference: impl Fn(usize) -> String) -> Value {
        let mut schema = json!({"type": "object", "$ref": reference(0), "$defs": {}});
        for step in 0..steps {
            let next = json!({"$ref": reference(step + 1)});
            schema["$defs"][format!("d {step}")] =
                json!({"$anchor": format!("a{step}"), keyword: [next, next]});
        }
        schema["$defs"][format!("d {steps}")] =
            json!({"$anchor": format!("a{steps}"), "required": ["nothing"]});
        schema
    }

    #[test]
    fn a_schema_that_branches_at_every_step_exceeds_max_checks() {
        let pointer = |step| format!("#/$defs/d%20{step}");
        for keyword in ["anyOf", "allOf", "oneOf"] {
            assert!(exceeds_max_checks(&maze(40, keyword, pointer)), "{keyword}");
            assert!(!exceeds_max_checks(&maze(8, keyword, pointer)), "{keyword}");
        }
        assert!(exceeds_max_checks(&maze(40, "anyOf", |step| format!("#a{step}"))));
        assert!(exceeds_max_checks(&maze(2_000, "anyOf", pointer)));
        assert!(
            exceeds_max_checks(&json!({"anyOf": [{"$ref": "#"}, {"type": "null"}]})),
            "a circle"
        );
    }

    #[test]
    fn ways_that_are_easily_overlooked_are_counted_too() {
        let steps = |make: fn(Value) -> Value| {
            let schema = json!({"required": ["nothing"]});
            (0..40).fold(schema, |inner, _| make(inner))
        };
        let twice = |inner: Value| json!({"dependencies": {"a": inner, "b": inner}});
        // Written out it would be as long as it is slow.
        let chain = (0..40).map(|n| {
            let next = json!({"$ref": format!("#/$defs/d{}", n + 1)});
            (format!("d{n}"), twice(next))
        });
        let chain: serde_json::Map<String, Value> = chain.collect();
        assert!(exceeds_max_checks(&json!({"$ref": "#/$defs/d0", "$defs": chain})));
        assert!(!exceeds_max_checks(
            &json!({"dependencies": {"a": ["b"], "b": {"required": ["c"]}}})
        ));
        let again = |inner| json!({"anyOf": [inner], "unevaluatedProperties": false});
        assert!(exceeds_max_checks(&steps(again)));
        assert!(!exceeds_max_checks(&json!({"allOf": [{}, {}], "unevaluatedProperties": false})));
        let same = vec![json!({"$anchor": "x", "$ref": "#x"}); 20_000];
        assert!(exceeds_max_checks(&json!({ "$defs": {"all": same} })));
    }

    #[test]
    fn what_people_write_is_not() {
        let tree = json!({
            "$defs": {"node": {"properties": {
                "left": {"$ref": "#/$defs/node"}, "right": {"$ref": "#/$defs/node"},
            }}},
            "$ref": "#/$defs/node",
        });
        assert!(!exceeds_max_checks(&tree));
        let kinds: Vec<Value> = (0..1_000).map(|n| json!({"const": n})).collect();
        assert!(!exceeds_max_checks(&json!({"properties": {"kind": {"oneOf": kinds}}})));
        let examples: Vec<Value> = (0..100).map(|n| json!({"id": n.to_string()})).collect();
        assert!(!exceeds_max_checks(
            &json!({"properties": {"id": {"type": "string"}}, "examples": examples})
        ));
        assert!(!exceeds_max_checks(&json!(true)));
    }
}
