//! Proposes toolsets for a server from its own grouping, from the names of its tools and from their annotations.
//!
//! The result is a draft for the user to edit: toolsets may share tools, and names are taken from the server.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value as Json;

use crate::emit::Doc;

/// Minimum number of tools in a proposed toolset.
const FEWEST: usize = 2;
/// Verbs: words of a tool's name that describe its action, not its subject.
const VERBS: [&str; 32] = [
    "add", "analyze", "approve", "archive", "cancel", "check", "close", "count", "create",
    "delete", "describe", "disable", "download", "edit", "enable", "execute", "export", "fetch",
    "find", "get", "list", "merge", "move", "query", "read", "remove", "run", "search", "set",
    "show", "update", "write",
];
/// Tools for handling toolsets, which are left out of drafts.
const META_TOOLS: [&str; 6] = [
    "enable_toolset",
    "disable_toolset",
    "list_toolsets",
    "describe_toolset",
    "get_toolset_status",
    "list_tools",
];

/// The properties of a tool that a draft uses.
#[derive(Debug, Clone)]
pub struct DraftTool {
    /// The name that the server gives it.
    pub name: String,
    /// Whether it has the annotation `readOnlyHint`.
    pub is_read_only: bool,
}

/// A proposed toolset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DraftSet {
    pub name: String,
    pub description: String,
    pub when_to_use: Option<String>,
    /// Patterns and names, each with the server's name.
    pub tools: Vec<String>,
}

/// Proposed toolsets, with a comment for the user.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolsetDraft {
    pub sets: Vec<DraftSet>,
    pub notes: Vec<String>,
    /// Explains a draft without any grouping.
    pub comment: Option<String>,
}

/// Tools grouped by a common property, and the tools in no group.
#[derive(Debug, Default)]
struct Grouping<'a> {
    groups: BTreeMap<String, Vec<&'a str>>,
    other: Vec<&'a str>,
}

impl<'a> Grouping<'a> {
    fn by(names: &[&'a str], key: impl Fn(&str) -> String) -> Self {
        let mut groups: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        for name in names {
            groups.entry(key(name)).or_default().push(name);
        }
        let is_group = |members: &Vec<&str>| members.len() >= FEWEST;
        let other = groups.values().filter(|members| !is_group(members)).flatten().copied();
        let other = other.collect();
        groups.retain(|_, members| is_group(members));
        Self { groups, other }
    }

    /// Whether it makes more than one group; a single one is no grouping.
    fn tells_apart(&self) -> bool {
        !self.groups.is_empty() && self.groups.len() + usize::from(!self.other.is_empty()) > 1
    }
}

/// A group that the server itself defines.
#[derive(Debug)]
struct Group {
    key: String,
    description: Option<String>,
    when_to_use: Option<String>,
    tools: Vec<String>,
    modules: Vec<String>,
}

impl ToolsetDraft {
    /// Proposes toolsets for the tools of a server. `grouping` is the result of the server's `list_toolsets`, or a file
    /// of that shape: a list of objects with `key` or `name`, and `tools`, optionally below `toolsets`.
    pub fn propose(server: &str, tools: &[DraftTool], grouping: Option<&Json>) -> Self {
        let mut draft = Self::default();
        let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
        let names: Vec<&str> =
            names.into_iter().filter(|name| !META_TOOLS.contains(name)).collect();
        let mut left: BTreeSet<&str> = names.iter().copied().collect();
        for group in grouping.map(groups).unwrap_or_default() {
            let members = members(&group, &names);
            let Group { key, description, when_to_use, .. } = group;
            if members.is_empty() {
                draft
                    .notes
                    .push(format!("{key}: none of the tools that are listed now belongs to it"));
                continue;
            }
            left.retain(|name| !members.contains(name));
            let description = description.unwrap_or_else(|| format!("Tools of {server}: {key}"));
            let name = set_name(server, &key);
            let tools = patterns(server, &members, &names);
            draft.sets.push(DraftSet { name, description, when_to_use, tools });
        }
        let left: Vec<_> = names.iter().copied().filter(|name| left.contains(name)).collect();
        let reads = reads(tools, &names);
        let has_both = !reads.is_empty() && reads.len() < names.len();
        let by_subject = Grouping::by(&left, subject);
        let by_verb = Grouping::by(&left, first_word);
        // In addition to the server's own groups, a single further one is useful.
        if by_subject.tells_apart() || !draft.sets.is_empty() {
            draft.add_groups(server, &by_subject, &names, |it| {
                format!("Tools of {server} about {it}")
            });
        } else if by_verb.tells_apart() {
            draft.add_groups(server, &by_verb, &names, |it| format!("Tools of {server} that {it}"));
        } else if has_both {
            let writes: Vec<_> = left.into_iter().filter(|name| !reads.contains(name)).collect();
            let about = format!("Tools of {server} that may change something");
            draft.add(server, "write", about, &writes, &names);
        } else if !left.is_empty() {
            draft.add_whole_server(server, &left);
        }
        if has_both {
            let about = format!("Tools of {server} that change nothing");
            draft.add(server, "read", about, &reads, &names);
        }
        draft
    }

    fn add(&mut self, server: &str, key: &str, description: String, of: &[&str], all: &[&str]) {
        let (name, tools) = (set_name(server, key), patterns(server, of, all));
        self.sets.push(DraftSet { name, description, when_to_use: None, tools });
    }

    fn add_groups(
        &mut self,
        server: &str,
        grouping: &Grouping<'_>,
        all: &[&str],
        description: impl Fn(&str) -> String,
    ) {
        for (key, members) in &grouping.groups {
            self.add(server, key, description(key), members, all);
        }
        if !grouping.other.is_empty() {
            self.add(server, "other", format!("Other tools of {server}"), &grouping.other, all);
        }
    }

    /// One toolset with the name of the server that lists every tool, for the user to split.
    fn add_whole_server(&mut self, server: &str, names: &[&str]) {
        self.comment = Some(format!(
            "The names and annotations of these tools show no groups. Divide them by what they are for, or leave this\n\
             out: `{server}` has a set of this name without it."
        ));
        self.sets.push(DraftSet {
            name: server.to_owned(),
            description: format!("All tools of {server}"),
            when_to_use: None,
            tools: names.iter().map(|name| format!("{server}.{name}")).collect(),
        });
    }

    /// The draft as the `toolsets` of a configuration file.
    pub fn to_yaml(&self) -> String {
        let sets = self.sets.iter().map(|set| {
            let mut fields = vec![
                ("name".to_owned(), Doc::text(&set.name)),
                ("description".to_owned(), Doc::text(&set.description)),
            ];
            fields.extend(
                set.when_to_use.as_ref().map(|text| ("when_to_use".into(), Doc::text(text))),
            );
            let tools = set.tools.iter().map(Doc::text).collect();
            fields.push(("tools".into(), Doc::List(tools)));
            Doc::Map(fields)
        });
        let toolsets = Doc::Map(vec![("toolsets".into(), Doc::List(sets.collect()))]);
        let yaml = Doc::Map(vec![("switchboard".into(), toolsets)]).to_yaml();
        let Some(comment) = &self.comment else { return yaml };
        let lines: Vec<_> = comment.lines().map(|line| format!("    # {line}\n")).collect();
        yaml.replacen("  toolsets:\n", &format!("  toolsets:\n{}", lines.concat()), 1)
    }
}

/// The groups in a `list_toolsets` result, in order. Groups without a name are skipped.
fn groups(answer: &Json) -> Vec<Group> {
    let list = answer.get("toolsets").unwrap_or(answer);
    let of = |key: Option<&str>, group: &Json| -> Option<Group> {
        let text = |key: &str| {
            let found = group.get(key).or_else(|| group.get("definition")?.get(key));
            found.and_then(Json::as_str).map(str::to_owned)
        };
        let texts = |key: &str| {
            let found = group.get(key).or_else(|| group.get("definition")?.get(key));
            let items = found.and_then(Json::as_array).into_iter().flatten();
            let name = |item: &Json| item.as_str().or(item["name"].as_str()).map(str::to_owned);
            items.filter_map(name).collect::<Vec<_>>()
        };
        Some(Group {
            key: key.map(str::to_owned).or_else(|| text("key")).or_else(|| text("name"))?,
            description: text("description").or_else(|| key.and_then(|_| text("name"))),
            when_to_use: text("decisionCriteria").or_else(|| text("when_to_use")),
            tools: texts("tools"),
            modules: texts("modules"),
        })
    };
    match list {
        Json::Array(items) => items.iter().filter_map(|item| of(None, item)).collect(),
        Json::Object(items) => items.iter().filter_map(|(key, item)| of(Some(key), item)).collect(),
        _ => Vec::new(),
    }
}

/// The tools that a group lists; if it lists none, those whose names contain its words.
fn members<'a>(group: &Group, names: &[&'a str]) -> Vec<&'a str> {
    if !group.tools.is_empty() {
        return names
            .iter()
            .filter(|name| group.tools.iter().any(|tool| tool == *name))
            .copied()
            .collect();
    }
    let modules =
        if group.modules.is_empty() { std::slice::from_ref(&group.key) } else { &group.modules };
    let wanted: Vec<Vec<String>> = modules.iter().map(|module| words(module)).collect();
    let is_member = |name: &&&str| {
        let own = words(name);
        wanted.iter().any(|wanted| {
            !wanted.is_empty() && own.windows(wanted.len()).any(|part| part == wanted)
        })
    };
    names.iter().filter(is_member).copied().collect()
}

/// The tools with the annotation `readOnlyHint`.
fn reads<'a>(tools: &'a [DraftTool], names: &[&str]) -> Vec<&'a str> {
    let reads = tools.iter().filter(|tool| tool.is_read_only).map(|tool| tool.name.as_str());
    reads.filter(|name| names.contains(name)).collect()
}

/// The verb of a tool's name, if it begins with one.
fn first_word(name: &str) -> String {
    words(name).into_iter().next().unwrap_or_else(|| "other".into())
}

/// The subject of a tool's name: its first word that is not a verb.
fn subject(name: &str) -> String {
    let words = words(name);
    let subject = words.iter().find(|word| !VERBS.contains(&word.as_str()));
    subject.or(words.first()).cloned().unwrap_or_else(|| "other".into())
}

/// The words of a name, in lower case and singular: `getStockQuotes` and `get_stock_quote` have the same ones.
fn words(name: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut was_lower = false;
    for c in name.chars() {
        if !c.is_alphanumeric() || (c.is_uppercase() && was_lower) {
            words.push(std::mem::take(&mut word));
        }
        if c.is_alphanumeric() {
            word.extend(c.to_lowercase());
        }
        was_lower = c.is_lowercase() || c.is_numeric();
    }
    words.push(word);
    words.into_iter().filter(|word| !word.is_empty()).map(singular).collect()
}

/// Endings in `s` that are no plural.
const KEPT_ENDS: [&str; 4] = ["ss", "us", "is", "news"];

fn singular(word: String) -> String {
    let stem = word.strip_suffix("ies").map(|stem| format!("{stem}y"));
    let bare = |word: &str| Some(word.strip_suffix('s')?.to_owned());
    match stem.filter(|stem| stem.len() > 3) {
        Some(stem) => stem,
        None if word.len() > 3 && !KEPT_ENDS.iter().any(|end| word.ends_with(end)) => {
            bare(&word).unwrap_or(word)
        }
        None => word,
    }
}

/// `server-key`, with characters that are invalid in toolset names replaced.
fn set_name(server: &str, key: &str) -> String {
    let allowed = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' };
    let key: String = key.chars().map(allowed).collect();
    let name = format!("{server}-{}", key.trim_matches('-'));
    name.trim_end_matches('-').chars().take(64).collect()
}

/// The shortest list of patterns for the tools: one prefix that only they have, else their names.
fn patterns(server: &str, members: &[&str], all: &[&str]) -> Vec<String> {
    let first = members.first().copied().unwrap_or_default();
    let common = first.char_indices().map(|(end, c)| end + c.len_utf8()).rev().find_map(|end| {
        let start = first.get(..end)?;
        members.iter().all(|name| name.starts_with(start)).then_some(start)
    });
    if let Some(start) = common
        && members.len() >= FEWEST
        && all.iter().filter(|name| name.starts_with(start)).count() == members.len()
        && !start.contains(['*', '?'])
    {
        return vec![format!("{server}.{start}*")];
    }
    members.iter().map(|name| format!("{server}.{name}")).collect()
}

#[cfg(test)]
#[path = "toolset_draft_tests.rs"]
mod tests;
