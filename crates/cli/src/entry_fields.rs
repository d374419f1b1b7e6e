//! Shows the fields of an entry of the configuration file, with the place of each.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::output::Output;

/// Writes a line for each field; `origins` has the places by JSON pointer.
pub(crate) fn show_fields(
    fields: &Map<String, Value>,
    origins: &BTreeMap<String, String>,
    output: Output,
) {
    for (key, value) in fields {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let origin = origins.get(&format!("/{key}"));
        let origin = origin.map(|origin| format!("  # {origin}")).unwrap_or_default();
        output.data(&format!("  {key}: {text}{origin}"));
    }
}
