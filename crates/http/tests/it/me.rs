//! The caller as the API shows it: without credentials, with a key, and with a narrowed key.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use switchboard_auth::Role;

use crate::api_server::{Api, ApiServer, yaml};

async fn check(api: &Api, expected: [(&str, Value); 6]) {
    let me = api.get("/api/v1/me").await.good();
    for (member, value) in expected {
        assert_eq!(me[member], value, "{member} of {me:#}");
    }
    assert!(me["version"].is_string() && me["principal"].is_string(), "{me:#}");
}

#[tokio::test]
async fn a_caller_sees_its_role_and_where_its_identity_comes_from() {
    let server = ApiServer::without_board().await;
    server.api().get("/api/v1/me").await.problem(503, "starting");
    server.start_board(&yaml(&["{name: sum_numbers}"], &[])).await;
    let expected = |access: &str, name: Value, role: &str, narrowed: bool, oversees: bool| {
        let (narrowed, oversees) = (json!(narrowed), json!(oversees));
        let (access, role, mode) = (json!(access), json!(role), json!("legacy"));
        [
            ("access", access),
            ("name", name),
            ("role", role),
            ("narrowed", narrowed),
            ("oversees", oversees),
            ("exposure", mode),
        ]
    };
    check(&server.api(), expected("open", Value::Null, "admin", false, true)).await;
    let admin = server.api_of("admin", Role::Admin).await;
    server.api().get("/api/v1/me").await.problem(401, "unauthorized");
    check(&admin, expected("key", json!("admin"), "admin", false, true)).await;
    let client = server.api_of("client", Role::Client).await;
    check(&client, expected("key", json!("client"), "client", false, false)).await;
    let operator = server.api_of("operator", Role::Operator).await;
    check(&operator, expected("key", json!("operator"), "operator", false, true)).await;
    let narrowed = json!({"access": {"tools": ["local.*"]}});
    admin.patch("/api/v1/keys/operator", narrowed).await.good();
    check(&operator, expected("key", json!("operator"), "client", true, false)).await;
}
