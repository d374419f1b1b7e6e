//! One meaning for each type name: no two production files define a type of the same name.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context;
use syn::{Attribute, Item};

/// The text of a production source and its path below the root.
#[derive(Debug)]
pub struct SourceFile {
    pub path: String,
    pub text: String,
}

/// Names that may have several definitions, each with the reason.
pub const SHARED_TYPE_NAMES: &[(&str, &str)] = &[
    ("Answer", "private to each of the modules"),
    (
        "BodyChunk",
        "the same alias twice: http serves any MCP endpoint and does not depend on mcp-server",
    ),
    ("Book", "private to each of the modules"),
    ("ChatAnswer", "private to each of the modules"),
    (
        "Failure",
        "the end of a command, and the end of an app's turn: neither crate knows the other",
    ),
    ("Leased", "private to each of the modules"),
    ("Members", "private to each of the modules"),
    (
        "Message",
        "a message of a conversation, and the one of an app's request, which is private to its module",
    ),
    ("OpenBlock", "private to each of the modules"),
    ("Operation", "private to each of the modules"),
    ("Part", "a part of a message, and the one of Gemini's format, which is private to its module"),
    (
        "PassedRequest",
        "a request passed on to a server, and one passed on to a provider: neither crate knows the other",
    ),
    ("Place", "the place of a fault in a history, and a private type of a stream"),
    ("Reading", "private to each of the modules"),
    ("Refusal", "of a credential, and of an app's request in the words of its API"),
    ("Refused", "private to each of the modules"),
    ("Round", "private to each of the modules"),
    (
        "SessionCall",
        "a call by a session, and a call of a session's tool in an app's turn: splice knows no sessions",
    ),
    (
        "SessionTools",
        "the tools of a session in the API, and those that splice adds to an app's request",
    ),
    ("Target", "private to each of the modules"),
    ("Value", "private to each of the modules"),
    ("Wanted", "private to each of the modules"),
];

/// Crates that run, measure or check the product.
const OUTSIDE: &[&str] =
    &["crates/test-support/", "crates/test-program/", "crates/bench/", "crates/xtask/"];

/// File names that hold tests or their data; a name may also end in `_tests.rs`.
const TEST_FILES: &[&str] = &["tests.rs", "test_support.rs", "samples.rs"];

/// The JSON types of the providers. The formats use the same words (`Content`, `Tool`) for different shapes, so these
/// modules may repeat each other's names, but no name from elsewhere.
const PROVIDER_FORMATS: &[&str] = &[
    "crates/splice/src/chat",
    "crates/splice/src/gemini",
    "crates/splice/src/messages",
    "crates/splice/src/responses",
    "crates/translate/src",
    "crates/wire/src/anthropic",
    "crates/wire/src/gemini",
    "crates/wire/src/openai",
];

/// The sources of the product among `files`, without tests.
pub fn production_sources(root: &Path, files: &[String]) -> Vec<SourceFile> {
    let is_production = |path: &&String| {
        let name = path.rsplit('/').next().unwrap_or(path);
        path.starts_with("crates/")
            && path.contains("/src/")
            && Path::new(path.as_str()).extension().is_some_and(|it| it == "rs")
            && !OUTSIDE.iter().any(|outside| path.starts_with(outside))
            && !name.ends_with("_tests.rs")
            && !TEST_FILES.contains(&name)
    };
    files
        .iter()
        .filter(is_production)
        // A tracked file may be deleted in the working tree.
        .filter_map(|path| {
            let text = std::fs::read_to_string(root.join(path)).ok()?;
            Some(SourceFile { path: path.clone(), text })
        })
        .collect()
}

/// Each returned sentence names a type with several definitions, or an unused entry of `allowed`.
pub fn repeated_type_names(
    sources: &[SourceFile],
    allowed: &[(&str, &str)],
) -> anyhow::Result<Vec<String>> {
    let mut files: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for source in sources {
        for name in type_names(source)? {
            files.entry(name).or_default().push(&source.path);
        }
    }
    files.retain(|_, paths| paths.len() > 1 && !paths.iter().all(|path| is_provider_format(path)));
    let is_allowed = |name: &str| allowed.iter().any(|(allowed, _)| *allowed == name);
    let mut sentences: Vec<String> = files
        .iter()
        .filter(|(name, _)| !is_allowed(name))
        .map(|(name, paths)| format!("{name} is defined in {}", paths.join(" and ")))
        .collect();
    let unused = allowed.iter().filter(|(name, _)| !files.contains_key(*name));
    sentences.extend(unused.map(|(name, _)| format!("{name} is allowed, but defined only once")));
    Ok(sentences)
}

fn is_provider_format(path: &str) -> bool {
    PROVIDER_FORMATS.iter().any(|format| path.starts_with(format))
}

/// The types that a file defines at its top level, without those of its tests.
fn type_names(source: &SourceFile) -> anyhow::Result<Vec<String>> {
    let file = syn::parse_file(&source.text)
        .with_context(|| format!("{} cannot be parsed", source.path))?;
    let names = file.items.iter().filter_map(|item| {
        let (attributes, name) = match item {
            Item::Struct(item) => (&item.attrs, &item.ident),
            Item::Enum(item) => (&item.attrs, &item.ident),
            Item::Union(item) => (&item.attrs, &item.ident),
            Item::Trait(item) => (&item.attrs, &item.ident),
            Item::Type(item) => (&item.attrs, &item.ident),
            _ => return None,
        };
        (!attributes.iter().any(is_cfg_test)).then(|| name.to_string())
    });
    // Variants for several platforms in one file are one type.
    let mut names: Vec<String> = names.collect();
    names.sort_unstable();
    names.dedup();
    Ok(names)
}

/// Whether an item belongs to the tests.
pub(crate) fn is_cfg_test(attribute: &Attribute) -> bool {
    attribute.path().is_ident("cfg")
        && attribute.parse_args::<syn::Path>().is_ok_and(|condition| condition.is_ident("test"))
}
