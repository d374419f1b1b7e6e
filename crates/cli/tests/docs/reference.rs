//! The reference pages list every key, command, route and metric.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::Value;

use crate::generated;
use crate::page::{read, workspace};
use crate::stage::Stage;

fn printed(arguments: &[&str]) -> String {
    let output = Stage::new().command("switchboard").args(arguments).output();
    let output = output.expect("switchboard can be started");
    assert!(output.status.success(), "{arguments:?} failed");
    String::from_utf8(output.stdout).expect("it prints text")
}

#[test]
fn every_key_of_the_configuration_is_on_its_page() {
    let schema: Value = serde_json::from_str(&printed(&["config", "schema"])).expect("JSON");
    let definitions = schema["$defs"].as_object().expect("the schema has definitions");
    let tables = definitions
        .iter()
        .filter_map(|(name, definition)| Some((name.clone(), key_table(definition)?)))
        .collect();
    generated::check("docs/reference/configuration.md", &tables);
}

fn key_table(definition: &Value) -> Option<String> {
    let properties = definition.get("properties")?.as_object()?;
    let required = definition["required"].as_array().cloned().unwrap_or_default();
    let mut table = "\n| key | type | default | meaning |\n|---|---|---|---|\n".to_owned();
    for (key, property) in properties {
        let default = match (&property["default"], required.iter().any(|name| name == key)) {
            (_, true) => "required".to_owned(),
            (Value::Null, false) => "-".to_owned(),
            (Value::String(text), false) => format!("`{text}`"),
            (default, false) => format!("`{default}`"),
        };
        let meaning = property["description"].as_str().unwrap_or_default().replace('\n', " ");
        let kind = kind_of(property);
        writeln!(table, "| `{key}` | {kind} | {default} | {meaning} |").expect("text grows");
    }
    table.push('\n');
    Some(table)
}

fn kind_of(property: &Value) -> String {
    if let Some(name) = property["$ref"].as_str().and_then(|name| name.rsplit('/').next()) {
        return if name == "Duration" {
            "duration".into()
        } else {
            format!("[{name}](#{})", name.to_lowercase())
        };
    }
    if let Some(words) = property["enum"].as_array() {
        let words: Vec<_> =
            words.iter().map(|word| format!("`{}`", word.as_str().unwrap_or("?"))).collect();
        return words.join(", ");
    }
    let lowest =
        property["minimum"].as_u64().map(|least| format!(", at least {least}")).unwrap_or_default();
    match &property["type"] {
        Value::String(kind) if kind == "array" => {
            format!("list of {}", kind_of(&property["items"]))
        }
        Value::String(kind) if kind == "object" => {
            format!("map of {}", kind_of(&property["additionalProperties"]))
        }
        Value::String(kind) => format!("{kind}{lowest}"),
        Value::Array(_) => "`all`, or list of string".into(),
        _ => "any".into(),
    }
}

/// Options that every command has; the page describes them once.
const GLOBAL: &[&str] = &[
    "--config",
    "--data-dir",
    "--url",
    "--ca-file",
    "--client-certificate",
    "--json",
    "--verbose",
    "--quiet",
    "--log-format",
    "--help",
    "--version",
];

const COMMANDS: &[&str] = &[
    "serve",
    "stdio",
    "check",
    "config show",
    "config schema",
    "import",
    "connect",
    "server list",
    "server show",
    "server set",
    "server delete",
    "server reconnect",
    "server test",
    "discover",
    "tool list",
    "tool show",
    "tool set",
    "tool delete",
    "tool call",
    "toolset list",
    "toolset show",
    "toolset set",
    "toolset delete",
    "toolset draft",
    "agent list",
    "agent show",
    "session new",
    "session list",
    "session show",
    "session bind",
    "session enable",
    "session disable",
    "session attach",
    "session detach",
    "session history",
    "session delete",
    "chat",
    "provider list",
    "render",
    "calls",
    "key add",
    "key edit",
    "key list",
    "key revoke",
    "auth login",
    "auth set",
    "auth status",
    "auth logout",
    "store migrate",
    "store backup",
    "store restore",
    "store copy",
    "doctor",
    "completions",
    "demo-server",
];

#[test]
fn every_command_and_option_is_on_its_page() {
    let whole = printed(&["--help"]);
    for command in listed_commands(&whole) {
        let is_documented = |known: &&str| known.split(' ').next() == Some(command.as_str());
        assert!(COMMANDS.iter().any(is_documented), "`{command}` is not documented");
    }
    let mut parts = BTreeMap::from([("switchboard".to_owned(), fenced(&whole))]);
    for command in COMMANDS {
        let mut arguments: Vec<_> = command.split(' ').collect();
        arguments.push("--help");
        parts.insert((*command).to_owned(), fenced(&without_global_options(&printed(&arguments))));
    }
    generated::check("docs/reference/cli.md", &parts);
}

fn listed_commands(help: &str) -> Vec<String> {
    let commands = help.split_once("Commands:\n").expect("the help lists commands").1;
    let lines = commands.lines().take_while(|line| !line.is_empty());
    let names = lines.filter_map(|line| line.split_whitespace().next());
    names.filter(|name| *name != "help").map(str::to_owned).collect()
}

fn without_global_options(help: &str) -> String {
    let Some((head, options)) = help.split_once("Options:\n") else { return help.to_owned() };
    let mut kept = String::new();
    let mut is_kept = false;
    for line in options.lines() {
        // The help text of an option comes after two spaces and may name a global option.
        let names = line.trim_start().split("  ").next().unwrap_or_default();
        if names.starts_with('-') {
            is_kept = !GLOBAL
                .iter()
                .any(|option| names.split(' ').any(|word| word.trim_end_matches("...") == *option));
        }
        if is_kept {
            kept.extend([line, "\n"]);
        }
    }
    let options = if kept.is_empty() { String::new() } else { format!("Options:\n{kept}") };
    format!("{head}{options}")
}

fn fenced(text: &str) -> String {
    let lines: Vec<_> = text.trim_end().lines().map(str::trim_end).collect();
    format!("\n```text\n{}\n```\n\n", lines.join("\n"))
}

#[test]
fn every_route_is_on_its_page() {
    let page = read("docs/reference/http.md");
    let mut routes = vec!["/mcp".to_owned()];
    for file in ["crates/http/src/server.rs", "crates/http/src/mcp.rs"] {
        let source = std::fs::read_to_string(workspace().join(file)).expect("the routes");
        let undocumented = source.split(".route(").skip(1);
        let path =
            |rest: &str| Some(rest.trim_start().strip_prefix('"')?.split_once('"')?.0.to_owned());
        routes.extend(undocumented.filter_map(path));
    }
    assert!(routes.len() > 6, "the routes are where they were");
    let document = api_document();
    let paths = document["paths"].as_object().expect("the document has paths");
    for (path, methods) in paths {
        let methods = methods.as_object().expect("a path has methods").keys();
        routes.extend(methods.map(|method| format!("{} `{path}", method.to_uppercase())));
    }
    for route in routes {
        assert!(page.contains(&format!("{route}`")), "{route} is not documented");
    }
}

#[test]
fn every_problem_of_the_document_is_on_the_page() {
    let page = read("docs/reference/http.md");
    let document = api_document();
    let answers = document["components"]["responses"].as_object().expect("it has answers");
    for (name, answer) in answers {
        let examples = &answer["content"]["application/problem+json"]["examples"];
        for (kind, example) in examples.as_object().expect("each has examples") {
            let status = example["value"]["status"].to_string();
            let row = page
                .lines()
                .find(|line| line.starts_with('|') && line.contains(&format!("`{kind}`")));
            let row = row.unwrap_or_else(|| panic!("{kind} of {name} is not documented"));
            assert!(row.contains(&status), "{kind} of {name} has status {status}: {row}");
        }
    }
}

fn api_document() -> Value {
    serde_json::from_str(&read("docs/openapi.json")).expect("the document is JSON")
}

#[test]
fn every_metric_is_on_its_page() {
    let source = std::fs::read_to_string(workspace().join("crates/telemetry/src/metrics.rs"))
        .expect("the names");
    let page = read("docs/reference/metrics.md");
    // A metric is a constant that is described; others are words for labels.
    let is_metric = |constant: &str| source.contains(&format!("!({constant}, \""));
    let names: Vec<_> = source
        .lines()
        .filter_map(|line| line.strip_prefix("const ")?.split_once(": &str = \""))
        .filter(|(constant, _)| is_metric(constant))
        .filter_map(|(_, value)| value.split('"').next())
        .collect();
    assert!(names.len() > 5, "the names are where they were");
    for name in names {
        assert!(page.contains(&format!("| `{name}` |")), "{name} is not documented");
    }
}
