//! Expands `${VAR}`, `${VAR:-default}`, `file:` and `keyring:` references.
//!
//! Expansion happens once: a value that itself contains `${` or starts with `file:` is not expanded again.

use std::path::{Path as FilePath, PathBuf};

use switchboard_model::{CallerField, Secret};

use crate::keyring::{self, KeyringReader};
use crate::path::Path;
use crate::place::ValueOrigin;
use crate::problem::{BoxedProblem, ConfigProblem};
use crate::secret_line;
use crate::source::SourceText;
use crate::template::{self, CallerReferences, TemplateError};
use crate::tree::{Node, Value};

/// The name that stands for the session of a request in the headers of providers; it stays as it is written.
const SESSION: &str = "session";
const SESSION_REFERENCE: &str = "${session}";

/// The sources that references read from.
pub(crate) struct Expander<'a> {
    pub(crate) source: &'a SourceText<'a>,
    pub(crate) env: &'a [(String, String)],
    pub(crate) directory: &'a FilePath,
    pub(crate) read_secret: &'a dyn Fn(&FilePath) -> std::io::Result<String>,
    pub(crate) read_keyring: Option<KeyringReader<'a>>,
}

impl Expander<'_> {
    /// Expands every string below `node` and marks the sensitive ones.
    pub(crate) fn expand(&self, node: &mut Node, path: &Path, problems: &mut Vec<ConfigProblem>) {
        node.sensitive |= path.is_secret();
        match &mut node.value {
            Value::List(items) => {
                for (index, item) in items.iter_mut().enumerate() {
                    self.expand(item, &path.index(index), problems);
                }
            }
            Value::Map(entries) => {
                for entry in entries {
                    self.expand(&mut entry.node, &path.key(&entry.key), problems);
                }
            }
            Value::Text(text) => match self.expand_text(text, path) {
                Ok(Some((expanded, file))) => {
                    node.file = file;
                    node.loose = true;
                    node.sensitive |= expanded.substituted;
                    node.referenced = expanded.values;
                    let written = std::mem::replace(text, expanded.text);
                    // A secret field may contain a part of the secret beside the reference, so its template is not
                    // kept.
                    let of_caller = expanded.of_caller;
                    let is_shown = match &of_caller {
                        Some(template) => template.is_of_caller_alone(),
                        None => !path.is_secret(),
                    };
                    node.template = is_shown.then_some(written);
                    node.of_caller = of_caller;
                }
                Ok(None) => {}
                Err(problem) => {
                    problems.push(self.source.locate(&node.origin, problem.about(path)));
                    node.value = Value::Broken;
                }
            },
            Value::Null | Value::Bool(_) | Value::Integer(_) | Value::Float(_) | Value::Broken => {}
        }
    }

    /// Returns `None` if the text has no reference.
    fn expand_text(
        &self,
        text: &str,
        path: &Path,
    ) -> Result<Option<(template::Expanded, Option<PathBuf>)>, BoxedProblem> {
        if let Some(name) = path.is_store_key().then(|| text.strip_prefix("keyring:")).flatten() {
            let read = keyring::read_reference(name, path, self.read_keyring)?;
            return Ok(Some((read, None)));
        }
        let file = path.is_secret().then(|| text.strip_prefix("file:")).flatten();
        if file.is_none() && !text.contains("${") {
            return Ok(None);
        }
        let is_header = path.is_provider_header();
        let lookup = |name: &str| {
            if is_header && name == SESSION {
                return Some(SESSION_REFERENCE);
            }
            self.env.iter().rev().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
        };
        let callers = if path.is_server_header() && file.is_none() {
            CallerReferences::Allowed
        } else {
            CallerReferences::Refused
        };
        let expanded = template::expand(file.unwrap_or(text), callers, lookup)
            .map_err(|fault| Box::new(describe(&fault, path)))?;
        if file.is_none() {
            return Ok(Some((expanded, None)));
        }
        let file = self.directory.join(&expanded.text);
        self.read(text, &expanded.text, path).map(|read| Some((read, Some(file))))
    }

    fn read(
        &self,
        written: &str,
        file: &str,
        path: &Path,
    ) -> Result<template::Expanded, BoxedProblem> {
        let refuse = |why: &str| {
            let message = format!("cannot read the secret of {path} from `{written}`: {why}");
            let help = "write `file:` and the path of a readable text file, relative to this file";
            Box::new(ConfigProblem::error(message).help(help))
        };
        if file.trim().is_empty() {
            return Err(refuse("there is no path"));
        }
        // Only the error kind is reported: the reader's message may quote file content.
        let content = (self.read_secret)(&self.directory.join(file))
            .map_err(|error| refuse(&error.kind().to_string()))?;
        let text = content.strip_suffix('\n').unwrap_or(&content);
        let text = text.strip_suffix('\r').unwrap_or(text);
        let values = vec![Secret::new(text)];
        Ok(template::Expanded { text: text.into(), substituted: true, values, of_caller: None })
    }
}

/// Hides the lines of secrets that are written literally in the file from every snippet.
pub(crate) fn hide_literals(node: &Node, path: &Path, source: &mut SourceText<'_>) {
    for (index, item) in node.items().iter().enumerate() {
        hide_literals(item, &path.index(index), source);
    }
    for entry in node.entries() {
        hide_literals(&entry.node, &path.key(&entry.key), source);
    }
    let shows_secret = match &node.value {
        Value::Text(text) => {
            (path.is_secret() && !secret_line::is_harmless(text))
                || secret_line::has_credentials(text)
        }
        Value::Bool(_) | Value::Integer(_) | Value::Float(_) => path.is_secret(),
        Value::Null | Value::List(_) | Value::Map(_) | Value::Broken => false,
    };
    if let (true, ValueOrigin::File(extent)) = (shows_secret, &node.origin) {
        source.hide(*extent);
    }
}

fn describe(fault: &TemplateError, path: &Path) -> ConfigProblem {
    match fault {
        TemplateError::Unresolved(name) => ConfigProblem::error(format!(
            "{path} needs the environment variable {name}, which is not set"
        ))
        .help(format!("set {name}, or give a default: `${{{name}:-...}}`")),
        TemplateError::Unclosed => {
            ConfigProblem::error(format!("{path} holds a `${{` without its `}}`"))
                .help("add the missing `}`, or write `$${` for a literal `${`")
        }
        TemplateError::BadName => {
            ConfigProblem::error(format!("{path} holds a `${{...}}` that is no variable name"))
                .help("write `${NAME}` or `${NAME:-default}`, or `$${` for a literal `${`")
        }
        TemplateError::NoCaller(name) => ConfigProblem::error(format!(
            "{path} refers to the caller with `${{{name}}}`, and only `headers` of an HTTP server can"
        ))
        .help("write it in `headers` of an entry of `toolbox.mcps`, or `$${` for a literal `${`"),
        TemplateError::UnknownField(name) => {
            let known = CallerField::ALL.map(|field| format!("`${{{}}}`", field.as_str()));
            ConfigProblem::error(format!("{path} refers to `${{{name}}}`, which no caller has"))
                .help(format!("the known ones are {}", known.join(", ")))
        }
    }
}
