//! The operations, and what the platform answers to them.

use serde_json::{Value, json};

use crate::recorder::Reply;

/// One operation.
pub(super) struct Case {
    /// Also the first segment of the platform's path.
    pub(super) name: &'static str,
    /// As `e2e/agent365/tooling.py` takes it.
    pub(super) operation: Value,
    /// Variables beside those of every case; `None` removes one of them.
    pub(super) env: &'static [(&'static str, Option<&'static str>)],
    pub(super) reply: Reply,
}

/// The manifest that both find in development.
pub(super) const MANIFEST: &str = r#"{"mcpServers": [
    {"mcpServerName": "mail", "mcpServerUniqueName": "mail"},
    {"mcpServerName": "files"},
    {"mcpServerName": "foreign", "url": "https://foreign.test/mcp"},
    {"mcpServerName": "crm", "url": "https://crm.test/mcp", "audience": "api://CRM", "scope": "Tools.All"},
    "x"
]}"#;

/// The case in which the gateway redirects to another host.
pub(super) const REDIRECTING: &str = "redirect";

/// A JWT with `{"appid": "app-of-token", "azp": "azp-of-token"}` in it.
const JWT: &str =
    "eyJhbGciOiJub25lIn0.eyJhcHBpZCI6ImFwcC1vZi10b2tlbiIsImF6cCI6ImF6cC1vZi10b2tlbiJ9.c2ln";

const NO_ENV: &[(&str, Option<&str>)] = &[];

fn list(name: &'static str, agent: &str, token: &str, reply: Reply) -> Case {
    let operation = json!({"op": "list", "agent": agent, "token": token});
    Case { name, operation, env: NO_ENV, reply }
}

fn servers(entries: &Value) -> Reply {
    Reply::new(200, json!({"mcpServers": entries}).to_string())
}

fn mail() -> Reply {
    servers(&json!([{"mcpServerName": "mail", "url": "https://mail.test/mcp"}]))
}

/// For cases that look at the request alone.
fn none() -> Reply {
    Reply::new(200, "[]")
}

fn chat(name: &'static str, turn: &Value, status: u16) -> Case {
    let operation = json!({"op": "chat", "turn": turn, "history": []});
    Case { name, operation, env: NO_ENV, reply: Reply::new(status, "said") }
}

fn turn() -> Value {
    json!({"conversation": "conv", "message": "msg", "text": "What now?"})
}

impl Case {
    fn with(mut self, member: &str, value: Value) -> Self {
        self.operation[member] = value;
        self
    }

    fn env(mut self, env: &'static [(&'static str, Option<&'static str>)]) -> Self {
        self.env = env;
        self
    }
}

pub(super) fn cases() -> Vec<Case> {
    [requests(), answers(), failures(), development(), chats(), addresses()]
        .into_iter()
        .flatten()
        .collect()
}

fn requests() -> Vec<Case> {
    let token = "token-1";
    vec![
        list("plain", "app-id-123", token, none()).with("orchestrator", json!("LangChain")),
        list("no-orchestrator", "app-id-123", token, none()),
        list("jwt", "app-id-123", JWT, none()),
        list("turn", "app-id-123", token, none())
            .with("turn", json!({"message": "activity-1", "blueprint": "blueprint-1"})),
        list("application", "app-id-123", token, none())
            .env(&[("AGENT365_APPLICATION_NAME", Some("my-agent"))]),
        list("blank-in-id", "my agent", token, none()),
        list("unicode-id", "agent-ü", token, none()),
        list("slash-in-id", "a/b", token, none()),
        list("bearer", "app-id-123", "Bearer token-1", none()),
    ]
}

fn answers() -> Vec<Case> {
    let (agent, token) = ("app", "token-1");
    vec![
        list(
            "bare-list",
            agent,
            token,
            Reply::new(200, r#"[{"mcpServerName": "a", "url": "https://a.test/"}]"#),
        ),
        list(
            "members",
            agent,
            token,
            servers(&json!([{
                "mcpServerName": "a", "mcpServerUniqueName": "mcp_a", "url": "https://a.test/mcp",
                "audience": "ea9ffc3e-8a23-4a7d-836d-234d7c7565c1", "scope": "Mail.All", "publisher": "Contoso",
            }])),
        ),
        list(
            "sentinels",
            agent,
            token,
            servers(&json!([
                {"mcpServerName": "a", "url": "https://a.test/", "audience": "default", "scope": "null"},
                {"mcpServerName": "b", "url": "https://b.test/", "audience": "", "scope": ""},
            ])),
        ),
        list("name-only", agent, token, servers(&json!([{"mcpServerName": "mail"}]))),
        list(
            "unique-name",
            agent,
            token,
            servers(&json!([
                {"mcpServerName": "mail", "mcpServerUniqueName": "mcp_MailTools"},
                {"mcpServerName": "files", "mcpServerUniqueName": "https://files.test/mcp"},
            ])),
        ),
        list(
            "relative-url",
            agent,
            token,
            servers(&json!([{"mcpServerName": "mail", "url": "mcp_MailTools"}])),
        ),
        list(
            "bad-entries",
            agent,
            token,
            servers(&json!([
                "x", 7, {}, {"mcpServerName": " "}, {"mcpServerName": 7},
                {"mcpServerName": "good", "url": "https://good.test/"},
            ])),
        ),
        list("empty", agent, token, Reply::new(200, "")),
        list("null", agent, token, Reply::new(200, "null")),
        list("other-shape", agent, token, Reply::new(200, r#"{"servers": []}"#)),
        list("no-list", agent, token, Reply::new(200, r#"{"mcpServers": {}}"#)),
    ]
}

fn failures() -> Vec<Case> {
    let (agent, token) = ("app", "token-1");
    vec![
        list("no-agent", "", token, mail()),
        list("no-token", agent, "", mail()),
        list("blank-agent", " ", token, mail()),
        list("blank-token", agent, " ", mail()),
        list("status-401", agent, token, Reply::new(401, "who?")),
        list("status-404", agent, token, Reply::new(404, "")),
        list("status-500", agent, token, Reply::new(500, "broken")),
        list("status-204", agent, token, Reply::new(204, "")),
        list("status-301", agent, token, Reply::new(301, "gone")),
        list("html", agent, token, Reply::new(200, "<html></html>")),
        list(
            "audience",
            agent,
            token,
            servers(&json!([
                {"mcpServerName": "v2srv", "url": "https://v2.test/", "audience": "api://v2"},
                {"mcpServerName": "good", "url": "https://good.test/"},
            ])),
        ),
        list(REDIRECTING, agent, token, none()),
        list("unreachable", agent, token, mail())
            .env(&[("MCP_PLATFORM_ENDPOINT", Some("http://127.0.0.1:9"))]),
    ]
}

fn development() -> Vec<Case> {
    let case = |name| list(name, "", "", mail());
    vec![
        case("dev").env(&[("ENVIRONMENT", Some("Development"))]),
        case("dev-other-variable")
            .env(&[("ENVIRONMENT", None), ("ASPNETCORE_ENVIRONMENT", Some("development"))]),
        case("dev-python-first").env(&[("PYTHON_ENVIRONMENT", Some("Development"))]),
        case("dev-by-default").env(&[("ENVIRONMENT", None)]),
        case("dev-own-token").env(&[
            ("ENVIRONMENT", Some("Development")),
            ("BEARER_TOKEN_MAIL", Some("Bearer mail-token")),
        ]),
        case("dev-shared-token")
            .env(&[("ENVIRONMENT", Some("Development")), ("BEARER_TOKEN", Some("shared-token"))]),
    ]
}

fn chats() -> Vec<Case> {
    let history = json!([
        {"role": "user", "content": "Hello"},
        {"id": "m1", "role": "assistant", "content": "Grüße", "timestamp": "2026-01-02T03:04:05Z"},
        {"role": "system", "content": "Be kind"},
    ]);
    vec![
        chat("chat", &turn(), 200).with("history", history).with("orchestrator", json!("MyAgent")),
        chat("chat-empty-history", &turn(), 200),
        chat("chat-201", &turn(), 201),
        chat("chat-500", &turn(), 500),
        chat("chat-dev", &turn(), 200).env(&[("ENVIRONMENT", Some("Development"))]),
        chat("chat-no-conversation", &json!({"message": "m", "text": "t"}), 200),
        chat("chat-no-message", &json!({"conversation": "c", "message": " ", "text": "t"}), 200),
        chat("chat-no-text", &json!({"conversation": "c", "message": "m", "text": ""}), 200),
    ]
}

fn addresses() -> Vec<Case> {
    let urls = |name| Case {
        name,
        operation: json!({"op": "urls", "agent": "app-id-123", "server": "mcp_MailTools"}),
        env: NO_ENV,
        reply: Reply::new(500, ""),
    };
    vec![
        urls("urls"),
        urls("urls-by-default").env(&[("MCP_PLATFORM_ENDPOINT", None)]),
        urls("urls-base").env(&[("MCP_BASE_URL", Some("http://127.0.0.1:9/servers"))]),
        urls("urls-slash").env(&[("MCP_PLATFORM_ENDPOINT", Some("https://platform.test/"))]),
    ]
}
