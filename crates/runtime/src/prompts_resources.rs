//! Prompts, resources and resource templates of all servers.
//!
//! Several servers may list one of the same name or address. All are kept, and the view decides which one it has:
//! hidden entries never shadow visible ones.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use switchboard_mcp_client::Listed;
use switchboard_model::{CanonicalName, Naming, Plan, ServerName};
use switchboard_protocol::{Members, push_string};
use switchboard_view::{ListEra, Named, expose_names};
use wildmatch::{WildMatch, WildMatchPattern};

use crate::offers::Offers;
use crate::server_instructions::ServerInstructions;

/// Maximum number of characters of a name in a warning.
const LONGEST_TOLD: usize = 200;

/// A prompt, resource or template, with its server.
#[derive(Debug)]
pub struct ListedItem {
    pub server: ServerName,
    /// The name or URI on the server.
    pub key: String,
    /// The name that clients see.
    pub shown: Arc<str>,
    /// The index of the next entry with the same name or URI that takes precedence over this one; that entry may be
    /// shadowed in turn.
    gives_way_to: Option<usize>,
    json: String,
}

/// The kind of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListKind {
    Prompts,
    Resources,
    Templates,
}

impl ListKind {
    fn word(self) -> &'static str {
        match self {
            Self::Prompts => "prompt",
            Self::Resources => "resource",
            Self::Templates => "resource template",
        }
    }

    fn member(self) -> &'static str {
        match self {
            Self::Prompts => "prompts",
            Self::Resources => "resources",
            Self::Templates => "resourceTemplates",
        }
    }
}

/// All prompts, resources and templates of one snapshot.
#[derive(Debug, Default)]
pub struct PromptsResources {
    prompts: Vec<ListedItem>,
    resources: Vec<ListedItem>,
    templates: Vec<ListedItem>,
    /// Servers that can complete arguments, and servers that have resources at all.
    completing: HashSet<ServerName>,
    with_resources: Vec<ServerName>,
    instructions: Vec<(ServerName, ServerInstructions)>,
}

impl PromptsResources {
    pub fn new(offers: &[(ServerName, Arc<Offers>)], plan: &Plan) -> Self {
        let completing = offers.iter().filter(|(_, offers)| offers.features.completions);
        let with_resources = offers.iter().filter(|(_, offers)| offers.features.resources);
        let instructions = offers.iter().filter_map(|(server, offers)| {
            let text = offers.features.instructions.as_deref()?;
            Some((server.clone(), ServerInstructions::new(text)?))
        });
        Self {
            instructions: instructions.collect(),
            prompts: prompts(offers, plan),
            resources: by_address(offers, |offers| &offers.resources),
            templates: by_address(offers, |offers| &offers.templates),
            completing: completing.map(|(server, _)| server.clone()).collect(),
            with_resources: with_resources.map(|(server, _)| server.clone()).collect(),
        }
    }

    /// Warnings about entries that are shadowed for every client that sees both servers. Hidden entries never shadow
    /// visible ones.
    pub fn warnings(&self, is_known: impl Fn(&ServerName) -> bool) -> Vec<String> {
        let kinds = [ListKind::Prompts, ListKind::Resources, ListKind::Templates];
        kinds.into_iter().flat_map(|kind| self.hidden(kind, &is_known)).collect()
    }

    fn hidden(&self, kind: ListKind, is_known: &impl Fn(&ServerName) -> bool) -> Vec<String> {
        let all = self.all(kind);
        let others = |item: &&ListedItem| all.get(item.gives_way_to?);
        let winner = |item| {
            let before = std::iter::successors(others(&item), others);
            before.filter(|other| is_known(&other.server)).last()
        };
        let known = all.iter().filter(|item| is_known(&item.server));
        let hidden = known.filter_map(|item| Some((item, winner(item)?)));
        let of_others = hidden.filter(|(item, winner)| item.server != winner.server);
        of_others
            .map(|(item, winner)| {
                // A server's names may be long and contain line breaks.
                let key: String = item.key.chars().take(LONGEST_TOLD).collect();
                let (what, server, by) = (kind.word(), &item.server, &winner.server);
                format!(
                    "{what} {key:?} of MCP server '{server}' is hidden: '{by}' has one of that name too"
                )
            })
            .collect()
    }

    fn all(&self, kind: ListKind) -> &[ListedItem] {
        match kind {
            ListKind::Prompts => &self.prompts,
            ListKind::Resources => &self.resources,
            ListKind::Templates => &self.templates,
        }
    }

    /// The visible entries. Of several with the same name or URI, one is visible.
    fn seen(
        &self,
        kind: ListKind,
        is_visible: impl Fn(&ServerName) -> bool,
    ) -> impl Iterator<Item = &ListedItem> {
        let all = self.all(kind);
        all.iter().filter(move |item| {
            let others = |item: &&ListedItem| all.get(item.gives_way_to?);
            let mut before = std::iter::successors(others(item), others);
            is_visible(&item.server) && !before.any(|other| is_visible(&other.server))
        })
    }

    /// The result of a list request.
    pub fn list(
        &self,
        kind: ListKind,
        era: ListEra,
        is_visible: impl Fn(&ServerName) -> bool,
    ) -> String {
        let items: Vec<&str> = self.seen(kind, is_visible).map(|item| &*item.json).collect();
        let items = items.join(",");
        match era {
            ListEra::Session => format!("{{\"{}\":[{items}]}}", kind.member()),
            ListEra::Stateless => format!(
                "{{\"resultType\":\"complete\",\"{}\":[{items}],\"ttlMs\":0,\"cacheScope\":\"private\"}}",
                kind.member()
            ),
        }
    }

    /// A digest of the lists: equal lists have equal digests.
    pub fn digest(&self, kinds: &[ListKind], is_visible: impl Fn(&ServerName) -> bool) -> u64 {
        let mut hasher = blake3::Hasher::new();
        for kind in kinds {
            for item in self.seen(*kind, &is_visible) {
                hasher.update(item.json.as_bytes());
            }
        }
        let bytes = hasher.finalize();
        bytes.as_bytes().first_chunk().copied().map_or(0, u64::from_le_bytes)
    }

    /// The prompt that clients see under this name.
    pub fn prompt(
        &self,
        name: &str,
        is_visible: impl Fn(&ServerName) -> bool,
    ) -> Option<&ListedItem> {
        // With bare names the last one wins, as with tools.
        self.prompts.iter().rfind(|item| *item.shown == *name && is_visible(&item.server))
    }

    /// The server of a resource: the visible one that lists it, or has a template that matches it, or is the only
    /// visible one with resources. Returns `None` instead of that last choice if another known server lists or matches
    /// the URI.
    pub fn server_of(
        &self,
        uri: &str,
        is_visible: impl Fn(&ServerName) -> bool,
        is_known: impl Fn(&ServerName) -> bool,
    ) -> Option<&ServerName> {
        let listed = self.resources.iter().filter(|item| item.key == uri);
        let templates = self.templates.iter();
        let shaped = templates.filter(|item| item.key == uri || has_shape(&item.key, uri));
        let mut is_somebodys = false;
        for ListedItem { server, .. } in listed.chain(shaped) {
            if is_visible(server) {
                return Some(server);
            }
            is_somebodys |= is_known(server);
        }
        let mut servers = self.with_resources.iter().filter(|server| is_visible(server));
        servers.next().filter(|_| !is_somebodys && servers.next().is_none())
    }

    pub fn completes(&self, server: &ServerName) -> bool {
        self.completing.contains(server)
    }

    /// The instructions of the servers, each quoted and cut, in the order of the configuration.
    pub fn instructions(&self) -> &[(ServerName, ServerInstructions)] {
        &self.instructions
    }
}

/// Whether a URI matches a template, with every `{...}` as a wildcard.
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
    // A `?` begins the query and is not a wildcard.
    WildMatchPattern::<'*', '\0'>::new(&pattern).matches(uri)
}

fn prompts(offers: &[(ServerName, Arc<Offers>)], plan: &Plan) -> Vec<ListedItem> {
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
    let named: Vec<_> = listed.iter().map(|(name, _)| Named { name, expose_as: None }).collect();
    let names = expose_names(&named, plan.gateway.naming);
    let mut prompts: Vec<ListedItem> = listed
        .iter()
        .zip(names)
        .map(|((name, prompt), shown)| {
            let json = match plan.gateway.naming {
                Naming::Bare => prompt.json.as_str().to_owned(),
                Naming::Prefixed => renamed(prompt.json.as_str(), &shown),
            };
            let (server, key) = (name.server().clone(), prompt.key.clone());
            ListedItem { server, key, shown, gives_way_to: None, json }
        })
        .collect();
    let mut last: HashMap<Arc<str>, usize> = HashMap::new();
    for (at, prompt) in prompts.iter_mut().enumerate().rev() {
        prompt.gives_way_to = last.insert(prompt.shown.clone(), at);
    }
    prompts
}

/// URIs are global: of several servers that list one, the first visible server serves it.
fn by_address(
    offers: &[(ServerName, Arc<Offers>)],
    list: impl Fn(&Offers) -> &Vec<Listed>,
) -> Vec<ListedItem> {
    let mut last: HashMap<&str, usize> = HashMap::new();
    let mut items: Vec<ListedItem> = Vec::new();
    for (server, offers) in offers {
        for listed in list(offers) {
            let gives_way_to = last.insert(&listed.key, items.len());
            items.push(ListedItem {
                server: server.clone(),
                key: listed.key.clone(),
                shown: listed.key.as_str().into(),
                gives_way_to,
                json: listed.json.as_str().to_owned(),
            });
        }
    }
    items
}

/// Replaces the name in a JSON object and keeps everything else.
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
    use pretty_assertions::assert_eq;
    use switchboard_model::JsonText;

    use super::*;

    #[test]
    fn a_template_knows_its_addresses() {
        assert!(has_shape("test://template/{id}/data", "test://template/7/data"));
        assert!(!has_shape("test://template/{id}/data", "test://other/7/data"));
        assert!(has_shape("file:///{+path}", "file:///a/b"));
        assert!(has_shape("db://rows?id={id}", "db://rows?id=7"));
        assert!(!has_shape("db://rows?id={id}", "db://rows/id=7"));
    }

    fn offers(prompts: &[&str], resources: &[&str]) -> Arc<Offers> {
        let listed = |keys: &[&str]| {
            let keys = keys.iter();
            keys.map(|key| Listed {
                key: (*key).to_owned(),
                json: JsonText::from(&serde_json::json!({"name": key, "uri": key})),
            })
            .collect::<Vec<_>>()
        };
        let (prompts, resources) = (listed(prompts), listed(resources));
        let mut offers = Offers { prompts, resources, ..Offers::default() };
        offers.templates.clone_from(&offers.resources);
        offers.features.resources = true;
        Arc::new(offers)
    }

    /// Three servers that share one name and one URI.
    fn three(naming: Naming) -> PromptsResources {
        let servers = [
            ("one", offers(&["pay", "own"], &["a://pay", "a://own"])),
            ("two", offers(&["pay"], &["a://pay", "a://pay"])),
            ("three", offers(&["pay"], &["a://pay", "a://more"])),
        ];
        let servers = servers.map(|(name, offers)| (ServerName::new(name), offers));
        let mut plan = Plan::default();
        plan.gateway.naming = naming;
        PromptsResources::new(&servers, &plan)
    }

    #[test]
    fn what_somebody_sees_gives_way_only_to_what_he_sees() {
        let bare = three(Naming::Bare);
        for (seen, prompts, pay, resources, address) in [
            (&["one", "two", "three"][..], &["own", "pay"][..], "three", 3, "one"),
            (&["one", "two"], &["own", "pay"], "two", 2, "one"),
            (&["two", "three"], &["pay"], "three", 2, "two"),
            (&["two"], &["pay"], "two", 1, "two"),
            (&["one"], &["pay", "own"], "one", 2, "one"),
            (&["one", "three"], &["own", "pay"], "three", 3, "one"),
        ] {
            let sees = |server: &ServerName| seen.contains(&server.as_str());
            let shown: Vec<_> = bare.seen(ListKind::Prompts, sees).map(|e| &*e.shown).collect();
            assert_eq!(shown, prompts, "{seen:?}");
            assert_eq!(bare.prompt("pay", sees).unwrap().server.as_str(), pay, "{seen:?}");
            for kind in [ListKind::Resources, ListKind::Templates] {
                let shown: Vec<_> = bare.seen(kind, sees).map(|e| &*e.key).collect();
                assert_eq!(shown.len(), resources, "{seen:?} {shown:?}");
                let owners = bare.seen(kind, sees).filter(|item| item.key == "a://pay");
                let owners: Vec<_> = owners.map(|item| item.server.as_str()).collect();
                assert_eq!(owners, [address], "{seen:?}");
            }
            assert_eq!(
                bare.server_of("a://pay", sees, sees).unwrap().as_str(),
                address,
                "{seen:?}"
            );
        }
        assert_eq!(bare.seen(ListKind::Resources, |_| false).count(), 0);
    }

    #[test]
    fn an_address_that_nobody_lists_goes_to_the_only_server_unless_it_is_somebody_elses() {
        let items = three(Naming::Bare);
        let only_two = |server: &ServerName| server.as_str() == "two";
        let owner = |uri| items.server_of(uri, only_two, |_| true).map(ServerName::as_str);
        assert_eq!(owner("a://pay"), Some("two"));
        assert_eq!(owner("a://unlisted"), Some("two"));
        assert_eq!(owner("a://own"), None, "it is one's, which is not seen");
        // A hidden server does not affect visible ones.
        let hidden = items.server_of("a://own", only_two, only_two);
        assert_eq!(hidden.map(ServerName::as_str), Some("two"));
        assert_eq!(items.server_of("a://unlisted", |_| true, |_| true), None);
    }

    #[test]
    fn who_is_hidden_is_told_with_who_is_seen_instead() {
        let hidden = |kind: &str, key: &str, server: &str, by: &str| {
            format!(
                "{kind} {key:?} of MCP server '{server}' is hidden: '{by}' has one of that name too"
            )
        };
        // The last prompt and the first URI are visible.
        let expected = [
            hidden("prompt", "pay", "one", "three"),
            hidden("prompt", "pay", "two", "three"),
            hidden("resource", "a://pay", "two", "one"),
            hidden("resource", "a://pay", "two", "one"),
            hidden("resource", "a://pay", "three", "one"),
        ];
        assert_eq!(three(Naming::Bare).warnings(|_| true)[..5], expected);
        let without_one = three(Naming::Bare).warnings(|server| server.as_str() != "one");
        assert_eq!(without_one[1], hidden("resource", "a://pay", "three", "two"));
    }

    #[test]
    fn prefixed_prompts_stay_apart() {
        let prefixed = three(Naming::Prefixed);
        let shown: Vec<_> = prefixed.seen(ListKind::Prompts, |_| true).map(|e| &*e.shown).collect();
        assert_eq!(shown, ["one__pay", "one__own", "two__pay", "three__pay"]);
    }

    #[test]
    fn two_lists_are_the_same_where_what_differs_is_not_seen() {
        let bare = three(Naming::Bare);
        let digest = |seen: &[&str]| {
            bare.digest(&[ListKind::Prompts], |server| seen.contains(&server.as_str()))
        };
        assert_eq!(digest(&["two"]), digest(&["two", "three"]), "both list one `pay`");
        assert_ne!(digest(&["one"]), digest(&["two"]));
    }

    #[test]
    fn only_the_name_changes() {
        let json = renamed(r#"{"title":"T","name":"a","x":[1, 2]}"#, "s__a");
        assert_eq!(json, r#"{"name":"s__a","title":"T","x":[1, 2]}"#);
    }
}
