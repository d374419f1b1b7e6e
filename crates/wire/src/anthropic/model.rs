//! What can be told from the name of a model.

/// Family and version of a Claude model, where the name says them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Claude<'a> {
    family: &'a str,
    version: (u8, u8),
}

impl<'a> Claude<'a> {
    /// Reads `claude-opus-5-5`, `claude-haiku-4-5-20251001`, `claude-3-7-sonnet-latest`, also behind the prefix of a
    /// reseller.
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
                // What follows is a date or a variant.
                _ => break,
            }
        }
        let major = *numbers.first()?;
        Some(Self { family: family?, version: (major, numbers.get(1).copied().unwrap_or(0)) })
    }
}

/// Whether a model takes system messages within the conversation, and with them changes of its tools.
pub(crate) fn takes_tool_changes(model: &str) -> bool {
    let Some(Claude { family, version }) = Claude::read(model) else { return false };
    match family {
        "opus" => version >= (4, 8),
        "sonnet" | "haiku" => version >= (5, 5),
        "fable" | "mythos" => version >= (5, 0),
        _ => false,
    }
}

/// How a model is asked to think.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Thinking {
    /// It decides itself how much. All that we do not know do.
    Adaptive,
    /// It is given a number of tokens.
    Budget,
    /// It cannot.
    Never,
}

pub(super) fn thinking(model: &str) -> Thinking {
    match Claude::read(model).map(|claude| claude.version) {
        Some(version) if version < (3, 7) => Thinking::Never,
        Some(version) if version < (4, 6) => Thinking::Budget,
        Some(_) | None => Thinking::Adaptive,
    }
}

/// Whether a model takes `temperature` and `top_p`: the newer ones refuse the whole request.
pub(super) fn takes_sampling(model: &str) -> bool {
    Claude::read(model).is_none_or(|claude| claude.version < (4, 7))
}

/// The tokens of an answer where nobody says how many: the API wants a number. All models from 4 on take the larger one,
/// which leaves room for thoughts; the smaller one is taken by all that are still served.
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
        for (model, takes) in
            [("claude-opus-4-6", true), ("claude-opus-4-7", false), ("other", true)]
        {
            assert_eq!(takes_sampling(model), takes, "{model}");
        }
    }
}
