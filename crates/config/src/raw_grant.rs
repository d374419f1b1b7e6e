//! The types of `security.jwt.grants`. As in [`crate::raw`], their doc comments become the JSON Schema that users read.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

/// What tokens with a certain claim may use. It only narrows: what `gateway` hides from clients stays hidden. A token that
/// matches several rules gets what all of them grant together.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ClaimRule")]
pub(crate) struct RawClaimRule {
    /// The claim: its name, or a JSON pointer such as `/realm_access/roles`. It may be a text, a number, a truth value or a
    /// list of these; everything else matches nothing.
    #[schemars(required, length(min = 1), extend("examples" = ["groups", "/realm_access/roles"]))]
    pub(crate) claim: Option<String>,
    /// The value that the claim must have or contain. Set either this or `values`.
    #[schemars(extend("type" = ["string", "integer", "boolean"]), extend("examples" = ["sales"]))]
    pub(crate) value: Option<Value>,
    /// Several values; one of them is enough.
    #[schemars(length(min = 1), extend("examples" = [["sales", "support"]]))]
    pub(crate) values: Option<Vec<String>>,
    /// A role, if the scopes of the token do not give a higher one.
    pub(crate) role: Option<RawRole>,
    /// Toolsets whose tools are granted. Without `toolsets` and `tools` every tool is; an empty list grants none.
    #[schemars(extend("examples" = [["crm"]]))]
    pub(crate) toolsets: Option<Vec<String>>,
    /// Tools that are granted in addition to those of `toolsets`: `tool` or `server.tool`, as names or patterns.
    #[schemars(extend("examples" = [["docs.search_*"]]))]
    pub(crate) tools: Option<Vec<String>>,
    /// Tools that are not granted, even if `toolsets` or `tools` list them.
    #[schemars(extend("examples" = [["*_delete"]]))]
    pub(crate) deny_tools: Option<Vec<String>>,
    /// Grants only tools that declare themselves read-only (`readOnlyHint`).
    pub(crate) readonly: Option<bool>,
    /// How many calls of one tool a caller may run at the same time.
    #[schemars(range(min = 1, max = 4_294_967_295u32), extend("examples" = [2]))]
    pub(crate) max_instances: Option<u32>,
    /// How often a caller may call one tool: `10/s`, `60/min`, `1000/h` or `5000/day`.
    #[schemars(extend("examples" = ["60/min"]))]
    pub(crate) rate: Option<String>,
}

/// What tokens may use that match no rule of `grants`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "DefaultGrant")]
pub(crate) struct RawDefaultGrant {
    /// A role, if the scopes of the token do not give a higher one.
    pub(crate) role: Option<RawRole>,
    /// Toolsets whose tools are granted. Without `toolsets` and `tools` every tool is; an empty list grants none.
    #[schemars(extend("examples" = [["public"]]))]
    pub(crate) toolsets: Option<Vec<String>>,
    /// Tools that are granted in addition to those of `toolsets`: `tool` or `server.tool`, as names or patterns.
    pub(crate) tools: Option<Vec<String>>,
    /// Tools that are not granted, even if `toolsets` or `tools` list them.
    pub(crate) deny_tools: Option<Vec<String>>,
    /// Grants only tools that declare themselves read-only (`readOnlyHint`).
    pub(crate) readonly: Option<bool>,
    /// How many calls of one tool a caller may run at the same time.
    #[schemars(range(min = 1, max = 4_294_967_295u32))]
    pub(crate) max_instances: Option<u32>,
    /// How often a caller may call one tool: `10/s`, `60/min`, `1000/h` or `5000/day`.
    pub(crate) rate: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub(crate) enum RawRole {
    Client,
    Operator,
    Admin,
}
