//! Members of a merge patch (RFC 7396): a value, `null`, or absent.

use serde::{Deserialize, Deserializer};

/// Distinguishes `null` from an absent field.
#[expect(
    clippy::option_option,
    reason = "a merge patch has three cases, and serde's defaults do the third"
)]
pub(crate) fn said<'de, D, T>(deserializer: D) -> Result<Option<Option<T>>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    Option::deserialize(deserializer).map(Some)
}
