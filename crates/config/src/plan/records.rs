//! Validates the `records` section, and `record` of tools and servers.

use serde_json::Value as Json;
use switchboard_model::{RecordOverlay, RecordsPlan};

use super::{At, Planner};
use crate::raw_records::{RawRecord, RawRecords};

impl Planner<'_> {
    pub(super) fn records(&mut self, config: &At<'_>, sound: &Json) -> RecordsPlan {
        let Some(at) = config.get("records") else { return RecordsPlan::default() };
        let raw: RawRecords = serde_json::from_value(sound["records"].clone()).unwrap_or_default();
        let built_in = RecordsPlan::default();
        self.check_redactions(&at);
        RecordsPlan {
            max_age: self.duration(&at, "max_age", raw.max_age).unwrap_or(built_in.max_age),
            max_count: raw.max_count.unwrap_or(built_in.max_count),
            max_content_bytes: raw.max_content_bytes.unwrap_or(built_in.max_content_bytes),
            redact: raw.redact.unwrap_or_default(),
        }
    }
}

/// What a tool or server entry says about the contents of calls.
pub(super) fn record(raw: Option<RawRecord>) -> RecordOverlay {
    let raw = raw.unwrap_or_default();
    RecordOverlay { arguments: raw.arguments, results: raw.results }
}
