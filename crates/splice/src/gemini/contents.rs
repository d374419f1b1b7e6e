//! The contents of a conversation: what identifies them, and where results go.

use std::collections::HashSet;

use serde_json::Value;

use super::part::{Part, joined, parts};
use crate::raw_json::{Raw, RawObject, array, raw};
use crate::request_format::{ConversationUnit, ShownReply, sorted};

/// The signature of a call that the model did not make: Gemini does not validate it.
const NOT_SIGNED: &str = "skip_thought_signature_validator";

/// A content with these parts.
pub(super) fn content(role: &str, parts: &[Part]) -> Raw {
    let parts = array(parts.iter().map(|part| part.raw.get()));
    raw(format!(r#"{{"role":"{role}","parts":{}}}"#, parts.get()))
}

fn role(content: &RawObject) -> String {
    content.parsed("role").unwrap_or_else(|| "user".to_owned())
}

/// The contents with those of one reply joined, which clients keep in chunks, and without calls that the app was shown.
pub(super) fn merged(contents: Vec<Raw>) -> Vec<Raw> {
    let mut all: Vec<Raw> = Vec::with_capacity(contents.len());
    let mut reply: Vec<(Raw, Vec<Part>)> = Vec::new();
    for element in contents {
        match RawObject::read(element.get()) {
            Ok(object) if role(&object) == "model" => reply.push((element, parts(&object))),
            Ok(_) | Err(_) => {
                all.extend(one_reply(std::mem::take(&mut reply)));
                all.push(element);
            }
        }
    }
    all.extend(one_reply(reply));
    all
}

fn one_reply(mut chunks: Vec<(Raw, Vec<Part>)>) -> Option<Raw> {
    let is_shown = |part: &Part| part.shows_session_call();
    let shows_calls = chunks.iter().any(|(_, parts)| parts.iter().any(is_shown));
    if chunks.len() <= 1 && !shows_calls {
        return chunks.pop().map(|(element, _)| element);
    }
    let all = chunks.into_iter().flat_map(|(_, parts)| parts);
    let mut parts = joined(all.filter(|part| !part.shows_session_call()));
    if parts.is_empty() {
        parts.push(Part::of_text("", false));
    }
    Some(content("model", &parts))
}

/// The units of a conversation. Each content is one.
pub(super) fn units(contents: &[Raw]) -> Vec<ConversationUnit> {
    let unit = |(index, element): (usize, &Raw)| {
        let object = RawObject::read(element.get()).unwrap_or_default();
        let role = role(&object);
        let is_reply = role == "model";
        let identity = if is_reply {
            shown_reply(&parts(&object)).identity()
        } else {
            format!("{role}\n{}", identity(&parts(&object)))
        };
        ConversationUnit { range: index..index + 1, is_reply, identity }
    };
    contents.iter().enumerate().map(unit).collect()
}

fn shown_reply(parts: &[Part]) -> ShownReply {
    let mut reply = ShownReply::default();
    for part in parts {
        if part.is_answer() {
            reply.text.push_str(&part.text().unwrap_or_default());
        }
        reply.calls.extend(part.call().map(|call| (call.name, call.arguments)));
    }
    reply
}

fn identity(parts: &[Part]) -> String {
    let mut identity = String::new();
    for part in parts {
        if part.is_plain_text() {
            identity.push_str(&part.text().unwrap_or_default());
        } else {
            let value: Value = serde_json::from_str(part.raw.get()).unwrap_or_default();
            identity.push('\n');
            identity.push_str(&sorted(&value));
            identity.push('\n');
        }
    }
    identity
}

/// A reply without its signatures. The first call gets the placeholder that the API takes for calls of other models.
pub(super) fn without_signatures(reply: &Raw) -> Raw {
    let object = RawObject::read(reply.get()).unwrap_or_default();
    if role(&object) != "model" {
        return reply.clone();
    }
    let mut has_call = false;
    let parts = parts(&object).into_iter().map(|part| {
        let is_first_call = !has_call && part.call().is_some();
        has_call |= is_first_call;
        part.with_signature(is_first_call.then_some(NOT_SIGNED))
    });
    let parts: Vec<Part> = parts.collect();
    content("model", &parts)
}

/// The ids of the calls in a reply.
pub(super) fn call_ids(reply: &Raw) -> Vec<String> {
    let object = RawObject::read(reply.get()).unwrap_or_default();
    parts(&object).iter().filter_map(|part| part.call()?.id).collect()
}

/// The contents without ids of responses to calls that have none: the client made them, and the real call took the place of the
/// one that had it.
pub(super) fn with_known_ids(contents: Vec<Raw>) -> Vec<Raw> {
    let known: HashSet<String> = contents.iter().flat_map(call_ids).collect();
    let unknown = |part: &Part| {
        let id = part.answered().and_then(|(id, _)| id);
        id.is_some_and(|id| !known.contains(&id))
    };
    let clean = |element: Raw| {
        let object = RawObject::read(element.get()).unwrap_or_default();
        let all = parts(&object);
        if !all.iter().any(unknown) {
            return element;
        }
        let cleaned =
            all.into_iter().map(|part| if unknown(&part) { part.without_id() } else { part });
        content(&role(&object), &cleaned.collect::<Vec<_>>())
    };
    contents.into_iter().map(clean).collect()
}

/// Puts results with those of the app: one content with a response for each call of the reply before it, in the order of the
/// calls, and what else the app wrote after them.
pub(super) fn put_results(contents: &mut Vec<Raw>, after: usize, results: &[Raw]) {
    let object =
        |at: usize| contents.get(at).and_then(|element| RawObject::read(element.get()).ok());
    let mut given: Vec<Part> = results.iter().cloned().map(Part::new).collect();
    let mut end = after;
    while let Some(next) = object(end).filter(|next| role(next) != "model") {
        let next = parts(&next);
        // The app may give each response a content of its own.
        if end > after && !next.iter().any(|part| part.answered().is_some()) {
            break;
        }
        given.extend(next);
        end += 1;
    }
    let calls =
        after.checked_sub(1).and_then(object).map(|reply| parts(&reply)).unwrap_or_default();
    let (mut groups, other) = groups(given);
    let mut ordered = Vec::new();
    for call in calls.iter().filter_map(Part::call) {
        let is_exact = |group: &Vec<Part>| {
            let answered = group.first().and_then(Part::answered);
            answered.is_some_and(|(id, _)| id.is_some() && id == call.id)
        };
        let is_named = |group: &Vec<Part>| {
            let answered = group.first().and_then(Part::answered);
            answered
                .is_some_and(|(id, name)| name == call.name && (id.is_none() || call.id.is_none()))
        };
        let at = groups.iter().position(is_exact).or_else(|| groups.iter().position(is_named));
        ordered.extend(at.map(|at| groups.remove(at)).into_iter().flatten());
    }
    ordered.extend(groups.into_iter().flatten());
    ordered.extend(other);
    let end = end.min(contents.len());
    contents.splice(after.min(end)..end, [content("user", &ordered)]);
}

/// Responses, each with the media that follow it, and what stands before the first response.
fn groups(given: Vec<Part>) -> (Vec<Vec<Part>>, Vec<Part>) {
    let (mut groups, mut other): (Vec<Vec<Part>>, Vec<Part>) = (Vec::new(), Vec::new());
    for part in given {
        let is_text = part.is_plain_text();
        match groups.last_mut() {
            _ if part.answered().is_some() => groups.push(vec![part]),
            Some(group) if !is_text => group.push(part),
            _ => other.push(part),
        }
    }
    (groups, other)
}
