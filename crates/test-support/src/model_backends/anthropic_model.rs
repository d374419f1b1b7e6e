//! Rules that depend on the name of a Claude model.

/// Family and version of a model, such as `opus` 4.7 of `claude-opus-4-7-20260401`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ClaudeModel {
    family: String,
    version: (u32, u32),
}

impl ClaudeModel {
    pub(crate) fn named(name: &str) -> Self {
        let parts = || name.split(['-', '.']).filter(|part| *part != "claude");
        let is_number = |part: &&str| part.bytes().all(|byte| byte.is_ascii_digit());
        let family = parts().find(|part| !is_number(part)).unwrap_or_default().to_owned();
        // Longer numbers are dates.
        let mut numbers = parts().filter(is_number).filter(|part| part.len() <= 2);
        let mut next = || numbers.next().and_then(|part| part.parse().ok()).unwrap_or(0);
        Self { family, version: (next(), next()) }
    }

    /// Whether the model rejects `temperature`, `top_p`, `top_k` and a fixed thinking budget.
    pub(crate) fn refuses_sampling(&self) -> bool {
        self.version >= (5, 0) || (self.family == "opus" && self.version >= (4, 7))
    }

    /// Whether thinking blocks are bound to the conversation before them.
    pub(crate) fn binds_thinking(&self) -> bool {
        match self.family.as_str() {
            "fable" | "mythos" => self.version >= (5, 1),
            _ => self.version >= (5, 5),
        }
    }

    /// Whether `role: system` is allowed among the messages.
    pub(crate) fn takes_system_messages(&self) -> bool {
        match self.family.as_str() {
            "opus" => self.version >= (4, 8),
            "fable" | "mythos" => self.version >= (5, 0),
            _ => self.version >= (5, 5),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::ClaudeModel;

    #[test]
    fn the_rules_follow_from_the_name() {
        for (name, refuses_sampling, binds, takes_system) in [
            ("claude-opus-5-5", true, true, true),
            ("claude-opus-4-8-20260501", true, false, true),
            ("claude-opus-4-7", true, false, false),
            ("claude-opus-4-6", false, false, false),
            ("claude-sonnet-5", true, false, false),
            ("claude-sonnet-5-5", true, true, true),
            ("claude-haiku-4-5-20251001", false, false, false),
            ("claude-fable-5-1", true, true, true),
            ("claude-fable-5", true, false, true),
            ("claude-3-5-sonnet-20241022", false, false, false),
        ] {
            let model = ClaudeModel::named(name);
            assert_eq!(
                (model.refuses_sampling(), model.binds_thinking(), model.takes_system_messages()),
                (refuses_sampling, binds, takes_system),
                "{name}"
            );
        }
    }
}
