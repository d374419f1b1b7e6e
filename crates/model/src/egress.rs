//! Where the process may connect on behalf of somebody who cannot write its configuration file (spec section 11).
//!
//! Without a word of the configuration that is the public internet and nothing else: an address that means this
//! machine, the network that it stands in, or something other than one distinct place is refused. The decision is
//! about the address that is dialled, so it has to be made after every lookup of a name, and only there.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use url::Host;

/// The `security.egress` section: exceptions to what is refused and allowed by itself. `deny` wins.
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
    /// A name, whatever addresses it has; in lower case, without a dot at its end.
    Host(String),
    /// Every name below this one, written `*.example.com`.
    HostsBelow(String),
}

/// Why an address is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EgressRefusal {
    /// `security.egress.deny` names it.
    Denied,
    /// It is not a place in the public internet, but this.
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
    /// The way out.
    pub fn hint(self) -> &'static str {
        match self {
            Self::Denied => "whoever runs this board may change `security.egress.deny`",
            Self::Special(_) => "whoever runs this board may add it to `security.egress.allow`",
        }
    }
}

impl EgressPolicy {
    /// Whether an address may be dialled; `name` is what was looked up to find it.
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
            // Another spelling of an IPv4 address. Nobody needs it, except to get past a check, and who allows IPv6
            // networks has not allowed it.
            Some((Embedding::Mapped, within)) if has(&self.allow, within.into()) => Ok(()),
            Some((Embedding::Mapped, _)) => public(address),
            // Who allows the translator has not allowed everything behind it.
            Some((Embedding::Translated, within)) => {
                judged_alone(address).and_then(|()| judged_alone(within.into()))
            }
        }
    }

    /// Whether the host of a URL is refused before any name is looked up.
    pub fn judge_host(&self, host: &Host<&str>) -> Result<(), EgressRefusal> {
        match host {
            Host::Ipv4(address) => self.judge(None, IpAddr::V4(*address)),
            Host::Ipv6(address) => self.judge(None, IpAddr::V6(*address)),
            Host::Domain(name) if self.denies_name(Some(name)) => Err(EgressRefusal::Denied),
            // These names are this machine whatever a lookup says (RFC 6761), so nobody has to wait for one.
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
        // The same reading as that of a URL, so that both spell a name in the same way.
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

/// How an IPv6 address holds an IPv4 one.
#[derive(Debug, Clone, Copy)]
enum Embedding {
    /// `::ffff:0:0/96`: the operating system dials the IPv4 address.
    Mapped,
    /// `64:ff9b::/96`: a translator on the way does.
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

/// Whether an address is one distinct place in the public internet.
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

/// The IANA registry of special-purpose addresses (RFC 6890 and its successors), multicast, and one address that a
/// cloud took from the public ones.
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

/// All that has been given to anybody. What is outside is refused whether or not it has a name below.
const GLOBAL_V6: Ipv6Net = v6(0x2000, 0, 0, 3);

const SPECIAL_V6: [(Ipv6Net, &str); 12] = [
    (Ipv6Net::new_assert(Ipv6Addr::UNSPECIFIED, 128), THIS_MACHINE),
    (Ipv6Net::new_assert(Ipv6Addr::LOCALHOST, 128), THIS_MACHINE),
    // IPv4-compatible and IPv4-mapped, both below ::/80.
    (v6(0, 0, 0, 80), TRANSITION),
    (NAT64, TRANSITION),
    (v6(0x64, 0xff9b, 1, 48), TRANSITION),
    // 6to4; and the protocols of the IETF, with Teredo among them.
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
