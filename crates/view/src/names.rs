//! The exposed names of tools.
//!
//! Exposed names are looked up and never parsed. Names are unique (except with `naming: bare`), do not depend on the
//! order of lists, and are valid for every provider.

use std::collections::HashMap;
use std::sync::Arc;

use switchboard_model::{CanonicalName, META_TOOLS, Naming};

/// Maximum length of a name. Every provider accepts `^[A-Za-z_][A-Za-z0-9_-]{0,63}$`.
const MAX_LENGTH: usize = 64;
/// Length of the hash that makes shortened or clashing names unique.
const HASH_LENGTH: usize = 8;

/// A tool and its `expose_as`, if the configuration has one.
#[derive(Debug, Clone, Copy)]
pub struct Named<'a> {
    pub name: &'a CanonicalName,
    pub expose_as: Option<&'a str>,
}

/// The exposed name of each tool, in the order of `tools`. With [`Naming::Bare`], several tools can have the same name;
/// a view shows the last one that it can reach.
pub fn expose_names(tools: &[Named<'_>], naming: Naming) -> Vec<Arc<str>> {
    match naming {
        Naming::Prefixed => unique(tools),
        Naming::Bare => bare(tools),
    }
}

/// Exposed names for additional tools (those of a session's attached servers); names that are taken stay with their
/// tools.
pub(crate) fn expose_among(
    tools: &[CanonicalName],
    is_taken: impl Fn(&str) -> bool,
) -> Vec<Arc<str>> {
    let named: Vec<_> = tools.iter().map(|name| Named { name, expose_as: None }).collect();
    let mut names = unique(&named);
    for (name, tool) in names.iter_mut().zip(tools) {
        let mut round = 0;
        while is_taken(name) && round < 4 {
            round += 1;
            *name = hashed(&sanitized(&format!("{}__{}", tool.server(), tool.tool())), tool, round)
                .into();
        }
    }
    names
}

/// Replaces every character that some provider rejects, and cuts the text to the maximum length.
pub fn sanitized(text: &str) -> String {
    let mut name: String =
        text.chars().map(|c| if is_plain(c) { c } else { '_' }).take(MAX_LENGTH).collect();
    if !name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
        name.insert(0, '_');
        name.truncate(MAX_LENGTH);
    }
    name
}

fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '-'
}

/// The preferred name of a tool, and whether it can be used without a hash.
fn wish(tool: &Named<'_>) -> (String, bool) {
    if let Some(name) = tool.expose_as {
        return (name.to_owned(), true);
    }
    let whole = format!("{}__{}", tool.name.server(), tool.name.tool());
    let name = sanitized(&whole);
    // Server `a` with tool `b__c` and server `a__b` with tool `c` would get the same name. A name must not change its
    // meaning when one of the two goes away, so a server name that contains `__` or ends with `_` always gets a hash.
    let server = tool.name.server().as_str();
    let is_ambiguous = server.contains("__") || server.ends_with('_');
    let is_exact = name == whole && !is_ambiguous;
    (name, is_exact)
}

fn unique(tools: &[Named<'_>]) -> Vec<Arc<str>> {
    let wishes: Vec<_> = tools.iter().map(wish).collect();
    // A changed name always has a hash, so it does not depend on the presence of a tool with the same preferred name.
    let mut names: Vec<String> = tools
        .iter()
        .zip(&wishes)
        .map(|(tool, (wish, is_exact))| {
            let is_reserved = META_TOOLS.contains(&wish.as_str());
            if *is_exact && !is_reserved { wish.clone() } else { hashed(wish, tool.name, 0) }
        })
        .collect();
    // Names that still clash, such as two equal `expose_as`, all get a hash, so the order of tools does not matter.
    for round in 1..=4 {
        let mut seen: HashMap<&str, usize> = HashMap::new();
        for name in &names {
            *seen.entry(name).or_default() += 1;
        }
        let clashing: Vec<usize> = (0..names.len())
            .filter(|at| names.get(*at).is_some_and(|name| seen.get(name.as_str()) > Some(&1)))
            .collect();
        if clashing.is_empty() {
            break;
        }
        for at in clashing {
            if let (Some(name), Some(tool), Some((wish, _))) =
                (names.get_mut(at), tools.get(at), wishes.get(at))
            {
                *name = hashed(wish, tool.name, round);
            }
        }
    }
    names.into_iter().map(Arc::from).collect()
}

fn hashed(wish: &str, name: &CanonicalName, round: usize) -> String {
    let hash = blake3::hash(name.as_str().as_bytes()).to_hex();
    let hash: String = hash.chars().skip(round * HASH_LENGTH).take(HASH_LENGTH).collect();
    let kept: String = wish.chars().take(MAX_LENGTH - HASH_LENGTH - 1).collect();
    format!("{kept}_{hash}")
}

/// The servers' own tool names (`naming: bare`), so that the gateway looks like the server itself.
fn bare(tools: &[Named<'_>]) -> Vec<Arc<str>> {
    let wish = |tool: &Named<'_>| -> Arc<str> {
        let name = tool.expose_as.unwrap_or(tool.name.tool());
        if META_TOOLS.contains(&name) { hashed(name, tool.name, 0).into() } else { name.into() }
    };
    tools.iter().map(wish).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use switchboard_model::ServerName;

    use super::*;

    fn canonical(server: &str, tool: &str) -> CanonicalName {
        CanonicalName::new(&ServerName::new(server), tool)
    }

    fn names(tools: &[(&str, &str)], naming: Naming) -> Vec<String> {
        let owned: Vec<_> = tools.iter().map(|(server, tool)| canonical(server, tool)).collect();
        let named: Vec<_> = owned.iter().map(|name| Named { name, expose_as: None }).collect();
        expose_names(&named, naming).into_iter().map(|name| name.to_string()).collect()
    }

    #[test]
    fn a_plain_name_stays_plain_and_any_other_carries_a_hash() {
        let given = [("crm", "get"), ("crm", "a.b"), ("0x", "y"), ("crm", "é")];
        let shown = names(&given, Naming::Prefixed);
        insta::assert_debug_snapshot!(shown, @r#"
        [
            "crm__get",
            "crm__a_b_948aa917",
            "_0x__y_d274b965",
            "crm____dff55a1d",
        ]
        "#);
    }

    #[test]
    fn a_name_stands_for_one_tool_whoever_else_is_there() {
        let [plain, hashed] = [("a", "b__c"), ("a__b", "c")];
        let both = names(&[plain, hashed], Naming::Prefixed);
        let alone = [plain, hashed].map(|tool| names(&[tool], Naming::Prefixed).remove(0));
        assert_eq!(both, alone);
        assert_eq!(alone[0], "a__b__c");
        assert!(alone[1].starts_with("a__b__c_"), "{alone:?}");
    }

    #[test]
    fn a_clash_changes_every_side() {
        let (one, other) = (canonical("a", "x"), canonical("b", "x"));
        let named = [&one, &other].map(|name| Named { name, expose_as: Some("find") });
        let both = expose_names(&named, Naming::Prefixed);
        assert!(both.iter().all(|name| name.starts_with("find_")), "{both:?}");
        assert_ne!(both.first(), both.last());
    }

    #[test]
    fn bare_names_are_the_servers_own() {
        let shown = names(&[("a", "get"), ("b", "get"), ("b", "x.y")], Naming::Bare);
        assert_eq!(shown, ["get", "get", "x.y"]);
    }

    #[test]
    fn names_of_meta_tools_cannot_be_taken() {
        let name = canonical("s", "call_tool");
        for (naming, expose_as) in [(Naming::Bare, None), (Naming::Prefixed, Some("call_tool"))] {
            let names = expose_names(&[Named { name: &name, expose_as }], naming);
            let name = names.into_iter().next().unwrap();
            assert!(name.starts_with("call_tool_"), "{name}");
        }
    }

    proptest! {
        #[test]
        fn names_are_legal_injective_and_independent_of_order(
            tools in proptest::collection::btree_set(("[a-z_0-9]{1,3}", "[a-z_.é]{1,5}|[a-z]{60,70}"), 1..30),
            turn in 0usize..30,
        ) {
            let tools: Vec<(&str, &str)> = tools.iter().map(|(s, t)| (s.as_str(), t.as_str())).collect();
            let shown = names(&tools, Naming::Prefixed);
            for name in &shown {
                prop_assert!(name.len() <= 64 && !name.is_empty());
                prop_assert!(name.chars().all(is_plain) && !name.starts_with(|c: char| c.is_ascii_digit() || c == '-'));
            }
            let distinct: std::collections::HashSet<_> = shown.iter().collect();
            prop_assert_eq!(distinct.len(), shown.len());
            let mut turned = tools.clone();
            turned.rotate_left(turn % tools.len());
            let again = names(&turned, Naming::Prefixed);
            for (tool, name) in turned.iter().zip(again) {
                let at = tools.iter().position(|other| other == tool).unwrap();
                prop_assert_eq!(&shown[at], &name);
            }
        }
    }
}
