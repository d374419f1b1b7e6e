//! The differences between the package and our client that are meant, each with its reason.

/// Headers that differ in every request, and why.
pub(super) const IN_EVERY_REQUEST: &[(&str, &str)] = &[
    ("user-agent", "our own name, in the same form"),
    ("accept-encoding", "answers are small, and a compressed one could grow without a bound"),
];

const NOT_SENT: &str = "a token stays with the platform, and the caller is told; the extension packages send it to every server";
const ESCAPED: &str = "a slash in an id does not change the structure of the path";
const ONE_BEARER: &str = "a token with `Bearer ` in it is not doubled";
const ATTACHED: &str =
    "the token is attached where it belongs, so that no caller attaches it to all servers";
const UNIQUE_NAME: &str =
    "the unique name is the name in addresses, or the address itself, as the design document says";
const RESOLVED: &str = "a relative address is resolved, not handed out";
const REPORTED: &str = "an entry that cannot be used is reported, not skipped silently";
const BLANK: &str = "a blank counts as empty";
const CAUSE: &str = "the same beginning; the cause is in the words of our libraries";
const OTHERS_STAY: &str =
    "a server without a token costs no other; it is reported with the same text";
const PRODUCTION: &str = "a missing variable does not replace the gateway by a local file; `DefaultEnvironment` switches";
const LEAK: &str = "a token that is not for a server is not sent to it";
const SAME_HOST: &str = "a redirect to another host is not followed";
const ANY_2XX: &str = "every status of success is one";
const AS_DATA: &str = "what a turn lacks is an error of the result, like every other";
const CONFIGURED: &str = "a conversation is sent to no host that is not configured";
const BASE_URL: &str = "`MCP_BASE_URL` of the design document is honoured";
const ONE_SLASH: &str = "a slash at the end of the address is not doubled";

/// Case, member, the package's value, ours, and why. An absent member is empty.
pub(super) const DIFFERENCES: &[(&str, &str, &str, &str, &str)] = &[
    (
        "slash-in-id",
        "/requests/0/path",
        "/agents/v2/a/b/mcpServers",
        "/agents/v2/a%2Fb/mcpServers",
        ESCAPED,
    ),
    (
        "bearer",
        "/requests/0/headers/authorization",
        "Bearer Bearer token-1",
        "Bearer token-1",
        ONE_BEARER,
    ),
    (
        "bare-list",
        "/result/warnings/0",
        "",
        "the platform's token is not sent to MCP servers [a]: their addresses are not the platform's",
        NOT_SENT,
    ),
    (
        "members",
        "/result/warnings/0",
        "",
        "the platform's token is not sent to MCP servers [a]: their addresses are not the platform's",
        NOT_SENT,
    ),
    (
        "sentinels",
        "/result/warnings/0",
        "",
        "the platform's token is not sent to MCP servers [a, b]: their addresses are not the platform's",
        NOT_SENT,
    ),
    ("name-only", "/result/servers/0/headers/Authorization", "", "Bearer token-1", ATTACHED),
    ("unique-name", "/result/servers/0/headers/Authorization", "", "Bearer token-1", ATTACHED),
    (
        "unique-name",
        "/result/servers/0/url",
        "BASE/agents/servers/mail",
        "BASE/agents/servers/mcp_MailTools",
        UNIQUE_NAME,
    ),
    (
        "unique-name",
        "/result/servers/1/url",
        "BASE/agents/servers/files",
        "https://files.test/mcp",
        UNIQUE_NAME,
    ),
    (
        "unique-name",
        "/result/warnings/0",
        "",
        "the platform's token is not sent to MCP servers [files]: their addresses are not the platform's",
        NOT_SENT,
    ),
    ("relative-url", "/result/servers/0/headers/Authorization", "", "Bearer token-1", ATTACHED),
    (
        "relative-url",
        "/result/servers/0/url",
        "mcp_MailTools",
        "BASE/agents/servers/mcp_MailTools",
        RESOLVED,
    ),
    (
        "relative-url",
        "/result/warnings/0",
        "",
        "url 'mcp_MailTools' of MCP server 'mail' is not absolute and was resolved below BASE/agents/servers",
        RESOLVED,
    ),
    (
        "bad-entries",
        "/result/warnings/0",
        "",
        "Failed to parse server config from element 'x': it is no object",
        REPORTED,
    ),
    (
        "bad-entries",
        "/result/warnings/1",
        "",
        "Failed to parse server config from element 7: it is no object",
        REPORTED,
    ),
    ("bad-entries", "/result/warnings/2", "", "mcpServerName is missing", REPORTED),
    ("bad-entries", "/result/warnings/3", "", "mcp_server_name cannot be empty", REPORTED),
    ("bad-entries", "/result/warnings/4", "", "mcpServerName is 7, which is no string", REPORTED),
    (
        "bad-entries",
        "/result/warnings/5",
        "",
        "the platform's token is not sent to MCP servers [good]: their addresses are not the platform's",
        NOT_SENT,
    ),
    ("blank-agent", "/requests", "1", "0", BLANK),
    (
        "blank-agent",
        "/result",
        "servers: mail",
        "error: agentic_app_id cannot be empty or None",
        BLANK,
    ),
    ("blank-token", "/requests", "1", "0", BLANK),
    ("blank-token", "/result", "servers: mail", "error: auth_token cannot be empty or None", BLANK),
    (
        "html",
        "/result/error",
        "Failed to parse MCP server configuration response: Expecting value: line 1 column 1 (char 0)",
        "Failed to parse MCP server configuration response: expected value at line 1 column 1",
        CAUSE,
    ),
    (
        "audience",
        "/result",
        "error: MCP servers [v2srv] require per-audience token exchange (V2) but no authorization context was provided. Pass authorization, auth_handler_name, and turn_context to list_tool_servers().",
        "servers: good",
        OTHERS_STAY,
    ),
    (
        "redirect",
        "/result",
        "servers: ",
        "error: Failed to read MCP servers from endpoint: HTTP 302: redirects to OTHER, and the token is not for another host; set the address of the gateway to the new one if it moved",
        SAME_HOST,
    ),
    (
        "unreachable",
        "/result/error",
        "Failed to connect to MCP configuration endpoint: Cannot connect to host 127.0.0.1:9 ssl:default [Connect call failed ('127.0.0.1', 9)]",
        "Failed to connect to MCP configuration endpoint: cannot connect: Connection refused (os error 111)",
        CAUSE,
    ),
    (
        "dev",
        "/result/warnings/0",
        "Failed to parse server config from element 'x': 'str' object has no attribute 'get'",
        "Failed to parse server config from element 'x': it is no object",
        CAUSE,
    ),
    (
        "dev-other-variable",
        "/result/warnings/0",
        "Failed to parse server config from element 'x': 'str' object has no attribute 'get'",
        "Failed to parse server config from element 'x': it is no object",
        CAUSE,
    ),
    (
        "dev-python-first",
        "/result/warnings/0",
        "Failed to parse server config from element 'x': 'str' object has no attribute 'get'",
        "Failed to parse server config from element 'x': it is no object",
        CAUSE,
    ),
    (
        "dev-by-default",
        "/result",
        "servers: mail, files, foreign, crm",
        "error: agentic_app_id cannot be empty or None",
        PRODUCTION,
    ),
    ("dev-own-token", "/result/servers/1/headers/Authorization", "Bearer mail-token", "", LEAK),
    ("dev-own-token", "/result/servers/2/headers/Authorization", "Bearer mail-token", "", LEAK),
    (
        "dev-own-token",
        "/result/warnings/0",
        "Failed to parse server config from element 'x': 'str' object has no attribute 'get'",
        "Failed to parse server config from element 'x': it is no object",
        CAUSE,
    ),
    (
        "dev-shared-token",
        "/result/servers/2/headers/Authorization",
        "Bearer shared-token",
        "",
        LEAK,
    ),
    (
        "dev-shared-token",
        "/result/servers/3/headers/Authorization",
        "Bearer shared-token",
        "",
        LEAK,
    ),
    (
        "dev-shared-token",
        "/result/warnings/0",
        "Failed to parse server config from element 'x': 'str' object has no attribute 'get'",
        "Failed to parse server config from element 'x': it is no object",
        CAUSE,
    ),
    (
        "dev-shared-token",
        "/result/warnings/1",
        "Dev: MCP server 'crm' requires scope 'api://crm/Tools.All' but only BEARER_TOKEN is set. The shared token is scoped to a different audience and will likely cause a 401. Set BEARER_TOKEN_CRM to a token acquired for the correct audience.",
        "Dev: MCP server 'crm' requires scope 'api://crm/Tools.All' but only BEARER_TOKEN is set. The shared token is scoped to a different audience and is not sent. Set BEARER_TOKEN_CRM to a token acquired for the correct audience.",
        LEAK,
    ),
    (
        "dev-shared-token",
        "/result/warnings/2",
        "",
        "BEARER_TOKEN is not sent to MCP servers [foreign]: their addresses are not the platform's",
        NOT_SENT,
    ),
    (
        "chat-201",
        "/result/errors/0",
        "201, message='said', url='BASE/agents/real-time-threat-protection/chat-message'",
        "",
        ANY_2XX,
    ),
    ("chat-201", "/result/succeeded", "false", "true", ANY_2XX),
    (
        "chat-201",
        "/result/text",
        "Failed: 201, message='said', url='BASE/agents/real-time-threat-protection/chat-message'",
        "Succeeded",
        ANY_2XX,
    ),
    (
        "chat-no-conversation",
        "/result",
        "error: conversation_id cannot be empty or None (from turn_context.activity.conversation.id)",
        "result: Failed: conversation_id cannot be empty or None (from turn_context.activity.conversation.id)",
        AS_DATA,
    ),
    (
        "chat-no-message",
        "/result",
        "error: message_id cannot be empty or None (from turn_context.activity.id)",
        "result: Failed: message_id cannot be empty or None (from turn_context.activity.id)",
        AS_DATA,
    ),
    (
        "chat-no-text",
        "/result",
        "error: user_message cannot be empty or None (from turn_context.activity.text)",
        "result: Failed: user_message cannot be empty or None (from turn_context.activity.text)",
        AS_DATA,
    ),
    (
        "urls-by-default",
        "/result/chat",
        "https://agent365.svc.cloud.microsoft/agents/real-time-threat-protection/chat-message",
        "no threat-protection endpoint is configured, and a conversation is sent to no other host; set MCP_PLATFORM_ENDPOINT",
        CONFIGURED,
    ),
    ("urls-base", "/result/base", "BASE/agents/servers", "http://127.0.0.1:9/servers", BASE_URL),
    (
        "urls-base",
        "/result/server",
        "BASE/agents/servers/mcp_MailTools",
        "http://127.0.0.1:9/servers/mcp_MailTools",
        BASE_URL,
    ),
    (
        "urls-slash",
        "/result/base",
        "https://platform.test//agents/servers",
        "https://platform.test/agents/servers",
        ONE_SLASH,
    ),
    (
        "urls-slash",
        "/result/chat",
        "https://platform.test//agents/real-time-threat-protection/chat-message",
        "https://platform.test/agents/real-time-threat-protection/chat-message",
        ONE_SLASH,
    ),
    (
        "urls-slash",
        "/result/gateway",
        "https://platform.test//agents/v2/app-id-123/mcpServers",
        "https://platform.test/agents/v2/app-id-123/mcpServers",
        ONE_SLASH,
    ),
    (
        "urls-slash",
        "/result/server",
        "https://platform.test//agents/servers/mcp_MailTools",
        "https://platform.test/agents/servers/mcp_MailTools",
        ONE_SLASH,
    ),
];
