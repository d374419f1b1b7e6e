//! Content checks: whether a conversation or a tool call is shown to a threat-protection endpoint before it goes on, and
//! what was decided.

use std::sync::Arc;
use std::time::Duration;

use url::Url;

use crate::{CanonicalName, Secret};

/// Default of `threat_protection.timeout`, the time that one check may take.
pub const DEFAULT_CHECK_TIMEOUT: Duration = Duration::from_secs(5);

/// What a hook does with the verdict of a check. Ordered by strictness.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum CheckMode {
    /// Nothing is checked.
    #[default]
    Off,
    /// The check runs beside the work, which does not wait for it; a refusal is recorded.
    Observe,
    /// The work waits for the verdict, and ends if it is a refusal.
    Block,
}

impl CheckMode {
    /// The word of the configuration file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Observe => "observe",
            Self::Block => "block",
        }
    }
}

/// What happens to work that waits for a check which gives no verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FailurePolicy {
    /// The work goes on.
    Open,
    /// The work ends, as after a refusal.
    #[default]
    Closed,
}

impl FailurePolicy {
    /// The word of the configuration file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Closed => "closed",
        }
    }
}

/// The `threat_protection` section.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreatProtectionPlan {
    /// Where conversations and calls are sent to be judged; `None` if there is no such service.
    pub endpoint: Option<Url>,
    /// Sent to the endpoint as `Authorization: Bearer ...`.
    pub token: Option<Secret>,
    /// How long one check may take.
    pub timeout: Duration,
    /// What a check without a verdict means in the mode [`CheckMode::Block`].
    pub on_failure: FailurePolicy,
    /// The hook before each model request of a turn.
    pub before_model: CheckMode,
    /// The hook before each tool call of a turn.
    pub before_tool: CheckMode,
    /// The hook before the result of such a call is used.
    pub after_tool: CheckMode,
    /// Regular expressions; what they match is replaced before anything leaves.
    pub redact: Vec<String>,
    /// Whether chat messages are accepted from other machines without credentials.
    pub accept_without_key: bool,
}

impl Default for ThreatProtectionPlan {
    fn default() -> Self {
        Self {
            endpoint: None,
            token: None,
            timeout: DEFAULT_CHECK_TIMEOUT,
            on_failure: FailurePolicy::default(),
            before_model: CheckMode::Off,
            before_tool: CheckMode::Off,
            after_tool: CheckMode::Off,
            redact: Vec::new(),
            accept_without_key: false,
        }
    }
}

/// The checks of a tool's calls as configured: a field that is not configured is `None`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct ContentCheckOverlay {
    /// See [`ContentCheckModes::before_call`].
    pub before_call: Option<CheckMode>,
    /// See [`ContentCheckModes::after_call`].
    pub after_call: Option<CheckMode>,
}

impl ContentCheckOverlay {
    /// Lays `self` over `below`, field by field: a configured field of `self` wins.
    #[must_use]
    pub fn over(self, below: Self) -> Self {
        Self {
            before_call: self.before_call.or(below.before_call),
            after_call: self.after_call.or(below.after_call),
        }
    }

    /// Fills the fields that are not configured: nothing is checked.
    pub fn resolve(self) -> ContentCheckModes {
        ContentCheckModes {
            before_call: self.before_call.unwrap_or_default(),
            after_call: self.after_call.unwrap_or_default(),
        }
    }

    /// Whether nothing is configured.
    pub fn is_empty(self) -> bool {
        self == Self::default()
    }
}

/// The checks of a tool's calls, whoever makes them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct ContentCheckModes {
    /// The check of the call before the tool runs.
    pub before_call: CheckMode,
    /// The check of the result before the caller gets it.
    pub after_call: CheckMode,
}

/// Where something is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CheckHook {
    /// Before a model is asked.
    BeforeModel,
    /// Before a tool runs.
    BeforeTool,
    /// Before the result of a tool is used.
    AfterTool,
    /// A chat message that another agent sent here.
    Received,
}

impl CheckHook {
    /// All hooks.
    pub const ALL: [Self; 4] =
        [Self::BeforeModel, Self::BeforeTool, Self::AfterTool, Self::Received];

    /// The word in records and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::BeforeModel => "before_model",
            Self::BeforeTool => "before_tool",
            Self::AfterTool => "after_tool",
            Self::Received => "received",
        }
    }

    /// Parses the word that [`CheckHook::as_str`] writes.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|hook| hook.as_str() == word)
    }
}

/// The result of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ContentVerdict {
    /// Nothing speaks against it.
    Allowed,
    /// The checked content must not be used.
    Refused {
        /// The reason in the words of the endpoint; may be empty.
        reason: String,
    },
    /// There is no verdict.
    Failed {
        /// Why not, without credentials.
        reason: String,
    },
}

impl ContentVerdict {
    /// The word in records and metrics.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::Refused { .. } => "refused",
            Self::Failed { .. } => "failed",
        }
    }

    /// The reason of a refusal or a failure.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Allowed => None,
            Self::Refused { reason } | Self::Failed { reason } => Some(reason),
        }
    }
}

/// The stored record of a check that was not passed, or of a chat message that was received. Its content is not stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContentCheckRecord {
    /// Unique over all runs; begins with the time.
    pub id: String,
    /// When it ended, in milliseconds since 1970.
    pub at_ms: i64,
    /// Where it was checked.
    pub hook: CheckHook,
    /// The word of the verdict.
    pub verdict: String,
    /// Whether the work ended because of it.
    pub blocked: bool,
    /// The reason of the refusal or of the failure.
    pub reason: Option<String>,
    /// Whose work it was; `None` for a chat message without credentials.
    pub principal: Option<Arc<str>>,
    /// The session of the turn or of the call, or the conversation of a received message.
    pub conversation: Option<String>,
    /// The turn, the call, or the received message.
    pub message: String,
    /// The tool of the call.
    pub tool: Option<CanonicalName>,
    /// How many messages of the conversation were checked or received.
    pub messages: u64,
    /// The size of the text that was checked or received.
    pub bytes: u64,
    /// How long the check took.
    pub took: Duration,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_ordered_by_strictness() {
        assert!(CheckMode::Off < CheckMode::Observe && CheckMode::Observe < CheckMode::Block);
        let words = [CheckMode::Off, CheckMode::Observe, CheckMode::Block].map(CheckMode::as_str);
        assert_eq!(words, ["off", "observe", "block"]);
        assert_eq!(
            (FailurePolicy::Open.as_str(), FailurePolicy::Closed.as_str()),
            ("open", "closed")
        );
    }

    #[test]
    fn a_tool_keeps_the_check_of_its_server_that_it_does_not_set() {
        let tool = ContentCheckOverlay { before_call: Some(CheckMode::Off), after_call: None };
        let server = ContentCheckOverlay {
            before_call: Some(CheckMode::Block),
            after_call: Some(CheckMode::Observe),
        };
        let modes = tool.over(server).resolve();
        assert_eq!((modes.before_call, modes.after_call), (CheckMode::Off, CheckMode::Observe));
        assert_eq!(ContentCheckOverlay::default().resolve(), ContentCheckModes::default());
        assert!(ContentCheckOverlay::default().is_empty() && !tool.is_empty());
    }

    #[test]
    fn hooks_and_verdicts_have_words() {
        for hook in CheckHook::ALL {
            assert_eq!(CheckHook::from_word(hook.as_str()), Some(hook));
        }
        assert_eq!(CheckHook::from_word("Received"), None);
        let reason = || "r".to_owned();
        let rows = [
            (ContentVerdict::Allowed, "allowed", None),
            (ContentVerdict::Refused { reason: reason() }, "refused", Some("r")),
            (ContentVerdict::Failed { reason: reason() }, "failed", Some("r")),
        ];
        for (verdict, word, reason) in rows {
            assert_eq!((verdict.as_str(), verdict.reason()), (word, reason));
        }
    }
}
