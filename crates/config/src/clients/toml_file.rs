//! Adds an entry to a TOML file; comments and all other entries stay.

use serde_json::{Map, Value as Json};
use toml_edit::{Array, DocumentMut, Item, Table, Value};

use super::{ClientEntry, Laid, SameName, Unwritable};

pub(super) fn document(entry: &ClientEntry) -> DocumentMut {
    let mut document = DocumentMut::new();
    let mut list = Table::new();
    // Only the entry gets a `[header]`, not the table that contains it.
    list.set_implicit(true);
    list.insert(&entry.name, Item::Table(table(&entry.to_json())));
    document.insert(entry.client.list_key(), Item::Table(list));
    document
}

pub(super) fn lay_into(
    entry: &ClientEntry,
    text: &str,
    same_name: SameName,
) -> Result<Laid, Unwritable> {
    let mut document = parse(text)?;
    let key = entry.client.list_key();
    let list = document.entry(key).or_insert_with(|| {
        let mut list = Table::new();
        list.set_implicit(true);
        Item::Table(list)
    });
    let Some(list) = list.as_table_like_mut() else {
        return Err(Unwritable::WrongShape { part: key.into(), wanted: "table" });
    };
    let wanted = entry.to_json();
    match list.get_mut(&entry.name) {
        None => {
            list.insert(&entry.name, Item::Table(table(&wanted)));
        }
        Some(there) if plain(there) == wanted => return Ok(Laid::Unchanged),
        Some(_) if same_name == SameName::Refuse => {
            return Err(Unwritable::NameTaken { name: entry.name.clone() });
        }
        Some(there) => replace(there, &wanted),
    }
    Ok(Laid::Changed(document.to_string()))
}

/// Removes servers from the table at the path `keys`; comments and all other entries stay.
pub(super) fn remove(keys: &[String], text: &str, names: &[&str]) -> Result<String, Unwritable> {
    let mut document = parse(text)?;
    let mut list = Some(document.as_item_mut());
    for key in keys {
        list = list.and_then(|item| item.as_table_like_mut()?.get_mut(key));
    }
    let Some(list) = list.and_then(Item::as_table_like_mut) else { return Ok(text.to_owned()) };
    for name in names {
        list.remove(name);
    }
    Ok(document.to_string())
}

fn parse(text: &str) -> Result<DocumentMut, Unwritable> {
    text.parse().map_err(|error: toml_edit::TomlError| {
        // Only the first line: the whole message quotes the source line, which may hold a secret.
        let reason = error.message().lines().next().unwrap_or_default();
        let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        Unwritable::Unreadable { format: "TOML", reason: format!("{reason} at line {line}") }
    })
}

/// Replaces the entry but keeps its position in the file and the comment above it.
fn replace(there: &mut Item, wanted: &Json) {
    let mut fresh = table(wanted);
    if let Some(before) = there.as_table() {
        *fresh.decor_mut() = before.decor().clone();
        fresh.set_position(before.position());
    }
    *there = match there {
        Item::Value(_) => Item::Value(Value::InlineTable(fresh.into_inline_table())),
        Item::None | Item::Table(_) | Item::ArrayOfTables(_) => Item::Table(fresh),
    };
}

/// The entry as a TOML table. Entries hold only strings and lists of strings.
fn table(entry: &Json) -> Table {
    let mut table = Table::new();
    for (key, value) in entry.as_object().into_iter().flatten() {
        let value = match value {
            Json::Array(items) => {
                Value::Array(items.iter().filter_map(Json::as_str).collect::<Array>())
            }
            other => Value::from(other.as_str().unwrap_or_default()),
        };
        table.insert(key, Item::Value(value));
    }
    table
}

/// An item as JSON, for comparison with an entry.
fn plain(item: &Item) -> Json {
    if let Some(table) = item.as_table_like() {
        let members = table.iter().map(|(key, item)| (key.to_owned(), plain(item)));
        return Json::Object(members.collect::<Map<_, _>>());
    }
    match item.as_value() {
        Some(Value::String(text)) => Json::from(text.value().as_str()),
        Some(Value::Array(items)) => {
            items.iter().map(|value| plain(&Item::Value(value.clone()))).collect()
        }
        // Entries never hold numbers, dates or booleans; `null` makes the comparison fail.
        Some(_) | None => Json::Null,
    }
}
