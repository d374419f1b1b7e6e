//! One server of another program's file as fields of ours.

use http::{HeaderName, HeaderValue};
use serde_json::{Map, Value as Json};
use url::Url;

use super::variables;
use crate::emit::Doc;
use crate::secret_line;

type Fields = Vec<(String, Doc)>;

/// Keys that are understood; everything else is noted.
const KNOWN: [&str; 14] = [
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
];

/// The fields of the server, or a note that says why it is left out.
pub(super) fn convert(entry: &Json, notes: &mut Vec<String>) -> Option<Fields> {
    let Json::Object(entry) = entry else {
        notes.push("left out: it is not an object".into());
        return None;
    };
    if entry.get("disabled") == Some(&Json::Bool(true))
        || entry.get("enabled") == Some(&Json::Bool(false))
    {
        notes.push("left out: it is disabled there".into());
        return None;
    }
    let fields = match transport(entry, notes)? {
        Transport::Stdio => stdio(entry, notes),
        Transport::Http => http(entry, "streamable_http", notes),
        Transport::Sse => http(entry, "sse", notes),
    }?;
    if entry.contains_key("envFile") {
        notes.push("`envFile` is not read: put its variables below `env`".into());
    }
    for key in entry.keys().filter(|key| !KNOWN.contains(&key.as_str())) {
        notes.push(format!("`{key}` has no counterpart and was left out"));
    }
    Some(fields)
}

enum Transport {
    Stdio,
    Http,
    Sse,
}

fn transport(entry: &Map<String, Json>, notes: &mut Vec<String>) -> Option<Transport> {
    let written = entry.get("type").or_else(|| entry.get("transport")).and_then(Json::as_str);
    let has_url = url_of(entry).is_some();
    match (written, entry.contains_key("command"), has_url) {
        (Some("stdio"), true, _) | (None, true, false) => Some(Transport::Stdio),
        (Some("sse"), _, true) => Some(Transport::Sse),
        (Some("http" | "streamable-http" | "streamableHttp" | "streamable_http"), _, true)
        | (None, false, true) => Some(Transport::Http),
        (None, true, true) => {
            notes.push("left out: it has both `command` and `url`".into());
            None
        }
        (None, false, false) => {
            notes.push("left out: it has neither `command` nor `url`".into());
            None
        }
        (Some(written), ..) => {
            let needs = if written == "stdio" {
                "`command`"
            } else {
                "`url` and a type that is known here"
            };
            notes.push(format!("left out: its type is `{written}`, which needs {needs}"));
            None
        }
    }
}

fn url_of(entry: &Map<String, Json>) -> Option<&str> {
    ["url", "serverUrl", "httpUrl"].iter().find_map(|key| entry.get(*key)).and_then(Json::as_str)
}

fn stdio(entry: &Map<String, Json>, notes: &mut Vec<String>) -> Option<Fields> {
    note_unused(entry, &["url", "serverUrl", "httpUrl", "headers"], notes);
    let command =
        entry.get("command").and_then(Json::as_str).filter(|text| !text.trim().is_empty());
    let Some(command) = command else {
        notes.push("left out: `command` is not a text".into());
        return None;
    };
    let mut fields = vec![
        ("transport".into(), Doc::text("stdio")),
        ("command".into(), Doc::text(variables::convert(command, notes))),
    ];
    if let Some(Json::Array(args)) = entry.get("args") {
        let args: Vec<_> = args.iter().filter_map(scalar).collect();
        if !args.is_empty() {
            let args = args.iter().map(|arg| Doc::text(variables::convert(arg, notes))).collect();
            fields.push(("args".into(), Doc::List(args)));
        }
    }
    let mut env = Vec::new();
    for (name, value) in entry.get("env").and_then(Json::as_object).into_iter().flatten() {
        let is_name = !name.is_empty() && !name.contains(['=', '\0']);
        match scalar(value).filter(|_| is_name) {
            Some(value) => env.push((name.clone(), Doc::text(variables::convert(&value, notes)))),
            None => {
                notes.push(format!("the variable `{name}` below `env` was left out: not a text"));
            }
        }
    }
    if !env.is_empty() {
        fields.push(("env".into(), Doc::Map(env)));
    }
    if let Some(cwd) = entry.get("cwd").and_then(Json::as_str) {
        fields.push(("cwd".into(), Doc::text(variables::convert(cwd, notes))));
    }
    Some(fields)
}

fn http(entry: &Map<String, Json>, transport: &str, notes: &mut Vec<String>) -> Option<Fields> {
    note_unused(entry, &["command", "args", "env", "cwd"], notes);
    let url = variables::convert(url_of(entry)?, notes);
    let is_address = |url: &Url| matches!(url.scheme(), "http" | "https") && url.has_host();
    if !url.contains("${") && !Url::parse(&url).is_ok_and(|url| is_address(&url)) {
        notes.push("left out: its `url` is not an http or https address".into());
        return None;
    }
    let mut fields =
        vec![("transport".into(), Doc::text(transport)), ("url".into(), Doc::text(url))];
    let mut headers: Fields = Vec::new();
    let mut bearer = None;
    for (name, value) in entry.get("headers").and_then(Json::as_object).into_iter().flatten() {
        let Some(value) = scalar(value).filter(|value| is_header(name, value)) else {
            notes.push(format!("the header `{name}` was left out: not a valid header"));
            continue;
        };
        let value = variables::convert(&value, notes);
        if !secret_line::is_harmless(&value) {
            notes.push(format!(
                "the header `{name}` holds its value in plain text; `${{VAR}}` or `file:` hide it"
            ));
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
    Some(fields)
}

fn is_header(name: &str, value: &str) -> bool {
    HeaderName::from_bytes(name.as_bytes()).is_ok() && HeaderValue::from_str(value).is_ok()
}

fn note_unused(entry: &Map<String, Json>, keys: &[&str], notes: &mut Vec<String>) {
    for key in keys.iter().filter(|key| entry.contains_key(**key)) {
        notes.push(format!("`{key}` does not go with its type and was left out"));
    }
}

/// A text, number or boolean as text: other programs are loose about types in `args` and `env`.
fn scalar(value: &Json) -> Option<String> {
    match value {
        Json::String(text) => Some(text.clone()),
        Json::Number(_) | Json::Bool(_) => Some(value.to_string()),
        Json::Null | Json::Array(_) | Json::Object(_) => None,
    }
}
