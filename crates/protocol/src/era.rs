//! Decides which protocol era a message belongs to: the session era or the stateless era.

use std::sync::LazyLock;

use memchr::memmem::Finder;

use crate::meta::VERSION_KEY;
use crate::{Members, RpcMessage};

/// The protocol version of the stateless era.
pub const MODERN_VERSION: &str = "2026-07-28";
/// The newest protocol version of the session era, which begins with an `initialize` handshake.
pub const LATEST_LEGACY: &str = "2025-11-25";
/// Protocol versions of the session era, oldest first.
pub const LEGACY_VERSIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", LATEST_LEGACY];
/// Every supported protocol version, newest first.
pub const SUPPORTED_VERSIONS: [&str; 5] =
    [MODERN_VERSION, LATEST_LEGACY, "2025-06-18", "2025-03-26", "2024-11-05"];

/// The era that a message claims. A malformed stateless-era message is answered as one of the stateless era and is
/// never treated as a message of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EraClaim {
    Stateless,
    /// `initialize` with session-era parameters.
    Handshake,
    /// Any other message: it belongs to a session.
    Session,
}

/// Classifies a message; `version` is the `MCP-Protocol-Version` header, where the transport has one.
pub fn claim(message: &RpcMessage<'_>, version: Option<&str>) -> EraClaim {
    let (method, params) = match message {
        RpcMessage::Request { method, params, .. }
        | RpcMessage::Notification { method, params } => (&**method, *params),
        RpcMessage::Response { .. } => ("", None),
    };
    let read = || params.and_then(|params| Members::read(params).ok()).unwrap_or_default();
    if method == "initialize" && read().get("protocolVersion").is_some() {
        return EraClaim::Handshake;
    }
    let says_modern = version.is_some_and(is_modern)
        || method == "server/discover"
        || method == "subscriptions/listen"
        || (params.is_some_and(may_name_a_version)
            && read().object("_meta").is_some_and(|meta| meta.get(VERSION_KEY).is_some()));
    if says_modern { EraClaim::Stateless } else { EraClaim::Session }
}

/// Whether the version key can occur in `params`, so that they have to be parsed. A key can be written with escapes, so
/// a backslash counts as "can occur".
fn may_name_a_version(params: &str) -> bool {
    // Built once: building the finder costs more than searching a short text.
    static VERSION: LazyLock<Finder<'_>> = LazyLock::new(|| Finder::new(VERSION_KEY));
    VERSION.find(params.as_bytes()).is_some() || params.contains('\\')
}

/// Versions are dates and compare as strings; unknown later versions count as stateless era.
fn is_modern(version: &str) -> bool {
    version.len() == MODERN_VERSION.len() && version >= MODERN_VERSION
}

/// The version in the response to `initialize`: the requested one if it is supported, else the newest of the session
/// era.
pub fn negotiate_legacy(requested: &str) -> &'static str {
    LEGACY_VERSIONS.into_iter().find(|version| *version == requested).unwrap_or(LATEST_LEGACY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(body: &str, header: Option<&str>, expected: EraClaim) {
        let message = crate::read_message(body.as_bytes()).unwrap();
        assert_eq!(claim(&message, header), expected, "{body} {header:?}");
    }

    #[test]
    fn a_claim_is_read_from_the_message_before_the_header() {
        let list = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
        check(list, None, EraClaim::Session);
        check(list, Some("2025-11-25"), EraClaim::Session);
        check(list, Some("2026-07-28"), EraClaim::Stateless);
        check(list, Some("2027-01-01"), EraClaim::Stateless);
        check(list, Some("nonsense"), EraClaim::Session);
        let modern = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":7}}}"#;
        check(modern, Some("2025-11-25"), EraClaim::Stateless);
        let escaped = modern.replace("protocolVersion", r"protocol\u0056ersion");
        check(&escaped, None, EraClaim::Stateless);
        let elsewhere = modern.replace("_meta", "meta");
        check(&elsewhere, None, EraClaim::Session);
        check(r#"{"jsonrpc":"2.0","id":1,"method":"server/discover"}"#, None, EraClaim::Stateless);
        let handshake = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2026-07-28"}}"#;
        check(handshake, None, EraClaim::Handshake);
        check(handshake, Some("2026-07-28"), EraClaim::Handshake);
        let hollow = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#;
        check(hollow, None, EraClaim::Stateless);
    }

    #[test]
    fn an_old_client_gets_its_version_and_a_newer_one_our_newest() {
        for version in LEGACY_VERSIONS {
            assert_eq!(negotiate_legacy(version), version);
        }
        assert_eq!(negotiate_legacy(MODERN_VERSION), LATEST_LEGACY);
        assert_eq!(negotiate_legacy("1999-01-01"), LATEST_LEGACY);
    }
}
