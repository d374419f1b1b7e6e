//! Validates the `gateway` section.

use serde_json::Value as Json;
use switchboard_model::{ExposureMode, GatewayPlan, Naming, StatelessState};

use url::Url;

use super::toolset::Toolsets;
use super::{At, Planner};
use crate::problem::ConfigProblem;
use crate::raw::{RawExposure, RawGateway, RawNaming, RawStatelessState};

const SET_LISTS: [&str; 3] = ["tool_sets", "allow_toolsets", "deny_toolsets"];

impl Planner<'_> {
    pub(super) fn gateway(
        &mut self,
        config: &At<'_>,
        sound: &Json,
        sets: &Toolsets,
    ) -> GatewayPlan {
        let Some(at) = config.get("gateway") else { return GatewayPlan::default() };
        let raw: RawGateway = serde_json::from_value(sound["gateway"].clone()).unwrap_or_default();
        for key in SET_LISTS {
            self.refuse_unknown(&at, key, &sets.names);
        }
        let defaults = GatewayPlan::default();
        let session_idle = self.duration(&at, "session_idle", raw.session_idle);
        let startup_wait = self.duration(&at, "startup_wait", raw.startup_wait);
        let public_url = raw.public_url.and_then(|text| self.public_url(&at, &text));
        let plan = GatewayPlan {
            exposure: raw.exposure.map(exposure_mode),
            tool_sets: raw.tool_sets,
            naming: raw.naming.map_or(defaults.naming, naming),
            max_active_toolsets: raw.max_active_toolsets,
            allow_toolsets: raw.allow_toolsets,
            deny_toolsets: raw.deny_toolsets.unwrap_or_default(),
            stateless_state: raw.stateless_state.map_or(defaults.stateless_state, stateless_state),
            session_idle: session_idle.unwrap_or(defaults.session_idle),
            max_sessions: raw.max_sessions.unwrap_or(defaults.max_sessions),
            max_sessions_per_principal: raw
                .max_sessions_per_principal
                .unwrap_or(defaults.max_sessions_per_principal),
            max_session_servers: raw.max_session_servers.unwrap_or(defaults.max_session_servers),
            max_body_bytes: raw.max_body_bytes.unwrap_or(defaults.max_body_bytes),
            startup_wait: startup_wait.unwrap_or(defaults.startup_wait),
            trustgraph: raw.trustgraph.unwrap_or(defaults.trustgraph),
            public_url,
        };
        self.check_exposure(&at, &plan, sets);
        self.check_admitted(&at, &plan, sets);
        plan
    }

    /// Parses the public address: paths can be appended to it, and it has no credentials.
    fn public_url(&mut self, at: &At<'_>, text: &str) -> Option<Url> {
        let url = self.url(at, "public_url", text, "https://tools.example.com")?;
        let why = if !url.username().is_empty() || url.password().is_some() {
            "carries credentials, and every client is told this address"
        } else if url.query().is_some() || url.fragment().is_some() {
            "has a query or a fragment, and paths are appended to it"
        } else {
            return Some(url);
        };
        let at = at.get("public_url")?;
        let problem = ConfigProblem::error(format!("{}: the address {why}", at.path));
        let help = "write the address alone, such as `https://tools.example.com`";
        self.push(&at.node.origin, problem.about(&at.path).help(help));
        None
    }

    /// Checks the combination of `exposure` and `tool_sets`.
    fn check_exposure(&mut self, at: &At<'_>, plan: &GatewayPlan, sets: &Toolsets) {
        // An invalid list was already reported; the mode cannot be checked against it.
        if at.has("tool_sets") && plan.tool_sets.is_none() {
            return;
        }
        let named = plan.tool_sets.as_ref().map_or(0, Vec::len);
        match plan.exposure {
            Some(ExposureMode::Static) if named == 0 => {
                let message = format!("{}.exposure is `static`, but no toolset is named", at.path);
                let help = format!("add `tool_sets: [...]`; {}", sets.names.listed());
                let problem =
                    ConfigProblem::error(message).about(&at.path.key("tool_sets")).help(help);
                self.push(at.value_origin("exposure"), problem);
            }
            Some(ExposureMode::Legacy) if named > 0 => {
                let message = format!(
                    "{}.tool_sets is ignored: `exposure: legacy` shows every tool",
                    at.path
                );
                let problem = ConfigProblem::error(message)
                    .about(&at.path.key("tool_sets"))
                    .help("use `exposure: static` to show only these, or remove one of the two");
                self.warn_at(at.key_origin("tool_sets"), problem);
            }
            Some(ExposureMode::Dynamic) => {
                let Some(most) = plan.max_active_toolsets else { return };
                if named > usize::try_from(most).unwrap_or(usize::MAX) {
                    let message = format!(
                        "{}.tool_sets has {named} sets, but max_active_toolsets is {most}",
                        at.path
                    );
                    let problem = ConfigProblem::error(message).about(&at.path.key("tool_sets"));
                    self.push(at.key_origin("tool_sets"), problem.help("change one of the two"));
                }
            }
            Some(ExposureMode::Static | ExposureMode::Legacy) | None => {}
        }
    }

    /// Every toolset that is shown at first must be allowed by `allow_toolsets` and `deny_toolsets`.
    fn check_admitted(&mut self, at: &At<'_>, plan: &GatewayPlan, sets: &Toolsets) {
        for item in at.items("tool_sets") {
            let Some(name) = item.text().filter(|name| sets.names.has(name)) else { continue };
            if plan.admits(name) {
                continue;
            }
            let shown = if item.node.sensitive { "***" } else { name };
            let is_denied = plan.deny_toolsets.iter().any(|denied| denied == name);
            let why = if is_denied { "is in deny_toolsets" } else { "is not in allow_toolsets" };
            let problem =
                ConfigProblem::error(format!("{}: the toolset `{shown}` {why}", item.path))
                    .about(&item.path)
                    .help("remove it here, or allow it there");
            self.push(&item.node.origin, problem);
        }
    }
}

fn exposure_mode(raw: RawExposure) -> ExposureMode {
    match raw {
        RawExposure::Legacy => ExposureMode::Legacy,
        RawExposure::Static => ExposureMode::Static,
        RawExposure::Dynamic => ExposureMode::Dynamic,
    }
}

fn naming(raw: RawNaming) -> Naming {
    match raw {
        RawNaming::Prefixed => Naming::Prefixed,
        RawNaming::Bare => Naming::Bare,
    }
}

fn stateless_state(raw: RawStatelessState) -> StatelessState {
    match raw {
        RawStatelessState::None => StatelessState::None,
        RawStatelessState::Principal => StatelessState::Principal,
    }
}
