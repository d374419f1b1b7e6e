//! What cannot be carried over is refused by name.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use switchboard_model::ProviderKind;
use switchboard_render::Provider;
use switchboard_splice::{Api, Refusal};
use switchboard_translate::TranslatedRequest;

use crate::demo::source;

fn read(api: Api, more: &Value) -> Result<TranslatedRequest, Refusal> {
    let mut body = match api {
        Api::Chat => json!({"model": "x", "messages": [{"role": "user", "content": "go"}]}),
        _ => json!({"model": "x", "input": "go"}),
    };
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let own = source(ProviderKind::Anthropic);
    TranslatedRequest::read(api, body.to_string().as_bytes(), own, Provider::Anthropic)
}

#[test]
fn a_lost_member_is_named() {
    for (api, more, param) in [
        (Api::Chat, json!({"n": 2}), "n"),
        (Api::Chat, json!({"stop": ["x"]}), "stop"),
        (Api::Chat, json!({"logprobs": true}), "logprobs"),
        (Api::Chat, json!({"tool_choice": "required"}), "tool_choice"),
        (Api::Chat, json!({"response_format": {"type": "json_object"}}), "response_format"),
        (Api::Chat, json!({"tools": [{"type": "custom", "custom": {"name": "a"}}]}), "tools"),
        (
            Api::Chat,
            json!({"messages": [{"role": "tool", "tool_call_id": "x", "content": ""}]}),
            "messages",
        ),
        (
            Api::Chat,
            json!({"messages": [{"role": "user", "content": [{"type": "input_audio"}]}]}),
            "messages",
        ),
        (Api::Responses, json!({"previous_response_id": "resp_1"}), "previous_response_id"),
        (Api::Responses, json!({"tools": [{"type": "web_search"}]}), "tools"),
        (Api::Responses, json!({"text": {"format": {"type": "json_schema"}}}), "text"),
        (Api::Responses, json!({"input": [{"type": "item_reference", "id": "x"}]}), "input"),
    ] {
        let refusal = read(api, &more).unwrap_err();
        assert_eq!((refusal.param.as_deref(), refusal.status()), (Some(param), 400), "{more}");
        assert!(refusal.message.contains("`anthropic`"), "{}", refusal.message);
    }
}

#[test]
fn all_lost_members_are_told_together() {
    let refusal = read(Api::Chat, &json!({"seed": 1, "logit_bias": {"a": 1}, "stop": "x"}));
    insta::assert_snapshot!(refusal.unwrap_err(), @"`logit_bias`, `stop` cannot be carried over to the provider `anthropic` of the kind `anthropic`: leave this out, or choose a model of a provider that speaks Chat Completions");
}

#[test]
fn members_without_effect_or_with_their_default_pass() {
    let chat = json!({"n": 1, "user": "u", "seed": 4, "logprobs": null, "stop": null, "frequency_penalty": 0.0,
        "response_format": {"type": "text"}, "parallel_tool_calls": true, "tools": []});
    read(Api::Chat, &chat).unwrap();
    let response = json!({"store": false, "background": false, "text": {"format": {"type": "text"}, "verbosity": "low"},
        "truncation": "auto", "include": ["reasoning.encrypted_content"], "prompt": null});
    read(Api::Responses, &response).unwrap();
}

#[test]
fn a_tool_that_the_provider_does_not_take_is_named() {
    let tools = json!({"tools": [{"type": "function", "function": {"name": "a.b", "parameters": {"type": "object"}}}]});
    let refusal = read(Api::Chat, &tools).unwrap_err();
    assert_eq!(refusal.param.as_deref(), Some("tools"));
    assert!(refusal.message.starts_with("the tool `a.b` cannot be declared: "));
}
