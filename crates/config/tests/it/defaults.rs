//! `toolbox.defaults`: defaults for every server.

use std::time::Duration;

use pretty_assertions::assert_eq;
use switchboard_model::{AdmissionMode, ServerPlan, Sharing};

use crate::support::{load_text, load_with, problems};

const SERVERS: &str = "
    mcps:
      - {name: plain, url: 'http://h', mode: dynamic}
      - name: own
        url: 'http://h'
        mode: dynamic
        required: true
        connect_timeout: 7s
        default_tool_config: {max_instances: 2}
      - {name: child, command: x, mode: strict}
";

fn servers(defaults: &str) -> Vec<ServerPlan> {
    let text = format!("switchboard:\n  toolbox:\n    defaults: {defaults}{SERVERS}");
    load_text(&text).unwrap_or_else(|problems| panic!("{problems}")).plan.servers
}

#[test]
fn a_server_takes_what_it_does_not_say_itself() {
    let servers = servers(
        "{required: false, connect_timeout: 90s, default_tool_config: {max_instances: 9, timeout: 3s}}",
    );
    let shown: Vec<_> = servers
        .iter()
        .map(|server| {
            let limits = server.default_limits.map(switchboard_model::LimitsOverlay::resolve);
            let limits = limits.map(|limits| (limits.max_instances, limits.timeout.as_secs()));
            (server.required, server.spec.connect_timeout.as_secs(), limits)
        })
        .collect();
    assert_eq!(
        shown,
        [
            (false, 90, Some((9, 3))),
            // The server's own fields win, one by one.
            (true, 7, Some((2, 3))),
            (false, 90, Some((9, 3))),
        ]
    );
    assert_eq!(servers[2].mode, AdmissionMode::Strict);
}

#[test]
fn without_defaults_a_child_may_take_minutes_and_a_dynamic_server_needs_limits() {
    let all = servers("{default_tool_config: {}}");
    let timeouts: Vec<_> = all.iter().map(|server| server.spec.connect_timeout).collect();
    assert_eq!(timeouts, [30, 7, 300].map(Duration::from_secs));
    assert!(all.iter().all(|server| server.required));
    let text = format!("switchboard:\n  toolbox:\n    defaults: {{required: false}}{SERVERS}");
    let message = problems(&text, &[]);
    assert!(
        message.contains(
            "MCP server 'plain' is configured with mode='dynamic' but missing required field"
        ),
        "{message}"
    );
}

#[test]
fn the_effective_configuration_says_where_an_inherited_value_is_written() {
    let text = format!(
        "switchboard:\n  toolbox:\n    defaults:\n      required: false\n      default_tool_config: {{timeout: 3s}}{SERVERS}"
    );
    let loaded = load_text(&text).unwrap();
    let origin = |path: &str| {
        let path = format!("switchboard.toolbox.mcps[0].{path}");
        let setting = loaded.settings().into_iter().find(|setting| setting.path == path);
        setting.map(|setting| format!("{} {}", setting.value, setting.origin))
    };
    assert_eq!(origin("required").as_deref(), Some("false switchboard.yaml:4:17"));
    assert_eq!(origin("default_tool_config.timeout").as_deref(), Some("3s switchboard.yaml:5:38"));
    assert_eq!(origin("connect_timeout").as_deref(), Some("30s default"));
    assert_eq!(load_text(&loaded.to_yaml()).unwrap().plan.servers.len(), 3);
}

#[test]
fn what_is_wrong_in_the_defaults_is_located_and_the_environment_reaches_them() {
    let message = problems(
        "switchboard:\n  toolbox:\n    defaults: {connect_timeout: 0s, requird: false}\n",
        &[],
    );
    assert!(
        message.contains("did you mean `required`?") && message.contains("connect_timeout"),
        "{message}"
    );
    let text =
        format!("switchboard:\n  toolbox:\n    defaults: {{default_tool_config: {{}}}}{SERVERS}");
    let env = [("SWITCHBOARD__TOOLBOX__DEFAULTS__REQUIRED", "false")];
    let loaded = load_with(Some(&text), &env).unwrap();
    assert_eq!(
        loaded.plan.servers.iter().map(|server| server.required).collect::<Vec<_>>(),
        [false, true, false]
    );
}

#[test]
fn a_connection_for_each_session_has_one_meaning_under_both_names() {
    let sharing = |entry: &str| {
        let text = format!(
            "switchboard:\n  toolbox:\n    mcps:\n      - {{name: a, mode: dynamic, default_tool_config: {{}}, {entry}}}\n"
        );
        let loaded = load_text(&text).map_err(|problems| problems.to_string())?;
        Ok::<_, String>(loaded.plan.servers[0].spec.sharing)
    };
    let own = |most, minutes: u64| {
        Ok(Sharing::PerSession { most, idle: Duration::from_secs(minutes * 60) })
    };
    for (entry, expected) in [
        ("url: 'http://h'", Ok(Sharing::Shared)),
        ("url: 'http://h', connection: per_session", own(16, 10)),
        ("url: 'http://h', connection: per_session, connection_idle_timeout: 1m", own(16, 1)),
        ("command: x, connection: per_session, max_connections: 2", own(2, 10)),
        ("command: x, process: per_session, max_processes: 3, process_idle_timeout: 2m", own(3, 2)),
    ] {
        assert_eq!(sharing(entry), expected, "{entry}");
    }
    for (entry, reason) in [
        ("command: x, process: per_session, connection: shared", "sets the same as `connection`"),
        ("url: 'http://h', max_connections: 2", "has no effect on a shared connection"),
        ("url: 'http://h', process: per_session", "process"),
    ] {
        let said = sharing(entry).unwrap_err();
        assert!(said.contains(reason), "{entry}: {said}");
    }
}
