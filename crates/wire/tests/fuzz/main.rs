//! Random and mutated streams and conversations. `make test` runs some hundreds of each, `make fuzz` as many as time
//! allows; failing cases are minimised and kept in `proptest-regressions`.
#![expect(clippy::unwrap_used, reason = "tests, and what they are made of")]

mod asking;
mod conversations;
mod histories;
mod large_streams;
mod mutation;
mod overlays;
mod react;
mod streams;

use proptest::test_runner::Config;
use switchboard_chat::Source;
use switchboard_model::ProviderKind;
use switchboard_test_support::model_backends::Backend;

/// Every wire format, with a model that supports all features.
const PROVIDERS: [(ProviderKind, Backend, &str); 6] = [
    (ProviderKind::OpenAi, Backend::OpenAi, "gpt-5.5"),
    (ProviderKind::ChatGpt, Backend::ChatGpt, "gpt-5.5"),
    (ProviderKind::OpenAiChat, Backend::Chat, "gpt-5.5"),
    (ProviderKind::Anthropic, Backend::Anthropic, "claude-opus-5-5"),
    (ProviderKind::Gemini, Backend::Gemini, "gemini-3.1-pro-preview"),
    (ProviderKind::CodeAssist, Backend::CodeAssist, "gemini-2.5-pro"),
];

fn source(kind: ProviderKind, model: &str) -> Source {
    Source { kind, provider: kind.as_str().into(), model: model.into(), credential: None }
}

/// Number of cases: some seconds by default; `PROPTEST_CASES` overrides it.
fn config() -> Config {
    let wanted = std::env::var_os("PROPTEST_CASES");
    Config {
        cases: if wanted.is_some() { Config::default().cases } else { 48 },
        ..Config::default()
    }
}
