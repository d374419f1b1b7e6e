//! Content parts in Gemini's format.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::{Map, Value};
use switchboard_chat::attachment::{Attachment, File};
use switchboard_chat::{Part, Place, ToolCall, ToolReturn, pieces};

use crate::{name, tool_results};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum ContentRole {
    User,
    Model,
}

/// One entry of `contents`.
#[derive(Debug, Serialize)]
pub(super) struct Content<'a> {
    pub(super) role: ContentRole,
    pub(super) parts: Vec<RawPart<'a>>,
    /// Whether this holds tool results. No other parts may be added to it.
    #[serde(skip)]
    pub(super) is_answer: bool,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RawPart<'a> {
    #[serde(flatten)]
    pub(super) piece: PartData<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) thought_signature: Option<&'a str>,
}

impl<'a> From<PartData<'a>> for RawPart<'a> {
    fn from(piece: PartData<'a>) -> Self {
        Self { piece, thought_signature: None }
    }
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum PartData<'a> {
    Text(Cow<'a, str>),
    #[serde(rename_all = "camelCase")]
    InlineData {
        mime_type: Cow<'a, str>,
        data: &'a str,
    },
    #[serde(rename_all = "camelCase")]
    FileData {
        mime_type: Cow<'a, str>,
        file_uri: &'a str,
    },
    FunctionCall {
        id: &'a str,
        name: Cow<'a, str>,
        args: Cow<'a, Value>,
    },
    FunctionResponse {
        id: &'a str,
        name: Cow<'a, str>,
        response: Map<String, Value>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        parts: Vec<PartData<'a>>,
    },
}

impl<'a> PartData<'a> {
    pub(super) fn text(text: impl Into<Cow<'a, str>>) -> Option<Self> {
        let text = text.into();
        (!text.trim().is_empty()).then_some(Self::Text(text))
    }

    pub(super) fn part(part: &'a Part) -> Option<Self> {
        match Attachment::of(part) {
            Attachment::Text(text) => Self::text(text),
            Attachment::Image(file) | Attachment::Pdf(file) | Attachment::Other(file) => {
                Some(Self::media(file))
            }
        }
    }

    /// A media part; an unsupported type is replaced by a text, because the API rejects it.
    fn media(file: File<'a>) -> Self {
        let is_known = match &*file.media_type {
            "image/png" | "image/jpeg" | "image/webp" | "image/heic" | "image/heif"
            | "application/pdf" => true,
            other => other.starts_with("audio/") || other.starts_with("video/"),
        };
        match file.place {
            _ if !is_known => Self::Text(file.not_shown().into()),
            Place::Data(data) => Self::InlineData { mime_type: file.media_type, data },
            Place::Url(file_uri) => Self::FileData { mime_type: file.media_type, file_uri },
        }
    }

    /// Whether the part may be nested in a function response.
    fn nests(&self) -> bool {
        match self {
            Self::InlineData { mime_type, .. } | Self::FileData { mime_type, .. } => {
                mime_type.starts_with("image/") || mime_type == "application/pdf"
            }
            Self::Text(_) | Self::FunctionCall { .. } | Self::FunctionResponse { .. } => false,
        }
    }
}

/// The parts of a tool result: the function response, followed by media that cannot be nested in it.
pub(super) fn answer<'a>(
    call: &'a ToolCall,
    id: &'a str,
    result: Option<&'a ToolReturn>,
    nests_media: bool,
) -> Vec<PartData<'a>> {
    let name = name::legal(&call.name);
    let Some(result) = result else {
        let response = Map::from_iter([("error".into(), tool_results::UNKNOWN.into())]);
        return vec![PartData::FunctionResponse { id, name, response, parts: Vec::new() }];
    };
    let (text, media) = pieces(result);
    let mut words = Vec::new();
    let (mut nested, mut beside) = (Vec::new(), Vec::new());
    for piece in media.into_iter().filter_map(PartData::part) {
        match piece {
            PartData::Text(text) => words.push(text),
            piece if nests_media && piece.nests() => nested.push(piece),
            piece => beside.push(piece),
        }
    }
    let response = response(result, text, &words);
    let first = PartData::FunctionResponse { id, name, response, parts: nested };
    [first].into_iter().chain(beside).collect()
}

/// The response object with `output` or `error`. Structured content stays an object; notes about files are added to it.
fn response(result: &ToolReturn, text: String, words: &[Cow<'_, str>]) -> Map<String, Value> {
    let mut response = Map::new();
    match &result.structured {
        Some(structured) if !result.is_error => {
            response.insert("output".into(), structured.clone());
            if !words.is_empty() {
                response.insert("files".into(), words.join("\n").into());
            }
        }
        Some(_) | None => {
            let text = Some(Cow::<str>::Owned(text)).filter(|text| !text.is_empty());
            let all: Vec<_> = text.into_iter().chain(words.iter().cloned()).collect();
            let text = match all.join("\n") {
                text if text.trim().is_empty() && result.is_error => "(no output)".into(),
                text => text,
            };
            let key = if result.is_error { "error" } else { "output" };
            response.insert(key.into(), text.into());
        }
    }
    response
}
