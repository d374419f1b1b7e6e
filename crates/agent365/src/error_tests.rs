//! Each text of the package. What produces them is tested where it happens; here the words are.

use super::*;

#[track_caller]
fn check(error: &ToolingError, expected: &str) {
    assert_eq!(error.to_string(), expected);
}

#[test]
fn error_texts_of_validation() {
    check(&ToolingError::EmptyAgentId, "agentic_app_id cannot be empty or None");
    check(&ToolingError::EmptyToken, "auth_token cannot be empty or None");
}

#[test]
fn error_text_of_a_status() {
    let error = ToolingError::Status { status: 401, body: "no".to_owned() };
    check(&error, "Failed to read MCP servers from endpoint: HTTP 401: no");
    assert!(error.to_string().contains("HTTP 401: no"), "the design document's text is in it");
}

#[test]
fn error_texts_of_parsing_connecting_and_the_manifest() {
    let reason = || "because".to_owned();
    check(
        &ToolingError::Unparsable { reason: reason() },
        "Failed to parse MCP server configuration response: because",
    );
    check(
        &ToolingError::Connect { reason: reason() },
        "Failed to connect to MCP configuration endpoint: because",
    );
    check(
        &ToolingError::Manifest { reason: reason() },
        "Failed to read MCP servers from ToolingManifest.json: because",
    );
}

#[test]
fn error_texts_of_tokens() {
    let error =
        ToolingError::AudienceTokensRequired { servers: vec!["v2a".to_owned(), "v2b".to_owned()] };
    check(
        &error,
        "MCP servers [v2a, v2b] require per-audience token exchange (V2) but no authorization context was \
         provided. Pass authorization, auth_handler_name, and turn_context to list_tool_servers().",
    );
    let hint = error.hint().unwrap();
    assert_eq!(hint, "set BEARER_TOKEN_V2A, BEARER_TOKEN_V2B, or use a `TokenExchange`");
    check(
        &ToolingError::TokenExchange { server: "v1a".to_owned(), scope: "app/.default".to_owned() },
        "Failed to obtain token for MCP server 'v1a' (scope: app/.default)",
    );
}

#[test]
fn error_text_of_missing_connections() {
    check(
        &ToolingError::ConnectionsRequired {
            servers: vec!["a".to_owned(), "b".to_owned()],
            url: "https://setup.test".to_owned(),
        },
        "MCP servers [a, b] require connection setup (connectivityStatus=Pending). Set up missing connections at: \
         https://setup.test",
    );
}

#[test]
fn error_texts_of_a_turn() {
    for (invalid, expected) in [
        (
            InvalidTurn::ConversationId,
            "conversation_id cannot be empty or None (from turn_context.activity.conversation.id)",
        ),
        (
            InvalidTurn::MessageId,
            "message_id cannot be empty or None (from turn_context.activity.id)",
        ),
        (
            InvalidTurn::UserMessage,
            "user_message cannot be empty or None (from turn_context.activity.text)",
        ),
    ] {
        check(&ToolingError::InvalidTurn(invalid), expected);
    }
}

#[test]
fn error_texts_of_a_report() {
    let url = || "https://guard.test/chat".to_owned();
    check(
        &ToolingError::ChatStatus { status: 500, body: "broken".to_owned(), url: url() },
        "500, message='broken', url='https://guard.test/chat'",
    );
    check(
        &ToolingError::ChatTimeout { url: url(), after: Duration::from_secs(30) },
        "no whole answer from https://guard.test/chat within 30 s",
    );
}
