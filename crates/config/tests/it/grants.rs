//! `security.jwt.grants`, and `rate` of tools and servers: valid values and error messages.

use pretty_assertions::assert_eq;
use switchboard_config::Loaded;
use switchboard_model::{AccessRule, CallerLimits, ClaimGrant, ClaimRule, JwtGrants, Role};

use crate::support::{load_text, problems};

/// A file with the server `crm`, the toolset `reading`, and these members of `security.jwt`.
fn with(members: &str) -> String {
    format!(
        "switchboard:\n  toolbox:\n    mcps:\n      - {{name: crm, url: 'http://h', mode: dynamic, default_tool_config: {{max_instances: 5, timeout: 30s, rate: 10/s}}}}\n    tools: [{{name: crm.get, rate: 60/min}}]\n  toolsets: [{{name: reading, description: Reads, tools: [crm.get_*]}}]\n  security:\n    jwt: {{issuer: 'https://i.example', audience: 'https://g.example/mcp', jwks_url: 'https://i.example/jwks', {members}}}\n"
    )
}

fn loaded(members: &str) -> Loaded {
    load_text(&with(members)).unwrap_or_else(|problems| panic!("{problems}"))
}

#[test]
fn grants_are_read_whole() {
    let plan = loaded(
        "grants: [{claim: groups, values: [a, b], role: operator, toolsets: [reading, crm], tools: [crm.x], deny_tools: ['*_delete'], readonly: true, max_instances: 2, rate: 60/min}, {claim: /a/b, value: 7}], default_grant: {toolsets: []}",
    )
    .plan;
    let text = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let whole = ClaimRule {
        claim: "groups".into(),
        values: text(&["a", "b"]),
        grant: ClaimGrant {
            role: Some(Role::Operator),
            rule: AccessRule {
                toolsets: Some(text(&["reading", "crm"])),
                tools: Some(text(&["crm.x"])),
                deny_tools: text(&["*_delete"]),
                read_only: true,
            },
            limits: CallerLimits { max_instances: Some(2), rate: "60/min".parse().ok() },
        },
    };
    let all = ClaimRule {
        claim: "/a/b".into(),
        values: text(&["7"]),
        grant: ClaimGrant { rule: AccessRule::ALL, ..ClaimGrant::default() },
    };
    let rule = AccessRule { toolsets: Some(Vec::new()), ..AccessRule::ALL };
    let otherwise = Some(ClaimGrant { rule, ..ClaimGrant::default() });
    let rules = Some(vec![whole, all]);
    assert_eq!(plan.security.jwt.unwrap().grants, JwtGrants { rules, otherwise });
    assert_eq!(plan.tools[0].limits.rate, "60/min".parse().ok());
    assert_eq!(loaded("leeway: 5s").plan.security.jwt.unwrap().grants, JwtGrants::default());
}

#[test]
fn what_is_wrong_is_named_with_its_place() {
    for (members, said) in [
        ("grants: [{claim: g, value: a, toolsets: [readin]}]", "there is no toolset \"readin\""),
        ("default_grant: {toolsets: [none]}", "there is no toolset \"none\""),
        ("grants: [{claim: g}]", "has neither `value` nor `values`"),
        ("grants: [{claim: g, value: a, values: [b]}]", "has both `value` and `values`"),
        ("grants: [{claim: g, value: a, rate: 0/min}]", "permits no call"),
        ("grants: [{claim: g, value: a, rate: -1/min}]", "not from 1 to 1000000"),
        ("grants: [{claim: g, value: a, rate: 5/week}]", "has an unknown period"),
        ("grants: [{claim: g, value: a, max_instances: 0}]", "max_instances"),
        ("grants: [{claim: g, value: a, tool: [x]}]", "unknown key `tool`"),
        ("grants: {claim: g}", "grants"),
    ] {
        let said_all = problems(&with(members), &[]);
        assert!(said_all.contains(said) && said_all.contains("-->"), "{members}: {said_all}");
    }
}
