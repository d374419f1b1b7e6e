//! The steps of loading a configuration: parse, overrides, expansion, types, schema, plan.

use std::path::Path as FilePath;

use switchboard_model::RootKey;

use crate::coerce::coerce;
use crate::effective::Loaded;
use crate::expand::{Expander, hide_literals};
use crate::keyring::KeyringReader;
use crate::overlay;
use crate::path::Path;
use crate::place::{Extent, ValueOrigin};
use crate::plan::{At, Planner};
use crate::problem::{ConfigProblem, Problems, sort};
use crate::schema::{SchemaAt, nearest};
use crate::shape;
use crate::source::SourceText;
use crate::tree::{Node, TreeEntry, Value};
use crate::yaml;

/// The inputs of a configuration. The crate itself reads no file and no environment.
#[expect(missing_debug_implementations, reason = "holds the environment, which holds secrets")]
pub struct ConfigInput<'a> {
    /// The file; optional, because the environment alone is enough.
    pub file: Option<SourceFile<'a>>,
    /// The environment, for overrides and for `${VAR}`.
    pub env: &'a [(String, String)],
    /// Reads the file of a `file:` reference.
    pub read_secret: &'a dyn Fn(&FilePath) -> std::io::Result<String>,
    /// Reads the keyring entry of a `keyring:` reference. Without it, no such reference can be read.
    pub read_keyring: Option<KeyringReader<'a>>,
}

/// The text of a configuration file.
#[expect(missing_debug_implementations, reason = "the text may hold secrets")]
#[derive(Clone, Copy)]
pub struct SourceFile<'a> {
    /// The file name for messages.
    pub name: &'a str,
    /// The base directory of relative paths in the file.
    pub directory: &'a FilePath,
    /// The text.
    pub text: &'a str,
}

/// Loads a configuration, or returns all problems.
pub fn load(input: &ConfigInput<'_>) -> Result<Loaded, Problems> {
    let file =
        input.file.unwrap_or(SourceFile { name: "", directory: FilePath::new(""), text: "" });
    let mut source = SourceText::new(file.name, file.text);
    let mut problems = Vec::new();

    let (root, mut config) = match input.file {
        None => (RootKey::default(), empty()),
        Some(_) => read_file(&mut source, file.text, &mut problems)?,
    };
    let path = Path::root(root.as_str());
    overlay::apply(&mut config, &path, input.env, &mut problems);
    let expander = Expander {
        source: &source,
        env: input.env,
        directory: file.directory,
        read_secret: input.read_secret,
        read_keyring: input.read_keyring,
    };
    expander.expand(&mut config, &path, &mut problems);
    coerce(&mut config, SchemaAt::config());
    let sound = shape::check(&config, &path, &source, &mut problems);

    let mut planner = Planner {
        source: &source,
        directory: file.directory,
        problems,
        warnings: Vec::new(),
        jwt_issuer: None,
    };
    let at = At { node: &config, path };
    let plan = planner.plan(root, &at, &sound);
    let Planner { problems, mut warnings, .. } = planner;
    if !problems.is_empty() {
        return Err(Problems::new(problems));
    }
    sort(&mut warnings);
    Ok(Loaded::new(plan, warnings, &at, &source))
}

fn read_file(
    source: &mut SourceText<'_>,
    text: &str,
    problems: &mut Vec<ConfigProblem>,
) -> Result<(RootKey, Node), Problems> {
    let document = yaml::parse(source, text)?;
    for entry in document.root.iter().flat_map(Node::entries) {
        hide_literals(&entry.node, &Path::root(&entry.key), source);
    }
    problems.extend(document.problems(source));
    take_root(source, document.root, problems)
}

/// Finds the root key. Nothing below is checked unless there is exactly one.
fn take_root(
    source: &SourceText<'_>,
    document: Option<Node>,
    problems: &mut Vec<ConfigProblem>,
) -> Result<(RootKey, Node), Problems> {
    let start = ValueOrigin::File(Extent::point(1, 1));
    let document = document.unwrap_or_else(|| Node::new(Value::Null, start));
    if !matches!(document.value, Value::Map(_) | Value::Null) {
        let problem = ConfigProblem::error("the file must be a map with the key `switchboard`");
        let problem = source.locate(&document.origin, problem.help(ROOT_HELP));
        return Err(Problems::new(vec![problem]));
    }
    let roots = ROOTS.iter().filter_map(|key| Some((*key, document.entry(key.as_str())?)));
    match roots.collect::<Vec<_>>().as_slice() {
        [(key, entry)] => {
            problems.extend(unknown_roots(source, &document));
            let is_null = entry.node.value == Value::Null;
            Ok((*key, if is_null { empty() } else { entry.node.clone() }))
        }
        [] => {
            let unknown = unknown_roots(source, &document);
            // A misspelt root key is reported once, not also as a missing one.
            if unknown.iter().any(|problem| problem.help.is_some()) {
                problems.extend(unknown);
            } else {
                let message = "the file has neither `switchboard` nor `myai` as its root key";
                let problem = ConfigProblem::error(message).help(ROOT_HELP);
                problems.push(source.locate(&document.origin, problem));
            }
            Err(Problems::new(std::mem::take(problems)))
        }
        [_, (_, second), ..] => {
            let problem =
                ConfigProblem::error("the file has both `switchboard` and `myai` as root keys");
            let problem = problem.help("they mean the same: keep one");
            problems.push(source.locate(&second.origin, problem));
            Err(Problems::new(std::mem::take(problems)))
        }
    }
}

/// Unknown keys beside the root key, with a hint for those that look like it.
fn unknown_roots(source: &SourceText<'_>, document: &Node) -> Vec<ConfigProblem> {
    let is_root = |entry: &&TreeEntry| ROOTS.iter().any(|key| key.as_str() == entry.key);
    let unknown = document.entries().iter().filter(|entry| !is_root(entry));
    let draw = |entry: &TreeEntry| {
        let problem =
            ConfigProblem::error(format!("unknown key `{}` at the top of the file", entry.key));
        let near = nearest(&entry.key, ROOTS.map(RootKey::as_str));
        let help = near.map(|near| format!("did you mean `{near}`?"));
        source.locate(&entry.origin, ConfigProblem { help, ..problem })
    };
    unknown.take(MAX_UNKNOWN).map(draw).collect()
}

/// Maximum number of reported unknown keys: a file of another kind can have any number.
const MAX_UNKNOWN: usize = 100;

const ROOTS: [RootKey; 2] = [RootKey::Switchboard, RootKey::Myai];

const ROOT_HELP: &str = "start the file with `switchboard:` and put `toolbox:` below it";

fn empty() -> Node {
    Node::new(Value::Map(Vec::new()), ValueOrigin::Nowhere)
}
