//! The section `threat_protection`, and `content_check` of tools and servers.

use std::time::Duration;

use pretty_assertions::assert_eq;
use switchboard_config::Loaded;
use switchboard_model::{
    CheckMode, ContentCheckOverlay, FailurePolicy, Secret, ThreatProtectionPlan,
};

use crate::support::{load_text, load_with, problems};

const FULL: &str = "\
switchboard:
  toolbox:
    defaults: {content_check: {after_call: observe}}
    tools:
      - {name: get, content_check: {before_call: 'off'}}
      - {name: put}
    mcps:
      - {name: a, url: 'http://h', mode: strict, content_check: {before_call: block}}
      - {name: b, url: 'http://h', mode: strict}
  threat_protection:
    endpoint: https://threats.example.com/check?key=abc
    token: ${TOKEN}
    timeout: 2s
    on_failure: open
    before_model: block
    before_tool: observe
    after_tool: off
    redact: ['\\b\\d{4}\\b', secret]
    accept_without_key: true
";

fn full() -> Loaded {
    load_with(Some(FULL), &[("TOKEN", "t0ken-value")])
        .unwrap_or_else(|problems| panic!("{problems}"))
}

#[test]
fn every_setting_is_read() {
    let plan = full().plan;
    let expected = ThreatProtectionPlan {
        endpoint: Some("https://threats.example.com/check?key=abc".parse().unwrap()),
        token: Some(Secret::new("t0ken-value")),
        timeout: Duration::from_secs(2),
        on_failure: FailurePolicy::Open,
        before_model: CheckMode::Block,
        before_tool: CheckMode::Observe,
        after_tool: CheckMode::Off,
        redact: vec![r"\b\d{4}\b".into(), "secret".into()],
        accept_without_key: true,
    };
    assert_eq!(plan.threat_protection, expected);
    let overlay = |before_call, after_call| ContentCheckOverlay { before_call, after_call };
    let tools: Vec<_> = plan.tools.iter().map(|tool| tool.content_check).collect();
    assert_eq!(tools, [overlay(Some(CheckMode::Off), None), overlay(None, None)]);
    let servers: Vec<_> = plan.servers.iter().map(|server| server.content_check).collect();
    let observe = Some(CheckMode::Observe);
    assert_eq!(servers, [overlay(Some(CheckMode::Block), observe), overlay(None, observe)]);
}

#[test]
fn without_the_section_nothing_is_checked() {
    let plan = load_text("switchboard: {}\n").unwrap().plan;
    assert_eq!(plan.threat_protection, ThreatProtectionPlan::default());
    let empty = load_text("switchboard: {threat_protection: {}}\n").unwrap().plan;
    assert_eq!(empty.threat_protection, ThreatProtectionPlan::default());
    assert_eq!(empty.threat_protection.on_failure, FailurePolicy::Closed);
}

#[test]
fn the_effective_configuration_shows_it_without_its_secrets() {
    let shown = full().to_yaml();
    assert!(!shown.contains("t0ken-value") && !shown.contains("abc"), "{shown}");
    let (_, section) = shown.split_once("  threat_protection:\n").unwrap();
    insta::assert_snapshot!(section, @r#"
      endpoint: "https://threats.example.com/check?key=***"  # switchboard.yaml:11:15
      token: "***"  # switchboard.yaml:12:12
      timeout: 2s  # switchboard.yaml:13:14
      on_failure: open  # switchboard.yaml:14:17
      before_model: block  # switchboard.yaml:15:19
      before_tool: observe  # switchboard.yaml:16:18
      after_tool: "off"  # switchboard.yaml:17:17
      redact:
        - "\\b\\d{4}\\b"  # switchboard.yaml:18:14
        - secret  # switchboard.yaml:18:27
      accept_without_key: true  # switchboard.yaml:19:25
    discovery:
      auto: true  # default
      content_check:
        after_call: observe  # default
    "#);
    let again = load_with(Some(&shown.replace("***", "x")), &[("TOKEN", "t0ken-value")]);
    assert!(again.is_ok(), "{shown}\n{}", again.unwrap_err());
}

#[test]
fn the_environment_overrides_it() {
    let env = [
        ("TOKEN", "t"),
        ("SWITCHBOARD__THREAT_PROTECTION__BEFORE_MODEL", "off"),
        ("SWITCHBOARD__THREAT_PROTECTION__TIMEOUT", "9s"),
    ];
    let plan = load_with(Some(FULL), &env).unwrap().plan.threat_protection;
    assert_eq!((plan.before_model, plan.timeout), (CheckMode::Off, Duration::from_secs(9)));
}

#[test]
#[expect(clippy::too_many_lines, reason = "one row for each mistake")]
fn what_cannot_work_is_refused() {
    let section =
        |text: &str| problems(&format!("switchboard:\n  threat_protection: {text}\n"), &[]);
    insta::assert_snapshot!(section("{before_model: block, after_tool: off}"), @r#"
    error: switchboard.threat_protection.before_model: the string "block" needs `threat_protection.endpoint`
      --> switchboard.yaml:2:37
       |
     2 |   threat_protection: {before_model: block, after_tool: off}
       |                                     ^^^^^
       = help: add `threat_protection: {endpoint: https://threats.example.com/agents/real-time-threat-protection/chat-message}`, or write `off`

    1 problem found
    "#);
    insta::assert_snapshot!(section("{endpoint: 'ftp://h', before_model: block}"), @"
    error: switchboard.threat_protection.endpoint: the address is not an http or https address
      --> switchboard.yaml:2:33
       |
     2 |   threat_protection: {endpoint: 'ftp://h', before_model: block}
       |                                 ^^^^^^^^^
       = help: write an address such as `https://threats.example.com/agents/real-time-threat-protection/chat-message`

    1 problem found
    ");
    insta::assert_snapshot!(section("{token: abc}"), @"
    error: switchboard.threat_protection has a `token` but no `endpoint`
      --> switchboard.yaml:2:23
       |
     2 | (not shown: this line may hold a secret)
       |
       = help: add `endpoint: https://threats.example.com/agents/real-time-threat-protection/chat-message`

    1 problem found
    ");
    insta::assert_snapshot!(section("{endpoint: 'http://h', before_tool: always, on_failure: retry}"), @r#"
    error: switchboard.threat_protection.before_tool: the string "always" is not one of `off`, `observe`, `block`
      --> switchboard.yaml:2:58
       |
     2 |   threat_protection: {endpoint: 'http://h', before_tool: always, on_failure: retry}
       |                                                          ^^^^^^

    error: switchboard.threat_protection.on_failure: the string "retry" is not one of `open`, `closed`
      --> switchboard.yaml:2:78
       |
     2 |   threat_protection: {endpoint: 'http://h', before_tool: always, on_failure: retry}
       |                                                                              ^^^^^

    2 problems found
    "#);
    insta::assert_snapshot!(section("{redact: ['(', 'a*', '(\\w{100}){100}']}"), @r#"
    error: switchboard.threat_protection.redact[0]: the string "(" is not a regular expression
      --> switchboard.yaml:2:32
       |
     2 |   threat_protection: {redact: ['(', 'a*', '(\w{100}){100}']}
       |                                ^^^
       = help: write one such as `\b\d{3}-\d{2}-\d{4}\b`, in single quotes

    error: switchboard.threat_protection.redact[1]: the string "a*" matches the empty text, so it would redact nothing and everywhere
      --> switchboard.yaml:2:37
       |
     2 |   threat_protection: {redact: ['(', 'a*', '(\w{100}){100}']}
       |                                     ^^^^
       = help: write one such as `\b\d{3}-\d{2}-\d{4}\b`, in single quotes

    error: switchboard.threat_protection.redact[2]: the string "(\\w{100}){100}" is too large a regular expression
      --> switchboard.yaml:2:43
       |
     2 |   threat_protection: {redact: ['(', 'a*', '(\w{100}){100}']}
       |                                           ^^^^^^^^^^^^^^^^
       = help: write one such as `\b\d{3}-\d{2}-\d{4}\b`, in single quotes

    3 problems found
    "#);
    let tool =
        "switchboard:\n  toolbox:\n    tools: [{name: get, content_check: {before_call: block}}]\n";
    insta::assert_snapshot!(problems(tool, &[]), @r#"
    error: switchboard.toolbox.tools[0].content_check.before_call: the string "block" needs `threat_protection.endpoint`
      --> switchboard.yaml:3:54
       |
     3 |     tools: [{name: get, content_check: {before_call: block}}]
       |                                                      ^^^^^
       = help: add `threat_protection: {endpoint: https://threats.example.com/agents/real-time-threat-protection/chat-message}`, or write `off`

    1 problem found
    "#);
}
