//! Changes one entry of the configuration file: preconditions of the request, and errors as problems.

use std::sync::Arc;

use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use futures::FutureExt;
use futures::future::{BoxFuture, ready};
use switchboard_api::FieldError;
use switchboard_config::{ConfigEdit, ConfigProblem, EditRefusal, EntryList, Problems};
use switchboard_registry::RedirectedValue;
use switchboard_runtime::{
    AppliedEdit, Contradiction, EditError, ExpectedEntry, LiveConfig, ReplaceError, WrittenEntry,
};

use crate::entry_values::declared_pointer;
use crate::problem::ProblemResponse;

/// How often a change without `If-Match` is repeated when another one comes in between.
const ATTEMPTS: usize = 5;

/// Changes an entry. `make` decides the edit by the entry as it is now; if that changes before the edit, `make` is called
/// again, or, with `If-Match`, the request is refused.
pub(crate) async fn change_entry(
    config: &Arc<LiveConfig>,
    (list, name): (EntryList, &str),
    headers: &HeaderMap,
    make: impl Fn(Option<WrittenEntry>) -> BoxFuture<'static, Result<ConfigEdit, ProblemResponse>>,
) -> Result<AppliedEdit, ProblemResponse> {
    let problem = |error| edit_problem(config, (list, name), &error);
    let is_conditional =
        headers.contains_key(header::IF_MATCH) || headers.contains_key(header::IF_NONE_MATCH);
    for _ in 0..ATTEMPTS {
        let present = config.entry(list, name).map_err(problem)?;
        if !is_met(headers, present.as_ref()) {
            let what = format!("the {} '{name}'", list.noun());
            return Err(problem(EditError::Stale { what }));
        }
        let tag = present.as_ref().map(|entry| entry.tag.clone());
        let edit = make(present).await?;
        let expected = tag.map_or(ExpectedEntry::Absent, ExpectedEntry::Tag);
        match config.edit(Some((list, name.to_owned(), expected)), vec![edit]).await {
            Ok(applied) => return Ok(applied),
            Err(EditError::Stale { .. }) if !is_conditional => {}
            Err(error) => return Err(problem(error)),
        }
    }
    Err(problem(EditError::Busy))
}

/// Removes an entry.
pub(crate) async fn remove_entry(
    config: &Arc<LiveConfig>,
    (list, name): (EntryList, &str),
    headers: &HeaderMap,
) -> Result<StatusCode, ProblemResponse> {
    let edit = ConfigEdit::Remove { list, name: name.to_owned() };
    change_entry(config, (list, name), headers, |_| ready(Ok(edit.clone())).boxed()).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Whether `If-Match` and `If-None-Match` allow a change of the entry.
fn is_met(headers: &HeaderMap, present: Option<&WrittenEntry>) -> bool {
    let has = |name: header::HeaderName| {
        let values = headers.get_all(name);
        let mut tags =
            values.iter().filter_map(|value| value.to_str().ok()).flat_map(|it| it.split(','));
        tags.any(|tag| {
            let tag = tag.trim();
            present.is_some_and(|entry| tag == "*" || tag.trim_matches('"') == entry.tag)
        })
    };
    (!headers.contains_key(header::IF_MATCH) || has(header::IF_MATCH))
        && (!headers.contains_key(header::IF_NONE_MATCH) || !has(header::IF_NONE_MATCH))
}

/// Whether `If-Match` names a version, which only a client that has read the entry knows.
pub(crate) fn names_version(headers: &HeaderMap) -> bool {
    let values = headers.get_all(header::IF_MATCH);
    let mut tags =
        values.iter().filter_map(|value| value.to_str().ok()).flat_map(|it| it.split(','));
    tags.any(|tag| tag.trim() != "*")
}

/// The `ETag` of an entry.
pub(crate) fn etag(tag: &str) -> Option<HeaderValue> {
    HeaderValue::try_from(format!("\"{tag}\"")).ok()
}

/// The response to a body whose values cannot be used.
pub(crate) fn invalid(errors: Vec<FieldError>) -> ProblemResponse {
    let detail = match errors.as_slice() {
        [only] if only.path.is_empty() => only.message.clone(),
        [only] => format!("{}: {}", only.path, only.message),
        all => format!("{} values cannot be used", all.len()),
    };
    let mut response =
        ProblemResponse::new("invalid_configuration", StatusCode::UNPROCESSABLE_ENTITY, detail);
    response.0.errors = errors;
    response
}

/// The response to an edit that was refused.
pub(crate) fn edit_problem(
    config: &LiveConfig,
    (list, name): (EntryList, &str),
    error: &EditError,
) -> ProblemResponse {
    if let Some(problems) = error.problems() {
        let index = config.index(list, name);
        return invalid_configuration(problems, list, index);
    }
    if let EditError::Contradicts(found) = error {
        let index = config.index(list, name);
        return invalid(found.iter().map(|it| contradiction(it, list, index)).collect());
    }
    if let EditError::Redirects(found) = error {
        let index = config.index(list, name);
        let mut response = invalid(found.iter().map(|it| redirection(it, list, index)).collect());
        response.0.hint = error.hint().map(str::to_owned);
        return response;
    }
    let (kind, status) = match error {
        EditError::Refused(EditRefusal::UnknownEntry { list: EntryList::Servers, .. }) => {
            ("unknown_server", StatusCode::NOT_FOUND)
        }
        EditError::Refused(EditRefusal::UnknownEntry { list: EntryList::Tools, .. }) => {
            ("unknown_declaration", StatusCode::NOT_FOUND)
        }
        EditError::Refused(EditRefusal::UnknownEntry { list: EntryList::Toolsets, .. }) => {
            ("unknown_toolset", StatusCode::NOT_FOUND)
        }
        EditError::NoFile => ("no_configuration_file", StatusCode::CONFLICT),
        EditError::Overridden { .. } => ("overridden", StatusCode::CONFLICT),
        EditError::Unwritten(ReplaceError::Changed { .. }) => {
            ("file_changed", StatusCode::CONFLICT)
        }
        EditError::Unreadable(_) | EditError::Unwritten(ReplaceError::Unwritable { .. }) => {
            ("file_unwritable", StatusCode::CONFLICT)
        }
        EditError::Stale { .. } => ("stale_entry", StatusCode::PRECONDITION_FAILED),
        EditError::Busy => ("busy", StatusCode::SERVICE_UNAVAILABLE),
        EditError::NotApplied(_)
        | EditError::Refused(EditRefusal::Problems(_))
        | EditError::Contradicts(_)
        | EditError::Redirects(_)
        | EditError::Invalid(_) => ("not_applied", StatusCode::UNPROCESSABLE_ENTITY),
    };
    let mut response = ProblemResponse::new(kind, status, error.to_string());
    response.0.hint = error.hint().map(str::to_owned);
    if let EditError::NotApplied(refused) = error {
        let message = |failure: &dyn ToString| failure.to_string();
        let errors = refused.failures.iter().map(|failure| message(failure));
        response.0.errors =
            errors.map(|message| FieldError { path: String::new(), message }).collect();
    }
    response
}

fn contradiction(found: &Contradiction, list: EntryList, index: usize) -> FieldError {
    let message = found.message.clone();
    if list == EntryList::Tools && found.entry == index {
        FieldError { path: found.pointer.clone(), message }
    } else {
        FieldError { path: String::new(), message: format!("{}: {message}", found.path()) }
    }
}

fn redirection(found: &RedirectedValue, list: EntryList, index: usize) -> FieldError {
    let is_here = list == EntryList::Tools && found.entry == index;
    let path = if is_here { format!("/arguments/{}", found.index) } else { String::new() };
    FieldError { path, message: found.to_string() }
}

fn invalid_configuration(problems: &Problems, list: EntryList, index: usize) -> ProblemResponse {
    invalid(problems.iter().map(|problem| field_error(problem, list, index)).collect())
}

/// The problem of a value: with its pointer in the entry, or with its path where it is in another part of the file.
fn field_error(problem: &ConfigProblem, list: EntryList, index: usize) -> FieldError {
    let help = problem.help.as_ref().map(|help| format!(" ({help})")).unwrap_or_default();
    let message = format!("{}{help}", problem.message);
    let entry = format!(".{}[{index}]", list.path());
    let below = problem.path.as_deref().and_then(|path| path.split_once(&entry));
    let Some((_, below)) = below else {
        let place = problem.place.as_ref().map(|place| format!("{place}: ")).unwrap_or_default();
        return FieldError { path: String::new(), message: format!("{place}{message}") };
    };
    let path = match list {
        EntryList::Tools => declared_pointer(&pointer(below)),
        EntryList::Servers | EntryList::Toolsets => pointer(below),
    };
    FieldError { path, message }
}

/// A path such as `.arguments[0].type` as a JSON pointer.
pub(crate) fn pointer(path: &str) -> String {
    let parts = path.split(['.', '[']).filter(|part| !part.is_empty());
    parts.flat_map(|part| ["/", part.trim_end_matches(']')]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_become_pointers() {
        for (path, expected) in [
            ("", ""),
            (".arguments[0].type", "/arguments/0/type"),
            ("switchboard.toolbox.mcps[12].url", "/switchboard/toolbox/mcps/12/url"),
        ] {
            assert_eq!(pointer(path), expected);
        }
    }
}
