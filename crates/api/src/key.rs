//! API keys, without the keys themselves.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::merge_patch::said;

/// All API keys, oldest first, including revoked ones.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct KeyList {
    pub keys: Vec<KeyView>,
}

/// An API key.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct KeyView {
    /// Never used for another key.
    #[schema(example = "0190f3c2a1b2c3d4")]
    pub id: String,
    #[schema(example = "laptop")]
    pub name: String,
    #[schema(pattern = "^(client|operator|admin)$")]
    pub role: String,
    /// The label of the person who uses it.
    #[schema(required)]
    pub user: Option<String>,
    /// `active`, `expired` or `revoked`.
    #[schema(pattern = "^(active|expired|revoked)$")]
    pub state: String,
    pub access: AccessView,
    /// What is wrong with the access, such as a toolset that does not exist and grants nothing.
    pub warnings: Vec<String>,
    #[schema(required)]
    pub created_at: Option<String>,
    #[schema(required)]
    pub last_used_at: Option<String>,
    #[schema(required)]
    pub revoked_at: Option<String>,
    #[schema(required)]
    pub expires_at: Option<String>,
}

/// What a key grants. `null` restricts nothing; an empty list grants nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AccessView {
    /// The toolsets whose tools are granted.
    #[schema(example = json!(["crm"]), max_items = 500)]
    pub toolsets: Option<Vec<String>>,
    /// Tools that are granted in addition: `tool` or `server.tool`, as names or patterns.
    #[schema(example = json!(["docs.search_*"]), max_items = 500)]
    pub tools: Option<Vec<String>>,
    /// Tools that are not granted, as names or patterns.
    #[schema(max_items = 500)]
    pub deny: Vec<String>,
    /// Whether only tools with a `readOnlyHint` are granted.
    pub readonly: bool,
    /// How many calls of one tool may run at the same time.
    #[schema(minimum = 1)]
    pub max_instances: Option<u32>,
    /// How often one tool may be called: `10/s`, `60/min`, `1000/h` or `5000/day`.
    #[schema(example = "60/min", max_length = 32)]
    pub rate: Option<String>,
}

/// A new API key.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewKeyBody {
    /// Letters, digits, `.`, `_` and `-`. No other active key has it.
    #[schema(
        min_length = 1,
        max_length = 64,
        pattern = "^[A-Za-z0-9._][A-Za-z0-9._-]*$",
        example = "laptop"
    )]
    pub name: String,
    /// Default: `client`.
    #[serde(default)]
    #[schema(pattern = "^(client|operator|admin)$")]
    pub role: Option<String>,
    /// The label of the person who uses it.
    #[serde(default)]
    #[schema(min_length = 1, max_length = 128)]
    pub user: Option<String>,
    /// How long it is valid, such as `90d` or `12h`; without this, until it is revoked.
    #[serde(default)]
    #[schema(max_length = 64, example = "90d")]
    pub expires: Option<String>,
    #[serde(default)]
    pub access: AccessView,
}

/// A new API key, with the key itself: it is shown here and never again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct NewKeyView {
    /// The key that the client sends.
    pub key: String,
    #[serde(flatten)]
    pub shown: KeyView,
}

/// A change of an API key. A member that is missing stays as it is; `null` removes it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct KeyChange {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^(client|operator|admin)$", nullable = false)]
    pub role: Option<String>,
    #[serde(default, deserialize_with = "said", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, max_length = 128)]
    pub user: Option<Option<String>>,
    /// How long it is valid from now on, such as `90d`; `null` lets it last until it is revoked.
    #[serde(default, deserialize_with = "said", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, max_length = 64)]
    pub expires: Option<Option<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub access: Option<AccessChange>,
}

/// A change of what a key grants. A member that is missing stays as it is; `null` removes the restriction.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AccessChange {
    #[serde(default, deserialize_with = "said", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<String>>, max_items = 500)]
    pub toolsets: Option<Option<Vec<String>>>,
    #[serde(default, deserialize_with = "said", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<String>>, max_items = 500)]
    pub tools: Option<Option<Vec<String>>>,
    #[serde(default, deserialize_with = "said", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<String>>, max_items = 500)]
    pub deny: Option<Option<Vec<String>>>,
    #[serde(default, deserialize_with = "said", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<bool>)]
    pub readonly: Option<Option<bool>>,
    #[serde(default, deserialize_with = "said", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<u32>, minimum = 1)]
    pub max_instances: Option<Option<u32>>,
    #[serde(default, deserialize_with = "said", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, max_length = 32)]
    pub rate: Option<Option<String>>,
}

impl AccessView {
    /// The access after a change.
    #[must_use]
    pub fn changed(self, change: AccessChange) -> Self {
        Self {
            toolsets: change.toolsets.unwrap_or(self.toolsets),
            tools: change.tools.unwrap_or(self.tools),
            deny: change.deny.map_or(self.deny, Option::unwrap_or_default),
            readonly: change.readonly.map_or(self.readonly, Option::unwrap_or_default),
            max_instances: change.max_instances.unwrap_or(self.max_instances),
            rate: change.rate.unwrap_or(self.rate),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_change_keeps_what_is_missing_and_removes_what_is_null() {
        let before = AccessView {
            toolsets: Some(vec!["a".into()]),
            readonly: true,
            rate: Some("5/s".into()),
            ..AccessView::default()
        };
        let changed = |change: serde_json::Value| {
            let change: AccessChange = serde_json::from_value(change).unwrap();
            before.clone().changed(change)
        };
        assert_eq!(changed(json!({})), before);
        let opened = changed(json!({"toolsets": null, "readonly": false, "rate": null}));
        assert_eq!(opened, AccessView::default());
        let narrowed = changed(json!({"toolsets": [], "deny": ["x"], "max_instances": 2}));
        assert_eq!(narrowed.toolsets, Some(Vec::new()));
        assert_eq!((narrowed.deny, narrowed.max_instances), (vec!["x".to_owned()], Some(2)));
    }
}
