//! Error messages for invalid configurations.

use pretty_assertions::assert_eq;

use crate::support::{load_with, problems, with_server, with_tool};

macro_rules! check {
    ($name:literal, $text:expr) => {
        check!($name, $text, &[])
    };
    ($name:literal, $text:expr, $env:expr) => {
        insta::with_settings!({omit_expression => true}, {
            insta::assert_snapshot!($name, problems(&$text, $env));
        });
    };
}

#[test]
fn keys_and_types() {
    check!("unknown_key", with_tool("- name: a\n  max_instance: 3"));
    check!("unknown_key_far_from_all", with_tool("- name: a\n  zzz: 3"));
    check!("instance_counts", with_tool("- name: a\n  instance_counts: {}"));
    check!("wrong_type_text", with_tool("- name: a\n  max_instances: many  # few"));
    check!("wrong_type_quoted", with_tool("- name: a\n  max_instances: \"7\"  # x"));
    check!("wrong_type_fraction", with_tool("- name: a\n  max_instances: 2.5"));
    check!("wrong_type_boolean", with_tool("- name: a\n  enabled: 'yes'"));
    check!("wrong_type_list", with_tool("- name: a\n  timeout: [1]"));
    check!("wrong_type_map", with_tool("- name: a\n- plain text"));
    check!("wrong_type_name", with_tool("- name: 5"));
    check!("null_in_list", with_server("- name: a\n  command: x\n  mode: strict\n  args: [~]"));
    check!("empty_name", with_tool("- name: ''"));
    check!("missing_names", with_tool("- enabled: true\n- name:"));
    check!("bad_expose_as", with_tool("- name: a\n  expose_as: 1-a"));
    check!("bad_local_tools", "switchboard:\n  toolbox:\n    local_tools: some\n");
    check!("toolbox_is_text", "switchboard:\n  toolbox: x\n");
    check!("config_is_text", "switchboard: x\n");
}

#[test]
fn limits() {
    check!("zero_instances", with_tool("- name: a\n  max_instances: 0"));
    check!("negative_instances", with_tool("- name: a\n  max_instances: -3"));
    check!("huge_instances", with_tool("- name: a\n  max_instances: 5000000000"));
    check!("zero_concurrent", "switchboard:\n  toolbox:\n    max_concurrent: 0\n");
    check!("small_results", with_tool("- name: a\n  max_result_bytes: 10"));
    check!("zero_timeout", with_tool("- name: a\n  timeout: 0\n  queue_timeout: P0D"));
    check!("negative_timeout", with_tool("- name: a\n  timeout: -5s\n  inactivity_timeout: -1"));
    check!("unreadable_timeout", with_tool("- name: a\n  timeout: soon\n  queue_timeout: P1M"));
}

#[test]
fn modes_and_transports() {
    check!("unknown_mode", with_server("- name: a\n  url: http://h\n  mode: dynamc"));
    check!("mode_is_a_number", with_server("- name: a\n  url: http://h\n  mode: 5"));
    check!(
        "unknown_transport",
        with_server("- name: a\n  url: http://h\n  mode: strict\n  transport: websocket")
    );
    check!("dynamic_without_defaults", with_server("- name: a\n  url: http://h\n  mode: dynamic"));
    check!(
        "dynamic_with_null_defaults",
        with_server("- name: a\n  url: http://h\n  mode: dynamic\n  default_tool_config: null")
    );
    check!(
        "stdio_with_http_keys",
        with_server(
            "- name: a\n  transport: stdio\n  url: http://h\n  headers: {}\n  auth: {bearer: x}\n  mode: strict"
        )
    );
    check!(
        "http_with_stdio_keys",
        with_server(
            "- name: a\n  transport: sse\n  command: x\n  args: []\n  env: {}\n  cwd: .\n  mode: strict"
        )
    );
    check!("both_places", with_server("- name: a\n  url: http://h\n  command: x\n  mode: strict"));
    check!("no_place", with_server("- name: a\n  mode: strict"));
}

#[test]
fn clients_of_authorization_servers() {
    check!(
        "oauth_of_a_program",
        with_server("- name: a\n  command: npx\n  mode: strict\n  auth: {oauth: {}}")
    );
    check!(
        "bad_oauth",
        with_server(
            "- name: a\n  url: http://h\n  mode: strict\n  auth:\n    oauth:\n      client_secret: ${X}\n      \
             scopes: ['two words']\n      client_metadata_url: http://example.com/us.json"
        ),
        &[("X", "t")]
    );
    check!(
        "key_of_a_sign_in",
        with_server(
            "- name: a\n  url: http://h\n  mode: strict\n  auth:\n    oauth:\n      private_key: ${X}\n      \
             signing_algorithm: HS256"
        ),
        &[("X", "t")]
    );
    check!(
        "own_client_without_proof",
        with_server(
            "- name: a\n  url: http://h\n  mode: strict\n  auth:\n    oauth:\n      grant: client_credentials\n      \
             redirect_port: 1\n      signing_algorithm: ES256"
        )
    );
    check!(
        "own_client_with_two_proofs",
        with_server(
            "- name: a\n  url: http://h\n  mode: strict\n  auth:\n    oauth:\n      grant: client_credentials\n      \
             client_id: us\n      client_secret: ${X}\n      private_key: ${X}\n      issuer: login"
        ),
        &[("X", "t")]
    );
}

#[test]
fn arguments_of_tools() {
    check!("duplicate_tools", with_tool("- name: a\n- name: b\n- name: a"));
    check!(
        "duplicate_arguments",
        with_tool(
            "- name: a\n  arguments:\n  - {name: x, type: string, description: d}\n  - {name: x, type: number, description: d}"
        )
    );
    check!("bad_argument", with_tool("- name: a\n  arguments:\n  - {name: x, type: text}"));
    let argument = |fields: &str| with_tool(&format!("- name: a\n  arguments:\n  - {{{fields}}}"));
    check!("argument_without_a_name", argument("name: '', type: string"));
    check!("argument_default_outside_its_enum", argument("name: x, enum: [a, b], default: c"));
    check!("argument_default_of_another_type", argument("name: x, type: integer, default: many"));
    check!("argument_value_of_another_type", argument("name: x, type: boolean, value: [1]"));
    check!(
        "argument_value_beside_others",
        argument("name: x, value: 1, default: 2, required: true")
    );
    check!("argument_hidden_and_required", argument("name: x, hidden: true, required: true"));
    check!("argument_default_and_required", argument("name: x, default: 1, required: true"));
    check!(
        "argument_nested_types",
        argument(
            "name: x, type: array, items: {type: object, properties: {a: {type: strng}}}}\n  - {name: y, type: object, \
             properties: {b: {minimum: low}}"
        )
    );
    check!("argument_items_of_no_array", argument("name: x, type: string, items: {type: string}"));
    check!("argument_properties_no_map", argument("name: x, type: object, properties: [a]"));
    check!("argument_empty_enum", argument("name: x, enum: []"));
}

#[test]
fn types_and_groups_of_tools() {
    check!(
        "group_is_no_list",
        with_tool("- {name: a, group: reading, state: [x], applicable-states: y}")
    );
    check!("group_of_no_strings", with_tool("- {name: a, group: [1], applicable_states: [true]}"));
    check!(
        "states_twice",
        with_tool("- {name: a, applicable_states: [x], applicable-states: [y]}")
    );
    check!("mcp_tool_without_its_tool", with_tool("- {type: mcp-tool, name: a}"));
    check!("mcp_tool_without_its_type", with_tool("- {name: a, mcp-tool: b}"));
    check!(
        "mcp_tool_with_a_bad_name",
        with_tool("- {type: mcp-tool, name: get balance, mcp-tool: b}")
    );
    check!(
        "mcp_tool_twice",
        with_tool(
            "- {type: mcp-tool, name: a, mcp-tool: b}\n- {type: mcp-tool, name: c, mcp-tool: b}"
        )
    );
    check!("id_without_a_type", with_tool("- {name: a, id: b}"));
    check!(
        "two_ids",
        with_tool(
            "- {type: mcp-tool, name: a, mcp-tool: b}\n- {type: mcp-tool, name: c, mcp-tool: d, id: a}"
        )
    );
    let prompt = |fields: &str| with_tool(&format!("- {{type: prompt, name: a, {fields}}}"));
    check!("prompt_without_a_template", prompt("description: d"));
    check!("prompt_that_does_not_compile", prompt("template: 'Hello {{ name'"));
    check!(
        "prompt_with_an_unknown_variable",
        prompt("template: '{{ nam }}', arguments: [{name: name}]")
    );
    check!(
        "prompt_that_does_not_end",
        prompt(
            "template: '{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}'"
        )
    );
    check!(
        "prompt_of_a_server",
        with_tool("- {type: prompt, name: crm.a, template: x, mode: dynamic}")
    );
    check!("prompt_keys_elsewhere", with_tool("- {name: a, template: x, max_depth: 2}"));
    check!("prompt_of_an_unknown_provider", prompt("template: x, provider: opnai"));
    check!("tool_of_an_unknown_type", with_tool("- {type: knowledge-query, name: a}"));
}

#[test]
fn servers() {
    check!(
        "duplicate_servers",
        with_server(
            "- name: a\n  url: http://h\n  mode: strict\n- name: a\n  command: x\n  mode: strict"
        )
    );
    check!("reserved_name", with_server("- name: local\n  url: http://h\n  mode: strict"));
    check!("invalid_name", with_server("- name: a b\n  url: http://h\n  mode: strict"));
    check!("bad_url", with_server("- name: a\n  url: localhost:80\n  mode: strict"));
    check!("bad_url_scheme", with_server("- name: a\n  url: ftp://h/x\n  mode: strict"));
    check!("bad_url_host", with_server("- name: a\n  url: 'http://'\n  mode: strict"));
    check!(
        "bad_headers",
        with_server(
            "- name: a\n  url: http://h\n  mode: strict\n  headers:\n    'a b': ${X}\n    C: ${Y}\n    D: ${X}\n    d: ${X}"
        ),
        &[("X", "1"), ("Y", "1\n2")]
    );
    check!(
        "two_authorizations",
        with_server(
            "- name: a\n  url: http://h\n  mode: strict\n  headers:\n    authorization: ${X}\n  auth:\n    bearer: ${X}"
        ),
        &[("X", "1")]
    );
    check!(
        "two_kinds_of_auth",
        with_server(
            "- name: a\n  url: http://h\n  mode: strict\n  auth:\n    bearer: ${X}\n    oauth: {}"
        ),
        &[("X", "t")]
    );
    check!("empty_auth", with_server("- name: a\n  url: http://h\n  mode: strict\n  auth: {}"));
    check!(
        "empty_bearer",
        with_server("- name: a\n  url: http://h\n  mode: strict\n  auth: {bearer: ''}")
    );
    check!(
        "bad_env_name",
        with_server("- name: a\n  command: ' '\n  mode: strict\n  env: {'a=b': x}")
    );
}

#[test]
fn roots_and_yaml() {
    check!("no_root", "toolbox: {}\n");
    check!("empty_file", "# nothing\n");
    check!("misspelt_root", "swichboard: {}\n");
    check!("both_roots", "switchboard: {}\nmyai: {}\n");
    check!("another_root", "switchboard: {}\nlogging: {}\n");
    check!("a_list", "- switchboard\n");
    check!("bad_yaml", "switchboard:\n  toolbox: [\n");
    check!("bad_yaml_beside_secret", "switchboard:\n  bearer: \"abc\n");
    check!(
        "duplicate_key",
        "switchboard:\n  toolbox:\n    max_concurrent: 1\n    max_concurrent: 2\n"
    );
}

#[test]
fn variables_and_secret_files() {
    check!(
        "unresolved_variable",
        with_server(
            "- name: a\n  url: http://h\n  mode: strict\n  auth:\n    bearer: ${TOKEN}\n- name: b\n  url: ${URL}\n  mode: strict"
        )
    );
    check!("bad_references", with_tool("- name: ${a b}\n- name: ${OPEN"));
    check!(
        "unreadable_secret_file",
        with_server(
            "- name: a\n  url: http://h\n  mode: strict\n  auth: {bearer: 'file:missing.txt'}\n  headers: {x: 'file:'}"
        )
    );
    check!(
        "expanded_value_of_a_wrong_type",
        with_tool("- name: a\n  max_instances: ${N}\n  mode: ${N}\n  timeout: ${N}"),
        &[("N", "s3cret")]
    );
}

#[test]
fn problems_as_json() {
    let text = with_tool("- name: a\n  max_instance: 3");
    let found = load_with(Some(&text), &[("SWITCHBOARD__X", "1")]).unwrap_err();
    assert_eq!(
        found.to_json(),
        serde_json::json!([
            {
                "severity": "error",
                "message": "unknown key `max_instance` in switchboard.toolbox.tools[0]",
                "path": "switchboard.toolbox.tools[0].max_instance",
                "notes": [],
                "help": "did you mean `max_instances`?",
                "file": "switchboard.yaml",
                "line": 5,
                "column": 9,
            },
            {
                "severity": "error",
                "message": "environment variable SWITCHBOARD__X sets an unknown key: there is no `x` in switchboard",
                "path": "switchboard",
                "notes": [],
                "help": "known keys: toolbox, toolsets, gateway, security, providers, threat_protection, agents, discovery, records, tls, store",
                "variable": "SWITCHBOARD__X",
            },
        ])
    );
    assert_eq!((&found).into_iter().count(), found.count());
}

#[test]
fn all_problems_of_a_file_come_together() {
    check!(
        "many_problems",
        "\
switchboard:
  toolbox:
    max_concurrent: many
    tools:
      - name: sum
        max_instance: 3
        timeout: 0s
      - name: sum
    mcps:
      - name: customers
        url: nowhere
        mode: dynamic
        foo: 1
      - name: customers
        mod: strict
        url: http://h/
      - 5
",
        &[("SWITCHBOARD__TOOLBOX__MAX", "1")]
    );
}
