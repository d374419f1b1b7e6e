//! The `discovery` section.

use std::path::PathBuf;
use std::time::Duration;

use pretty_assertions::assert_eq;
use switchboard_model::{
    AdmissionMode, CheckMode, DEFAULT_FILE_REFRESH, DEFAULT_SOURCE_REFRESH, DiscoveryPlan,
    RegistryPlace, SourceKind,
};

use crate::support::{API_KEY, BEARER, load_text, load_with, problems};

const FULL: &str = "\
switchboard:
  toolbox:
    defaults:
      default_tool_config: {max_instances: 7}
      connect_timeout: 4s
      content_check: {before_call: observe, after_call: observe}
  threat_protection: {endpoint: https://checks.example.com}
  discovery:
    auto: false
    orchestrator_name: LangChain
    agent_id: app-id-123
    token: file:token.txt
    endpoint: https://gateway.example.com
    mode: strict
    default_tool_config: {timeout: 9s}
    sources:
      - {name: here, type: manifest}
      - {name: file, type: manifest, path: sub/m.json, refresh: 1m}
      - name: gateway
        type: gateway
        url: https://other.example.com/base
        agent_id: other
        token: ${API_KEY}
        path_template: /mcp/servers?agentId={agent_id}
        mode: dynamic
        default_tool_config: {max_instances: 2}
        allow: ['get_*']
        deny: [get_secret]
        servers: {allow: ['io.*'], deny: ['*-beta']}
        prefix: team-
        max_servers: 5
        connect_timeout: 3s
        content_check: {before_call: block}
      - {name: list, type: registry, url: 'https://registry.example.com/v0/servers', token: abc}
      - {name: documents, type: registry, path: server.json}
";

fn full() -> DiscoveryPlan {
    let loaded = load_with(Some(FULL), &[("API_KEY", API_KEY)]);
    loaded.unwrap_or_else(|problems| panic!("{problems}")).plan.discovery
}

#[test]
fn every_key_is_read() {
    let plan = full();
    assert!(!plan.auto);
    assert_eq!(plan.orchestrator_name.as_deref(), Some("LangChain"));
    assert_eq!(plan.agent_id.as_deref(), Some("app-id-123"));
    assert_eq!(plan.token.as_ref().unwrap().expose(), BEARER);
    assert_eq!(plan.endpoint.as_ref().unwrap().as_str(), "https://gateway.example.com/");
    let names: Vec<_> = plan.sources.iter().map(|source| source.name.as_str()).collect();
    assert_eq!(names, ["here", "file", "gateway", "list", "documents"]);
    assert_eq!(plan.sources[0].kind, SourceKind::Manifest { path: None });
    let path = Some(PathBuf::from("/etc/switchboard/sub/m.json"));
    assert_eq!(plan.sources[1].kind, SourceKind::Manifest { path });
    let refresh: Vec<_> = plan.sources.iter().map(|source| source.refresh).collect();
    let (file, address) = (DEFAULT_FILE_REFRESH, DEFAULT_SOURCE_REFRESH);
    assert_eq!(refresh, [file, Duration::from_mins(1), address, address, file]);
    let SourceKind::Gateway(gateway) = &plan.sources[2].kind else { panic!("{plan:?}") };
    assert_eq!(gateway.url.as_ref().unwrap().as_str(), "https://other.example.com/base");
    assert_eq!(gateway.agent_id.as_deref(), Some("other"));
    assert_eq!(gateway.token.as_ref().unwrap().expose(), API_KEY);
    assert_eq!(gateway.path_template.as_deref(), Some("/mcp/servers?agentId={agent_id}"));
    let SourceKind::Registry(RegistryPlace::Url { token, .. }) = &plan.sources[3].kind else {
        panic!("{plan:?}")
    };
    assert_eq!(token.as_ref().unwrap().expose(), "abc");
    let file = RegistryPlace::File("/etc/switchboard/server.json".into());
    assert_eq!(plan.sources[4].kind, SourceKind::Registry(file));
}

#[test]
fn a_policy_is_inherited_field_by_field() {
    let plan = full();
    let limits = |index: usize| {
        let limits = plan.sources[index].policy.default_limits.resolve();
        (limits.max_instances, limits.timeout.as_secs())
    };
    assert_eq!((limits(0), limits(2)), ((7, 9), (2, 9)));
    let modes = [0, 2].map(|index| plan.sources[index].policy.mode);
    assert_eq!(modes, [AdmissionMode::Strict, AdmissionMode::Dynamic]);
    let checks = |index: usize| {
        let modes = plan.sources[index].policy.content_check.resolve();
        (modes.before_call, modes.after_call)
    };
    let (observe, block) = (CheckMode::Observe, CheckMode::Block);
    assert_eq!((checks(0), checks(2)), ((observe, observe), (block, observe)));
    let timeouts =
        [0, 2].map(|index| plan.sources[index].policy.connect_timeout.unwrap().as_secs());
    assert_eq!(timeouts, [4, 3]);
    let policy = &plan.sources[2].policy;
    assert_eq!(policy.tool_allowlist.as_deref().unwrap(), ["get_*"]);
    assert_eq!(policy.tool_denylist, ["get_secret"]);
    assert_eq!(policy.server_allowlist.as_deref().unwrap(), ["io.*"]);
    assert_eq!(policy.server_denylist, ["*-beta"]);
    assert_eq!((policy.prefix.as_str(), policy.max_servers), ("team-", 5));
    // The source that the environment chooses.
    assert_eq!(plan.policy.mode, AdmissionMode::Strict);
    assert_eq!(plan.policy.default_limits.resolve().max_instances, 7);
    let absent = load_text("switchboard: {}\n").unwrap().plan.discovery;
    assert_eq!(absent, DiscoveryPlan::default());
    assert_eq!(absent.policy.mode, AdmissionMode::Dynamic);
}

#[test]
fn what_is_shown_loads_again_and_holds_no_token() {
    let first = load_with(Some(FULL), &[("API_KEY", API_KEY)]).unwrap();
    let shown = first.to_yaml();
    for secret in [API_KEY, BEARER, "abc"] {
        assert!(!shown.contains(secret), "{shown}");
        assert!(!format!("{:?}", first.plan.discovery).contains(secret));
    }
    let second = load_text(&shown).unwrap();
    let without_tokens = |mut plan: DiscoveryPlan| {
        plan.token = None;
        for source in &mut plan.sources {
            match &mut source.kind {
                SourceKind::Gateway(gateway) => gateway.token = None,
                SourceKind::Registry(RegistryPlace::Url { token, .. }) => *token = None,
                SourceKind::Manifest { .. } | SourceKind::Registry(RegistryPlace::File(_)) => {}
            }
        }
        plan
    };
    assert_eq!(without_tokens(second.plan.discovery), without_tokens(first.plan.discovery));
    insta::with_settings!({omit_expression => true}, {
        let section = shown.split_once("discovery:").unwrap().1;
        insta::assert_snapshot!("discovery_shown", section);
    });
}

#[test]
fn the_environment_overrides_it() {
    let env = [
        ("SWITCHBOARD__DISCOVERY__AUTO", "false"),
        ("SWITCHBOARD__DISCOVERY__AGENT_ID", "other"),
        (
            "SWITCHBOARD__DISCOVERY__SOURCES",
            r#"[{"name": "x", "type": "manifest", "refresh": "7s"}]"#,
        ),
        ("SWITCHBOARD__DISCOVERY__SOURCES__0__PREFIX", "p-"),
    ];
    let plan = load_with(None, &env).unwrap().plan.discovery;
    assert_eq!((plan.auto, plan.agent_id.as_deref()), (false, Some("other")));
    assert_eq!(plan.sources[0].refresh, Duration::from_secs(7));
    assert_eq!(plan.sources[0].policy.prefix, "p-");
}

#[test]
fn bad_sections() {
    let text = "\
switchboard:
  discovery:
    auto: perhaps
    agent_id: ' '
    token: \"a\\nb\"
    endpoint: gateway
    sources:
      - {name: auto, type: manifest}
      - {name: a, type: manifest, url: 'http://x', token: t}
      - {name: a, type: gateway, path: x, path_template: /servers}
      - {name: b, type: registry}
      - {name: c, type: registry, path: x, url: 'http://x'}
      - {name: d, type: registry, path: x, token: t}
      - {name: e, type: gatway, refresh: 0}
      - {name: f, type: gateway, path_template: servers, refresh: 0s, prefix: a b, max_servers: 0}
      - {type: manifest}
      - {name: g, type: manifest, alow: [x]}
";
    insta::with_settings!({omit_expression => true}, {
        insta::assert_snapshot!("bad_discovery", problems(text, &[]));
    });
}

#[test]
fn a_toolset_may_name_a_server_that_a_source_may_still_name() {
    let text = "\
switchboard:
  toolsets:
    - {name: office, description: d, servers: [mail]}
  gateway: {tool_sets: [office, mail]}
";
    assert!(load_text(text).is_err());
    let loaded =
        load_text(&format!("{text}  discovery: {{sources: [{{name: a, type: manifest}}]}}\n"))
            .unwrap();
    let warnings: Vec<_> = loaded.warnings.iter().map(|it| it.message.clone()).collect();
    assert_eq!(
        warnings,
        [
            "switchboard.toolsets[0].servers[0]: there is no server \"mail\"",
            "switchboard.gateway.tool_sets[1]: there is no toolset \"mail\"",
        ]
    );
}
