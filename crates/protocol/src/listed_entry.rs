//! Repairs entries of MCP lists so that strict clients accept them.
//!
//! The official SDKs validate a list as a whole: one entry with, for example, an icon without `src` makes them reject
//! all entries. An invalid optional member is removed, an entry with an invalid required member is rejected, and a
//! valid entry keeps its bytes. Input and output schemas of tools are not checked here.

use serde_json::{Map, Value};

use crate::unique::read_unique;

/// The kind of list entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    Prompt,
    Resource,
    ResourceTemplate,
}

/// An entry that can be listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckedEntry {
    /// The name of a prompt, the URI of a resource or the `uriTemplate` of a template.
    pub key: String,
    /// The repaired entry; `None` if the entry is listed unchanged.
    pub json: Option<String>,
    /// What was changed, for diagnostics.
    pub repairs: Vec<String>,
}

impl EntryKind {
    /// The member that identifies the entry in requests.
    pub fn key(self) -> &'static str {
        match self {
            Self::Prompt => "name",
            Self::Resource => "uri",
            Self::ResourceTemplate => "uriTemplate",
        }
    }
}

/// Checks an entry of a list. The error says why the entry cannot be listed.
pub fn check_entry(kind: EntryKind, text: &str) -> Result<CheckedEntry, String> {
    let mut repairs = Vec::new();
    let value = read_unique(text).or_else(|_| {
        let value = serde_json::from_str::<Value>(text);
        repairs.push("a member stood twice; the last one counts".to_owned());
        value.map_err(|error| format!("it cannot be read: {error}"))
    })?;
    let Value::Object(mut entry) = value else { return Err("it is not an object".into()) };
    let Some(key) = entry.get(kind.key()).and_then(Value::as_str).map(str::to_owned) else {
        return Err(format!("it has no `{}`", kind.key()));
    };
    let refused = |reason: String| format!("{:?}: {reason}", shortened(&key));
    keep(&mut entry, "title", &mut repairs, Value::is_string);
    keep(&mut entry, "description", &mut repairs, Value::is_string);
    repair_tool_members(&mut entry, &mut repairs);
    match kind {
        EntryKind::Prompt => prompt_arguments(&mut entry, &mut repairs).map_err(refused)?,
        EntryKind::Resource | EntryKind::ResourceTemplate => {
            if !entry.get("name").is_some_and(Value::is_string) {
                entry.insert("name".into(), key.as_str().into());
                repairs.push(format!("`name` became its `{}`", kind.key()));
            }
            keep(&mut entry, "mimeType", &mut repairs, Value::is_string);
            keep(&mut entry, "size", &mut repairs, is_whole);
            content_annotations(&mut entry, &mut repairs);
        }
    }
    let json = (!repairs.is_empty()).then(|| Value::Object(entry).to_string());
    Ok(CheckedEntry { key, json, repairs })
}

/// Removes invalid `icons` and `_meta`, which definitions of every kind may have.
pub fn repair_tool_members(entry: &mut Map<String, Value>, repairs: &mut Vec<String>) {
    keep(entry, "_meta", repairs, Value::is_object);
    let Some(icons) = entry.get_mut("icons") else { return };
    let Value::Array(icons) = icons else {
        entry.shift_remove("icons");
        repairs.push("`icons` was left out: it is not a list".into());
        return;
    };
    let mut at = 0usize;
    icons.retain_mut(|icon| {
        let place = format!("icons[{at}]");
        at += 1;
        let Some(icon) =
            icon.as_object_mut().filter(|it| it.get("src").is_some_and(Value::is_string))
        else {
            repairs.push(format!("`{place}` was left out: it has no `src`"));
            return false;
        };
        let is_theme = |theme: &Value| matches!(theme.as_str(), Some("light" | "dark"));
        let are_texts =
            |sizes: &Value| sizes.as_array().is_some_and(|all| all.iter().all(Value::is_string));
        keep_at(icon, &place, "mimeType", repairs, Value::is_string);
        keep_at(icon, &place, "sizes", repairs, are_texts);
        keep_at(icon, &place, "theme", repairs, is_theme);
        true
    });
}

/// Removes tool annotations of the wrong type, which strict clients reject.
pub fn repair_tool_annotations(annotations: &mut Map<String, Value>, repairs: &mut Vec<String>) {
    keep_at(annotations, "annotations", "title", repairs, Value::is_string);
    for hint in ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"] {
        keep_at(annotations, "annotations", hint, repairs, Value::is_boolean);
    }
}

fn prompt_arguments(
    prompt: &mut Map<String, Value>,
    repairs: &mut Vec<String>,
) -> Result<(), String> {
    let arguments = match prompt.get_mut("arguments") {
        None => return Ok(()),
        Some(Value::Array(arguments)) => arguments,
        Some(Value::Null) => {
            keep(prompt, "arguments", repairs, |_| false);
            return Ok(());
        }
        // Some languages serialise an empty list as `{}`.
        Some(Value::Object(none)) if none.is_empty() => {
            keep(prompt, "arguments", repairs, |_| false);
            return Ok(());
        }
        Some(_) => return Err("its `arguments` is not a list".into()),
    };
    for (at, argument) in arguments.iter_mut().enumerate() {
        let place = format!("arguments[{at}]");
        let named = argument.as_object_mut();
        let Some(argument) = named.filter(|it| it.get("name").is_some_and(Value::is_string)) else {
            return Err(format!("`{place}` has no name"));
        };
        keep_at(argument, &place, "title", repairs, Value::is_string);
        keep_at(argument, &place, "description", repairs, Value::is_string);
        keep_at(argument, &place, "required", repairs, Value::is_boolean);
    }
    Ok(())
}

/// Checks `annotations` of a resource: `audience`, `priority` and `lastModified`.
fn content_annotations(entry: &mut Map<String, Value>, repairs: &mut Vec<String>) {
    keep(entry, "annotations", repairs, Value::is_object);
    let Some(Value::Object(annotations)) = entry.get_mut("annotations") else { return };
    let is_role = |role: &Value| matches!(role.as_str(), Some("user" | "assistant"));
    let is_audience =
        |audience: &Value| audience.as_array().is_some_and(|all| all.iter().all(is_role));
    let is_share = |share: &Value| share.as_f64().is_some_and(|share| (0.0..=1.0).contains(&share));
    let is_time = |time: &Value| time.as_str().is_some_and(is_timestamp);
    keep_at(annotations, "annotations", "audience", repairs, is_audience);
    keep_at(annotations, "annotations", "priority", repairs, is_share);
    keep_at(annotations, "annotations", "lastModified", repairs, is_time);
}

fn keep(
    object: &mut Map<String, Value>,
    member: &str,
    repairs: &mut Vec<String>,
    is_fine: impl Fn(&Value) -> bool,
) {
    if object.get(member).is_some_and(|value| !is_fine(value)) {
        let value = object.shift_remove(member).unwrap_or_default();
        repairs.push(format!("`{member}` was left out: {}", shortened(&value.to_string())));
    }
}

fn keep_at(
    object: &mut Map<String, Value>,
    place: &str,
    member: &str,
    repairs: &mut Vec<String>,
    is_fine: impl Fn(&Value) -> bool,
) {
    if object.get(member).is_some_and(|value| !is_fine(value)) {
        let value = object.shift_remove(member).unwrap_or_default();
        repairs.push(format!("`{place}.{member}` was left out: {}", shortened(&value.to_string())));
    }
}

/// Whether a size is a whole number that JavaScript can represent exactly; clients reject other numbers.
fn is_whole(size: &Value) -> bool {
    const MAX_SAFE_INTEGER: f64 = 9_007_199_254_740_991.0;
    size.as_f64().is_some_and(|size| size.fract() == 0.0 && size.abs() <= MAX_SAFE_INTEGER)
}

/// Whether the text is a timestamp such as `2026-01-31T12:00:00Z`, with an optional fraction of a second and an
/// optional offset.
fn is_timestamp(text: &str) -> bool {
    let Some((date, time)) = text.split_once('T') else { return false };
    let (clock, offset) = match time.strip_suffix('Z') {
        Some(clock) => (clock, None),
        None => match time.rfind(['+', '-']).map(|at| time.split_at(at)) {
            Some((clock, offset)) => (clock, offset.get(1..)),
            None => return false,
        },
    };
    let seconds = clock.split_once('.');
    let fraction = seconds.is_none_or(|(_, digits)| is_number(digits, digits.len().max(1)));
    let clock = seconds.map_or(clock, |(clock, _)| clock);
    is_date(date)
        && fraction
        && matches!(*numbers(clock, ':', &[2, 2, 2]), [0..=23, 0..=59, 0..=59])
        && offset.is_none_or(|it| matches!(*numbers(it, ':', &[2, 2]), [0..=23, 0..=59]))
}

fn is_date(date: &str) -> bool {
    let [year, month, day] = *numbers(date, '-', &[4, 2, 2]) else { return false };
    let is_leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    let days = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if is_leap => 29,
        2 => 28,
        _ => return false,
    };
    (1..=days).contains(&day)
}

/// Splits the text into numbers with exactly the given counts of digits; empty if the text has another form.
fn numbers(text: &str, separator: char, digits: &[usize]) -> Vec<u32> {
    let parts: Vec<&str> = text.split(separator).collect();
    let fits = parts.len() == digits.len()
        && parts.iter().zip(digits).all(|(part, digits)| is_number(part, *digits));
    if fits { parts.iter().filter_map(|part| part.parse().ok()).collect() } else { Vec::new() }
}

fn is_number(text: &str, digits: usize) -> bool {
    text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn shortened(text: &str) -> String {
    const MAX_SHOWN: usize = 80;
    let mut short: String = text.chars().take(MAX_SHOWN).collect();
    if short.len() < text.len() {
        short.push_str("...");
    }
    short
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(kind: EntryKind, entry: &Value, expected: Result<Value, &str>) {
        let text = entry.to_string();
        let checked = check_entry(kind, &text);
        match (checked, expected) {
            (Ok(checked), Ok(expected)) => {
                let listed = checked.json.as_deref().unwrap_or(&text);
                assert_eq!(serde_json::from_str::<Value>(listed).unwrap(), expected);
                assert_eq!(
                    checked.json.is_none(),
                    *entry == expected,
                    "only what differs is rewritten"
                );
                assert_eq!(checked.json.is_none(), checked.repairs.is_empty());
            }
            (Err(reason), Err(expected)) => assert_eq!(reason, expected),
            (checked, expected) => panic!("{checked:?} is not {expected:?}"),
        }
    }

    #[test]
    fn what_says_nothing_usable_is_left_out_of_a_prompt() {
        let fine = json!({
            "name": "p", "title": "T", "description": "d", "_meta": {"k": 1}, "x": null,
            "icons": [{"src": "data:,", "mimeType": "image/png", "sizes": ["1x1"], "theme": "dark"}],
            "arguments": [{"name": "a", "title": "A", "description": "d", "required": true}],
        });
        check(EntryKind::Prompt, &fine, Ok(fine.clone()));
        let p = |members: &Value| {
            let mut prompt = json!({"name": "p"});
            prompt.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
            prompt
        };
        for (written, listed) in [
            (json!({"title": null, "description": 7, "_meta": []}), json!({})),
            (json!({"icons": null}), json!({})),
            (json!({"icons": [{"src": 1}, "x", {"src": "s"}]}), json!({"icons": [{"src": "s"}]})),
            (
                json!({"icons": [{"src": "s", "sizes": "48x48", "theme": "blue", "mimeType": 1}]}),
                json!({"icons": [{"src": "s"}]}),
            ),
            (json!({"arguments": null}), json!({})),
            (json!({"arguments": {}}), json!({})),
            (
                json!({"arguments": [{"name": "a", "required": "yes", "description": null, "title": 1}]}),
                json!({"arguments": [{"name": "a"}]}),
            ),
        ] {
            check(EntryKind::Prompt, &p(&written), Ok(p(&listed)));
        }
        check(EntryKind::Prompt, &json!({"title": "t"}), Err("it has no `name`"));
        check(EntryKind::Prompt, &json!([]), Err("it is not an object"));
        let nameless = json!({"name": "p", "arguments": [{"name": "a"}, {"description": "d"}]});
        check(EntryKind::Prompt, &nameless, Err("\"p\": `arguments[1]` has no name"));
        let text = json!({"name": "p", "arguments": "a"});
        check(EntryKind::Prompt, &text, Err("\"p\": its `arguments` is not a list"));
    }

    #[test]
    fn what_says_nothing_usable_is_left_out_of_a_resource() {
        let time = "2024-02-29T23:59:59.123+02:00";
        let fine = json!({
            "uri": "a://b", "name": "n", "mimeType": "text/plain", "size": 7,
            "annotations": {"audience": ["user"], "priority": 0.5, "lastModified": time},
        });
        check(EntryKind::Resource, &fine, Ok(fine.clone()));
        let written = json!({
            "uri": "a://b", "mimeType": null, "size": 1.5,
            "annotations": {"audience": ["robot"], "priority": 2, "lastModified": "yesterday", "x": 1},
        });
        let listed = json!({"uri": "a://b", "annotations": {"x": 1}, "name": "a://b"});
        check(EntryKind::Resource, &written, Ok(listed));
        let template = json!({"uriTemplate": "a://{b}", "name": 7, "annotations": []});
        let listed = json!({"uriTemplate": "a://{b}", "name": "a://{b}"});
        check(EntryKind::ResourceTemplate, &template, Ok(listed));
        check(EntryKind::Resource, &json!({"name": "n"}), Err("it has no `uri`"));
    }

    #[test]
    fn what_parsers_do_not_agree_on_is_settled_or_refused() {
        let twice = check_entry(EntryKind::Prompt, r#"{"name":"a","name":"b"}"#).unwrap();
        assert_eq!((twice.key.as_str(), twice.json.as_deref()), ("b", Some(r#"{"name":"b"}"#)));
        let half = check_entry(EntryKind::Prompt, r#"{"name":"a","title":"\ud800"}"#).unwrap_err();
        assert!(half.starts_with("it cannot be read: "), "{half}");
        assert!(
            check_entry(EntryKind::Resource, r#"{"uri":"a:b","name":"n","size":1e999}"#).is_err()
        );
    }

    #[test]
    fn moments_are_told_from_other_texts() {
        for good in
            ["2025-01-12T15:00:58Z", "2024-02-29T00:00:00.1+23:59", "2000-12-31T23:59:59-01:00"]
        {
            assert!(is_timestamp(good), "{good}");
        }
        for bad in [
            "",
            "2025-01-12",
            "2025-01-12T15:00:58",
            "2025-02-29T00:00:00Z",
            "2025-13-01T00:00:00Z",
            "2025-01-12T24:00:00Z",
            "2025-01-12T15:00:58.Z",
            "2025-01-12T15:00:58+1:00",
            "2025-1-12T15:00:58Z",
            "2025-01-12 15:00:58Z",
            "20250112T150058Z",
            "2025-01-12T15:00:58z",
            "2025-01-12T15:00:60Z",
        ] {
            assert!(!is_timestamp(bad), "{bad}");
        }
    }

    #[test]
    fn hints_of_tools_are_booleans() {
        let mut hints =
            json!({"title": null, "readOnlyHint": "yes", "destructiveHint": false, "x": 1});
        let mut repairs = Vec::new();
        repair_tool_annotations(hints.as_object_mut().unwrap(), &mut repairs);
        assert_eq!(hints, json!({"destructiveHint": false, "x": 1}));
        assert_eq!(
            repairs,
            [
                "`annotations.title` was left out: null",
                "`annotations.readOnlyHint` was left out: \"yes\"",
            ]
        );
    }
}
