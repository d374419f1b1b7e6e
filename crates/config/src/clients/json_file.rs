//! Adds an entry to the text of a JSON file without changing any other character.

use std::ops::Range;

use serde::Deserialize;
use serde::de::{MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Value as Json, json};

use super::{ClientEntry, Laid, SameName, Unwritable};
use crate::import::jsonc;

/// The indentation for files that show none.
const INDENT: &str = "  ";

pub(super) fn document(entry: &ClientEntry) -> String {
    let mut whole = json!({ entry.client.list_key(): { &*entry.name: entry.to_json() } });
    if let Some(input) = entry.key_input() {
        whole["inputs"] = json!([input]);
    }
    pretty(&whole, INDENT, "") + "\n"
}

pub(super) fn lay_into(
    entry: &ClientEntry,
    text: &str,
    same_name: SameName,
) -> Result<Laid, Unwritable> {
    let (mark, body) = text.strip_prefix('\u{feff}').map_or(("", text), |body| ("\u{feff}", body));
    let mut file = JsonFile { indent: indent_of(body).to_owned(), text: body.to_owned() };
    file.check()?;
    file.put_server(entry, same_name)?;
    if let Some(input) = entry.key_input() {
        file.put_input(&input)?;
    }
    if file.text == body {
        return Ok(Laid::Unchanged);
    }
    Ok(Laid::Changed(format!("{mark}{}", file.text)))
}

/// Removes servers from the list at the path `keys`. The remaining entries keep their text; only the whitespace between
/// them changes.
pub(super) fn remove(keys: &[String], text: &str, names: &[&str]) -> Result<String, Unwritable> {
    let (mark, body) = text.strip_prefix('\u{feff}').map_or(("", text), |body| ("\u{feff}", body));
    let mut file = JsonFile { indent: indent_of(body).to_owned(), text: body.to_owned() };
    file.check()?;
    let mut list = members(&file.text, "the top", 0)?;
    for key in keys {
        let Some(place) = list.find(key) else { return Ok(text.to_owned()) };
        list = members(file.part(&place), key, place.start)?;
    }
    let depth = keys.len();
    let kept: Vec<_> = list
        .parts
        .iter()
        .filter(|(name, _)| !names.contains(&name.as_str()))
        .map(|(name, place)| {
            format!("\n{}{}: {}", file.indent.repeat(depth + 1), json!(name), file.part(place))
        })
        .collect();
    if kept.len() == list.parts.len() {
        return Ok(text.to_owned());
    }
    let end =
        if kept.is_empty() { String::new() } else { format!("\n{}", file.indent.repeat(depth)) };
    file.text.replace_range(list.whole, &format!("{{{}{end}}}", kept.join(",")));
    Ok(format!("{mark}{}", file.text))
}

struct JsonFile {
    text: String,
    indent: String,
}

impl JsonFile {
    fn check(&self) -> Result<(), Unwritable> {
        let Err(error) = serde_json::from_str::<&RawValue>(&self.text) else { return Ok(()) };
        if serde_json::from_str::<&RawValue>(&jsonc::to_json(&self.text)).is_ok() {
            return Err(Unwritable::HasComments);
        }
        Err(Unwritable::Unreadable { format: "JSON", reason: error.to_string() })
    }

    fn put_server(&mut self, entry: &ClientEntry, same_name: SameName) -> Result<(), Unwritable> {
        let key = entry.client.list_key();
        let root = members(&self.text, "the top", 0)?;
        let Some(list) = root.find(key) else {
            let list = json!({ &*entry.name: entry.to_json() });
            self.insert(&root, Some(key), &list, 1);
            return Ok(());
        };
        let list = members(self.part(&list), key, list.start)?;
        match list.find(&entry.name) {
            None => self.insert(&list, Some(&entry.name), &entry.to_json(), 2),
            Some(place) => {
                let there = serde_json::from_str::<Json>(self.part(&place)).ok();
                if there.as_ref() == Some(&entry.to_json()) {
                    return Ok(());
                }
                if same_name == SameName::Refuse {
                    return Err(Unwritable::NameTaken { name: entry.name.clone() });
                }
                let value = pretty(&entry.to_json(), &self.indent, &self.indent.repeat(2));
                self.text.replace_range(place, &value);
            }
        }
        Ok(())
    }

    /// Adds a VS Code input; an existing one with the same id stays unchanged.
    fn put_input(&mut self, input: &Json) -> Result<(), Unwritable> {
        let root = members(&self.text, "the top", 0)?;
        let Some(list) = root.find("inputs") else {
            self.insert(&root, Some("inputs"), &json!([input]), 1);
            return Ok(());
        };
        let list = elements(self.part(&list), "inputs", list.start)?;
        let is_there = list.parts.iter().any(|(_, place)| {
            let there = serde_json::from_str::<Json>(self.part(place)).unwrap_or_default();
            there["id"] == input["id"]
        });
        if !is_there {
            self.insert(&list, None, input, 2);
        }
        Ok(())
    }

    fn part(&self, place: &Range<usize>) -> &str {
        self.text.get(place.clone()).unwrap_or_default()
    }

    /// Appends a value to an object or a list.
    fn insert(&mut self, into: &JsonContainer, key: Option<&str>, value: &Json, depth: usize) {
        let base = self.indent.repeat(depth);
        let key = key.map(|key| format!("{}: ", json!(key))).unwrap_or_default();
        let value = format!("\n{base}{key}{}", pretty(value, &self.indent, &base));
        if let Some((_, last)) = into.parts.last() {
            self.text.insert_str(last.end, &format!(",{value}"));
            return;
        }
        let outer = self.indent.repeat(depth.saturating_sub(1));
        let inside = into.whole.start + 1..into.whole.end - 1;
        self.text.replace_range(inside, &format!("{value}\n{outer}"));
    }
}

/// An object or a list in the text, and the byte ranges of its members.
struct JsonContainer {
    whole: Range<usize>,
    parts: Vec<(String, Range<usize>)>,
}

impl JsonContainer {
    /// The last member of that name, which is the one that JSON parsers use.
    fn find(&self, name: &str) -> Option<Range<usize>> {
        self.parts.iter().rev().find(|(key, _)| key == name).map(|(_, place)| place.clone())
    }
}

fn members(text: &str, part: &str, offset: usize) -> Result<JsonContainer, Unwritable> {
    let wrong = |_| Unwritable::WrongShape { part: part.into(), wanted: "object" };
    let JsonMembers(members) = serde_json::from_str(text).map_err(wrong)?;
    Ok(parts(text, members, offset))
}

fn elements(text: &str, part: &str, offset: usize) -> Result<JsonContainer, Unwritable> {
    let wrong = |_| Unwritable::WrongShape { part: part.into(), wanted: "list" };
    let elements: Vec<&RawValue> = serde_json::from_str(text).map_err(wrong)?;
    Ok(parts(text, elements.into_iter().map(|raw| (String::new(), raw)).collect(), offset))
}

/// Computes byte ranges. A raw value borrows from the text, so its address gives its position.
fn parts(text: &str, found: Vec<(String, &RawValue)>, offset: usize) -> JsonContainer {
    let place = |part: &str| {
        let start = part.as_ptr().addr() - text.as_ptr().addr() + offset;
        start..start + part.len()
    };
    let parts = found.into_iter().map(|(key, raw)| (key, place(raw.get()))).collect();
    JsonContainer { whole: place(text.trim()), parts }
}

/// The members of an object in file order, including duplicate keys.
struct JsonMembers<'a>(Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for JsonMembers<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;
        impl<'de> Visitor<'de> for Collect {
            type Value = Vec<(String, &'de RawValue)>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(members)
            }
        }
        deserializer.deserialize_map(Collect).map(Self)
    }
}

/// The indentation of the first line that has one.
fn indent_of(text: &str) -> &str {
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    let indents = lines.find_map(|line| {
        let width = line.len() - line.trim_start().len();
        line.get(..width).filter(|indent| !indent.is_empty())
    });
    indents.unwrap_or(INDENT)
}

/// Pretty-printed JSON; every line but the first is prefixed with `base`.
fn pretty(value: &Json, indent: &str, base: &str) -> String {
    let mut bytes = Vec::new();
    let formatter = serde_json::ser::PrettyFormatter::with_indent(indent.as_bytes());
    let mut serializer = serde_json::Serializer::with_formatter(&mut bytes, formatter);
    // A JSON value always serialises, and to UTF-8.
    let _cannot_fail = serde::Serialize::serialize(value, &mut serializer);
    String::from_utf8_lossy(&bytes).replace('\n', &format!("\n{base}"))
}
