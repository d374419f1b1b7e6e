//! Errors of the API (RFC 9457).

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The prefix of `type`, before the kind. It identifies the problem and is not a URL to open.
pub const PROBLEM_TYPE_BASE: &str = "urn:switchboard:problem:";

/// An error, for programs (`type`) and for people (`detail`, `hint`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Problem {
    /// `urn:switchboard:problem:` followed by the kind, which programs can compare.
    #[serde(rename = "type")]
    #[schema(example = "urn:switchboard:problem:unknown_tool")]
    pub kind_uri: String,
    /// The kind in words.
    #[schema(example = "unknown tool")]
    pub title: String,
    /// The HTTP status.
    #[schema(minimum = 400, maximum = 599, example = 404)]
    pub status: u16,
    /// The error message, for people.
    #[schema(example = "there is no tool 'demo.ech'")]
    pub detail: String,
    /// How to repair the error, if that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The id of the failed call, if it was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    /// The errors of single values, if there are any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<FieldError>,
    /// The page where the person signs in, if that is what the call needs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sign_in: Option<SignInPageView>,
    /// The seconds after which the request may succeed, as in `Retry-After`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<u64>,
}

/// The page where a person signs in at a server, so that a call can use the person's own account.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SignInPageView {
    #[schema(example = "tracker")]
    pub server: String,
    #[schema(example = "https://tools.example.com/connect/0f1e")]
    pub url: String,
    /// What the page asks for. Absent where it asks for nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// When the page stops working, in milliseconds since 1970.
    pub expires_at_ms: i64,
}

/// An error in one value of a document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FieldError {
    /// The JSON pointer of the value in the document; empty for the document as a whole.
    #[schema(example = "/arguments/0/type")]
    pub path: String,
    pub message: String,
}

impl Problem {
    /// A problem of a kind such as `unknown_tool`.
    pub fn new(kind: &str, status: u16, detail: impl Into<String>) -> Self {
        Self {
            kind_uri: format!("{PROBLEM_TYPE_BASE}{kind}"),
            title: kind.replace('_', " "),
            status,
            detail: detail.into(),
            hint: None,
            call: None,
            errors: Vec::new(),
            sign_in: None,
            retry_after: None,
        }
    }

    /// The kind: `type` without its prefix.
    pub fn kind(&self) -> &str {
        self.kind_uri.strip_prefix(PROBLEM_TYPE_BASE).unwrap_or(&self.kind_uri)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_is_written_as_the_standard_says_and_read_back() {
        let problem = Problem::new("unknown_tool", 404, "there is no tool 'x'");
        let text = serde_json::to_string(&problem).unwrap();
        assert_eq!(
            text,
            r#"{"type":"urn:switchboard:problem:unknown_tool","title":"unknown tool","status":404,"detail":"there is no tool 'x'"}"#
        );
        let read: Problem = serde_json::from_str(&text).unwrap();
        assert_eq!((read.kind(), &read), ("unknown_tool", &problem));
    }
}
