//! The sections `toolsets`, `gateway` and `security`: valid values and error messages.

use std::path::Path;
use std::time::Duration;

use pretty_assertions::assert_eq;
use switchboard_config::Loaded;
use switchboard_model::{
    EgressRule, ExposureMode, GatewayPlan, JwksSource, Naming, Plan, SecurityPlan, StatelessState,
};

use crate::support::{load_text, load_with, problems, with_server, with_tool};

/// A file with the servers `market`, `news` and `crm`, and these sections.
fn with_sections(sections: &str) -> String {
    let server = |name: &str| format!("    - {{name: {name}, url: 'http://h', mode: strict}}\n");
    let servers = ["market", "news", "crm"].map(server).concat();
    let sections: Vec<_> = sections.lines().map(|line| format!("  {line}\n")).collect();
    format!("switchboard:\n  toolbox:\n    mcps:\n{servers}{}", sections.concat())
}

fn plan(sections: &str) -> Plan {
    loaded(&with_sections(sections)).plan
}

fn loaded(text: &str) -> Loaded {
    load_text(text).unwrap_or_else(|problems| panic!("{problems}"))
}

/// Name, description, servers and tools of every set.
fn sets(plan: &Plan) -> Vec<String> {
    let row = |set: &switchboard_model::ToolsetPlan| {
        let servers: Vec<_> =
            set.servers.iter().map(switchboard_model::ServerName::as_str).collect();
        format!("{}: {} {servers:?} {:?}", set.name, set.description, set.tools)
    };
    plan.toolsets.iter().map(row).collect()
}

const FULL: &str = "\
toolsets:
  - name: quotes
    description: Prices
    when_to_use: For a price
    servers: [market, local]
    tools: [get_quote, news.get_*, '*_price']
gateway:
  exposure: dynamic
  tool_sets: [quotes]
  naming: bare
  max_active_toolsets: 3
  allow_toolsets: [quotes, news]
  deny_toolsets: [news]
  stateless_state: principal
  session_idle: 1h
  max_sessions: 5
  max_sessions_per_principal: 2
  max_session_servers: 0
  max_body_bytes: 1024
security:
  allowed_hosts: [Gateway.example.com]
  allowed_origins: ['https://app.example.com/']
  jwt:
    issuer: https://issuer.example.com
    audience: https://gateway.example.com/mcp
    jwks_file: keys.json
    required_scopes: [mcp]
    leeway: 5s
  egress:
    allow: [10.20.1.0/16, Mcp.corp.example, '::1']
    deny: [10.20.30.0/24, '*.hr.corp.example']";

#[test]
fn everything_is_carried_over() {
    let plan = plan(FULL);
    let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    assert_eq!(
        plan.gateway,
        GatewayPlan {
            exposure: Some(ExposureMode::Dynamic),
            tool_sets: Some(texts(&["quotes"])),
            naming: Naming::Bare,
            max_active_toolsets: Some(3),
            allow_toolsets: Some(texts(&["quotes", "news"])),
            deny_toolsets: texts(&["news"]),
            stateless_state: StatelessState::Principal,
            session_idle: Duration::from_hours(1),
            max_sessions: 5,
            max_sessions_per_principal: 2,
            max_session_servers: 0,
            max_body_bytes: 1024,
            ..GatewayPlan::default()
        }
    );
    assert_eq!(plan.toolsets[0].when_to_use.as_deref(), Some("For a price"));
    let jwt = plan.security.jwt.clone().unwrap();
    assert_eq!(jwt.jwks, JwksSource::File(Path::new("/etc/switchboard/keys.json").into()));
    assert_eq!((jwt.leeway, jwt.required_scopes), (Duration::from_secs(5), texts(&["mcp"])));
    assert_eq!(jwt.issuer, "https://issuer.example.com", "letter for letter");
    assert_eq!(jwt.resource.as_str(), "https://gateway.example.com/mcp");
    assert_eq!(plan.security.allowed_hosts, ["gateway.example.com"]);
    assert_eq!(plan.security.allowed_origins, ["https://app.example.com"]);
    let egress = plan.security.egress;
    let texts = |rules: &[EgressRule]| rules.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(texts(&egress.allow), ["10.20.0.0/16", "mcp.corp.example", "::1/128"]);
    assert_eq!(texts(&egress.deny), ["10.20.30.0/24", "*.hr.corp.example"]);
}

#[test]
fn nothing_written_is_the_default() {
    let plan = plan("gateway:\nsecurity: {}");
    assert_eq!((plan.gateway, plan.security), (GatewayPlan::default(), SecurityPlan::default()));
    assert_eq!(loaded("switchboard:\n").plan, Plan::default());
}

#[test]
fn every_server_is_a_set_and_servers_can_share_one() {
    assert_eq!(
        sets(&plan("")),
        [
            r#"market: All tools of market ["market"] []"#,
            r#"news: All tools of news ["news"] []"#,
            r#"crm: All tools of crm ["crm"] []"#,
        ]
    );
    let shared = "\
switchboard:
  toolbox:
    local_tools: all
    mcps:
      - {name: a, url: 'http://h', mode: strict, toolset: office}
      - {name: b, url: 'http://h', mode: strict}
      - {name: c, url: 'http://h', mode: strict, toolset: office}
";
    assert_eq!(
        sets(&loaded(shared).plan),
        [
            r#"office: All tools of a and c ["a", "c"] []"#,
            r#"b: All tools of b ["b"] []"#,
            r#"local: The tools that are built into Switchboard ["local"] []"#,
        ]
    );
    // Servers of denied toolsets do not appear in descriptions for clients.
    let denied = shared.replace(
        "  toolbox:",
        "  gateway: {deny_toolsets: [secret]}\n  toolsets: [{name: secret, description: S, servers: [c, b]}]\n  toolbox:",
    );
    assert_eq!(
        sets(&loaded(&denied).plan),
        [
            r#"secret: S ["c", "b"] []"#,
            r#"office: All tools of a ["a", "c"] []"#,
            r#"b:  ["b"] []"#,
            r#"local: The tools that are built into Switchboard ["local"] []"#,
        ]
    );
    let described = format!(
        "{shared}  toolsets:\n    - {{name: office, description: Mail}}\n    - {{name: b, description: B}}\n"
    );
    assert_eq!(
        sets(&loaded(&described).plan)[..2],
        [r#"office: Mail ["a", "c"] []"#, r#"b: B ["b"] []"#]
    );
    let more = format!(
        "{shared}  toolsets:\n    - {{name: office, description: Mail, servers: [c], tools: [x]}}\n"
    );
    assert_eq!(sets(&loaded(&more).plan)[0], r#"office: Mail ["c", "a"] ["x"]"#);
}

#[test]
fn the_set_of_a_server_can_be_redefined() {
    let redefined = plan("toolsets: [{name: market, description: D, tools: ['market.get_*']}]");
    assert_eq!(sets(&redefined)[0], r#"market: D [] ["market.get_*"]"#);
    let with_more = plan("toolsets: [{name: market, description: D, servers: [market, news]}]");
    assert_eq!(sets(&with_more)[0], r#"market: D ["market", "news"] []"#);
    assert_eq!(with_more.toolsets.len(), 3);
}

#[test]
fn absent_prompts_are_all_and_an_empty_list_is_none() {
    let prompts = |rest: &str| {
        let text = with_server(&format!("- name: a\n  url: http://h\n  mode: strict\n{rest}"));
        loaded(&text).plan.servers[0].prompts.clone()
    };
    assert_eq!(prompts(""), None);
    assert_eq!(prompts("  prompts:"), None);
    assert_eq!(prompts("  prompts: []"), Some(vec![]));
    assert_eq!(prompts("  prompts: [a, b*]"), Some(vec!["a".into(), "b*".into()]));
}

#[test]
fn the_environment_overrides_the_new_keys() {
    let env = [
        ("SWITCHBOARD__GATEWAY__EXPOSURE", "static"),
        ("SWITCHBOARD__GATEWAY__TOOL_SETS", r#"["news", "quotes"]"#),
        ("APP_MYAI__GATEWAY__MAX_SESSIONS", "7"),
        ("SWITCHBOARD__GATEWAY__SESSION_IDLE", "PT5M"),
        ("SWITCHBOARD__GATEWAY__DENY_TOOLSETS", "[]"),
        ("SWITCHBOARD__TOOLSETS__0__DESCRIPTION", "Other"),
        ("SWITCHBOARD__SECURITY__ALLOWED_HOSTS__1", "b.example.com"),
        ("SWITCHBOARD__SECURITY__JWT__LEEWAY", "1s"),
    ];
    let plan = load_with(Some(&with_sections(FULL)), &env).unwrap().plan;
    assert_eq!(plan.gateway.exposure, Some(ExposureMode::Static));
    assert_eq!(plan.gateway.tool_sets.unwrap(), ["news", "quotes"]);
    assert_eq!(plan.gateway.max_sessions, 7);
    assert_eq!(plan.gateway.session_idle, Duration::from_mins(5));
    assert_eq!(plan.toolsets[0].description, "Other");
    assert_eq!(plan.security.allowed_hosts, ["gateway.example.com", "b.example.com"]);
    assert_eq!(plan.security.jwt.unwrap().leeway, Duration::from_secs(1));
}

#[test]
fn what_is_shown_loads_again() {
    let first = loaded(&with_sections(FULL));
    insta::with_settings!({omit_expression => true}, {
        insta::assert_snapshot!("shown", first.to_yaml());
    });
    let second = loaded(&first.to_yaml());
    assert_eq!(first.plan.toolsets, second.plan.toolsets);
    assert_eq!(first.plan.gateway, second.plan.gateway);
    assert_eq!(first.plan.security, second.plan.security);
    let redefined = loaded(&with_sections(
        "toolsets: [{name: market, description: D, tools: ['market.get_*']}]",
    ));
    assert_eq!(loaded(&redefined.to_yaml()).plan.toolsets, redefined.plan.toolsets);
}

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
fn bad_toolsets() {
    check!(
        "toolsets",
        with_sections(
            "\
toolsets:
  - name: quotes
    description: Prices
    servers: [markt, nowhere]
  - name: quotes
    description: Again
    tools: [x]
  - name: empty
    description: ''
  - name: void
    description: d
    servers: []
    tools: []
  - name: news
    description: d
    servers: [market]
  - name: a b
    description: d
    tools: ['']
  - name: broken
    description: d
    tools: 5
  - name: half
    description: d
    tools: [5]
    servers: [nows]
  - tools: [x]
  - name: late
    descripton: d
    tools: [x]"
        )
    );
    check!(
        "toolset_of_no_server",
        "switchboard:\n  toolsets:\n    - {name: a, description: d, servers: [b]}\n"
    );
    check!(
        "bad_toolset_of_a_server",
        with_server("- name: a\n  url: http://h\n  mode: strict\n  toolset: a b")
    );
}

#[test]
fn bad_gateway() {
    check!(
        "gateway",
        with_sections(
            "\
toolsets: [{name: quotes, description: d, tools: [x]}]
gateway:
  exposure: static
  tool_sets: []
  naming: prefix
  max_active_toolsets: 0
  allow_toolsets: [qoutes, 5]
  deny_toolsets: [zzz]
  stateless_state: nothing
  session_idle: 0s
  max_sessions: 0
  max_sessions_per_principal: -1
  max_session_servers: -1
  max_body_bytes: 1023
  tool_set: [x]"
        )
    );
    check!("static_without_sets", with_sections("gateway:\n  exposure: static"));
    check!("unknown_set", with_sections("gateway:\n  tool_sets: [market, nws]"));
    check!(
        "sets_that_may_not_be_shown",
        with_sections(
            "gateway:\n  tool_sets: [market, news]\n  allow_toolsets: [news, crm]\n  deny_toolsets: [news]"
        )
    );
    check!(
        "more_sets_than_may_be_active",
        with_sections(
            "gateway:\n  exposure: dynamic\n  tool_sets: [market, news]\n  max_active_toolsets: 1"
        )
    );
    check!("gateway_is_text", with_sections("gateway: dynamic"));
}

#[test]
fn bad_security() {
    check!(
        "security",
        with_sections(
            "\
security:
  allowed_hosts: ['https://gateway.example.com', '*']
  allowed_origins: [app.example.com, '*', 'https://a.example.com/x']
  jwt:
    issuer: http://issuer.example.com
    audience: gateway
    jwks_url: issuer.example.com
    leeway: soon
  alowed_hosts: []"
        )
    );
    check!(
        "egress",
        with_sections(
            "\
security:
  egress:
    allow: [10.0.0.0/33, 'https://mcp.corp.example', 'mcp.corp.example:80', '*', 5]
    deny: 10.0.0.0/8
    alow: []"
        )
    );
    check!(
        "two_key_sources",
        with_sections(
            "\
security:
  jwt:
    issuer: https://issuer.example.com
    audience: https://gateway.example.com/mcp
    jwks_url: https://issuer.example.com/jwks
    jwks_file: keys.json"
        )
    );
    check!(
        "no_key_source",
        with_sections("security:\n  jwt:\n    resource: ftp://gateway.example.com")
    );
}

#[test]
fn bad_exposed_names() {
    check!(
        "exposed_names",
        with_tool(
            "- name: a\n  expose_as: call_tool\n- name: b\n  expose_as: find\n- name: c\n  expose_as: find"
        )
    );
    for name in switchboard_model::META_TOOLS {
        let text = with_tool(&format!("- name: a\n  expose_as: {name}"));
        assert!(problems(&text, &[]).contains("is reserved"), "{name}");
    }
}

#[test]
fn what_is_probably_not_meant() {
    let text = with_sections(
        "\
toolsets: [{name: quotes, description: d, tools: [get_x, nowhere.get_x, '*.y']}]
gateway: {exposure: legacy, tool_sets: [quotes]}",
    );
    let warnings = loaded(&text).warnings;
    let warnings: Vec<_> = warnings.iter().map(|warning| warning.message.as_str()).collect();
    assert_eq!(
        warnings,
        [
            "switchboard.toolsets[0].tools[1]: `nowhere` is not the name of a server",
            "switchboard.gateway.tool_sets is ignored: `exposure: legacy` shows every tool",
        ]
    );
}

/// Names that came from a variable are used, but never shown.
#[test]
fn expanded_names_are_not_told() {
    let text = "\
switchboard:
  toolbox:
    mcps:
      - {name: '${S}', url: 'http://h', mode: strict}
      - {name: b, url: 'http://h', mode: strict, toolset: '${S}'}
  toolsets:
    - {name: c, description: d, servers: ['x${S}', nowhere], tools: ['x${S}.y']}
    - {name: 'y${S}', description: d}
  gateway:
    tool_sets: ['${S}', 'z${S}', nothing]
    deny_toolsets: ['${S}']
  security: {allowed_hosts: ['/${S}'], egress: {allow: ['/${S}']}, jwt: {issuer: '${S}', audience: '${S}', jwks_url: '${S}'}}
";
    let told = problems(text, &[("S", "hunter2")]);
    assert!(!told.contains("hunter2") && !told.contains("no problems"), "{told}");
    let sound = "\
switchboard:
  toolbox:
    mcps:
      - {name: '${S}', url: 'http://h', mode: strict}
  toolsets:
    - {name: '${S}', description: '${S}'}
    - {name: c, description: d, servers: ['${S}'], tools: ['${S}.y']}
  gateway: {tool_sets: ['${S}']}
  security:
    allowed_hosts: ['${S}']
    egress: {allow: ['${S}'], deny: ['${S}.example']}
    jwt: {issuer: 'https://${S}', audience: 'https://${S}', jwks_file: '${S}'}
";
    let loaded = load_with(Some(sound), &[("S", "hunter2")]).unwrap();
    let shown = format!("{}{}{loaded:?}", loaded.to_yaml(), loaded.to_json());
    assert!(!shown.contains("hunter2"), "{shown}");
}

#[test]
fn the_set_of_a_server_can_be_hidden_with_one_word() {
    let server = |name: &str, more: &str| {
        format!(
            "{{name: {name}, url: 'http://h/{name}', mode: dynamic, default_tool_config: {{}}{more}}}"
        )
    };
    let servers = format!("[{}, {}]", server("a", ", toolset: none"), server("b", ""));
    let yaml = format!("switchboard:\n  toolbox:\n    mcps: {servers}\n");
    let loaded = load_with(Some(&yaml), &[]).unwrap();
    let names: Vec<_> = loaded.plan.toolsets.iter().map(|set| set.name.as_str()).collect();
    assert_eq!(names, ["b"]);
    let taken = "switchboard:\n  toolsets:\n    - {name: none, description: x, tools: [y]}\n";
    let problems = load_with(Some(taken), &[]).unwrap_err().to_string();
    assert!(problems.contains("no toolset can be called `none`"), "{problems}");
}
