//! Capabilities of Claude models, derived from the model name.

/// Family and version of a Claude model, as far as the name contains them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Claude<'a> {
    family: &'a str,
    version: (u8, u8),
}

impl<'a> Claude<'a> {
    /// Parses `claude-opus-5-5`, `claude-haiku-4-5-20251001` or `claude-3-7-sonnet-latest`, with or without the prefix
    /// of a reseller.
    fn read(model: &'a str) -> Option<Self> {
        let (_, rest) = model.split_once("claude-")?;
        let mut family = None;
        let mut numbers = Vec::new();
        for word in rest.split(['-', '.', '@', ':']) {
            match word.parse::<u8>() {
                Ok(number) if numbers.len() < 2 => numbers.push(number),
                _ if family.is_none() && word.bytes().all(|byte| byte.is_ascii_lowercase()) => {
                    family = Some(word);
                }
                // The rest is a date or a variant.
                _ => break,
            }
        }
        let major = *numbers.first()?;
        Some(Self { family: family?, version: (major, numbers.get(1).copied().unwrap_or(0)) })
    }
}

/// Whether the model accepts system messages within the conversation, which carry changes of tools.
pub(crate) fn takes_tool_changes(model: &str) -> bool {
    let Some(Claude { family, version }) = Claude::read(model) else { return false };
    match family {
        "opus" => version >= (4, 8),
        "sonnet" | "haiku" => version >= (5, 5),
        "fable" | "mythos" => version >= (5, 0),
        _ => false,
    }
}

/// Whether the model binds its encrypted thinking to everything before it.
pub(crate) fn binds_thoughts(model: &str) -> bool {
    let Some(Claude { family, version }) = Claude::read(model) else { return false };
    match family {
        "opus" | "sonnet" | "haiku" => version >= (5, 5),
        "fable" | "mythos" => version >= (5, 1),
        _ => false,
    }
}

/// How thinking is requested from a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Thinking {
    /// The model decides how much it thinks. Assumed for unknown models.
    Adaptive,
    /// The request sets a token budget.
    Budget,
    /// The model does not support thinking.
    Never,
}

pub(super) fn thinking(model: &str) -> Thinking {
    match Claude::read(model).map(|claude| claude.version) {
        Some(version) if version < (3, 7) => Thinking::Never,
        Some(version) if version < (4, 6) => Thinking::Budget,
        Some(_) | None => Thinking::Adaptive,
    }
}

/// Which of `temperature` and `top_p` a model accepts. Newer models reject a request with others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sampling {
    Both,
    One,
    Neither,
}

pub(super) fn sampling(model: &str) -> Sampling {
    match Claude::read(model).map(|claude| claude.version) {
        Some(version) if version >= (4, 7) => Sampling::Neither,
        Some(version) if version >= (4, 1) => Sampling::One,
        Some(_) | None => Sampling::Both,
    }
}

/// Default of the required `max_tokens`. All models from version 4 on accept the larger number, which leaves room for
/// thinking; all models still in service accept the smaller one.
pub(super) fn max_tokens(model: &str) -> u32 {
    match Claude::read(model) {
        Some(claude) if claude.version >= (4, 0) => 32_000,
        Some(_) | None => 8_192,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_the_version_and_what_it_takes() {
        let cases = [
            ("claude-opus-5-5", true, Thinking::Adaptive, 32_000),
            ("claude-opus-4-8-20260301", true, Thinking::Adaptive, 32_000),
            ("claude-opus-4-7", false, Thinking::Adaptive, 32_000),
            ("claude-opus-4-20250514", false, Thinking::Budget, 32_000),
            ("claude-sonnet-5", false, Thinking::Adaptive, 32_000),
            ("claude-sonnet-5-5", true, Thinking::Adaptive, 32_000),
            ("claude-haiku-4-5-20251001", false, Thinking::Budget, 32_000),
            ("claude-fable-5-1", true, Thinking::Adaptive, 32_000),
            ("us.anthropic.claude-mythos-5-v1:0", true, Thinking::Adaptive, 32_000),
            ("anthropic/claude-opus-4.8", true, Thinking::Adaptive, 32_000),
            ("claude-3-7-sonnet-latest", false, Thinking::Budget, 8_192),
            ("claude-3-5-haiku-20241022", false, Thinking::Never, 8_192),
            ("claude-next", false, Thinking::Adaptive, 8_192),
            ("something-else", false, Thinking::Adaptive, 8_192),
        ];
        for (model, takes, thinks, most) in cases {
            assert_eq!(takes_tool_changes(model), takes, "{model}");
            assert_eq!(thinking(model), thinks, "{model}");
            assert_eq!(max_tokens(model), most, "{model}");
        }
        for (model, takes) in [
            ("claude-3-7-sonnet-latest", Sampling::Both),
            ("claude-opus-4-20250514", Sampling::Both),
            ("claude-opus-4-1", Sampling::One),
            ("claude-opus-4-6", Sampling::One),
            ("claude-opus-4-7", Sampling::Neither),
            ("other", Sampling::Both),
        ] {
            assert_eq!(sampling(model), takes, "{model}");
        }
    }

    #[test]
    fn only_the_newest_bind_their_thoughts() {
        for model in ["claude-opus-5-5", "claude-haiku-5-6", "claude-fable-5-1", "claude-mythos-6"]
        {
            assert!(binds_thoughts(model), "{model}");
        }
        for model in ["claude-opus-5", "claude-sonnet-5", "claude-fable-5", "claude-haiku-4-5", "x"]
        {
            assert!(!binds_thoughts(model), "{model}");
        }
    }
}
