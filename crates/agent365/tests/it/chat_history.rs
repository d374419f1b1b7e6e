//! Reports of a conversation: what is sent, and each failure as data.

use std::time::Duration;

use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use switchboard_agent365::{
    ChatHistoryMessage, ChatMessageRequest, ChatRole, Environment, OperationResult, ToolOptions,
    ToolingClient, ToolingError, TurnContext, user_agent,
};
use switchboard_outbound::HttpPool;
use switchboard_test_support::free_port;

use crate::recorder::{Recorder, Reply};

fn client(platform: Option<&str>) -> ToolingClient {
    let platform = platform.map(str::to_owned);
    let environment = Environment::from_lookup(move |name| {
        platform.clone().filter(|_| name == "MCP_PLATFORM_ENDPOINT")
    });
    ToolingClient::new(HttpPool::default(), environment)
}

fn turn() -> TurnContext {
    TurnContext {
        conversation_id: Some("conv".to_owned()),
        message_id: Some("msg".to_owned()),
        user_message: Some("What now?".to_owned()),
        agent_blueprint_id: None,
    }
}

async fn send(client: &ToolingClient, turn: &TurnContext) -> OperationResult {
    client.send_chat_history(turn, &[], &ToolOptions::default()).await
}

/// The result when the endpoint answers like this.
async fn result(reply: Reply) -> (OperationResult, String) {
    let endpoint = Recorder::always(reply).await;
    (send(&client(Some(endpoint.url())), &turn()).await, endpoint.url().to_owned())
}

const PATH: &str = "/agents/real-time-threat-protection/chat-message";

#[tokio::test]
async fn a_report_has_the_conversation_and_no_credentials() {
    let endpoint = Recorder::always(Reply::new(200, "")).await;
    let history = [
        ChatHistoryMessage::new(ChatRole::User, "Hello").unwrap(),
        ChatHistoryMessage::new(ChatRole::Assistant, "Hi there!").unwrap().with_id("m1"),
    ];
    let options = ToolOptions { orchestrator_name: Some("MyAgent".to_owned()) };
    let client = client(Some(endpoint.url()));
    let result = client.send_chat_history(&turn(), &history, &options).await;
    assert_eq!(result, OperationResult::success());
    let seen = endpoint.take().remove(0);
    assert_eq!((seen.method.as_str(), seen.path.as_str()), ("POST", PATH));
    assert_eq!(seen.headers["content-type"], "application/json");
    assert_eq!(seen.headers["user-agent"], user_agent(Some("MyAgent")));
    for absent in ["authorization", "cookie", "x-ms-agentid", "x-ms-correlation-id"] {
        assert!(!seen.headers.contains_key(absent), "{absent}");
    }
    assert_eq!(
        serde_json::from_str::<Value>(&seen.body).unwrap(),
        json!({
            "conversationId": "conv",
            "messageId": "msg",
            "userMessage": "What now?",
            "chatHistory": [
                {"id": null, "role": "user", "content": "Hello", "timestamp": null},
                {"id": "m1", "role": "assistant", "content": "Hi there!", "timestamp": null},
            ],
        })
    );
}

#[tokio::test]
async fn an_empty_history_is_sent_too() {
    let endpoint = Recorder::always(Reply::new(200, "")).await;
    assert!(send(&client(Some(endpoint.url())), &turn()).await.succeeded());
    let body: Value = serde_json::from_str(&endpoint.take()[0].body).unwrap();
    assert_eq!(body["chatHistory"], json!([]));
}

#[tokio::test]
async fn every_status_of_success_is_one() {
    for status in [200, 201, 202, 204] {
        assert!(result(Reply::new(status, "")).await.0.succeeded(), "{status}");
    }
}

#[tokio::test]
async fn a_refusal_is_told_with_status_body_and_address() {
    for (status, body) in [(400, "bad"), (401, ""), (500, "broken")] {
        let (result, url) = result(Reply::new(status, body)).await;
        let expected = format!("Failed: {status}, message='{body}', url='{url}{PATH}'");
        assert_eq!(result.to_string(), expected);
        assert_eq!(result.errors().len(), 1);
    }
}

#[tokio::test]
async fn conversation_id_message_id_and_user_message_cannot_be_empty_or_none() {
    let endpoint = Recorder::always(Reply::new(200, "")).await;
    let client = client(Some(endpoint.url()));
    for blank in [None, Some(""), Some(" \n")] {
        let blank = blank.map(str::to_owned);
        for (turn, expected) in [
            (
                TurnContext { conversation_id: blank.clone(), ..turn() },
                "conversation_id cannot be empty or None (from turn_context.activity.conversation.id)",
            ),
            (
                TurnContext { message_id: blank.clone(), ..turn() },
                "message_id cannot be empty or None (from turn_context.activity.id)",
            ),
            (
                TurnContext { user_message: blank.clone(), ..turn() },
                "user_message cannot be empty or None (from turn_context.activity.text)",
            ),
        ] {
            let result = send(&client, &turn).await;
            assert_eq!(result.to_string(), format!("Failed: {expected}"));
        }
    }
    assert_eq!(endpoint.take(), [], "nothing was sent");
}

#[tokio::test]
async fn an_endpoint_that_is_not_configured_is_not_guessed() {
    let result = send(&client(None), &turn()).await;
    assert_eq!(
        result.to_string(),
        "Failed: no threat-protection endpoint is configured, and a conversation is sent to no other host; set \
         MCP_PLATFORM_ENDPOINT"
    );
}

#[tokio::test]
async fn an_endpoint_that_hangs_is_given_up() {
    let endpoint = Recorder::always(Reply::new(200, "").after(Duration::from_mins(1))).await;
    let client = client(Some(endpoint.url())).with_timeout(Duration::from_millis(200));
    let result = send(&client, &turn()).await;
    let expected = format!("Failed: no whole answer from {}{PATH} within 0.2 s", endpoint.url());
    assert_eq!(result.to_string(), expected);
}

#[tokio::test]
async fn an_endpoint_that_is_down_is_told() {
    let down = format!("http://127.0.0.1:{}", free_port());
    let text = send(&client(Some(&down)), &turn()).await.to_string();
    assert!(text.starts_with(&format!("Failed: {down}{PATH}: cannot connect")), "{text}");
}

#[tokio::test]
async fn a_redirect_is_no_success_and_the_conversation_reaches_no_other_host() {
    let other = Recorder::always(Reply::new(200, "")).await;
    for status in [301, 302, 303, 307, 308] {
        let target = format!("{}/elsewhere", other.url());
        let (result, url) = result(Reply::new(status, "").header("location", &*target)).await;
        assert_eq!(
            result.to_string(),
            format!(
                "Failed: {url}{PATH} redirects to {target}; configure that address if the endpoint moved"
            )
        );
    }
    assert_eq!(other.take(), []);
    // Within the host, the HTTP client follows, and may drop the body while it does.
    let endpoint = Recorder::start(|seen| match seen.path.as_str() {
        "/login" => Reply::new(200, "please sign in"),
        _ => Reply::new(302, "").header("location", "/login"),
    })
    .await;
    let result = send(&client(Some(endpoint.url())), &turn()).await;
    assert!(!result.succeeded(), "{result}");
}

#[tokio::test]
async fn a_chat_message_gets_the_endpoints_answer_whatever_its_status() {
    let request = ChatMessageRequest::new("conv", "msg", "What now?", Vec::new()).unwrap();
    for (status, body) in [(200, "{\"verdict\":\"block\"}"), (403, "no"), (500, "")] {
        let endpoint = Recorder::always(Reply::new(status, body)).await;
        let url = endpoint.url().parse().unwrap();
        let client = client(None);
        let answer =
            client.send_chat_message(&url, &request, Duration::from_secs(5)).await.unwrap();
        assert_eq!((answer.status, answer.body.as_str()), (status, body));
        assert_eq!(answer.is_success(), status == 200);
        let seen = endpoint.take().remove(0);
        assert_eq!(serde_json::from_str::<Value>(&seen.body).unwrap(), request.to_json());
    }
}

#[tokio::test]
async fn a_chat_message_has_the_time_limit_that_it_is_given() {
    let request = ChatMessageRequest::new("conv", "msg", "What now?", Vec::new()).unwrap();
    let endpoint = Recorder::always(Reply::new(200, "").after(Duration::from_mins(1))).await;
    let url = endpoint.url().parse().unwrap();
    let after = Duration::from_millis(150);
    let error = client(None).send_chat_message(&url, &request, after).await.unwrap_err();
    assert_eq!(error, ToolingError::ChatTimeout { url: format!("{}/", endpoint.url()), after });
}
