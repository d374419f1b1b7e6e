//! The models of providers over HTTP.

use pretty_assertions::assert_eq;
use serde_json::json;
use switchboard_auth::Role;
use switchboard_test_support::model_backends::{Backend, FakeBackends};

use crate::api_server::ApiServer;

#[tokio::test]
async fn each_provider_is_asked_for_its_models() {
    let models = FakeBackends::start().await;
    let provider = |name: &str, kind: &str, backend| {
        let url = models.base_url(backend);
        format!("    - {{name: {name}, kind: {kind}, base_url: \"{url}\", api_key: k}}\n")
    };
    let server = ApiServer::start(&format!(
        "switchboard:\n  providers:\n{}{}{}    - {{name: keyless, kind: openai}}\n  toolbox:\n    mcps: []\n",
        provider("chat", "openai-chat", Backend::Chat),
        provider("claude", "anthropic", Backend::Anthropic),
        provider("google", "gemini", Backend::Gemini),
    ))
    .await;
    let api = server.api_of("client", Role::Client).await;
    for (name, expected) in [
        ("chat", json!({"id": "gpt-5.5"})),
        ("claude", json!({"id": "claude-opus-5-5", "title": "Claude Opus 5.5"})),
        ("google", json!({"id": "gemini-3.1-pro-preview"})),
        ("demo", json!({"id": "demo"})),
    ] {
        let list = api.get(&format!("/api/v1/providers/{name}/models")).await.good();
        assert_eq!(list, json!({"models": [expected]}), "{name}");
    }
    let of = async |path: &str| api.get(&format!("/api/v1/providers/{path}")).await;
    let said = of("keyless/models").await.problem(502, "provider_failed");
    assert!(said.contains("OPENAI_API_KEY"), "{said}");
    let said = of("chta/models").await.problem(404, "unknown_provider");
    assert!(said.contains("did you mean `chat`?"), "{said}");
    let said = of("chat/models?credential=other").await.problem(404, "unknown_credential");
    assert_eq!(said, "the provider 'chat' has no credential 'other'");
    server.api().get("/api/v1/providers/chat/models").await.problem(401, "unauthorized");
}
