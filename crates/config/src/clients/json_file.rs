//! Adds and removes entries in the text of a JSON file. Comments, order and spacing of everything else stay.

use jsonc_parser::cst::{CstArray, CstInputValue, CstObject, CstObjectProp, CstRootNode};
use serde_json::{Value as Json, json};

use super::{ClientEntry, Laid, SameName, Unwritable};
use crate::import::jsonc;

const BYTE_ORDER_MARK: char = '\u{feff}';

pub(super) fn document(entry: &ClientEntry) -> String {
    let mut whole = json!({ entry.client.list_key(): { &*entry.name: entry.to_json() } });
    if let Some(input) = entry.key_input() {
        whole["inputs"] = json!([input]);
    }
    format!("{whole:#}\n")
}

pub(super) fn lay_into(
    entry: &ClientEntry,
    text: &str,
    same_name: SameName,
) -> Result<Laid, Unwritable> {
    let after = edit(text, |root| {
        let top = top(root)?;
        put_server(&top, entry, same_name)?;
        entry.key_input().map_or(Ok(()), |input| put_input(&top, &input))
    })?;
    Ok(if after == text { Laid::Unchanged } else { Laid::Changed(after) })
}

/// Removes servers from the list at the path `keys`.
pub(super) fn remove(keys: &[String], text: &str, names: &[&str]) -> Result<String, Unwritable> {
    edit(text, |root| {
        let mut list = top(root)?;
        for key in keys {
            let Some(property) = find(&list, key) else { return Ok(()) };
            list = object(&property, key)?;
        }
        let is_leaving = |property: &CstObjectProp| {
            property.decoded_name().is_some_and(|name| names.contains(&name.as_str()))
        };
        list.properties().into_iter().filter(is_leaving).for_each(CstObjectProp::remove);
        Ok(())
    })
}

/// Changes the tree of a text and returns the new text.
fn edit(
    text: &str,
    change: impl FnOnce(&CstRootNode) -> Result<(), Unwritable>,
) -> Result<String, Unwritable> {
    let body = text.strip_prefix(BYTE_ORDER_MARK);
    let root = jsonc::tree(body.unwrap_or(text)).map_err(|error| {
        let (line, column) = (error.line_display(), error.column_display());
        let reason = format!("{} at line {line} column {column}", jsonc::reason(&error));
        Unwritable::Unreadable { format: "JSON", reason }
    })?;
    change(&root)?;
    let mark = body.map(|_| BYTE_ORDER_MARK);
    Ok(mark.into_iter().chain(root.to_string().chars()).collect())
}

/// The object of the file; created in a file that has only comments.
fn top(root: &CstRootNode) -> Result<CstObject, Unwritable> {
    root.object_value_or_create().ok_or_else(|| wrong_shape("the top", "object"))
}

fn put_server(top: &CstObject, entry: &ClientEntry, same_name: SameName) -> Result<(), Unwritable> {
    let key = entry.client.list_key();
    let list = find(top, key).unwrap_or_else(|| top.append(key, CstInputValue::Object(Vec::new())));
    let list = object(&list, key)?;
    let Some(present) = find(&list, &entry.name) else {
        list.append(&entry.name, input(&entry.to_json()));
        return Ok(());
    };
    if present.to_serde_value() == Some(entry.to_json()) {
        return Ok(());
    }
    match same_name {
        SameName::Refuse => Err(Unwritable::NameTaken { name: entry.name.clone() }),
        SameName::Replace => {
            present.set_value(input(&entry.to_json()));
            Ok(())
        }
    }
}

/// Adds a VS Code input; an existing one with the same id stays unchanged.
fn put_input(top: &CstObject, wanted: &Json) -> Result<(), Unwritable> {
    const KEY: &str = "inputs";
    let list = find(top, KEY).unwrap_or_else(|| top.append(KEY, CstInputValue::Array(Vec::new())));
    let list: CstArray = list.array_value().ok_or_else(|| wrong_shape(KEY, "list"))?;
    let ids = list.elements().into_iter().filter_map(|there| there.to_serde_value());
    if !ids.into_iter().any(|there| there["id"] == wanted["id"]) {
        list.ensure_multiline();
        list.append(input(wanted));
    }
    Ok(())
}

/// The last property of that name, which is the one that JSON parsers use.
fn find(object: &CstObject, name: &str) -> Option<CstObjectProp> {
    let mut properties = object.properties().into_iter().rev();
    properties.find(|property| property.decoded_name().as_deref() == Some(name))
}

fn object(property: &CstObjectProp, key: &str) -> Result<CstObject, Unwritable> {
    property.object_value().ok_or_else(|| wrong_shape(key, "object"))
}

fn wrong_shape(part: &str, wanted: &'static str) -> Unwritable {
    Unwritable::WrongShape { part: part.into(), wanted }
}

/// A value in the form that the tree takes.
fn input(value: &Json) -> CstInputValue {
    match value {
        Json::Null => CstInputValue::Null,
        Json::Bool(value) => CstInputValue::Bool(*value),
        Json::Number(number) => CstInputValue::Number(number.to_string()),
        Json::String(text) => CstInputValue::String(text.clone()),
        Json::Array(items) => CstInputValue::Array(items.iter().map(input).collect()),
        Json::Object(members) => CstInputValue::Object(
            members.iter().map(|(key, value)| (key.clone(), input(value))).collect(),
        ),
    }
}
