//! Error codes of JSON-RPC and of MCP.

pub const PARSE_ERROR: i64 = -32_700;
pub const INVALID_REQUEST: i64 = -32_600;
pub const METHOD_NOT_FOUND: i64 = -32_601;
pub const INVALID_PARAMS: i64 = -32_602;
pub const INTERNAL_ERROR: i64 = -32_603;
/// "Resource not found" in the session era; the stateless era uses [`INVALID_PARAMS`].
pub const LEGACY_RESOURCE_NOT_FOUND: i64 = -32_002;
/// General server error of the session era; servers use it for a missing session or handshake.
pub const LEGACY_SERVER_ERROR: i64 = -32_000;
/// Session-era error for a request that needs URL elicitation first: the user opens the pages listed in the error's
/// data, then the request is repeated.
pub const LEGACY_URL_ELICITATION_REQUIRED: i64 = -32_042;
pub const HEADER_MISMATCH: i64 = -32_020;
pub const MISSING_CLIENT_CAPABILITY: i64 = -32_021;
pub const UNSUPPORTED_PROTOCOL_VERSION: i64 = -32_022;
