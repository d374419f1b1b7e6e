//! Prompts and resources of all servers, under one roof.

use std::collections::HashSet;
use std::sync::Arc;

use switchboard_model::{CanonicalName, Naming, Plan, ServerName};
use switchboard_protocol::{Members, push_string};
use switchboard_runtime::{Listed, Offers};
use switchboard_view::{ListEra, Named, expose_names};
use wildmatch::WildMatch;

/// Something that is listed, and whose it is.
#[derive(Debug)]
pub(crate) struct Extra {
    pub(crate) server: ServerName,
    /// The name or address that the server uses.
    pub(crate) key: String,
    /// The name that clients see.
    pub(crate) shown: Arc<str>,
    json: String,
}

/// Which list is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Prompts,
    Resources,
    Templates,
}

impl Kind {
    fn member(self) -> &'static str {
        match self {
            Self::Prompts => "prompts",
            Self::Resources => "resources",
            Self::Templates => "resourceTemplates",
        }
    }
}

/// All prompts, resources and templates.
#[derive(Debug, Default)]
pub(crate) struct Extras {
    prompts: Vec<Extra>,
    resources: Vec<Extra>,
    templates: Vec<Extra>,
    /// Servers that can complete arguments, and servers that have resources at all.
    completing: HashSet<ServerName>,
    with_resources: Vec<ServerName>,
}

impl Extras {
    pub(crate) fn new(offers: &[(ServerName, Arc<Offers>)], plan: &Plan) -> Self {
        let completing = offers.iter().filter(|(_, offers)| offers.features.completions);
        let with_resources = offers.iter().filter(|(_, offers)| offers.features.resources);
        Self {
            prompts: prompts(offers, plan),
            resources: by_address(offers, |offers| &offers.resources),
            templates: by_address(offers, |offers| &offers.templates),
            completing: completing.map(|(server, _)| server.clone()).collect(),
            with_resources: with_resources.map(|(server, _)| server.clone()).collect(),
        }
    }

    fn all(&self, kind: Kind) -> &[Extra] {
        match kind {
            Kind::Prompts => &self.prompts,
            Kind::Resources => &self.resources,
            Kind::Templates => &self.templates,
        }
    }

    /// The result of a list request.
    pub(crate) fn list(
        &self,
        kind: Kind,
        era: ListEra,
        is_visible: impl Fn(&ServerName) -> bool,
    ) -> String {
        let visible = self.all(kind).iter().filter(|extra| is_visible(&extra.server));
        let items: Vec<&str> = visible.map(|extra| extra.json.as_str()).collect();
        let items = items.join(",");
        match era {
            ListEra::Legacy => format!("{{\"{}\":[{items}]}}", kind.member()),
            ListEra::Modern => format!(
                "{{\"resultType\":\"complete\",\"{}\":[{items}],\"ttlMs\":0,\"cacheScope\":\"private\"}}",
                kind.member()
            ),
        }
    }

    /// Tells two lists apart.
    pub(crate) fn digest(&self, kinds: &[Kind], is_visible: impl Fn(&ServerName) -> bool) -> u64 {
        let mut hasher = blake3::Hasher::new();
        for extra in kinds.iter().flat_map(|kind| self.all(*kind)) {
            if is_visible(&extra.server) {
                hasher.update(extra.json.as_bytes());
            }
        }
        let bytes = hasher.finalize();
        bytes.as_bytes().first_chunk().copied().map_or(0, u64::from_le_bytes)
    }

    /// The prompt that clients see under this name.
    pub(crate) fn prompt(
        &self,
        name: &str,
        is_visible: impl Fn(&ServerName) -> bool,
    ) -> Option<&Extra> {
        self.prompts.iter().find(|extra| *extra.shown == *name && is_visible(&extra.server))
    }

    /// The server that has a resource: listed, or of a template's shape, or the only one that has any.
    pub(crate) fn server_of(
        &self,
        uri: &str,
        is_visible: impl Fn(&ServerName) -> bool,
    ) -> Option<&ServerName> {
        let visible = |extra: &&Extra| is_visible(&extra.server);
        let listed = self.resources.iter().filter(visible).find(|extra| extra.key == uri);
        let shaped = || {
            let mut templates = self.templates.iter().filter(visible);
            templates.find(|extra| extra.key == uri || has_shape(&extra.key, uri))
        };
        let only = || {
            let mut servers = self.with_resources.iter().filter(|server| is_visible(server));
            servers.next().filter(|_| servers.next().is_none())
        };
        listed.or_else(shaped).map(|extra| &extra.server).or_else(only)
    }

    pub(crate) fn completes(&self, server: &ServerName) -> bool {
        self.completing.contains(server)
    }
}

/// Whether an address could have been made from a template: every `{...}` stands for something.
fn has_shape(template: &str, uri: &str) -> bool {
    let mut pattern = String::new();
    let mut depth = 0usize;
    for c in template.chars() {
        match c {
            '{' => {
                depth += 1;
                pattern.push('*');
            }
            '}' => depth = depth.saturating_sub(1),
            c if depth == 0 => pattern.push(c),
            _ => {}
        }
    }
    WildMatch::new(&pattern).matches(uri)
}

fn prompts(offers: &[(ServerName, Arc<Offers>)], plan: &Plan) -> Vec<Extra> {
    let is_passed_on = |server: &ServerName, name: &str| {
        let server = plan.servers.iter().find(|other| other.spec.name == *server);
        server.and_then(|server| server.prompts.as_ref()).is_none_or(|patterns| {
            patterns.iter().any(|pattern| WildMatch::new(pattern).matches(name))
        })
    };
    let listed: Vec<(CanonicalName, &Listed)> = offers
        .iter()
        .flat_map(|(server, offers)| offers.prompts.iter().map(move |prompt| (server, prompt)))
        .filter(|(server, prompt)| is_passed_on(server, &prompt.key))
        .map(|(server, prompt)| (CanonicalName::new(server, &prompt.key), prompt))
        .collect();
    let named: Vec<_> =
        listed.iter().map(|(name, _)| Named { name, expose_as: None }).collect();
    let names = expose_names(&named, plan.gateway.naming);
    listed
        .iter()
        .zip(names)
        .filter_map(|((name, prompt), shown)| {
            let shown = shown?;
            let json = match plan.gateway.naming {
                Naming::Bare => prompt.json.as_str().to_owned(),
                Naming::Prefixed => renamed(prompt.json.as_str(), &shown),
            };
            Some(Extra { server: name.server().clone(), key: prompt.key.clone(), shown, json })
        })
        .collect()
}

/// Addresses are global: the first server that lists one has it.
fn by_address(
    offers: &[(ServerName, Arc<Offers>)],
    list: impl Fn(&Offers) -> &Vec<Listed>,
) -> Vec<Extra> {
    let mut taken = HashSet::new();
    let mut extras = Vec::new();
    for (server, offers) in offers {
        for listed in list(offers) {
            if !taken.insert(listed.key.clone()) {
                tracing::warn!(%server, uri = listed.key, "another server has this resource already; it is hidden");
                continue;
            }
            extras.push(Extra {
                server: server.clone(),
                key: listed.key.clone(),
                shown: listed.key.as_str().into(),
                json: listed.json.as_str().to_owned(),
            });
        }
    }
    extras
}

/// The object under another name, everything else as it was.
fn renamed(object: &str, name: &str) -> String {
    let Ok(members) = Members::read(object) else { return object.to_owned() };
    let mut json = String::with_capacity(object.len() + 16);
    json.push_str("{\"name\":");
    push_string(&mut json, name);
    for (key, value) in members.iter().filter(|(key, _)| *key != "name") {
        json.push(',');
        push_string(&mut json, key);
        json.push(':');
        json.push_str(value);
    }
    json.push('}');
    json
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_knows_its_addresses() {
        assert!(has_shape("test://template/{id}/data", "test://template/7/data"));
        assert!(!has_shape("test://template/{id}/data", "test://other/7/data"));
        assert!(has_shape("file:///{+path}", "file:///a/b"));
    }

    #[test]
    fn only_the_name_changes() {
        let json = renamed(r#"{"title":"T","name":"a","x":[1, 2]}"#, "s__a");
        assert_eq!(json, r#"{"name":"s__a","title":"T","x":[1, 2]}"#);
    }
}
