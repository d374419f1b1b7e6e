//! The types of `records` and `record`. As in [`crate::raw`], their doc comments become the JSON Schema.

use schemars::JsonSchema;
use serde::Deserialize;
use switchboard_model as model;

use crate::raw::RawDuration;

/// How many records of calls are kept, and what is removed from them.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Records")]
pub(crate) struct RawRecords {
    /// Older records are deleted. Default: 30 days.
    pub(crate) max_age: Option<RawDuration>,
    /// How many records are kept; the oldest are deleted.
    #[schemars(range(min = 1, max = 100_000_000), extend("default" = model::DEFAULT_RECORDS_MAX_COUNT))]
    pub(crate) max_count: Option<u64>,
    /// How much space recorded arguments and results may take in total; the oldest are deleted, and their records stay.
    #[schemars(range(min = 0), extend("default" = model::DEFAULT_RECORDS_MAX_CONTENT_BYTES))]
    pub(crate) max_content_bytes: Option<u64>,
    /// Regular expressions. What they match is replaced by `***` in recorded arguments, results and errors, as are the
    /// matches of `threat_protection.redact` and the secrets of this file.
    #[schemars(length(max = 100), extend("examples" = [["\\b\\d{3}-\\d{2}-\\d{4}\\b"]]))]
    pub(crate) redact: Option<Vec<String>>,
}

/// What is recorded of the content of calls, besides who called what and how it ended. Default: nothing.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Record")]
pub(crate) struct RawRecord {
    /// Whether the arguments are recorded, as the caller gave them. Secrets are removed, and long ones are cut.
    pub(crate) arguments: Option<bool>,
    /// Whether the results are recorded. Secrets are removed, and long ones are cut.
    pub(crate) results: Option<bool>,
}
