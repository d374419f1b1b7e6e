//! A response, or one chunk of it, taken apart.

use serde_json::Value;

use super::part::{Part, member, parsed, parts, remove_member, set_member};
use crate::raw_json::{Raw, RawObject, array, elements};
use crate::{Refusal, RefusalKind};

/// A chunk of a response. Only its first candidate is read: more are never asked for.
#[derive(Debug, Clone, Default)]
pub(super) struct Chunk {
    response: RawObject,
    candidate: Option<RawObject>,
    content: Option<RawObject>,
    pub(super) parts: Vec<Part>,
    pub(super) finish_reason: Option<String>,
    /// The prompt was refused: no candidate comes.
    pub(super) is_blocked: bool,
    pub(super) usage: Option<Raw>,
}

impl Chunk {
    pub(super) fn read(text: &str) -> Result<Self, Refusal> {
        let mut response = RawObject::read(text).map_err(|error| {
            let message = format!("the provider sent an answer that is not a JSON object: {error}");
            Refusal::new(RefusalKind::Upstream, message)
        })?;
        if let Some(error) = response.get("error") {
            return Err(provider_error(error.get(), text));
        }
        let usage = member(&response, "usageMetadata").map(ToOwned::to_owned);
        remove_member(&mut response, "usageMetadata");
        let candidate = response.get("candidates").and_then(elements);
        let candidate = candidate.and_then(|all| RawObject::read(all.first()?.get()).ok());
        let content = candidate.as_ref().and_then(|one| one.parsed::<RawObject>("content"));
        let feedback = parsed::<RawObject>(&response, "promptFeedback").unwrap_or_default();
        Ok(Self {
            parts: content.as_ref().map(parts).unwrap_or_default(),
            finish_reason: candidate.as_ref().and_then(|one| parsed(one, "finishReason")),
            is_blocked: candidate.is_none() && member(&feedback, "blockReason").is_some(),
            response,
            candidate,
            content,
            usage,
        })
    }

    /// A chunk that the provider did not send.
    pub(super) fn of_parts(parts: Vec<Part>) -> Self {
        let mut candidate = RawObject::default();
        candidate.set("index", crate::raw_json::to_raw(&0));
        Self { candidate: Some(candidate), parts, ..Self::default() }
    }

    /// Whether the candidate says something besides its parts, such as the sources of the answer.
    pub(super) fn has_more(&self) -> bool {
        let expected = ["content", "index", "finishReason", "finish_reason"];
        self.candidate
            .as_ref()
            .is_some_and(|candidate| candidate.names().any(|name| !expected.contains(&name)))
    }

    /// The id of the response.
    pub(super) fn id(&self) -> Option<Raw> {
        member(&self.response, "responseId").map(ToOwned::to_owned)
    }

    pub(super) fn set_id(&mut self, id: &Raw) {
        set_member(&mut self.response, "responseId", id.clone());
    }

    pub(super) fn set_finish_reason(&mut self, reason: &str) {
        self.finish_reason = Some(reason.to_owned());
        let candidate = self.candidate.get_or_insert_default();
        set_member(candidate, "finishReason", crate::raw_json::to_raw(&reason));
    }

    /// The same chunk without its end.
    pub(super) fn without_end(mut self) -> Self {
        if let Some(candidate) = &mut self.candidate {
            remove_member(candidate, "finishReason");
            remove_member(candidate, "finishMessage");
        }
        self.finish_reason = None;
        self
    }

    /// Writes the chunk with its parts, as they are now.
    pub(super) fn build(&self) -> RawObject {
        let mut response = self.response.clone();
        if let Some(candidate) = &self.candidate {
            let mut candidate = candidate.clone();
            if self.content.is_some() || !self.parts.is_empty() {
                let mut content = self.content.clone().unwrap_or_default();
                if content.get("role").is_none() {
                    content.set("role", crate::raw_json::to_raw(&"model"));
                }
                content.set("parts", array(self.parts.iter().map(|part| part.raw.get())));
                candidate.set("content", content.to_raw());
            }
            response.set("candidates", array([candidate.to_json().as_str()]));
        }
        if let Some(usage) = &self.usage {
            set_member(&mut response, "usageMetadata", usage.clone());
        }
        response
    }
}

/// The error that a provider sends within a stream.
fn provider_error(error: &str, data: &str) -> Refusal {
    let error: Value = serde_json::from_str(error).unwrap_or_default();
    let code = error["code"].as_u64().and_then(|code| u16::try_from(code).ok());
    let status = code.filter(|code| (400..600).contains(code)).unwrap_or(500);
    let kind = match status {
        401 => RefusalKind::Unauthorized,
        403 => RefusalKind::Forbidden,
        404 => RefusalKind::NotFound,
        429 => RefusalKind::RateLimited,
        400..500 => RefusalKind::Invalid,
        503 => RefusalKind::Overloaded,
        _ => RefusalKind::Upstream,
    };
    let message = error["message"].as_str().unwrap_or("the provider failed").to_owned();
    Refusal { status: Some(status), body: Some(data.into()), ..Refusal::new(kind, message) }
}
