use proptest::prelude::*;

use super::*;

fn policy(allow: &[&str], deny: &[&str]) -> EgressPolicy {
    let rules = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
    EgressPolicy { allow: rules(allow), deny: rules(deny) }
}

fn verdict(policy: &EgressPolicy, name: Option<&str>, address: &str) -> String {
    match policy.judge(name, address.parse().unwrap()) {
        Ok(()) => "fine".into(),
        Err(refusal) => refusal.to_string(),
    }
}

#[test]
fn without_a_word_only_the_public_internet_is_allowed() {
    let rows = [
        ("1.1.1.1", "fine"),
        ("93.184.215.14", "fine"),
        ("172.15.255.255", "fine"),
        ("172.32.0.0", "fine"),
        ("100.63.255.255", "fine"),
        ("100.128.0.0", "fine"),
        ("198.17.255.255", "fine"),
        ("223.255.255.255", "fine"),
        ("2606:4700:4700::1111", "fine"),
        ("2001:200::1", "fine"),
        ("0.0.0.0", "it is an address of the machine itself"),
        ("0.1.2.3", "it is an address of the machine itself"),
        ("127.0.0.1", "it is an address of the machine itself"),
        ("127.255.255.254", "it is an address of the machine itself"),
        ("10.1.2.3", "it is an address of a private network"),
        ("172.16.0.0", "it is an address of a private network"),
        ("172.31.255.255", "it is an address of a private network"),
        ("192.168.0.1", "it is an address of a private network"),
        ("100.64.0.1", "it is an address of a provider's inner network (CGNAT)"),
        ("100.100.100.200", "it is an address of a provider's inner network (CGNAT)"),
        ("169.254.169.254", "it is a link-local address, where clouds keep their metadata"),
        ("168.63.129.16", "it is an address of a cloud's metadata"),
        ("192.0.0.192", "it is a reserved address"),
        ("192.0.2.1", "it is an address for documentation"),
        ("198.51.100.1", "it is an address for documentation"),
        ("203.0.113.1", "it is an address for documentation"),
        ("198.18.0.1", "it is an address for benchmarks"),
        ("198.19.255.255", "it is an address for benchmarks"),
        ("224.0.0.1", "it is a multicast address"),
        ("239.255.255.255", "it is a multicast address"),
        ("240.0.0.1", "it is a reserved address"),
        ("255.255.255.255", "it is a reserved address"),
        ("::", "it is an address of the machine itself"),
        ("::1", "it is an address of the machine itself"),
        ("::ffff:127.0.0.1", "it is an IPv6 address that holds an IPv4 one"),
        ("::ffff:1.1.1.1", "it is an IPv6 address that holds an IPv4 one"),
        ("::7f00:1", "it is an IPv6 address that holds an IPv4 one"),
        ("64:ff9b::a9fe:a9fe", "it is an IPv6 address that holds an IPv4 one"),
        ("64:ff9b:1::1", "it is an IPv6 address that holds an IPv4 one"),
        ("2002:7f00:1::", "it is an IPv6 address that holds an IPv4 one"),
        ("2001::1", "it is a reserved address"),
        ("2001:1ff::1", "it is a reserved address"),
        ("2001:db8::1", "it is an address for documentation"),
        ("3fff:fff::1", "it is an address for documentation"),
        ("fd00:ec2::254", "it is an address of a private network"),
        ("fc00::1", "it is an address of a private network"),
        ("fe80::1", "it is a link-local address, where clouds keep their metadata"),
        ("fec0::1", "it is a reserved address"),
        ("ff02::1", "it is a multicast address"),
        ("100::1", "it is a reserved address"),
        ("5f00::1", "it is a reserved address"),
        ("4000::1", "it is a reserved address"),
    ];
    for (address, expected) in rows {
        assert_eq!(verdict(&EgressPolicy::default(), None, address), expected, "{address}");
    }
}

#[test]
fn what_is_allowed_is_exactly_that() {
    let lan = policy(&["10.1.0.0/16", "fd00::/8"], &[]);
    assert_eq!(verdict(&lan, None, "10.1.2.3"), "fine");
    assert_eq!(verdict(&lan, None, "::ffff:10.1.2.3"), "fine", "it is the same place");
    assert_eq!(verdict(&lan, Some("crm.corp.example"), "fd12::1"), "fine");
    assert_ne!(verdict(&lan, None, "10.2.0.1"), "fine");
    assert_ne!(verdict(&lan, None, "::ffff:10.2.0.1"), "fine");
    assert_ne!(verdict(&lan, None, "127.0.0.1"), "fine");

    let named = policy(&["crm.corp.example", "*.Lab.example"], &[]);
    for name in ["crm.corp.example", "CRM.corp.example.", "a.lab.example", "b.a.lab.example"] {
        assert_eq!(verdict(&named, Some(name), "10.2.0.1"), "fine", "{name}");
    }
    for name in ["lab.example", "evillab.example", "crm.corp.example.evil", "x.crm.corp.example"] {
        assert_ne!(verdict(&named, Some(name), "10.2.0.1"), "fine", "{name}");
    }
    assert_ne!(verdict(&named, None, "10.2.0.1"), "fine", "an address has no name");
}

#[test]
fn a_translator_that_is_allowed_leads_to_the_public_internet_only() {
    let translated = policy(&["64:ff9b::/96"], &["9.9.9.0/24"]);
    assert_eq!(verdict(&translated, None, "64:ff9b::101:101"), "fine");
    assert_ne!(verdict(&translated, None, "64:ff9b::a9fe:a9fe"), "fine");
    assert_ne!(verdict(&translated, None, "64:ff9b::909:909"), "fine");
}

#[test]
fn deny_wins_over_allow_in_every_spelling() {
    let both = policy(&["10.0.0.0/8", "*.corp.example"], &["10.9.0.0/16", "hr.corp.example"]);
    let denied = "`security.egress.deny` names it";
    assert_eq!(verdict(&both, None, "10.9.0.1"), denied);
    assert_eq!(verdict(&both, None, "::ffff:10.9.0.1"), denied);
    assert_eq!(verdict(&both, Some("crm.corp.example"), "10.9.0.1"), denied);
    assert_eq!(verdict(&both, Some("hr.corp.example"), "10.1.0.1"), denied);
    assert_eq!(verdict(&both, Some("hr.corp.example"), "1.1.1.1"), denied);
    assert_eq!(verdict(&both, None, "10.1.0.1"), "fine");
    let host = |text: &str| {
        let url = url::Url::parse(text).unwrap();
        both.judge_host(&url.host().unwrap()).is_ok()
    };
    assert!(host("http://10.1.0.1/") && host("http://anything.example/"));
    // Other spellings of 127.0.0.1, and what must not need a lookup to be refused.
    for bad in [
        "http://127.0.0.1/",
        "http://2130706433/",
        "http://0x7f.1/",
        "http://0177.0.0.1./",
        "http://[::1]/",
        "http://[::ffff:7f00:1]/",
        "http://localhost/",
        "http://LOCALHOST./",
        "http://mcp.localhost/",
        "http://HR.corp.example/",
        "http://hr.corp.example./",
    ] {
        assert!(!host(bad), "{bad}");
    }
}

#[test]
fn rules_are_networks_addresses_and_names() {
    let rows = [
        ("10.0.0.0/8", Some("10.0.0.0/8")),
        ("10.1.2.3/8", Some("10.0.0.0/8")),
        ("10.1.2.3", Some("10.1.2.3/32")),
        ("fd00::/8", Some("fd00::/8")),
        ("::1", Some("::1/128")),
        ("0.0.0.0/0", Some("0.0.0.0/0")),
        ("Crm.Example.com.", Some("crm.example.com")),
        ("*.example.com", Some("*.example.com")),
        ("localhost", Some("localhost")),
        ("bücher.example", Some("xn--bcher-kva.example")),
        ("10.0.0.0/33", None),
        ("10.0.0.256", None),
        ("example.com:80", None),
        ("https://example.com", None),
        ("example.com/x", None),
        ("*", None),
        ("*.", None),
        ("a.*.example.com", None),
        ("*.10.0.0.1", None),
        (".", None),
        ("..", None),
        ("example.com..", None),
        (".example.com", None),
        ("*..example.com", None),
        ("", None),
    ];
    for (written, expected) in rows {
        let read = written.parse::<EgressRule>().map(|rule| rule.to_string()).ok();
        assert_eq!(read.as_deref(), expected, "{written}");
    }
}

fn network() -> impl Strategy<Value = EgressRule> {
    let four = (any::<Ipv4Addr>(), 0..=32u8).prop_map(|(ip, len)| IpNet::new(ip.into(), len));
    let six = (any::<Ipv6Addr>(), 0..=128u8).prop_map(|(ip, len)| IpNet::new(ip.into(), len));
    prop_oneof![four, six].prop_map(|network| EgressRule::Network(network.unwrap()))
}

fn any_policy() -> impl Strategy<Value = EgressPolicy> {
    let rules = || proptest::collection::vec(network(), 0..3);
    (rules(), rules()).prop_map(|(allow, deny)| EgressPolicy { allow, deny })
}

/// Half of them near the edges of what is special.
fn address() -> impl Strategy<Value = IpAddr> {
    let special = SPECIAL_V4.iter().map(|(network, _)| IpNet::V4(*network));
    let special = special.chain(SPECIAL_V6.iter().map(|(network, _)| IpNet::V6(*network)));
    let edges: Vec<IpAddr> = special.flat_map(|net| [net.network(), net.broadcast()]).collect();
    prop_oneof![any::<IpAddr>(), proptest::sample::select(edges)]
}

/// What the standard library knows about addresses, as a second opinion.
fn is_known_to_be_special(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(ip) => {
            ip.is_loopback()
                || ip.is_private()
                || ip.is_link_local()
                || ip.is_multicast()
                || ip.is_broadcast()
                || ip.is_documentation()
                || ip.is_unspecified()
        }
        IpAddr::V6(ip) => {
            ip.is_loopback()
                || ip.is_unspecified()
                || ip.is_multicast()
                || ip.is_unique_local()
                || ip.is_unicast_link_local()
                || ip.to_ipv4().is_some()
        }
    }
}

proptest! {
    #[test]
    fn what_is_special_is_refused_until_it_is_allowed(address in address()) {
        let verdict = EgressPolicy::default().judge(None, address);
        if is_known_to_be_special(address) {
            prop_assert!(verdict.is_err(), "{address}");
        }
        let everything = policy(&["0.0.0.0/0", "::/0"], &[]);
        prop_assert_eq!(everything.judge(None, address), Ok(()));
    }

    /// No policy lets an IPv4 address be reached in another spelling that it refuses in its own.
    #[test]
    fn no_spelling_gets_past_a_policy(policy in any_policy(), ip in address()) {
        let IpAddr::V4(ip) = ip else { return Ok(()) };
        let [a, b, c, d] = ip.octets().map(u16::from);
        let (high, low) = (a << 8 | b, c << 8 | d);
        let translated = Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, high, low);
        if policy.judge(None, ip.into()).is_err() {
            prop_assert!(policy.judge(None, translated.into()).is_err());
            prop_assert!(policy.judge(None, ip.to_ipv6_mapped().into()).is_err());
        }
    }

    #[test]
    fn what_is_denied_is_refused_whatever_is_allowed(
        policy in any_policy(), address in address(), name in proptest::option::of("[a-c]{1,3}\\.example"),
    ) {
        let mut open = policy.clone();
        open.allow.extend(["0.0.0.0/0", "::/0", "*.example"].map(|rule| rule.parse().unwrap()));
        let is_denied = policy.deny.iter().any(|rule| rule.names_address(address));
        prop_assert!(!is_denied || open.judge(name.as_deref(), address).is_err());
        // Denying more never allows more, and allowing more never refuses more.
        let verdict = policy.judge(name.as_deref(), address);
        let undenied = EgressPolicy { deny: vec![], ..policy };
        prop_assert!(verdict.is_err() || undenied.judge(name.as_deref(), address).is_ok());
        prop_assert!(verdict.is_err() || open.judge(name.as_deref(), address).is_ok());
    }

    #[test]
    fn any_text_is_read_or_refused(text in "\\PC{0,40}") {
        if let Ok(rule) = text.parse::<EgressRule>() {
            prop_assert_eq!(rule.to_string().parse::<EgressRule>(), Ok(rule));
        }
    }
}

#[test]
fn a_refusal_says_why_and_what_the_operator_can_change() {
    for (refusal, why, way_out) in [
        (EgressRefusal::Denied, "`security.egress.deny` names it", "change `security.egress.deny`"),
        (
            EgressRefusal::Special("a reserved address"),
            "it is a reserved address",
            "add it to `security.egress.allow`",
        ),
    ] {
        assert_eq!(refusal.to_string(), why);
        assert!(refusal.hint().ends_with(way_out), "{}", refusal.hint());
    }
}
