//! The request headers that make a change of an entry depend on its version. `entry_edit` evaluates them.

use utoipa::IntoParams;

/// The preconditions of replacing an entry.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
#[expect(dead_code, reason = "describes headers in the API document")]
pub(crate) struct IfReplaceable {
    /// The `ETag` of the entry that is replaced, or `*`.
    #[param(rename = "If-Match", nullable = false)]
    if_match: Option<String>,
    /// `*`: there must be no entry yet.
    #[param(rename = "If-None-Match", nullable = false)]
    if_none_match: Option<String>,
}

/// The precondition of removing an entry.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
#[expect(dead_code, reason = "describes headers in the API document")]
pub(crate) struct IfRemovable {
    /// The `ETag` of the entry that is removed, or `*`.
    #[param(rename = "If-Match", nullable = false)]
    if_match: Option<String>,
}
