//! Capabilities of Gemini models, derived from the model name.

use switchboard_model::Effort;

/// How thinking is configured for a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Thinking {
    Budget(Option<u32>),
    Level(Option<&'static str>),
    /// The model does not support thinking and rejects the setting.
    Never,
}

/// Whether calls of the current turn need signatures.
pub(super) fn wants_signatures(model: &str) -> bool {
    model.starts_with("gemini-3")
}

/// Whether media of a result is nested in the function response.
pub(super) fn nests_media(model: &str) -> bool {
    model.starts_with("gemini-3-")
}

pub(super) fn thinking(model: &str, effort: Option<Effort>) -> Thinking {
    let begins = |starts: &[&str]| starts.iter().any(|start| model.starts_with(start));
    if begins(&["gemini-1", "gemini-2.0", "gemma", "learnlm"]) {
        return Thinking::Never;
    }
    if begins(&["gemini-2.5"]) {
        // Budgets within the range that all 2.5 models accept.
        return Thinking::Budget(effort.map(|effort| match effort {
            Effort::Minimal => 512,
            Effort::Low => 1024,
            Effort::Medium => 8192,
            Effort::High => 24_576,
        }));
    }
    let is_first_pro = model.starts_with("gemini-3-pro");
    let level = |effort| match effort {
        // Pro models do not support `MINIMAL`.
        Effort::Minimal if model.contains("pro") => "LOW",
        Effort::Minimal => "MINIMAL",
        Effort::Low => "LOW",
        // `gemini-3-pro` has only two levels.
        Effort::Medium if is_first_pro => "HIGH",
        Effort::Medium => "MEDIUM",
        Effort::High => "HIGH",
    };
    Thinking::Level(effort.map(level))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn effort_is_a_budget_for_the_older_models_and_a_level_for_the_newer_ones() {
        let cases = [
            ("gemini-2.0-flash", Effort::High, Thinking::Never),
            ("gemini-2.5-pro", Effort::Medium, Thinking::Budget(Some(8192))),
            ("gemini-3-pro-preview", Effort::Medium, Thinking::Level(Some("HIGH"))),
            ("gemini-3.1-pro-preview", Effort::Medium, Thinking::Level(Some("MEDIUM"))),
            ("gemini-3.1-pro-preview", Effort::Minimal, Thinking::Level(Some("LOW"))),
            ("gemini-3-flash-preview", Effort::Minimal, Thinking::Level(Some("MINIMAL"))),
        ];
        for (model, effort, expected) in cases {
            assert_eq!(thinking(model, Some(effort)), expected, "{model}");
        }
        assert_eq!(thinking("gemini-2.5-flash", None), Thinking::Budget(None));
    }
}
