//! The caller of a request, as the board sees it.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Who the credentials of a request belong to, and what they permit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MeView {
    /// `local`, `key:` and the id of a key, or `jwt:` and the subject of a token. Records of calls and sessions name it.
    #[schema(example = "local")]
    pub principal: String,
    /// The name of the key or of the token's subject, if one is known.
    #[schema(required)]
    pub name: Option<String>,
    /// The person behind the principal, whichever program they use.
    pub person: String,
    /// `client`, `operator` or `admin`: the role that decides which operations are permitted.
    #[schema(pattern = "^(client|operator|admin)$")]
    pub role: String,
    /// Where the identity comes from.
    pub access: AccessKind,
    /// Whether the credentials grant only some of the tools. Then lists leave out the others.
    pub narrowed: bool,
    /// Whether the caller sees all tools and what other callers do with them.
    pub oversees: bool,
    /// The version of the board.
    pub version: String,
    /// How tools are exposed to MCP clients by default: `legacy`, `static` or `dynamic`.
    pub exposure: String,
}

/// Where the identity of a caller comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum AccessKind {
    /// No credentials are required.
    Open,
    /// An API key.
    Key,
    /// A token of an authorization server.
    Token,
}
