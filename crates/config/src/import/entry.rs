//! Converts one server of another program's file to the fields of a Switchboard entry.

use http::{HeaderName, HeaderValue};
use serde_json::{Map, Value as Json};
use url::Url;

use super::{literal_key, stdio_entry, variables};
use crate::emit::Doc;
use crate::secret_line;

pub(super) type Fields = Vec<(String, Doc)>;

/// Keys that are converted; every other key gets a note.
const KNOWN: [&str; 21] = [
    "type",
    "transport",
    "url",
    "serverUrl",
    "httpUrl",
    "headers",
    "command",
    "args",
    "env",
    "cwd",
    "disabled",
    "enabled",
    "envFile",
    "name",
    "connect_timeout",
    "tool_timeout",
    "enabled_tools",
    "disabled_tools",
    "includeTools",
    "excludeTools",
    "required",
];

/// The fields of the server, or why it is skipped.
pub(super) fn convert(entry: &Json, notes: &mut Vec<String>) -> Result<Fields, String> {
    let Json::Object(entry) = entry else {
        return Err("it is not an object".into());
    };
    if entry.get("disabled") == Some(&Json::Bool(true))
        || entry.get("enabled") == Some(&Json::Bool(false))
    {
        return Err("it is disabled there".into());
    }
    let mut fields = match transport(entry)? {
        Transport::Stdio => stdio_entry::fields(entry, notes),
        Transport::Http => http(entry, "streamable_http", notes),
        Transport::Sse => http(entry, "sse", notes),
    }?;
    fields.extend(tool_lists(entry));
    if let Some(timeout) = entry.get("connect_timeout").and_then(Json::as_str) {
        fields.push(("connect_timeout".into(), Doc::text(timeout)));
    }
    if entry.get("required") == Some(&Json::Bool(true)) {
        notes.push(
            "`required` is true there and false here: set `required: true` if the board must not start without it"
                .into(),
        );
    }
    if entry.contains_key("envFile") {
        notes.push("`envFile` is not read: put its variables below `env`".into());
    }
    for key in entry.keys().filter(|key| !KNOWN.contains(&key.as_str())) {
        notes.push(format!("`{key}` has no counterpart and was left out"));
    }
    Ok(fields)
}

/// Allow and deny lists of tools, from the keys of Codex and Gemini CLI.
fn tool_lists(entry: &Map<String, Json>) -> Fields {
    let lists = [
        ("tool_allowlist", ["enabled_tools", "includeTools"]),
        ("tool_denylist", ["disabled_tools", "excludeTools"]),
    ];
    let mut fields = Vec::new();
    for (ours, theirs) in lists {
        let written = theirs.iter().find_map(|key| entry.get(*key)?.as_array());
        let names: Vec<_> =
            written.into_iter().flatten().filter_map(Json::as_str).map(Doc::text).collect();
        if !names.is_empty() {
            fields.push((ours.to_owned(), Doc::List(names)));
        }
    }
    fields
}

enum Transport {
    Stdio,
    Http,
    Sse,
}

fn transport(entry: &Map<String, Json>) -> Result<Transport, String> {
    let written = entry.get("type").or_else(|| entry.get("transport")).and_then(Json::as_str);
    let has_url = url_of(entry).is_some();
    match (written, entry.contains_key("command"), has_url) {
        (Some("stdio"), true, _) | (None, true, false) => Ok(Transport::Stdio),
        (Some("sse"), _, true) => Ok(Transport::Sse),
        (Some("http" | "streamable-http" | "streamableHttp" | "streamable_http"), _, true)
        | (None, false, true) => Ok(Transport::Http),
        (None, true, true) => Err("it has both `command` and `url`".into()),
        (None, false, false) => Err("it has neither `command` nor `url`".into()),
        (Some(written), ..) => {
            let needs = if written == "stdio" {
                "`command`"
            } else {
                "`url` and a type that is known here"
            };
            Err(format!("its type is `{written}`, which needs {needs}"))
        }
    }
}

pub(super) fn url_of(entry: &Map<String, Json>) -> Option<&str> {
    ["url", "serverUrl", "httpUrl"].iter().find_map(|key| entry.get(*key)).and_then(Json::as_str)
}

fn http(
    entry: &Map<String, Json>,
    transport: &str,
    notes: &mut Vec<String>,
) -> Result<Fields, String> {
    note_unused(entry, &["command", "args", "env", "cwd"], notes);
    let url = variables::convert(url_of(entry).unwrap_or_default(), notes);
    let is_address = |url: &Url| matches!(url.scheme(), "http" | "https") && url.has_host();
    if !url.contains("${") && !Url::parse(&url).is_ok_and(|url| is_address(&url)) {
        return Err("its `url` is not an http or https address".into());
    }
    for parameter in literal_key::keys_of_address(&url) {
        notes.push(in_plain_text(&format!("`{parameter}` in the query of `url`"), "`${VAR}`"));
    }
    let mut fields =
        vec![("transport".into(), Doc::text(transport)), ("url".into(), Doc::text(url))];
    let mut headers: Fields = Vec::new();
    let mut bearer = None;
    for (name, value) in entry.get("headers").and_then(Json::as_object).into_iter().flatten() {
        let Some(value) = scalar(value).filter(|value| is_header(name, value)) else {
            notes.push(format!(
                "the header `{name}` was not imported: HTTP does not permit its name or value"
            ));
            continue;
        };
        let value = variables::convert(&value, notes);
        if !secret_line::is_harmless(&value) && !variables::has_reference(&value) {
            notes.push(in_plain_text(&format!("the header `{name}`"), "`${VAR}` or `file:`"));
        }
        let token = value.strip_prefix("Bearer ").map(str::trim).filter(|token| !token.is_empty());
        match token.filter(|_| name.eq_ignore_ascii_case("authorization")) {
            Some(token) => {
                bearer = Some(token.to_owned());
            }
            None if headers.iter().any(|(other, _)| other.eq_ignore_ascii_case(name)) => {
                notes.push(format!("the header `{name}` was left out: it is there twice"));
            }
            None => headers.push((name.clone(), Doc::text(value))),
        }
    }
    if bearer.is_some() {
        headers.retain(|(name, _)| !name.eq_ignore_ascii_case("authorization"));
    }
    if !headers.is_empty() {
        fields.push(("headers".into(), Doc::Map(headers)));
    }
    if let Some(token) = bearer {
        fields.push(("auth".into(), Doc::Map(vec![("bearer".into(), Doc::text(token))])));
    }
    Ok(fields)
}

/// A note about a secret in plain text.
pub(super) fn in_plain_text(place: &str, way_out: &str) -> String {
    let hides = if way_out.contains(" or ") { "hide" } else { "hides" };
    format!("{place} holds its value in plain text; {way_out} {hides} it")
}

fn is_header(name: &str, value: &str) -> bool {
    HeaderName::from_bytes(name.as_bytes()).is_ok() && HeaderValue::from_str(value).is_ok()
}

pub(super) fn note_unused(entry: &Map<String, Json>, keys: &[&str], notes: &mut Vec<String>) {
    for key in keys.iter().filter(|key| entry.contains_key(**key)) {
        notes.push(format!("`{key}` does not go with its type and was left out"));
    }
}

/// A string, number or boolean as a string: other programs accept all of them in `args` and `env`.
pub(super) fn scalar(value: &Json) -> Option<String> {
    match value {
        Json::String(text) => Some(text.clone()),
        Json::Number(_) | Json::Bool(_) => Some(value.to_string()),
        Json::Null | Json::Array(_) | Json::Object(_) => None,
    }
}
