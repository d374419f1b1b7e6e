//! `import`: the servers of other programs as a configuration.

use pretty_assertions::assert_eq;
use serde_json::json;

use crate::support::{Home, assert_says};

const CLAUDE: &str = r#"{
  "mcpServers": {
    "files": {"command": "npx", "args": ["-y", "server-files", "/data"], "env": {"LEVEL": "debug"}},
    "remote": {"type": "http", "url": "https://example.com/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}},
    "old": {"type": "sse", "url": "https://example.com/sse"},
    "off": {"command": "x", "disabled": true}
  }
}"#;

const VS_CODE: &str = r#"{
  // comments are fine here
  "inputs": [{"id": "api-key", "type": "promptString", "password": true}],
  "servers": {
    "hub": {"type": "http", "url": "https://example.com/mcp", "headers": {"Authorization": "Bearer ${input:api-key}"}},
    "mine": {"type": "stdio", "command": "node", "args": ["server.js"], "env": {"A": "${env:B}"},},
  },
}"#;

#[test]
fn import_prints_a_configuration_that_is_valid() {
    let home = Home::empty();
    home.file("claude.json", CLAUDE);
    home.file("code.json", VS_CODE);
    for file in ["claude.json", "code.json"] {
        let imported = home.line(&format!("import {file}")).expect(0);
        home.rewrite(&imported.stdout);
        let checked = Home::new(&imported.stdout);
        let variables = [("TOKEN", "x"), ("API_KEY", "x"), ("B", "x")];
        let checked =
            variables.iter().fold(checked, |home, (name, value)| home.with_variable(name, *value));
        checked.line("check").expect(0);
    }
}

#[test]
fn import_says_what_it_made_of_it() {
    let home = Home::empty();
    home.file("claude.json", CLAUDE);
    let claude = home.line("import claude.json").expect(0);
    assert_says!(claude.stdout, @r#"
    switchboard:
      toolbox:
        mcps:
          - name: files
            transport: stdio
            command: npx
            args:
              - "-y"
              - server-files
              - /data
            env:
              LEVEL: debug
            mode: dynamic
            default_tool_config:
              max_instances: 5
              timeout: 30s
            required: false
          - name: remote
            transport: streamable_http
            url: https://example.com/mcp
            auth:
              bearer: ${TOKEN}
            mode: dynamic
            default_tool_config:
              max_instances: 5
              timeout: 30s
            required: false
          - name: old
            transport: sse
            url: https://example.com/sse
            mode: dynamic
            default_tool_config:
              max_instances: 5
              timeout: 30s
            required: false
    "#);
    assert_says!(claude.stderr, @"
    note: off: left out: it is disabled there
    note: programs are started with PATH, HOME and a few other variables, and with what `env` names; other variables of your environment have to be named there
    ");
    let json = home.line("import claude.json --json").expect(0).json();
    assert_eq!(json["servers"], json!(["files", "remote", "old"]));
    assert_eq!(json["yaml"].as_str().unwrap(), claude.stdout);
}

#[test]
fn import_takes_the_servers_of_an_editor_in_strict_mode() {
    let home = Home::empty();
    home.file("code.json", VS_CODE);
    let code = home.line("import code.json --mode strict").expect(0);
    assert_says!(code.stdout, @"
    switchboard:
      toolbox:
        mcps:
          - name: hub
            transport: streamable_http
            url: https://example.com/mcp
            auth:
              bearer: ${API_KEY}
            mode: strict
            required: false
          - name: mine
            transport: stdio
            command: node
            args:
              - server.js
            env:
              A: ${B}
            mode: strict
            required: false
    ");
    assert_says!(code.stderr, @"
    note: hub: set the variable API_KEY, which the editor used to ask for
    note: programs are started with PATH, HOME and a few other variables, and with what `env` names; other variables of your environment have to be named there
    ");
}

#[test]
fn import_merges_into_a_file_and_keeps_its_comments() {
    let home = Home::empty();
    home.file("claude.json", CLAUDE);
    let target = home.file(
        "board.yaml",
        "# our board\nswitchboard:\n  toolbox:\n    # not too many\n    max_concurrent: 3  # three\n    mcps:\n      - name: files # the old one\n        command: cat\n        mode: strict\n",
    );
    let merged = home.line("import claude.json --merge board.yaml").expect(0);
    assert_says!(merged.stdout, @"board.yaml: 2 servers added");
    assert_says!(merged.stderr, @"
    note: off: left out: it is disabled there
    note: files: left out: a server of this name is already there
    ");
    let text = std::fs::read_to_string(&target).unwrap();
    assert_says!(text, @"
    # our board
    switchboard:
      toolbox:
        # not too many
        max_concurrent: 3  # three
        mcps:
          - name: files # the old one
            command: cat
            mode: strict
          - name: remote
            transport: streamable_http
            url: https://example.com/mcp
            auth:
              bearer: ${TOKEN}
            mode: dynamic
            default_tool_config:
              max_instances: 5
              timeout: 30s
            required: false
          - name: old
            transport: sse
            url: https://example.com/sse
            mode: dynamic
            default_tool_config:
              max_instances: 5
              timeout: 30s
            required: false
    ");
    let home = home.with_variable("TOKEN", "x");
    home.line("check --config board.yaml").expect(0);
    let again = home.line("import claude.json --merge board.yaml --json").expect(0).json();
    assert_eq!(again["servers"], json!([]), "all are there already");
    assert_eq!(std::fs::read_to_string(&target).unwrap(), text);
    let left: Vec<_> =
        std::fs::read_dir(home.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left.len(), 2, "{left:?}");
}

#[test]
fn import_makes_a_new_file_for_its_owner_only_and_writes_through_a_link() {
    use std::os::unix::fs::PermissionsExt as _;
    let home = Home::empty();
    home.file("claude.json", CLAUDE);
    home.line("import claude.json --merge new.yaml").expect(0);
    let mode = |name: &str| {
        std::fs::metadata(home.path().join(name)).unwrap().permissions().mode() & 0o777
    };
    assert_eq!(mode("new.yaml"), 0o600);
    home.line("check --config new.yaml").expect(1);
    let real = home.file("real.yaml", "switchboard: {}\n");
    std::fs::set_permissions(&real, std::fs::Permissions::from_mode(0o640)).unwrap();
    std::os::unix::fs::symlink("real.yaml", home.path().join("link.yaml")).unwrap();
    home.line("import claude.json --merge link.yaml").expect(0);
    assert!(home.path().join("link.yaml").is_symlink());
    assert!(std::fs::read_to_string(real).unwrap().contains("name: remote"));
    assert_eq!(mode("real.yaml"), 0o640);
}

#[test]
fn import_says_what_it_cannot_read() {
    let home = Home::empty();
    home.file("half.json", "{\"mcpServers\": {");
    home.file("other.json", "{\"a\": 1}");
    home.file("none.json", "{\"mcpServers\": {}}");
    home.file("claude.json", CLAUDE);
    let broken = home.file("broken.yaml", "switchboard: [\n");
    assert_says!(home.line("import half.json").expect(1).stderr, @r#"
    error: not valid JSON: unterminated object
      --> half.json:1:16
       |
     1 | {"mcpServers": {
       |                ^

    1 problem found
    "#);
    assert_says!(home.line("import other.json").expect(1).stderr, @r#"
    error: the file has no list of servers
      --> other.json:1:1
       = help: expected `{"mcpServers": {...}}` (Claude, Cursor, .mcp.json), `{"servers": {...}}` (VS Code), or a `.toml` file of Codex

    1 problem found
    "#);
    assert_says!(home.line("import missing.json").expect(1).stderr, @"error: cannot read missing.json: No such file or directory (os error 2)");
    assert_says!(home.line("import claude.json --merge broken.yaml").expect(1).stderr, @"
    error: not valid YAML: while parsing a node, did not find expected node content
      --> broken.yaml:2:1

    1 problem found
    ");
    assert_eq!(std::fs::read_to_string(broken).unwrap(), "switchboard: [\n");
    assert_says!(home.line("import claude.json --merge no/such/place.yaml").expect(1).stderr, @"
    note: off: left out: it is disabled there
    note: programs are started with PATH, HOME and a few other variables, and with what `env` names; other variables of your environment have to be named there
    error: cannot write no/such/place.yaml: No such file or directory (os error 2)
    ");
    let none = home.line("import none.json").expect(0);
    assert_says!(none.stderr, @"note: none.json has no server that can be imported");
    assert_says!(none.stdout, @"
    switchboard:
      toolbox:
        mcps: []
    ");
}
