//! Tooling gateways.

use pretty_assertions::assert_eq;
use switchboard_model::{GatewaySource, Secret, SourceKind};

use crate::support::{Answer, FakeGateway, error, gateway, list, look, look_with, names};

#[tokio::test]
async fn the_servers_of_the_agent_are_asked_for_with_its_token() {
    let fake =
        FakeGateway::start(Answer::json(list(&[("mail", "https://mail.example/mcp")]))).await;
    let status = look(gateway(&fake.url)).await;
    assert_eq!((names(&status), error(&status)), (vec!["mail"], ""));
    assert_eq!((status.state(), status.kind, status.is_file), ("ok", "gateway", false));
    assert_eq!(status.place, format!("{}/", fake.url));
    let seen = fake.seen();
    assert_eq!(seen[0].path, "/agents/v2/agent-1/mcpServers");
    assert_eq!(seen[0].header("authorization"), "Bearer s3cret-token");
    assert!(!format!("{status:?}").contains("s3cret"), "{status:?}");
}

#[tokio::test]
async fn path_agent_and_token_can_be_chosen_and_come_from_the_environment_else() {
    let fake = FakeGateway::start(Answer::json("[]")).await;
    let own = GatewaySource {
        url: Some(fake.url.parse().unwrap()),
        agent_id: Some("a b/c".into()),
        token: Some(Secret::new("Bearer own")),
        path_template: Some("/mcp/servers?agentId={agent_id}".into()),
    };
    assert_eq!(error(&look(SourceKind::Gateway(own)).await), "");
    let variables = [
        ("MCP_PLATFORM_ENDPOINT", fake.url.as_str()),
        ("SWITCHBOARD_AGENT_ID", "from-env"),
        ("SWITCHBOARD_AGENT_TOKEN", "env-token"),
        // A configured gateway is asked in every environment.
        ("ENVIRONMENT", "Development"),
    ];
    let bare = SourceKind::Gateway(GatewaySource::default());
    assert_eq!(error(&look_with(bare, &variables).await), "");
    let seen: Vec<_> = fake
        .seen()
        .iter()
        .map(|it| (it.path.clone(), it.header("authorization").to_owned()))
        .collect();
    let expected = [
        ("/mcp/servers?agentId=a%20b%2Fc", "Bearer own"),
        ("/agents/v2/from-env/mcpServers", "Bearer env-token"),
    ];
    assert_eq!(seen, expected.map(|(path, token)| (path.to_owned(), token.to_owned())));
}

#[tokio::test]
async fn a_blank_agent_and_a_missing_token_are_named_with_the_way_out() {
    for (agent_id, token, message, hint) in [
        (
            " ",
            "t",
            "agentic_app_id cannot be empty or None",
            "set `discovery.agent_id`, or SWITCHBOARD_AGENT_ID",
        ),
        (
            "a",
            "",
            "auth_token cannot be empty or None",
            "set `discovery.token`, or SWITCHBOARD_AGENT_TOKEN",
        ),
    ] {
        let status = look(SourceKind::Gateway(GatewaySource {
            url: Some("http://127.0.0.1:1".parse().unwrap()),
            agent_id: Some(agent_id.into()),
            token: Some(Secret::new(token)),
            path_template: None,
        }))
        .await;
        let failure = status.failure.unwrap();
        assert_eq!((failure.message.as_str(), failure.hint.as_deref()), (message, Some(hint)));
    }
}

#[tokio::test]
async fn the_token_reaches_servers_of_the_platform_only() {
    let fake = FakeGateway::start(Answer::json("[]")).await;
    let own = format!("{}/agents/servers/own", fake.url);
    fake.answer(Answer::json(list(&[("own", &own), ("foreign", "https://foreign.example/mcp")])));
    let status = look(gateway(&fake.url)).await;
    let tokens: Vec<_> = status
        .servers
        .iter()
        .map(|it| (it.name.as_str(), it.headers.get("Authorization").map(Secret::expose)))
        .collect();
    assert_eq!(tokens, [("own", Some("Bearer s3cret-token")), ("foreign", None)]);
}

#[tokio::test]
async fn servers_whose_connections_are_missing_are_named() {
    let body = r#"{"mcpServers": [
        {"mcpServerName": "a", "url": "https://a.example/", "connectivityStatus": "Ready"},
        {"mcpServerName": "b", "url": "https://b.example/", "connectivityStatus": "Pending",
         "missingConnectionsUrl": "https://setup.example/b"}
    ]}"#;
    let fake = FakeGateway::start(Answer::json(body)).await;
    let status = look(gateway(&fake.url)).await;
    assert_eq!(names(&status), ["a"]);
    assert_eq!(status.unusable[0].name, "b");
    assert_eq!(
        status.unusable[0].reason,
        "its connections are not set up (connectivityStatus=Pending): set them up at https://setup.example/b"
    );
}
