//! `config show` and `config schema`.

use pretty_assertions::assert_eq;

use crate::support::{Home, assert_says};

const WITH_SECRETS: &str = "\
myai:
  toolbox:
    max_concurrent: 4
    tools:
      - name: sum_numbers
        timeout: PT1M30S
    mcps:
      - name: customers
        url: https://user:hunter2@example.com/mcp?token=hunter3&tenant=blue
        headers:
          X-Api-Key: ${API_KEY}
        auth:
          bearer: file:token
        mode: strict
      - name: files
        command: ${PROGRAM:-cat}
        args: [--key, \"${API_KEY}\"]
        env: {LEVEL: hunter4}
        mode: strict
";

#[test]
#[expect(clippy::too_many_lines, reason = "the whole configuration")]
fn config_show_tells_every_value_and_its_origin() {
    let home = Home::new(WITH_SECRETS)
        .with_variable("API_KEY", "hunter5")
        .with_variable("APP_MYAI__TOOLBOX__MCPS__0__MODE", "dynamic")
        .with_variable("SWITCHBOARD__TOOLBOX__MCPS__0__DEFAULT_TOOL_CONFIG__MAX_INSTANCES", "7");
    home.file("token", "hunter6\n");
    let shown = home.line("config show").expect(0);
    assert_says!(shown.stdout, @r#"
    myai:
      toolbox:
        max_concurrent: 4  # switchboard.yaml:3:21
        tools:
          - name: sum_numbers  # switchboard.yaml:5:15
            enabled: true  # default
            timeout: 1m30s  # switchboard.yaml:6:18
        mcps:
          - name: customers  # switchboard.yaml:8:15
            transport: streamable_http  # default
            url: "https://***@example.com/mcp?token=***&tenant=***"  # switchboard.yaml:9:14
            headers:
              X-Api-Key: "***"  # switchboard.yaml:11:22
            auth:
              bearer: "***"  # switchboard.yaml:13:19
            mode: dynamic  # environment variable APP_MYAI__TOOLBOX__MCPS__0__MODE
            default_tool_config:
              max_instances: 7  # environment variable SWITCHBOARD__TOOLBOX__MCPS__0__DEFAULT_TOOL_CONFIG__MAX_INSTANCES
              timeout: 30s  # default
              max_timeout: 10m  # default
              max_result_bytes: 1048576  # default
            tool_denylist: []  # default
            required: true  # default
            toolset: customers  # default
            era: auto  # default
            connect_timeout: 30s  # default
            validate_arguments: true  # default
          - name: files  # switchboard.yaml:15:15
            transport: stdio  # default
            command: ${PROGRAM:-cat}  # switchboard.yaml:16:18
            args:
              - "--key"  # switchboard.yaml:17:16
              - ${API_KEY}  # switchboard.yaml:17:23
            env:
              LEVEL: "***"  # switchboard.yaml:18:22
            mode: strict  # switchboard.yaml:19:15
            tool_denylist: []  # default
            required: true  # default
            toolset: files  # default
            era: auto  # default
            connect_timeout: 5m  # default
            validate_arguments: true  # default
      toolsets: []  # default
      gateway:
        naming: prefixed  # default
        deny_toolsets: []  # default
        stateless_state: none  # default
        session_idle: 30m  # default
        max_sessions: 10000  # default
        max_sessions_per_principal: 1000  # default
        max_session_servers: 256  # default
        max_body_bytes: 4194304  # default
        startup_wait: 25s  # default
        trustgraph: false  # default
      security:
        allowed_hosts: []  # default
        allowed_origins: []  # default
      providers: []  # default
      discovery:
        auto: true  # default
    "#);
    assert_says!(shown.stderr, @"");
    let json = home.line("config show --json").expect(0);
    assert!(!json.all().contains("hunter") && !shown.all().contains("hunter"));
}

#[test]
fn config_schema_is_the_committed_one() {
    let schema = Home::empty().line("config schema").expect(0).json();
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    assert!(schema.to_string().contains("default_tool_config"));
}
