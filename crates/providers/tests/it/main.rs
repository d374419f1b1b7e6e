//! Every kind of provider, asked over real sockets, with its own wire format.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by ending")]

use std::sync::Arc;

use switchboard_chat::{FaultKind, Message, ModelEvent, ModelFault, Reply, ToolReturn};
use switchboard_model::{
    ModelSettings, ProviderAuth, ProviderKind, ProviderPlan, Secret, ToolDescriptor,
};
use switchboard_providers::Providers;
use switchboard_render::{NamedTool, Provider, Rendering};
use switchboard_test_support::model_backends::{Backend, FakeBackends};
use switchboard_wire::{ModelRequest, Tools};
use url::Url;

const KEY: &str = "hunter2-s3cret";

const ALL: [(ProviderKind, Backend, Provider); 6] = [
    (ProviderKind::OpenAi, Backend::OpenAi, Provider::OpenAi),
    (ProviderKind::ChatGpt, Backend::ChatGpt, Provider::OpenAi),
    (ProviderKind::OpenAiChat, Backend::Chat, Provider::OpenAiChat),
    (ProviderKind::Anthropic, Backend::Anthropic, Provider::Anthropic),
    (ProviderKind::Gemini, Backend::Gemini, Provider::Gemini),
    (ProviderKind::CodeAssist, Backend::CodeAssist, Provider::Gemini),
];

fn plan(kind: ProviderKind, base: &str) -> ProviderPlan {
    let secret = Secret::new(KEY);
    let auth = match kind {
        ProviderKind::ChatGpt | ProviderKind::CodeAssist => ProviderAuth::Bearer(secret),
        _ => ProviderAuth::ApiKey(secret),
    };
    ProviderPlan {
        base_url: Some(Url::parse(base).unwrap()),
        auth,
        account: (kind == ProviderKind::ChatGpt).then(|| "acc_1".to_owned()),
        ..ProviderPlan::new("test", kind)
    }
}

async fn ask(
    plan: ProviderPlan,
    shape: Provider,
    messages: &[Message],
) -> Result<Reply, ModelFault> {
    let endpoint = Providers::new(&[plan], &|_| None).find("test").unwrap();
    let model = match shape {
        Provider::Anthropic => "claude-opus-4-5",
        Provider::Gemini => "gemini-2.5-pro",
        _ => "gpt-5",
    };
    let source = endpoint.source(Some(model), None).unwrap();
    let echo = ToolDescriptor::named("echo");
    let declared = [NamedTool { name: "echo", descriptor: &echo }];
    let tools = Tools::only(Arc::new(Rendering::new(shape, declared)));
    let settings =
        ModelSettings { instructions: Some("Be brief".into()), ..ModelSettings::default() };
    let ask = ModelRequest {
        source: &source,
        messages,
        replay: 0..messages.len(),
        tools: &tools,
        settings: &settings,
        stop: None,
        session: "sess_1",
        turn: "turn_1",
        project: None,
        is_bearer: false,
    };
    let mut stream = endpoint.ask(&ask).await?;
    let mut last = None;
    while let Some(events) = stream.next().await {
        last = events.into_iter().last();
    }
    match last {
        Some(ModelEvent::Finished(reply)) => Ok(*reply),
        Some(ModelEvent::Failed(fault)) => Err(*fault),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn every_kind_answers_calls_a_tool_and_reads_its_result() {
    let fakes = FakeBackends::start().await;
    for (kind, backend, shape) in ALL {
        let plan = plan(kind, &fakes.base_url(backend));
        let mut messages = vec![Message::user("hello there")];
        let reply = ask(plan.clone(), shape, &messages).await;
        let reply = reply.unwrap_or_else(|fault| panic!("{kind}: {fault}"));
        assert_eq!(reply.text(), "echo: hello there", "{kind}");
        messages.extend([Message::Assistant(reply), Message::user("call echo {\"a\": 1}")]);
        let mut reply = ask(plan.clone(), shape, &messages).await.unwrap();
        let mut calls = Vec::new();
        for block in &mut reply.content {
            if let switchboard_chat::Block::ToolCall(call) = block {
                call.id = "call_1".into();
                calls.push((**call).clone());
            }
        }
        assert_eq!(calls.len(), 1, "{kind}: {reply:?}");
        assert_eq!((calls[0].name.as_str(), &calls[0].arguments["a"]), ("echo", &1.into()));
        let result = ToolReturn { is_error: false, ..ToolReturn::failed(&calls[0], "fine") };
        messages.extend([Message::Assistant(reply), Message::Tool(result)]);
        let reply = ask(plan, shape, &messages).await.unwrap();
        assert!(reply.text().contains("fine"), "{kind}: {reply:?}");
    }
    let violations = fakes.violations();
    assert!(violations.is_empty(), "{violations:#?}");
}

#[tokio::test]
async fn a_refused_key_is_the_fault_of_the_credentials_and_is_not_shown() {
    let fakes = FakeBackends::start().await;
    fakes.refuse_credential(KEY);
    for (kind, backend, shape) in ALL {
        let plan = plan(kind, &fakes.base_url(backend));
        let fault = ask(plan, shape, &[Message::user("hi")]).await.unwrap_err();
        assert_eq!(fault.kind, FaultKind::Credentials, "{kind}: {fault}");
        assert!(!format!("{fault:?}").contains(KEY), "{kind}: {fault:?}");
    }
}
