//! Lists of realistic size: order, limits, and stability when a tool is appended.

use serde_json::Value;
use switchboard_model::{JsonText, ToolDescriptor};
use switchboard_render::Provider;
use switchboard_test_support::market_catalogue;

use crate::{beside, entries, render};

fn market() -> Vec<ToolDescriptor> {
    let tools = market_catalogue().into_iter();
    tools
        .map(|tool| ToolDescriptor {
            description: Some(tool.description),
            input_schema: JsonText::from(&tool.input_schema),
            ..ToolDescriptor::named(format!("fmp__{}", tool.name))
        })
        .collect()
}

fn name_of(entry: &Value) -> &str {
    entry["name"].as_str().or(entry["function"]["name"].as_str()).unwrap()
}

/// Checks that every tool is declared in its position, up to the provider's maximum.
fn check_whole(tools: &[ToolDescriptor]) {
    for provider in Provider::ALL {
        let rendering = render(provider, tools);
        assert!(rendering.quarantined.is_empty(), "{provider}: {:?}", rendering.quarantined);
        let most = provider.max_tools().unwrap_or(usize::MAX).min(tools.len());
        let entries = entries(&rendering);
        let names: Vec<&str> = entries.iter().map(name_of).collect();
        let expected: Vec<&str> = tools.iter().take(most).map(|tool| tool.name.as_str()).collect();
        assert_eq!(names, expected, "{provider}");
        assert_eq!(rendering.left_out.len(), tools.len() - most, "{provider}");
    }
}

#[test]
fn the_market_of_253_tools_goes_through_every_rendering() {
    check_whole(&market());
    let rendering = render(Provider::OpenAi, &market());
    let last = rendering.left_out.last().unwrap();
    assert_eq!(last.reason, "openai takes 128 tools in one request, and 128 come before it");
}

#[test]
fn the_captured_lists_of_real_servers_go_through_every_rendering() {
    let Some(place) = beside("fixtures") else { return };
    for file in ["fmp-2.6.12-tools-list-legacy.json", "fmp-2.6.12-tools-list-dynamic.json"] {
        let list: Value =
            serde_json::from_slice(&std::fs::read(place.join(file)).unwrap()).unwrap();
        let tools: Vec<ToolDescriptor> = list["tools"]
            .as_array()
            .unwrap()
            .iter()
            .map(|tool| ToolDescriptor {
                description: tool["description"].as_str().map(str::to_owned),
                input_schema: JsonText::from(&tool["inputSchema"]),
                ..ToolDescriptor::named(tool["name"].as_str().unwrap())
            })
            .collect();
        assert!(!tools.is_empty());
        check_whole(&tools);
    }
}

#[test]
fn a_tool_at_the_end_changes_no_byte_before_it() {
    let tools: Vec<ToolDescriptor> = market().into_iter().take(201).collect();
    let (last, first) = tools.split_last().unwrap();
    for provider in Provider::ALL {
        let before = render(provider, first).json();
        let after = render(provider, &tools).json();
        let is_full = provider.max_tools().is_some_and(|most| most <= first.len());
        if is_full {
            assert_eq!(before, after, "{provider}");
            continue;
        }
        let closing = if before.ends_with(b"]}]") { 3 } else { 1 };
        let prefix = &before[..before.len() - closing];
        assert!(after.starts_with(prefix), "{provider}");
        let name = format!("{:?}", last.name);
        assert!(String::from_utf8_lossy(&after[prefix.len()..]).contains(&name), "{provider}");
    }
}

#[test]
fn a_list_without_tools_is_an_empty_list() {
    for provider in Provider::ALL {
        assert_eq!(&render(provider, &[]).json()[..], b"[]");
    }
}

#[test]
fn a_list_that_is_shown_again_is_the_same_memory() {
    let rendering = render(Provider::Gemini, &market());
    assert_eq!(rendering.json().as_ptr(), rendering.clone().json().as_ptr());
}

#[test]
fn tokens_of_the_whole_are_those_of_its_text() {
    let tools: Vec<ToolDescriptor> = market().into_iter().take(60).collect();
    for provider in [Provider::OpenAi, Provider::Anthropic, Provider::Gemini] {
        let rendering = render(provider, &tools);
        let cost = rendering.cost();
        assert_eq!(cost.tools.len(), tools.len());
        let text = String::from_utf8(rendering.json().to_vec()).unwrap();
        let whole = tiktoken::get_encoding("o200k_base").unwrap().count(&text);
        let difference = cost.total.abs_diff(whole);
        assert!(difference * 50 <= whole, "{provider}: {} instead of {whole}", cost.total);
    }
}
