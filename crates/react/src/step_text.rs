//! Writes earlier steps of a conversation in the format that the model writes itself.

use serde_json::Value;

/// Maximum number of characters of a thought that is sent again.
const MAX_THOUGHT: usize = 2000;

/// A thought of an earlier reply.
pub fn thought_text(thought: &str) -> String {
    let thought = thought.trim();
    let cut: String = thought.chars().take(MAX_THOUGHT).collect();
    let rest = if cut.len() < thought.len() { " ..." } else { "" };
    format!("Thought: {cut}{rest}")
}

/// An earlier action. The arguments are valid JSON in one line.
pub fn action_text(tool: &str, arguments: &Value) -> String {
    format!("Action: {tool}\nArgs: {arguments}")
}

/// An earlier answer.
pub fn answer_text(answer: &str) -> String {
    format!("Final Answer: {}", answer.trim())
}

/// The result of an action. `tool` is named if the reply had several actions.
pub fn observation_text(tool: Option<&str>, is_error: bool, result: &str) -> String {
    let tool = tool.map(|tool| format!("[{tool}] ")).unwrap_or_default();
    let result = result.trim();
    let result = if result.is_empty() { "(no output)" } else { result };
    let is_marked = result.starts_with("Error:");
    let error = if is_error && !is_marked { "Error: " } else { "" };
    format!("Observation: {tool}{error}{result}")
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use serde_json::json;

    use super::*;

    #[test]
    fn steps_are_written_as_the_model_writes_them() {
        assert_eq!(thought_text(" I add. \n"), "Thought: I add.");
        assert_eq!(thought_text(&"x".repeat(2001)).len(), "Thought:  ...".len() + 2000);
        let arguments = json!({"b": [1, {"c": "\n"}], "a": null});
        let expected = "Action: add\nArgs: {\"b\":[1,{\"c\":\"\\n\"}],\"a\":null}";
        assert_eq!(action_text("add", &arguments), expected);
        assert_eq!(answer_text("42 "), "Final Answer: 42");
        assert_eq!(observation_text(None, false, "3\n"), "Observation: 3");
        assert_eq!(observation_text(Some("add"), true, "no"), "Observation: [add] Error: no");
        assert_eq!(observation_text(None, true, "Error: x"), "Observation: Error: x");
        assert_eq!(observation_text(None, false, " "), "Observation: (no output)");
    }
}
