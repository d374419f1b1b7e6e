//! Egress policy: which addresses the process may connect to for a party that cannot edit the configuration file, such
//! as a session that attaches a server.
//!
//! By default only public internet addresses are allowed. Loopback, private, link-local and other special-purpose
//! addresses are refused. The decision concerns the address that is dialled, so it must be made after each DNS lookup,
//! on the address that the connection then uses.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use url::Host;

/// The `security.egress` section: exceptions to the default decision. `deny` wins over `allow`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EgressPolicy {
    pub allow: Vec<EgressRule>,
    pub deny: Vec<EgressRule>,
}

/// One element of `allow` or `deny`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EgressRule {
    /// Every address of a network.
    Network(IpNet),
    /// A host name, whatever it resolves to; in lower case, without a trailing dot.
    Host(String),
    /// Every subdomain of this name, written `*.example.com`.
    HostsBelow(String),
}

/// Why an address is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EgressRefusal {
    /// `security.egress.deny` names it.
    Denied,
    /// It is not a public address; the text names its kind.
    Special(&'static str),
}

impl fmt::Display for EgressRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Denied => f.write_str("`security.egress.deny` names it"),
            Self::Special(kind) => write!(f, "it is {kind}"),
        }
    }
}

impl EgressRefusal {
    /// What the operator can change so that the address is allowed.
    pub fn hint(self) -> &'static str {
        match self {
            Self::Denied => "the operator of this board can change `security.egress.deny`",
            Self::Special(_) => "the operator of this board can add it to `security.egress.allow`",
        }
    }
}

impl EgressPolicy {
    /// Decides whether an address may be dialled; `name` is the host name that resolved to it.
    pub fn judge(&self, name: Option<&str>, address: IpAddr) -> Result<(), EgressRefusal> {
        let within = embedded(address).map(|(_, within)| IpAddr::V4(within));
        let has = |rules: &[EgressRule], address: IpAddr| {
            rules.iter().any(|rule| rule.names_address(address))
        };
        let is_denied = [Some(address), within].into_iter().flatten().any(|it| has(&self.deny, it));
        if is_denied || self.denies_name(name) {
            return Err(EgressRefusal::Denied);
        }
        if name.is_some_and(|name| self.allow.iter().any(|rule| rule.names_host(name))) {
            return Ok(());
        }
        let judged_alone = |address: IpAddr| {
            if has(&self.allow, address) { Ok(()) } else { public(address) }
        };
        match embedded(address) {
            None => judged_alone(address),
            // An IPv4-mapped IPv6 address is another spelling of an IPv4 address, useful mainly to bypass a check. A
            // rule that allows IPv6 networks does not allow it.
            Some((Embedding::Mapped, within)) if has(&self.allow, within.into()) => Ok(()),
            Some((Embedding::Mapped, _)) => public(address),
            // Allowing the NAT64 prefix does not allow every IPv4 address behind it.
            Some((Embedding::Translated, within)) => {
                judged_alone(address).and_then(|()| judged_alone(within.into()))
            }
        }
    }

    /// Decides, without a DNS lookup, whether the host of a URL is refused.
    pub fn judge_host(&self, host: &Host<&str>) -> Result<(), EgressRefusal> {
        match host {
            Host::Ipv4(address) => self.judge(None, IpAddr::V4(*address)),
            Host::Ipv6(address) => self.judge(None, IpAddr::V6(*address)),
            Host::Domain(name) if self.denies_name(Some(name)) => Err(EgressRefusal::Denied),
            // `localhost` names always mean this machine (RFC 6761), so no lookup is needed.
            Host::Domain(name) if is_localhost(name) => self
                .judge(Some(name), Ipv4Addr::LOCALHOST.into())
                .or_else(|_| self.judge(Some(name), Ipv6Addr::LOCALHOST.into())),
            Host::Domain(_) => Ok(()),
        }
    }

    fn denies_name(&self, name: Option<&str>) -> bool {
        name.is_some_and(|name| self.deny.iter().any(|rule| rule.names_host(name)))
    }
}

impl EgressRule {
    fn names_address(&self, address: IpAddr) -> bool {
        match self {
            Self::Network(network) => network.contains(&address),
            Self::Host(_) | Self::HostsBelow(_) => false,
        }
    }

    fn names_host(&self, name: &str) -> bool {
        let name = plain_name(name);
        match self {
            Self::Network(_) => false,
            Self::Host(host) => *host == name,
            Self::HostsBelow(parent) => {
                name.strip_suffix(parent.as_str()).is_some_and(|rest| rest.ends_with('.'))
            }
        }
    }
}

fn is_localhost(name: &str) -> bool {
    let name = plain_name(name);
    name == "localhost" || name.ends_with(".localhost")
}

/// As it is written in the configuration.
impl fmt::Display for EgressRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Network(network) => network.fmt(f),
            Self::Host(host) => f.write_str(host),
            Self::HostsBelow(parent) => write!(f, "*.{parent}"),
        }
    }
}

impl FromStr for EgressRule {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const BAD: &str = "is neither a network nor a host name";
        if let Ok(network) = text.parse::<IpNet>() {
            return Ok(Self::Network(network.trunc()));
        }
        if let Ok(address) = text.parse::<IpAddr>() {
            return Ok(Self::Network(address.into()));
        }
        let (is_below, name) =
            text.strip_prefix("*.").map_or((false, text), |parent| (true, parent));
        // Parsed as the host of a URL, so that rules and URLs normalize a name in the same way.
        match Host::parse(name) {
            Ok(Host::Domain(name)) => {
                let name = plain_name(&name);
                if name.contains('*') || name.split('.').any(str::is_empty) {
                    return Err(BAD);
                }
                Ok(if is_below { Self::HostsBelow(name) } else { Self::Host(name) })
            }
            _ => Err(BAD),
        }
    }
}

fn plain_name(name: &str) -> String {
    name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase()
}

/// How an IPv6 address embeds an IPv4 address.
#[derive(Debug, Clone, Copy)]
enum Embedding {
    /// `::ffff:0:0/96`: the operating system dials the embedded IPv4 address.
    Mapped,
    /// `64:ff9b::/96`: a NAT64 translator dials the embedded IPv4 address.
    Translated,
}

fn embedded(address: IpAddr) -> Option<(Embedding, Ipv4Addr)> {
    let IpAddr::V6(address) = address else { return None };
    if let Some(within) = address.to_ipv4_mapped() {
        return Some((Embedding::Mapped, within));
    }
    let [.., a, b, c, d] = address.octets();
    NAT64.contains(&address).then(|| (Embedding::Translated, Ipv4Addr::new(a, b, c, d)))
}

/// Whether an address is a unicast address of the public internet.
fn public(address: IpAddr) -> Result<(), EgressRefusal> {
    let special = match address {
        IpAddr::V4(address) => {
            SPECIAL_V4.iter().find(|(network, _)| network.contains(&address)).map(|(_, kind)| *kind)
        }
        IpAddr::V6(address) => {
            let listed = SPECIAL_V6.iter().find(|(network, _)| network.contains(&address));
            let unassigned = (!GLOBAL_V6.contains(&address)).then_some(RESERVED);
            listed.map(|(_, kind)| *kind).or(unassigned)
        }
    };
    special.map_or(Ok(()), |kind| Err(EgressRefusal::Special(kind)))
}

const THIS_MACHINE: &str = "an address of the machine itself";
const PRIVATE: &str = "an address of a private network";
const LINK_LOCAL: &str = "a link-local address, where clouds keep their metadata";
const METADATA: &str = "an address of a cloud's metadata";
const SHARED: &str = "an address of a provider's inner network (CGNAT)";
const MULTICAST: &str = "a multicast address";
const DOCUMENTATION: &str = "an address for documentation";
const BENCHMARKS: &str = "an address for benchmarks";
const TRANSITION: &str = "an IPv6 address that holds an IPv4 one";
const RESERVED: &str = "a reserved address";

const fn v4(a: u8, b: u8, c: u8, d: u8, length: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), length)
}

const fn v6(a: u16, b: u16, c: u16, length: u8) -> Ipv6Net {
    Ipv6Net::new_assert(Ipv6Addr::new(a, b, c, 0, 0, 0, 0, 0), length)
}

/// The IANA registry of special-purpose addresses (RFC 6890 and its successors), multicast, and one metadata address
/// that a cloud provider took from public address space.
const SPECIAL_V4: [(Ipv4Net, &str); 16] = [
    (v4(0, 0, 0, 0, 8), THIS_MACHINE),
    (v4(10, 0, 0, 0, 8), PRIVATE),
    (v4(100, 64, 0, 0, 10), SHARED),
    (v4(127, 0, 0, 0, 8), THIS_MACHINE),
    (v4(168, 63, 129, 16, 32), METADATA),
    (v4(169, 254, 0, 0, 16), LINK_LOCAL),
    (v4(172, 16, 0, 0, 12), PRIVATE),
    (v4(192, 0, 0, 0, 24), RESERVED),
    (v4(192, 0, 2, 0, 24), DOCUMENTATION),
    (v4(192, 88, 99, 0, 24), RESERVED),
    (v4(192, 168, 0, 0, 16), PRIVATE),
    (v4(198, 18, 0, 0, 15), BENCHMARKS),
    (v4(198, 51, 100, 0, 24), DOCUMENTATION),
    (v4(203, 0, 113, 0, 24), DOCUMENTATION),
    (v4(224, 0, 0, 0, 4), MULTICAST),
    (v4(240, 0, 0, 0, 4), RESERVED),
];

const NAT64: Ipv6Net = v6(0x64, 0xff9b, 0, 96);

/// The range of global unicast addresses. Addresses outside are refused even if no entry below names them.
const GLOBAL_V6: Ipv6Net = v6(0x2000, 0, 0, 3);

const SPECIAL_V6: [(Ipv6Net, &str); 12] = [
    (Ipv6Net::new_assert(Ipv6Addr::UNSPECIFIED, 128), THIS_MACHINE),
    (Ipv6Net::new_assert(Ipv6Addr::LOCALHOST, 128), THIS_MACHINE),
    // IPv4-compatible and IPv4-mapped, both below ::/80.
    (v6(0, 0, 0, 80), TRANSITION),
    (NAT64, TRANSITION),
    (v6(0x64, 0xff9b, 1, 48), TRANSITION),
    // 6to4, and the IETF protocol assignments, which include Teredo.
    (v6(0x2002, 0, 0, 16), TRANSITION),
    (v6(0x2001, 0, 0, 23), RESERVED),
    (v6(0x2001, 0xdb8, 0, 32), DOCUMENTATION),
    (v6(0x3fff, 0, 0, 20), DOCUMENTATION),
    (v6(0xfc00, 0, 0, 7), PRIVATE),
    (v6(0xfe80, 0, 0, 10), LINK_LOCAL),
    (v6(0xff00, 0, 0, 8), MULTICAST),
];

#[cfg(test)]
#[path = "egress_tests.rs"]
mod tests;
