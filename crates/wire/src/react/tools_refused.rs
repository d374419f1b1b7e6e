//! Recognises the answers of backends whose model has no native tool calls.

use switchboard_chat::ModelFault;

/// Parts of messages, in lower case, with which backends refuse a request because it declares tools.
const MESSAGES: &[&str] = &[
    // Ollama.
    "does not support tools",
    // vLLM.
    "tool choice requires --enable-auto-tool-choice",
    // llama.cpp.
    "tools param requires --jinja",
    "unsupported param: tools",
    // OpenRouter.
    "no endpoints found that support tool use",
    // Groq.
    "`tool calling` is not supported",
    // Gemini, for Gemma models.
    "function calling is not enabled",
    // Others.
    "does not support tool",
    "does not support function",
    "tool calling is not supported",
    "tool use is not supported",
    "tools are not supported",
    "function calling is not supported",
];

/// Whether a backend refused a request because its model has no native tool calls.
pub fn refuses_tools(fault: &ModelFault) -> bool {
    let message = fault.message.to_ascii_lowercase();
    let is_refusal = fault.status.is_some_and(|status| (400..600).contains(&status));
    is_refusal && MESSAGES.iter().any(|part| message.contains(part))
}

#[cfg(test)]
mod tests {
    use switchboard_chat::FaultKind;

    use super::*;

    #[test]
    fn backends_without_tools_are_recognised() {
        let check = |status, message: &str, expected: bool| {
            let fault = ModelFault { status, ..ModelFault::new(FaultKind::BadRequest, message) };
            assert_eq!(refuses_tools(&fault), expected, "{message}");
        };
        check(Some(400), "registry.ollama.ai/library/gemma:2b does not support tools", true);
        check(
            Some(400),
            "\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set",
            true,
        );
        check(Some(500), "tools param requires --jinja flag", true);
        check(Some(404), "No endpoints found that support tool use. Try disabling \"x\".", true);
        check(Some(400), "Function calling is not enabled for models/gemma-3-27b-it", true);
        check(Some(400), "Invalid schema for function 'x'", false);
        check(None, "does not support tools", false);
    }
}
