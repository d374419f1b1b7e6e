//! Validates the `threat_protection` section, and `content_check` of tools and servers.

use http::HeaderValue;
use regex::RegexBuilder;
use serde_json::Value as Json;
use switchboard_model::{
    CheckMode, ContentCheckOverlay, DEFAULT_CHECK_TIMEOUT, FailurePolicy, Secret, ServerPlan,
    ThreatProtectionPlan, ToolEntry, is_on_this_machine,
};
use url::Url;

use super::{At, Planner};
use crate::problem::ConfigProblem;
use crate::raw_threat_protection::{
    RawCheckMode, RawContentCheck, RawFailurePolicy, RawThreatProtection,
};

const EXAMPLE: &str = "https://threats.example.com/agents/real-time-threat-protection/chat-message";
/// Maximum size of a compiled pattern: each text that is checked passes through all of them.
const MAX_PATTERN_BYTES: usize = 1 << 20;
const HOOKS: [&str; 3] = ["before_model", "before_tool", "after_tool"];
const CALL_HOOKS: [&str; 2] = ["before_call", "after_call"];

impl Planner<'_> {
    pub(super) fn threat_protection(
        &mut self,
        config: &At<'_>,
        sound: &Json,
    ) -> ThreatProtectionPlan {
        let Some(at) = config.get("threat_protection") else {
            return ThreatProtectionPlan::default();
        };
        let raw = serde_json::from_value(sound["threat_protection"].clone());
        let raw: RawThreatProtection = raw.unwrap_or_default();
        let endpoint =
            raw.endpoint.as_deref().and_then(|text| self.url(&at, "endpoint", text, EXAMPLE));
        self.check_token(&at, raw.token.as_deref(), endpoint.as_ref());
        let timeout = self.duration(&at, "timeout", raw.timeout);
        self.check_redactions(&at);
        ThreatProtectionPlan {
            endpoint,
            token: raw.token.map(Secret::new),
            timeout: timeout.unwrap_or(DEFAULT_CHECK_TIMEOUT),
            on_failure: raw.on_failure.map(failure_policy).unwrap_or_default(),
            before_model: raw.before_model.map(mode).unwrap_or_default(),
            before_tool: raw.before_tool.map(mode).unwrap_or_default(),
            after_tool: raw.after_tool.map(mode).unwrap_or_default(),
            redact: raw.redact.unwrap_or_default(),
            accept_without_key: raw.accept_without_key.unwrap_or(false),
        }
    }

    fn check_token(&mut self, at: &At<'_>, token: Option<&str>, endpoint: Option<&Url>) {
        let Some(token) = token else { return };
        if token.trim().is_empty() || HeaderValue::from_str(token).is_err() {
            let message = format!(
                "{}.token is empty or holds characters that a header cannot carry",
                at.path
            );
            let problem = ConfigProblem::error(message).about(&at.path.key("token"));
            self.push(at.key_origin("token"), problem);
        }
        if !at.has("endpoint") {
            let message = format!("{} has a `token` but no `endpoint`", at.path);
            let problem = ConfigProblem::error(message).about(&at.path.key("endpoint"));
            self.push(at.key_origin("token"), problem.help(format!("add `endpoint: {EXAMPLE}`")));
        }
        if endpoint.is_some_and(|url| url.scheme() == "http" && !is_on_this_machine(url)) {
            let message = format!("{}.endpoint: the token travels unencrypted", at.path);
            let problem = ConfigProblem::error(message).about(&at.path.key("endpoint"));
            self.warn_at(at.key_origin("endpoint"), problem.help("use https"));
        }
    }

    pub(super) fn check_redactions(&mut self, at: &At<'_>) {
        for item in at.items("redact") {
            let Some(text) = item.text() else { continue };
            let compiled = RegexBuilder::new(text).size_limit(MAX_PATTERN_BYTES).build();
            let why = match compiled {
                Ok(pattern) if pattern.is_match("") => {
                    "matches the empty text, so it would redact nothing and everywhere"
                }
                Ok(_) => continue,
                Err(regex::Error::CompiledTooBig(_)) => "is too large a regular expression",
                Err(_) => "is not a regular expression",
            };
            let help = "write one such as `\\b\\d{3}-\\d{2}-\\d{4}\\b`, in single quotes";
            self.refuse(&item, why, help);
        }
    }

    /// Reports hooks that are switched on although there is no service that could check anything.
    pub(super) fn refuse_checks_without_endpoint(
        &mut self,
        config: &At<'_>,
        toolbox: &At<'_>,
        tools: &[(ToolEntry, At<'_>)],
        servers: &[(ServerPlan, At<'_>)],
    ) {
        let section = config.get("threat_protection");
        // An endpoint that is not valid has been reported.
        if section.as_ref().is_some_and(|at| at.has("endpoint")) {
            return;
        }
        if let Some(at) = &section {
            self.refuse_hooks(at, &HOOKS);
        }
        let entries = tools.iter().map(|(_, at)| at).chain(servers.iter().map(|(_, at)| at));
        let defaults = toolbox.get("defaults");
        let discovery = config.get("discovery");
        let sources = discovery.as_ref().map(|at| at.items("sources")).unwrap_or_default();
        let checks = entries
            .chain(&defaults)
            .chain(&discovery)
            .chain(&sources)
            .filter_map(|at| at.get("content_check"));
        for at in checks.collect::<Vec<_>>() {
            self.refuse_hooks(&at, &CALL_HOOKS);
        }
    }

    fn refuse_hooks(&mut self, at: &At<'_>, hooks: &[&str]) {
        for hook in hooks.iter().filter_map(|hook| at.get(hook)) {
            if hook.text().is_some_and(|word| word != "off") {
                let help =
                    format!("add `threat_protection: {{endpoint: {EXAMPLE}}}`, or write `off`");
                self.refuse(&hook, "needs `threat_protection.endpoint`", &help);
            }
        }
    }
}

/// The checks of a tool or server entry.
pub(super) fn content_check(raw: Option<RawContentCheck>) -> ContentCheckOverlay {
    let raw = raw.unwrap_or_default();
    ContentCheckOverlay {
        before_call: raw.before_call.map(mode),
        after_call: raw.after_call.map(mode),
    }
}

fn mode(raw: RawCheckMode) -> CheckMode {
    match raw {
        RawCheckMode::Off => CheckMode::Off,
        RawCheckMode::Observe => CheckMode::Observe,
        RawCheckMode::Block => CheckMode::Block,
    }
}

fn failure_policy(raw: RawFailurePolicy) -> FailurePolicy {
    match raw {
        RawFailurePolicy::Open => FailurePolicy::Open,
        RawFailurePolicy::Closed => FailurePolicy::Closed,
    }
}
