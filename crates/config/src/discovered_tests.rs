use std::collections::BTreeMap;
use std::time::Duration;

use pretty_assertions::assert_eq;
use switchboard_model::{
    AUTO_SOURCE, AdmissionMode, DiscoveryPlan, Endpoint, HttpTransport, LimitsOverlay, Secret,
    SourceKind, SourcePlan,
};

use super::*;

fn found(name: &str, url: &str) -> FoundServer {
    FoundServer {
        name: name.into(),
        url: url.parse().unwrap(),
        transport: HttpTransport::StreamableHttp,
        headers: BTreeMap::new(),
    }
}

fn of(source: &str, is_file: bool, servers: Vec<FoundServer>) -> SourceServers {
    SourceServers { source: source.into(), is_file, servers }
}

/// A plan with the sources `a` and `b` under these policies.
fn plan(a: SourcePolicy, b: SourcePolicy) -> Plan {
    let source = |name: &str, policy| SourcePlan {
        name: name.into(),
        kind: SourceKind::Manifest { path: None },
        refresh: Duration::from_secs(1),
        policy,
    };
    let sources = vec![source("a", a), source("b", b)];
    Plan { discovery: DiscoveryPlan { sources, ..DiscoveryPlan::default() }, ..Plan::default() }
}

fn names(merged: &MergedServers) -> Vec<&str> {
    merged.plan.servers.iter().map(|server| server.spec.name.as_str()).collect()
}

fn reasons(merged: &MergedServers) -> Vec<String> {
    let line = |it: &LeftOutServer| format!("{}/{}: {}", it.source, it.name, it.reason);
    merged.left_out.iter().map(line).collect()
}

#[test]
fn a_found_server_gets_the_policy_of_its_source_and_its_origin() {
    let limits = LimitsOverlay { max_instances: Some(2), ..LimitsOverlay::default() };
    let policy = SourcePolicy {
        mode: AdmissionMode::Strict,
        default_limits: limits,
        tool_allowlist: Some(vec!["get_*".into()]),
        tool_denylist: vec!["get_secret".into()],
        prefix: "team-".into(),
        connect_timeout: Some(Duration::from_secs(3)),
        ..SourcePolicy::default()
    };
    let mut mail = found("mail", "https://mail.example.com/mcp?key=abc");
    mail.transport = HttpTransport::Sse;
    mail.headers.insert("X-Key".into(), Secret::new("hunter2"));
    let merged =
        merge_discovered(&plan(policy, SourcePolicy::default()), &[of("a", false, vec![mail])]);
    assert_eq!((names(&merged), merged.left_out.len()), (vec!["team-mail"], 0));
    let server = &merged.plan.servers[0];
    assert_eq!(server.mode, AdmissionMode::Strict);
    assert_eq!(server.default_limits, Some(limits));
    assert_eq!(server.tool_allowlist, Some(vec!["get_*".to_owned()]));
    assert_eq!(server.tool_denylist, ["get_secret"]);
    assert!(!server.required, "a source never prevents a start");
    assert_eq!(server.spec.connect_timeout, Duration::from_secs(3));
    assert_eq!(server.spec.place, "https://mail.example.com/mcp?key=***");
    assert!(matches!(&server.spec.endpoint, Endpoint::Sse { headers, .. } if headers.len() == 1));
    let from = server.discovered.as_ref().unwrap();
    assert_eq!((from.source.as_str(), from.original_name.as_str()), ("a", "mail"));
    let sets: Vec<_> = merged.plan.toolsets.iter().map(|set| set.name.as_str()).collect();
    assert_eq!(sets, ["team-mail"]);
    assert!(!format!("{:?}", merged.plan.servers).contains("hunter2"));
}

#[test]
fn the_file_wins_over_sources_and_earlier_sources_over_later_ones() {
    let policy = SourcePolicy::default;
    let mut written = plan(policy(), policy());
    let first = merge_discovered(&written, &[of("a", true, vec![found("crm", "http://file/")])]);
    let mut crm = first.plan.servers[0].clone();
    crm.discovered = None;
    written.servers.push(crm);
    let merged = merge_discovered(
        &written,
        // Not in the order of the plan.
        &[
            of(AUTO_SOURCE, true, vec![found("news", "http://c/")]),
            of("b", true, vec![found("mail", "http://b/"), found("news", "http://b/")]),
            of("a", true, ["crm", "mail", "mail"].map(|name| found(name, "http://a/")).into()),
            of("gone", true, vec![found("ghost", "http://ghost/")]),
        ],
    );
    assert_eq!(names(&merged), ["crm", "mail", "news"]);
    assert_eq!(merged.plan.servers[1].spec.place, "http://a/");
    assert_eq!(
        reasons(&merged),
        [
            "a/crm: the configuration file has a server 'crm'",
            "a/mail: the source names 'mail' more than once; the first one counts",
            "b/mail: the source 'a' names 'mail' too, and is first",
            "auto/news: the source 'b' names 'news' too, and is first",
        ]
    );
    assert_eq!(merge_discovered(&written, &[]).plan, written, "nothing found, nothing changed");
}

#[test]
fn the_environments_source_counts_only_where_the_plan_lets_it() {
    let found = [of(AUTO_SOURCE, true, vec![found("mail", "http://a/")])];
    let mut plan = Plan::default();
    assert_eq!(names(&merge_discovered(&plan, &found)), ["mail"]);
    plan.discovery.auto = false;
    assert_eq!(merge_discovered(&plan, &found), MergedServers { plan, left_out: Vec::new() });
}

#[test]
fn lists_of_servers_and_their_number_decide_what_is_added() {
    let policy = SourcePolicy {
        server_allowlist: Some(vec!["io.github.*".into()]),
        server_denylist: vec!["*/beta".into()],
        max_servers: 1,
        ..SourcePolicy::default()
    };
    let names_found = ["other", "io.github.x/beta", "io.github.x/one", "io.github.x/two"];
    let servers = names_found.map(|name| found(name, "https://example.com/"));
    let merged =
        merge_discovered(&plan(policy, SourcePolicy::default()), &[of("a", false, servers.into())]);
    assert_eq!(merged.plan.servers.len(), 1);
    assert_eq!(
        reasons(&merged),
        [
            "a/other: `servers.allow` of the source does not have it",
            "a/io.github.x/beta: `servers.deny` of the source has `*/beta`",
            "a/io.github.x/two: the source adds no more than `max_servers: 1`",
        ]
    );
}

#[test]
fn ten_thousand_entries_are_bounded_and_reported_in_short() {
    let servers = (0..10_000).map(|n| found(&format!("s{n}"), "https://example.com/")).collect();
    let defaults = SourcePolicy::default;
    let merged = merge_discovered(&plan(defaults(), defaults()), &[of("a", false, servers)]);
    assert_eq!((merged.plan.servers.len(), merged.left_out.len()), (1000, 101));
    assert_eq!(merged.left_out[100].name, "(8900 more)");
}

#[test]
fn only_what_is_not_a_file_of_this_machine_passes_the_egress_check() {
    let local =
        || vec![found("here", "http://127.0.0.1:9/mcp"), found("out", "https://x.example/")];
    let defaults = SourcePolicy::default;
    let plan = plan(defaults(), defaults());
    let file = merge_discovered(&plan, &[of("a", true, local())]);
    assert_eq!(names(&file), ["here", "out"]);
    assert!(file.plan.servers.iter().all(|server| server.spec.egress.is_none()));
    let url = merge_discovered(&plan, &[of("a", false, local())]);
    assert_eq!(names(&url), ["out"]);
    assert_eq!(url.plan.servers[0].spec.egress.as_deref(), Some(&plan.security.egress));
    assert_eq!(
        reasons(&url),
        [
            "a/here: the egress check refuses 127.0.0.1: it is an address of the machine itself; the operator of this board \
          can add it to `security.egress.allow`"
        ]
    );
}

#[test]
fn a_malformed_entry_costs_only_itself() {
    let mut header = found("header", "https://x.example/");
    header.headers.insert("a b".into(), Secret::new("v"));
    let mut value = found("value", "https://x.example/");
    value.headers.insert("a".into(), Secret::new("hunter2\n"));
    let servers = vec![header, value, found("ftp", "ftp://x.example/"), found("ok", "https://ok/")];
    let defaults = SourcePolicy::default;
    let merged = merge_discovered(&plan(defaults(), defaults()), &[of("b", false, servers)]);
    assert_eq!(names(&merged), ["ok"]);
    assert_eq!(
        reasons(&merged),
        [
            "b/header: the header \"a b\" is not a valid header name",
            "b/value: the header `a` has a value that a header cannot carry",
            "b/ftp: its address is not an http or https address",
        ]
    );
}

#[test]
fn odd_names_become_valid_ones_that_stay_and_do_not_collide() {
    let long = "x".repeat(200);
    let originals = [
        "mail",
        "Mail Tools",
        "mail tools",
        "Mail/Tools",
        "邮件",
        "邮箱",
        "",
        "--",
        "local",
        "none",
        "_x",
        "io.github.user/weather",
        &long,
        "a.b",
    ];
    let made: Vec<_> = originals.iter().map(|name| server_name("", name).to_string()).collect();
    for name in &made {
        assert!(ServerName::is_valid(name), "{name}");
        assert!(!["local", "none"].contains(&name.as_str()));
    }
    let distinct: HashSet<_> = made.iter().collect();
    assert_eq!(distinct.len(), made.len(), "{made:?}");
    assert_eq!(made[0], "mail", "a valid name stays");
    let stems: Vec<_> = made[1..].iter().map(|name| name.rsplit_once('-').unwrap().0).collect();
    let x = "x".repeat(LONGEST_STEM);
    let expected = [
        "Mail-Tools",
        "mail-tools",
        "Mail-Tools",
        "server",
        "server",
        "server",
        "server",
        "local",
        "none",
        "x",
        "io-github-user-weather",
        &x,
        "a-b",
    ];
    assert_eq!(stems, expected);
    assert_eq!(server_name("t-", "邮件"), server_name("t-", "邮件"));
    assert_ne!(server_name("t-", "邮件"), server_name("", "邮件"));
}
