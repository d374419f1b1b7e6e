//! Importing server lists of other programs, and merging them into a file.

use pretty_assertions::assert_eq;
use switchboard_config::{ImportScope, Imported, import_servers, merge_into};
use switchboard_model::AdmissionMode::{Dynamic, Strict};

use crate::support::load_with;

const CLAUDE: &str = r#"{
  // Claude Desktop
  "mcpServers": {
    "filesystem": {
      "command": "npx",
      "args": ["-y", "server-filesystem", 7, "${workspaceFolder}"],
      "env": {"LEVEL": "debug", "PORT": 80, "LIST": [], "": "x"},
      "cwd": "/tmp/x",
      "alwaysAllow": ["read"],
    },
    "My API": {
      "type": "http",
      "url": "https://api.example.com/mcp",
      "headers": {"Authorization": "Bearer ${env:API_TOKEN}", "X-Team": "blue", "x-team": "b", "bad name": "x"},
      "command": "ignored"
    },
    "old": {"transport": "sse", "url": "http://localhost:1/sse", "headers": {"Authorization": "Basic abc"}},
    "off": {"command": "x", "disabled": true},
    "nothing": {},
    "both": {"command": "x", "url": "http://h"},
    "odd": {"type": "ws", "url": "ws://h"},
    "unreachable": {"url": "nowhere"},
    "empty": {"type": "stdio", "command": " ", "url": "http://h"},
    "text": "x", /* the end */
  },
}"#;

const CODE: &str = r#"{
  "servers": {
    "github": {
      "type": "http",
      "url": "https://api.githubcopilot.com/mcp/",
      "headers": {"Authorization": "Bearer ${input:github-token}"},
      "envFile": "${workspaceFolder}/.env"
    }
  },
  "inputs": [{"id": "github-token", "type": "promptString"}]
}"#;

const ENV: [(&str, &str); 3] =
    [("API_TOKEN", "t"), ("GITHUB_TOKEN", "t"), ("workspaceFolder", "/w")];

fn import(text: &str) -> Imported {
    import_servers("servers.json", text, ImportScope::Everything, &[])
        .unwrap_or_else(|problems| panic!("{problems}"))
}

fn notes(imported: &Imported) -> Vec<String> {
    imported.notes.iter().map(ToString::to_string).collect()
}

#[test]
fn a_claude_file() {
    let imported = import(CLAUDE);
    let yaml = imported.to_yaml(Dynamic);
    assert_eq!(
        yaml,
        r#"switchboard:
  toolbox:
    mcps:
      - name: filesystem
        transport: stdio
        command: npx
        args:
          - "-y"
          - server-filesystem
          - "7"
          - ${workspaceFolder}
        env:
          LEVEL: debug
          PORT: "80"
        cwd: /tmp/x
        mode: dynamic
        default_tool_config:
          max_instances: 5
          timeout: 30s
        required: false
      - name: My-API
        transport: streamable_http
        url: https://api.example.com/mcp
        headers:
          X-Team: blue
        auth:
          bearer: ${API_TOKEN}
        mode: dynamic
        default_tool_config:
          max_instances: 5
          timeout: 30s
        required: false
      - name: old
        transport: sse
        url: http://localhost:1/sse
        headers:
          Authorization: "Basic abc"
        mode: dynamic
        default_tool_config:
          max_instances: 5
          timeout: 30s
        required: false
"#
    );
    insta::with_settings!({omit_expression => true}, {
        insta::assert_snapshot!("claude_notes", notes(&imported).join("\n"));
    });
    load_with(Some(&yaml), &ENV).unwrap();
    load_with(Some(&imported.to_yaml(Strict)), &ENV).unwrap();
    assert!(!format!("{imported:?}").contains("Basic abc"));
}

#[test]
fn a_vs_code_file() {
    let imported = import(CODE);
    assert!(
        imported
            .to_yaml(Strict)
            .contains("bearer: ${GITHUB_TOKEN}\n        mode: strict\n        required: false\n")
    );
    assert_eq!(
        notes(&imported),
        [
            "github: set the variable GITHUB_TOKEN, which the editor used to ask for",
            "github: `envFile` is not read: put its variables below `env`",
        ]
    );
    load_with(Some(&imported.to_yaml(Dynamic)), &ENV).unwrap();
    let nested = import(r#"{"mcp": {"servers": {"a": {"command": "x"}}}}"#);
    assert_eq!(nested.servers[0].name, "a");
    let none = import(r#"{"mcpServers": {}}"#);
    load_with(Some(&none.to_yaml(Dynamic)), &[]).unwrap();
}

#[test]
fn a_file_that_is_something_else() {
    let all: Vec<_> = [
        r#"{"mcp_servers": {}}"#,
        r#"{"tools": {}}"#,
        r#"{"servers": []}"#,
        "[]",
        "{\"mcpServers\": {\n  \"a\" {}\n}}",
        "{\"mcpServers\": {\"a\": {\"token\": \"s3cret\" x}}}",
    ]
    .iter()
    .map(|text| {
        let imported = import_servers("servers.json", text, ImportScope::Everything, &[]);
        imported.unwrap_err().to_string()
    })
    .collect();
    insta::with_settings!({omit_expression => true}, {
        insta::assert_snapshot!("not_a_list", all.join("\n\n"));
    });
}

/// Merges one server into `text`; what is added is marked with `+`.
fn merge(text: &str) -> String {
    let imported = import(r#"{"mcpServers": {"new": {"command": "x"}, "old": {"command": "y"}}}"#);
    let text = text.replace("OLD", "{name: old, command: y, mode: strict}");
    match merge_into("mine.yaml", &text, &imported, Strict) {
        Err(problems) => problems.to_string(),
        Ok(merged) => {
            load_with(Some(&merged.text), &[]).unwrap_or_else(|p| panic!("{p}\n{}", merged.text));
            assert!(!format!("{merged:?}").contains("command"));
            let mut rest = text.lines().peekable();
            let mut out = String::new();
            for line in merged.text.lines() {
                let kept = rest.next_if_eq(&line).is_some();
                out.push_str(if kept { "  " } else { "+ " });
                out.push_str(line);
                out.push('\n');
            }
            let lost: Vec<_> = rest.map(|line| format!("- {line}\n")).collect();
            format!("{out}{}{}", lost.concat(), merged.notes().join("\n"))
        }
    }
}

#[test]
fn new_servers_are_put_behind_the_others() {
    let rows = [
        (
            "block_list",
            "switchboard:\n  toolbox:\n    mcps:\n      - name: old  # mine\n        command: y\n        mode: strict\n        # end\n\n    # tools\n    tools: []\n",
        ),
        ("same_column", "myai:\n  toolbox:\n    mcps:\n    - OLD\n    max_concurrent: 3"),
        (
            "own_line_dash",
            "switchboard:\n  toolbox:\n    mcps:\n      -\n        name: old\n        command: y\n        mode: strict\n",
        ),
        (
            "block_scalar",
            "switchboard:\n  toolbox:\n    mcps:\n      - name: old\n        mode: strict\n        command: |-\n          a\n          # part of it\n        # a comment\n\n    tools: []\n",
        ),
        (
            "multi_line_flow_item",
            "switchboard:\n  toolbox:\n    mcps:\n      - {name: old,\n         command: y, mode: strict\n        }\n",
        ),
        ("windows", "switchboard:\r\n  toolbox:\r\n    mcps:\r\n      - OLD\r\n    tools: []\r\n"),
    ];
    let all: Vec<_> =
        rows.iter().map(|(name, text)| format!("== {name}\n{}", merge(text))).collect();
    insta::with_settings!({omit_expression => true}, {
        insta::assert_snapshot!("behind_the_others", all.join("\n\n"));
    });
}

#[test]
fn a_list_is_made_where_there_is_none() {
    let rows = [
        ("empty_file", ""),
        ("comment", "# mine"),
        ("null_root", "switchboard:\n"),
        ("empty_root", "switchboard: {}  # nothing yet\n"),
        ("null_toolbox", "switchboard:\n  toolbox: ~\n"),
        ("no_list", "switchboard:\n    toolbox:\n        tools: []\n        # end\n"),
        ("null_list", "switchboard:\n  toolbox:\n    mcps:  # none\n    tools: []\n"),
        ("empty_list", "switchboard:\n  toolbox:\n    mcps: [ ]  # none\n    tools: []\n"),
    ];
    let all: Vec<_> =
        rows.iter().map(|(name, text)| format!("== {name}\n{}", merge(text))).collect();
    insta::with_settings!({omit_expression => true}, {
        insta::assert_snapshot!("a_new_list", all.join("\n\n"));
    });
}

#[test]
fn what_cannot_be_added_to() {
    let rows = [
        ("flow_list", "switchboard:\n  toolbox:\n    mcps: [OLD]\n"),
        ("flow_toolbox", "switchboard:\n  toolbox: {tools: []}\n"),
        ("flow_over_lines", "switchboard:\n  toolbox: {\n  }\n"),
        ("text", "switchboard:\n  toolbox: x\n"),
        ("no_root", "other: 1\n"),
        ("duplicate", "switchboard:\nswitchboard:\n"),
        ("broken", "switchboard: [\n"),
        ("end_marker", "---\n...\n"),
    ];
    let all: Vec<_> =
        rows.iter().map(|(name, text)| format!("== {name}\n{}", merge(text))).collect();
    insta::with_settings!({omit_expression => true}, {
        insta::assert_snapshot!("cannot_be_added_to", all.join("\n\n"));
    });
}

#[test]
fn nothing_new_changes_nothing() {
    let text = "switchboard:\n  toolbox:\n    mcps: [{name: a}]";
    let imported = import(r#"{"mcpServers": {"a": {"command": "x"}}}"#);
    let merged = merge_into("mine.yaml", text, &imported, Dynamic).unwrap();
    assert_eq!(merged.text, text);
    assert_eq!(merged.notes(), ["a: left out: a server of this name is already there"]);
    assert_eq!(merged.added, Vec::<String>::new());
}

#[test]
fn a_codex_file() {
    let text = r#"
model = "x"
[mcp_servers.docs]
command = "npx -y docs-server"
args = ["--port", 80]
env_vars = ["DOCS_TOKEN"]
startup_timeout_sec = 90
tool_timeout_sec = 120.5
enabled_tools = ["search"]
[mcp_servers.docs.env]
LEVEL = "debug"
[mcp_servers.web]
url = "https://example.com/mcp"
bearer_token_env_var = "WEB_TOKEN"
http_headers = { "X-Team" = "blue" }
env_http_headers = { "X-Key" = "WEB_KEY" }
[mcp_servers.off]
command = "x"
enabled = false
[mcp_servers.board]
url = "http://127.0.0.1:8420/mcp"
[mcp_servers.needed]
command = "x"
required = true
"#;
    let boards = ["http://127.0.0.1:8420/mcp".parse().unwrap()];
    let imported = import_servers("config.toml", text, ImportScope::Everything, &boards).unwrap();
    insta::with_settings!({omit_expression => true}, {
        insta::assert_snapshot!("codex", format!("{}{}", imported.to_yaml(Dynamic), notes(&imported).join("\n")));
    });
    let env = [("DOCS_TOKEN", "t"), ("WEB_TOKEN", "t"), ("WEB_KEY", "k")];
    load_with(Some(&imported.to_yaml(Dynamic)), &env).unwrap();
    let bad: Vec<_> = ["a = 1", "mcp_servers = 1", "[mcp_servers.x\ntoken = \"s3cret\""]
        .map(|text| {
            import_servers("c.toml", text, ImportScope::Everything, &[]).unwrap_err().to_string()
        })
        .into();
    assert!(bad[0].contains("no table `mcp_servers`"), "{}", bad[0]);
    assert!(bad[1].contains("is not a table"), "{}", bad[1]);
    assert!(bad[2].contains("not valid TOML") && !bad[2].contains("s3cret"), "{}", bad[2]);
}

#[test]
fn servers_of_projects_are_taken_too_each_once() {
    #[track_caller]
    fn check(text: &str, scope: ImportScope<'_>, expected: &[(&str, Option<&str>)]) {
        let imported = import_servers("claude.json", text, scope, &[]).unwrap();
        let servers = imported.servers.iter();
        let found: Vec<_> =
            servers.map(|server| (server.name.as_str(), server.project())).collect();
        assert_eq!(found, expected);
    }
    let text = r#"{"mcpServers": {"mine": {"command": "m"}}, "projects": {
        "/work/a": {"mcpServers": {"db": {"command": "d"}, "mine": {"command": "m"}}},
        "/work/b": {"mcpServers": {"db": {"command": "other"}}, "history": []},
        "/work/c": {"mcpServers": {}}}}"#;
    let all = [("mine", None), ("db", Some("/work/a")), ("db-2", Some("/work/b"))];
    check(text, ImportScope::Everything, &all);
    check(text, ImportScope::Project("/work/b"), &[("mine", None), ("db", Some("/work/b"))]);
    check(text, ImportScope::NoProject, &[("mine", None)]);
    let only = r#"{"projects": {"/work/a": {"mcpServers": {"db": {"command": "d"}}}}}"#;
    check(only, ImportScope::Everything, &[("db", Some("/work/a"))]);
    let unknown =
        import_servers("claude.json", text, ImportScope::Project("/work/c"), &[]).unwrap_err();
    let message = unknown.to_string();
    assert!(message.contains("no servers of the project /work/c"), "{message}");
    assert!(message.contains("projects with servers: /work/a, /work/b"), "{message}");
}

#[test]
fn commands_in_one_text_are_split_and_keys_in_plain_text_are_named() {
    let imported = import(
        r#"{"mcpServers": {
            "one": {"command": "npx -y foo", "args": ["--api-key", "abc"], "env": {"LEVEL": "1", "TOKEN": "abc"}},
            "two": {"url": "https://h/mcp?apikey=abc"},
            "switchboard": {"url": "http://127.0.0.1:8420/mcp"},
            "board": {"command": "/usr/bin/switchboard", "args": ["--config", "x", "stdio"]}}}"#,
    );
    let yaml = imported.to_yaml(Dynamic);
    assert!(
        yaml.contains("command: npx\n        args:\n          - \"-y\"\n          - foo\n"),
        "{yaml}"
    );
    let notes = notes(&imported).join("\n");
    assert_eq!(
        notes,
        "one: `command` had arguments in it; they are below `args` of `npx`\n\
         one: argument 4 of `npx` holds its value in plain text; `${VAR}` hides it\n\
         one: the variable `TOKEN` below `env` holds its value in plain text; `${VAR}` or `file:` hide it\n\
         two: `apikey` in the query of `url` holds its value in plain text; `${VAR}` hides it\n\
         switchboard: left out: it is a Switchboard itself\n\
         board: left out: it is a Switchboard itself\n\
         programs are started with PATH, HOME and a few other variables, and with what `env` names; other variables \
         of your environment have to be named there",
    );
    assert!(!notes.contains("abc"));
}

#[test]
fn what_the_file_had_before_counts_as_taken_over_only_where_it_is_the_same() {
    let text = "switchboard:\n  toolbox:\n    mcps:\n      - name: a\n        command: x\n        args: [\"1\"]\n        mode: dynamic\n      - {name: b, url: \"http://h/b\", mode: dynamic}\n      - {name: c, command: z, mode: dynamic}\n";
    let imported = import(
        r#"{"mcpServers": {"a": {"command": "x", "args": [1]}, "b": {"url": "http://h/other"},
            "c": {"command": "z"}, "d": {"command": "w"}}}"#,
    );
    let merged = merge_into("mine.yaml", text, &imported, Dynamic).unwrap();
    assert_eq!(merged.added, ["d"]);
    let present: Vec<_> =
        merged.present.iter().map(|server| (server.name.as_str(), server.is_same)).collect();
    assert_eq!(present, [("a", true), ("b", false), ("c", true)]);
}

#[test]
fn odd_commands_and_references_are_understood_or_named() {
    #[track_caller]
    fn check(entry: &str, expected_yaml: &str, expected_notes: &[&str]) {
        let imported = import(&format!("{{\"mcpServers\": {{\"a\": {entry}}}}}"));
        let yaml = imported.to_yaml(Strict);
        assert!(yaml.contains(expected_yaml), "{entry}: {yaml}");
        let mut notes = notes(&imported);
        notes.retain(|note| note.starts_with("a: "));
        assert_eq!(notes, expected_notes, "{entry}");
    }
    let had_variables = "a: `command` had variables in it; they are below `env`";
    let had_arguments = "a: `command` had arguments in it; they are below `args` of `npx`";
    check(
        r#"{"command": "FOO=1 npx x", "env": {"FOO": "0", "B": "2"}}"#,
        "command: npx\n        args:\n          - x\n        env:\n          FOO: \"1\"\n          B: \"2\"\n",
        &[had_variables, had_arguments],
    );
    check(
        r#"{"command": "API_KEY=abc npx"}"#,
        "command: npx\n        env:\n          API_KEY: abc\n",
        &[
            had_variables,
            "a: the variable `API_KEY` below `env` holds its value in plain text; `${VAR}` or `file:` hide it",
        ],
    );
    check(
        r#"{"command": "npx 'open"}"#,
        "command: \"npx 'open\"\n",
        &[
            "a: `command` has a quote that is not closed, so it is taken for the name of a program; write the program \
           there and its arguments in `args`",
        ],
    );
    check(
        r#"{"command": ""}"#,
        "mcps: []",
        &["a: left out: `command` is empty; write the program there, such as `npx`"],
    );
    check(
        r#"{"command": ["npx"]}"#,
        "mcps: []",
        &[
            "a: left out: `command` is not a text; write the program there and its arguments in `args`",
        ],
    );
    check(
        r#"{"command": "FOO=1"}"#,
        "mcps: []",
        &[
            "a: left out: `command` sets variables and names no program; write the program there and the variables in \
           `env`",
        ],
    );
    check(
        r#"{"url": "http://h/mcp", "headers": {"X-Key": "${KEY:-d}", "Authorization": "Basic ${BASIC}"}}"#,
        "X-Key: ${KEY:-d}\n",
        &[],
    );
    check(
        r#"{"command": "x", "required": true}"#,
        "required: false\n",
        &[
            "a: `required` is true there and false here: set `required: true` if the board must not start without it",
        ],
    );
}

#[test]
fn the_same_server_of_several_projects_is_taken_once() {
    let text = r#"{"projects": {
        "/a": {"mcpServers": {"pa": {"type": "stdio", "command": "p", "args": [], "env": {"A": "1", "B": "2"}}}},
        "/b": {"mcpServers": {"pa": {"command": "p", "args": ["other"]}}},
        "/c": {"mcpServers": {"pa": {"command": "p", "env": {"B": "2", "A": "1"}}}}}}"#;
    let imported = import(text);
    let found: Vec<_> = imported
        .servers
        .iter()
        .map(|server| {
            let projects = server.places.iter().map(|place| place.project.as_deref());
            (server.name.as_str(), projects.map(Option::unwrap).collect::<Vec<_>>())
        })
        .collect();
    assert_eq!(found, [("pa", vec!["/a", "/c"]), ("pa-2", vec!["/b"])]);
    assert_eq!(
        notes(&imported)[..3],
        [
            "pa (project /a): imported for all clients; in the other file it is for this project only",
            "pa (project /b): renamed to `pa-2`",
            "pa (project /b): imported for all clients; in the other file it is for this project only",
        ]
    );
}

#[test]
fn a_server_that_is_not_kept_takes_its_notes_along() {
    let mut imported = import(
        r#"{"mcpServers": {"a": {"command": "npx x"}, "b": {"url": "http://h/?key=x"}, "off": {"disabled": true}}}"#,
    );
    imported.retain(|server| server.name == "b");
    assert_eq!(
        notes(&imported),
        [
            "b: `key` in the query of `url` holds its value in plain text; `${VAR}` hides it",
            "off: left out: it is disabled there",
        ]
    );
}

/// What TrustGraph keeps: each value is the JSON text of an object.
const TRUSTGRAPH: &str = r#"{
  "mcp": {
    "balance": {"remote-name": "get_bank_balance", "url": "http://bank.example/mcp", "auth-token": "s3cret-token-value"}
  },
  "tool": {
    "get-balance": "{\"type\": \"mcp-tool\", \"name\": \"get_bank_balance\", \"description\": \"Balance in ${CUR}\", \"mcp-tool\": \"balance\", \"arguments\": [{\"name\": \"account_id\", \"type\": \"string\", \"description\": \"Bank account identifier\"}], \"group\": [\"bank\"]}",
    "old": {"type": "mcp-tool", "name": "old", "mcp_tool_id": "balance", "limit": 3},
    "docs": {"type": "knowledge-query", "name": "docs"},
    "ask": {"type": "prompt", "name": "ask", "template": "question"},
    "lost": {"type": "mcp-tool", "name": "lost"}
  }
}"#;

#[test]
fn tools_and_endpoints_of_trustgraph_are_imported() {
    let imported = import(TRUSTGRAPH);
    insta::assert_snapshot!(
        "trustgraph",
        format!("{}\n{}", imported.to_yaml(Strict), notes(&imported).join("\n"))
    );
    let tools: Vec<_> = imported.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(tools, ["get_bank_balance", "old"]);
}

#[test]
fn ids_of_trustgraph_stay_and_renamed_servers_are_followed() {
    let file = r#"{"mcp": {"my tool!": {"url": "http://127.0.0.1:9/mcp", "remote-name": "balance"}},
        "tool": {"balance-tool": {"type": "mcp-tool", "name": "get_balance", "mcp-tool": "my tool!"},
                 "same": {"type": "mcp-tool", "name": "same", "mcp-tool": "other"}}}"#;
    let imported = import(file);
    let plan = load_with(Some(&imported.to_yaml(Strict)), &[]).unwrap().plan;
    let tools: Vec<_> =
        plan.tools.iter().map(|tool| (tool.name.as_str(), tool.id.as_deref())).collect();
    assert_eq!(tools, [("my-tool.balance", Some("balance-tool")), ("other", None)]);
}

#[test]
fn an_imported_entry_with_which_the_file_would_not_load_is_refused() {
    let one =
        r#"{"type": "mcp-tool", "name": "add_them", "mcp-tool": "maths.sum", "arguments": []}"#;
    let merge = |file: &str| merge_into("switchboard.yaml", file, &import(one), Strict);
    let twice = "switchboard:\n  toolbox:\n    tools:\n      - name: maths.sum\n";
    insta::assert_snapshot!(merge(twice).unwrap_err(), @r"
    error: two tool entries are about the same tool
      --> switchboard.yaml:7:19
       |
     7 |         mcp-tool: maths.sum
       |                   ^^^^^^^^^
       = note: the first is at switchboard.yaml:4:9
       = note: nothing was written; the lines are those of the file with the imported entries
       = help: a tool has one entry: merge them, or remove one

    1 problem found
    ");
    // A problem that the file has already does not stop an import, nor does a reference.
    let other = "switchboard:\n  toolbox:\n    max_concurrent: ${UNSET}\n    tools:\n      - {name: a, timeout: 0s}\n      - name: b\n";
    assert_eq!(merge(other).unwrap().added_tools, ["add_them"]);
}

#[test]
fn one_tool_of_trustgraph_is_merged_into_a_file_and_its_comments_stay() {
    let one = r#"{"type": "mcp-tool", "name": "get_bank_balance", "description": "Get bank account balance",
        "mcp-tool": "get_bank_balance", "arguments": [
        {"name": "date", "type": "string", "description": "Date (optional, format: YYYY-MM-DD)"}]}"#;
    let file = "switchboard:\n  toolbox:\n    tools:\n      # mine\n      - name: mine  # kept\n    mcps: []\n";
    let merged = merge_into("switchboard.yaml", file, &import(one), Strict).unwrap();
    assert_eq!(merged.added_tools, ["get_bank_balance"]);
    assert!(merged.text.starts_with(
        "switchboard:\n  toolbox:\n    tools:\n      # mine\n      - name: mine  # kept\n"
    ));
    let plan = load_with(Some(&merged.text), &[]).unwrap().plan;
    assert_eq!(plan.tools[1].expose_as.as_deref(), Some("get_bank_balance"));
    // A second import changes nothing and says so.
    let again = merge_into("switchboard.yaml", &merged.text, &import(one), Strict).unwrap();
    assert_eq!(again.text, merged.text);
    assert_eq!(
        again.notes(),
        ["tool get_bank_balance: left out: an entry of this name is already there"]
    );
}
