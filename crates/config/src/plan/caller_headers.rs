//! Headers of a server whose values come from the caller of each request.

use http::HeaderValue;
use switchboard_model::CallerHeader;

use super::{At, Planner};
use crate::problem::ConfigProblem;

/// Headers that the connection itself sets, or that carry credentials of the board.
const REFUSED: [&str; 14] = [
    "accept",
    "authorization",
    "connection",
    "content-length",
    "content-type",
    "cookie",
    "host",
    "keep-alive",
    "last-event-id",
    "proxy-authorization",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

impl Planner<'_> {
    /// The headers with references to the caller. Their names have been checked with the other ones.
    pub(super) fn caller_headers(&mut self, at: &At<'_>) -> Vec<CallerHeader> {
        let Some(place) = at.get("headers") else { return Vec::new() };
        let mut headers = Vec::new();
        for entry in place.node.entries() {
            let Some(template) = &entry.node.of_caller else { continue };
            let name = entry.key.to_ascii_lowercase();
            let fault = if REFUSED.contains(&name.as_str()) || name.starts_with("mcp-") {
                Some("is set by the connection and cannot come from the caller")
            } else if template.fixed_texts().any(|text| HeaderValue::from_str(text).is_err()) {
                Some("has a value with characters that a header cannot carry")
            } else {
                None
            };
            if let Some(fault) = fault {
                let message = format!("{}: the header {:?} {fault}", place.path, entry.key);
                let problem = ConfigProblem::error(message).about(&place.path.key(&entry.key));
                self.push(&entry.origin, problem);
            }
            headers.push(CallerHeader { name: entry.key.clone(), value: template.clone() });
        }
        headers
    }
}
