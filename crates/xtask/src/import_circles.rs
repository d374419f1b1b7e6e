//! Modules of one crate do not import each other: two files that know each other are one idea in two places, or an item
//! in the wrong file.
//!
//! Only `use` declarations count. A type whose methods are spread over several files is no circle: an import of a type
//! that the importing file adds methods to is not counted. Neither are a module and its own submodules.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use anyhow::Context;
use syn::{Item, Type, UseTree};

use crate::type_names::{SourceFile, is_cfg_test};

/// A pair of modules that may import each other, and the reason.
#[derive(Debug, Clone, Copy)]
pub struct AllowedCircle {
    pub krate: &'static str,
    pub modules: [&'static str; 2],
    pub reason: &'static str,
}

/// The pairs that stay.
pub const ALLOWED_CIRCLES: &[AllowedCircle] = &[
    AllowedCircle {
        krate: "config",
        modules: ["raw", "raw_provider"],
        reason: "one file format, described in two files",
    },
    AllowedCircle {
        krate: "config",
        modules: ["raw", "raw_records"],
        reason: "one file format, described in several files",
    },
    AllowedCircle {
        krate: "config",
        modules: ["raw", "raw_threat_protection"],
        reason: "one file format, described in several files",
    },
    AllowedCircle {
        krate: "config",
        modules: ["raw", "raw_agent"],
        reason: "one file format, described in several files",
    },
    AllowedCircle {
        krate: "config",
        modules: ["raw", "raw_discovery"],
        reason: "one file format, described in several files",
    },
    AllowedCircle {
        krate: "config",
        modules: ["import::entry", "import::stdio_entry"],
        reason: "the two kinds of one entry, read with the same helpers",
    },
    AllowedCircle {
        krate: "http",
        modules: ["openapi", "server"],
        reason: "the API document is made from the routes, and one of the routes serves it",
    },
    AllowedCircle {
        krate: "runtime",
        modules: ["board", "startup"],
        reason: "a board begins as a `StartingBoard`, which ends as a board",
    },
    AllowedCircle {
        krate: "sessions",
        modules: ["calls", "refused_calls"],
        reason: "both are calls of one session service: those that run and those that are refused",
    },
    AllowedCircle {
        krate: "sessions",
        modules: ["session", "write_queue"],
        reason: "the queue holds sessions and stamps their changes",
    },
    AllowedCircle {
        krate: "sessions",
        modules: ["session_writer", "write_queue"],
        reason: "the writer and its queue",
    },
    AllowedCircle {
        krate: "view",
        modules: ["access_tools", "index"],
        reason: "the index caches which of its own entries an access grants",
    },
    AllowedCircle {
        krate: "view",
        modules: ["index", "search"],
        reason: "the index has a search over its own entries",
    },
    AllowedCircle {
        krate: "view",
        modules: ["meta_tools", "view"],
        reason: "a view contains meta-tools, which describe views",
    },
    AllowedCircle {
        krate: "splice",
        modules: ["app_request", "dispatch"],
        reason: "a request is read by the format that the API selects",
    },
    AllowedCircle {
        krate: "splice",
        modules: ["app_request", "request_format"],
        reason: "a request holds its format, which tells the facts of the request",
    },
    AllowedCircle {
        krate: "splice",
        modules: ["put_back", "request_format"],
        reason: "records are put back by the format, which decides what it goes on from",
    },
    AllowedCircle {
        krate: "splice",
        modules: ["request_format", "splicer"],
        reason: "the two halves of one API: its requests and its answers",
    },
    AllowedCircle {
        krate: "store",
        modules: ["grant_keys", "store"],
        reason: "the store holds the keys of its grants, which are kept in it",
    },
];

/// A module of a crate, by its path below the root of the crate.
type ModulePath = Vec<String>;

/// Each returned sentence names two modules that import each other, or an unused entry of `allowed`.
pub fn import_circles(
    sources: &[SourceFile],
    allowed: &[AllowedCircle],
) -> anyhow::Result<Vec<String>> {
    let mut crates: BTreeMap<&str, BTreeMap<ModulePath, &SourceFile>> = BTreeMap::new();
    for source in sources {
        if let Some((krate, module)) = module_of(&source.path) {
            crates.entry(krate).or_default().insert(module, source);
        }
    }
    let mut sentences = Vec::new();
    let mut used = HashSet::new();
    for (krate, modules) in &crates {
        for (one, other) in circles_of(modules)? {
            let (one, other) = (one.join("::"), other.join("::"));
            let position = allowed.iter().position(|it| {
                it.krate == *krate && it.modules.contains(&&*one) && it.modules.contains(&&*other)
            });
            match position {
                Some(position) => drop(used.insert(position)),
                None => sentences.push(format!("{krate}: {one} and {other} import each other")),
            }
        }
    }
    let unused = allowed.iter().enumerate().filter(|(position, _)| !used.contains(position));
    sentences.extend(unused.map(|(_, AllowedCircle { krate, modules: [one, other], .. })| {
        format!("{krate}: {one} and {other} are allowed to import each other, but do not")
    }));
    Ok(sentences)
}

/// The crate and the module of a source file. The root of a crate imports all of its modules and is left out, as are
/// further programs.
fn module_of(path: &str) -> Option<(&str, ModulePath)> {
    let (krate, rest) = path.strip_prefix("crates/")?.split_once("/src/")?;
    let module = rest.strip_suffix(".rs")?;
    let module = module.strip_suffix("/mod").unwrap_or(module);
    let is_root = matches!(module, "lib" | "main") || module.starts_with("bin/");
    (!is_root).then(|| (krate, module.split('/').map(str::to_owned).collect()))
}

fn circles_of(
    modules: &BTreeMap<ModulePath, &SourceFile>,
) -> anyhow::Result<Vec<(ModulePath, ModulePath)>> {
    let mut imports = BTreeMap::new();
    for (module, source) in modules {
        let paths = imported_paths(module, source)?;
        let known = paths.iter().filter_map(|path| longest_module(modules, path));
        let known: BTreeSet<ModulePath> =
            known.filter(|other| !is_related(module, other)).map(<[_]>::to_vec).collect();
        imports.insert(module, known);
    }
    let mut circles = Vec::new();
    for (one, known) in &imports {
        let back = |other: &&ModulePath| {
            *one < *other && imports.get(other).is_some_and(|theirs| theirs.contains(*one))
        };
        circles.extend(known.iter().filter(back).map(|other| ((*one).clone(), other.clone())));
    }
    Ok(circles)
}

/// Whether one is the other, or contains it.
fn is_related(one: &[String], other: &[String]) -> bool {
    one.starts_with(other) || other.starts_with(one)
}

/// The module that a path leads into.
fn longest_module<'a>(
    modules: &BTreeMap<ModulePath, &SourceFile>,
    path: &'a [String],
) -> Option<&'a [String]> {
    let prefixes = (1..=path.len()).rev().filter_map(|length| path.get(..length));
    prefixes.into_iter().find(|prefix| modules.contains_key(*prefix))
}

/// The paths below the root of the crate that a file imports.
fn imported_paths(module: &[String], source: &SourceFile) -> anyhow::Result<Vec<ModulePath>> {
    let file = syn::parse_file(&source.text)
        .with_context(|| format!("{} cannot be parsed", source.path))?;
    let mut extended = HashSet::new();
    let mut paths = Vec::new();
    for item in &file.items {
        match item {
            Item::Impl(item) if item.trait_.is_none() => {
                if let Type::Path(path) = &*item.self_ty {
                    extended.extend(path.path.segments.last().map(|it| it.ident.to_string()));
                }
            }
            Item::Use(item) if !item.attrs.iter().any(is_cfg_test) => {
                spread(&item.tree, &mut Vec::new(), &mut paths);
            }
            _ => {}
        }
    }
    let is_method_holder =
        |path: &ModulePath| path.last().is_some_and(|name| extended.contains(name));
    let paths = paths.into_iter().filter(|path| !is_method_holder(path));
    Ok(paths.filter_map(|path| from_root(module, &path)).collect())
}

/// All paths of a `use` declaration, by the names that the items have where they are defined.
fn spread(tree: &UseTree, before: &mut ModulePath, paths: &mut Vec<ModulePath>) {
    match tree {
        UseTree::Path(path) => {
            before.push(path.ident.to_string());
            spread(&path.tree, before, paths);
            before.pop();
        }
        UseTree::Name(name) if name.ident == "self" => paths.push(before.clone()),
        UseTree::Name(name) => paths.push([&**before, &[name.ident.to_string()]].concat()),
        UseTree::Rename(name) => paths.push([&**before, &[name.ident.to_string()]].concat()),
        UseTree::Glob(_) => paths.push(before.clone()),
        UseTree::Group(group) => group.items.iter().for_each(|tree| spread(tree, before, paths)),
    }
}

/// A path from the root of the crate; `None` for a path into another crate.
fn from_root(module: &[String], path: &[String]) -> Option<ModulePath> {
    let (first, rest) = path.split_first()?;
    let mut from_root = match first.as_str() {
        "crate" => Vec::new(),
        "self" => module.to_vec(),
        "super" => module.split_last()?.1.to_vec(),
        _ => return None,
    };
    for name in rest {
        if name == "super" {
            from_root.pop()?;
        } else {
            from_root.push(name.clone());
        }
    }
    Some(from_root)
}
