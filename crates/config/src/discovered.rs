//! Adds discovered servers to a plan.
//!
//! The file wins over sources, and earlier sources over later ones. The policy of each source decides what is added and
//! how its tools are admitted. Servers are added at the end, so that a source never changes the order of the file.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use http::{HeaderName, HeaderValue};
use switchboard_model::{
    AttachedServer, DEFAULT_CONNECT_TIMEOUT, DiscoveredFrom, EgressPolicy, EraChoice, FoundServer,
    LeftOutServer, NO_TOOLSET, Plan, RequiredOrigin, ServerName, ServerPlan, ServerSpec, Sharing,
    SourcePolicy, SourceServers, ToolsetPlan,
};
use wildmatch::WildMatch;

/// Maximum length of the readable part of a name that is made from an invalid one.
const LONGEST_STEM: usize = 48;
/// Length of the digest after it.
const DIGEST: usize = 8;
/// Maximum number of servers that are reported one by one for a source with too many of them.
const MOST_REPORTED: usize = 100;

/// A plan with discovered servers.
#[derive(Debug, Clone, PartialEq)]
pub struct MergedServers {
    pub plan: Plan,
    /// What the sources named and the plan does not have.
    pub left_out: Vec<LeftOutServer>,
}

/// Adds what the sources found to the plan of the configuration. Sources that the plan does not have are ignored: a
/// reload may just have removed them.
pub fn merge_discovered(plan: &Plan, found: &[SourceServers]) -> MergedServers {
    let mut merging = Merging {
        taken: plan.servers.iter().map(|server| (server.spec.name.clone(), None)).collect(),
        egress: Arc::new(plan.security.egress.clone()),
        added: Vec::new(),
        left_out: Vec::new(),
    };
    for (source, policy) in plan.discovery.policies() {
        for servers in found.iter().filter(|servers| servers.source == source) {
            merging.add(servers, policy);
        }
    }
    let Merging { added, left_out, .. } = merging;
    let mut plan = plan.clone();
    let known: HashSet<_> = plan.toolsets.iter().map(|set| set.name.clone()).collect();
    let new = added.iter().map(|server| &server.spec.name);
    let new = new.filter(|name| !known.contains(name.as_str())).map(own_toolset);
    plan.toolsets.extend(new);
    plan.servers.extend(added);
    MergedServers { plan, left_out }
}

struct Merging {
    /// The names in use, with the source of each; `None` for the file.
    taken: HashMap<ServerName, Option<String>>,
    egress: Arc<EgressPolicy>,
    added: Vec<ServerPlan>,
    left_out: Vec<LeftOutServer>,
}

impl Merging {
    fn add(&mut self, found: &SourceServers, policy: &SourcePolicy) {
        let most = usize::try_from(policy.max_servers).unwrap_or(usize::MAX);
        let (mut count, mut beyond) = (0, 0);
        for server in &found.servers {
            if let Err(reason) = admitted(server, policy) {
                self.leave_out(&found.source, server, reason);
            } else if count < most {
                count += usize::from(self.add_server(found, server, policy));
            } else {
                beyond += 1;
                if beyond <= MOST_REPORTED {
                    let reason = format!("the source adds no more than `max_servers: {most}`");
                    self.leave_out(&found.source, server, reason);
                }
            }
        }
        if beyond > MOST_REPORTED {
            let (source, more) = (found.source.clone(), beyond - MOST_REPORTED);
            let reason = format!("the source adds no more than `max_servers: {most}`");
            self.left_out.push(LeftOutServer { source, name: format!("({more} more)"), reason });
        }
    }

    /// Returns whether the server was added.
    fn add_server(
        &mut self,
        found: &SourceServers,
        server: &FoundServer,
        policy: &SourcePolicy,
    ) -> bool {
        let name = server_name(&policy.prefix, &server.name);
        let refusal = match self.taken.get(&name) {
            Some(None) => Some(format!("the configuration file has a server '{name}'")),
            Some(Some(source)) if *source == found.source => {
                Some(format!("the source names '{name}' more than once; the first one counts"))
            }
            Some(Some(source)) => {
                Some(format!("the source '{source}' names '{name}' too, and is first"))
            }
            None => self.refused_address(found, server),
        };
        if let Some(reason) = refusal {
            self.leave_out(&found.source, server, reason);
            return false;
        }
        self.taken.insert(name.clone(), Some(found.source.clone()));
        self.added.push(self.planned(name, found, server, policy));
        true
    }

    fn planned(
        &self,
        name: ServerName,
        found: &SourceServers,
        server: &FoundServer,
        policy: &SourcePolicy,
    ) -> ServerPlan {
        let reached = AttachedServer {
            name: name.clone(),
            url: server.url.clone(),
            transport: server.transport,
            headers: server.headers.clone(),
            bearer: None,
        };
        let endpoint = reached.endpoint();
        ServerPlan {
            spec: ServerSpec {
                name,
                place: endpoint.to_string(),
                endpoint,
                // Every server answers with its own address; only what may be a key in it is redacted.
                referenced: reached.secret_parts().split_off(1),
                caller_headers: Vec::new(),
                era: EraChoice::Auto,
                connect_timeout: policy.connect_timeout.unwrap_or(DEFAULT_CONNECT_TIMEOUT),
                sharing: Sharing::Shared,
                egress: (!found.is_file).then(|| self.egress.clone()),
            },
            mode: policy.mode,
            default_limits: Some(policy.default_limits),
            tool_allowlist: policy.tool_allowlist.clone(),
            tool_denylist: policy.tool_denylist.clone(),
            required: false,
            required_origin: RequiredOrigin::Nowhere,
            toolset: None,
            prompts: None,
            poll_interval: None,
            validate_arguments: true,
            content_check: policy.content_check,
            record: policy.record,
            discovered: Some(DiscoveredFrom {
                source: found.source.clone(),
                original_name: server.name.clone(),
            }),
        }
    }

    /// Why the address may not be dialled, as far as that is known without a lookup.
    fn refused_address(&self, found: &SourceServers, server: &FoundServer) -> Option<String> {
        let Some(host) = server.url.host() else { return Some("its address names no host".into()) };
        if found.is_file {
            return None;
        }
        let refusal = self.egress.judge_host(&host).err()?;
        Some(format!("the egress check refuses {host}: {refusal}; {}", refusal.hint()))
    }

    fn leave_out(&mut self, source: &str, server: &FoundServer, reason: String) {
        let (source, name) = (source.to_owned(), server.name.clone());
        self.left_out.push(LeftOutServer { source, name, reason });
    }
}

/// Decides by the policy of the source and by the entry alone.
fn admitted(server: &FoundServer, policy: &SourcePolicy) -> Result<(), String> {
    let matches = |pattern: &&String| WildMatch::new(pattern).matches(&server.name);
    if let Some(pattern) = policy.server_denylist.iter().find(matches) {
        return Err(format!("`servers.deny` of the source has `{pattern}`"));
    }
    if policy
        .server_allowlist
        .as_ref()
        .is_some_and(|allowed| !allowed.iter().any(|it| matches(&it)))
    {
        return Err("`servers.allow` of the source does not have it".into());
    }
    if !matches!(server.url.scheme(), "http" | "https") {
        return Err("its address is not an http or https address".into());
    }
    for (name, value) in &server.headers {
        if HeaderName::from_bytes(name.as_bytes()).is_err() {
            return Err(format!("the header {name:?} is not a valid header name"));
        }
        if HeaderValue::from_str(value.expose()).is_err() {
            return Err(format!("the header `{name}` has a value that a header cannot carry"));
        }
    }
    Ok(())
}

/// The name of a discovered server. One that is valid stays as it is. Any other is made readable and gets a digest of the
/// original, so that it is the same in every run and different names stay different.
fn server_name(prefix: &str, original: &str) -> ServerName {
    let whole = format!("{prefix}{original}");
    let is_reserved = |name: &str| ServerName::new(name).is_local() || name == NO_TOOLSET;
    if ServerName::is_valid(&whole) && !is_reserved(&whole) {
        return ServerName::new(whole);
    }
    let mut stem = String::new();
    for character in whole.chars() {
        if stem.len() >= LONGEST_STEM {
            break;
        }
        match character {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '_' => stem.push(character),
            _ if stem.is_empty() || stem.ends_with('-') => {}
            _ => stem.push('-'),
        }
    }
    let stem = stem.trim_matches(['-', '_']);
    let stem = if stem.is_empty() { "server" } else { stem };
    let digest = blake3::hash(whole.as_bytes()).to_hex();
    ServerName::new(format!("{stem}-{}", digest.get(..DIGEST).unwrap_or_default()))
}

/// Every server is a toolset of its own, as those of the file are.
fn own_toolset(server: &ServerName) -> ToolsetPlan {
    ToolsetPlan {
        name: server.to_string(),
        description: format!("All tools of {server}"),
        when_to_use: None,
        servers: vec![server.clone()],
        tools: Vec::new(),
    }
}

#[cfg(test)]
#[path = "discovered_tests.rs"]
mod tests;
