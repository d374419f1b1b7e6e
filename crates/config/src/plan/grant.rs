//! Validates `security.jwt.grants` and `security.jwt.default_grant`.

use serde_json::Value;
use switchboard_model::{
    AccessRule, BadRate, CallerLimits, ClaimGrant, ClaimRule, JwtGrants, Rate, Role,
};

use super::names::Names;
use super::{At, Planner};
use crate::problem::ConfigProblem;
use crate::raw_grant::{RawClaimRule, RawDefaultGrant, RawRole};

impl Planner<'_> {
    pub(super) fn jwt_grants(
        &mut self,
        at: &At<'_>,
        rules: Option<Vec<RawClaimRule>>,
        otherwise: Option<RawDefaultGrant>,
        servers: &Names,
        sets: &Names,
    ) -> JwtGrants {
        let rules = rules.map(|rules| {
            let rules = at.items("grants").into_iter().zip(rules);
            rules.filter_map(|(at, raw)| self.claim_rule(&at, raw, servers, sets)).collect()
        });
        let otherwise = at.get("default_grant").zip(otherwise).map(|(at, raw)| RawGrantFields {
            rule: self.access_rule(&at, raw.toolsets, raw.tools, raw.deny_tools, servers, sets),
            role: raw.role,
            readonly: raw.readonly,
            max_instances: raw.max_instances,
            rate: self.rate(&at, raw.rate.as_deref()),
        });
        JwtGrants { rules, otherwise: otherwise.map(RawGrantFields::grant) }
    }

    fn claim_rule(
        &mut self,
        at: &At<'_>,
        raw: RawClaimRule,
        servers: &Names,
        sets: &Names,
    ) -> Option<ClaimRule> {
        let values = match (raw.value, raw.values) {
            (Some(value), None) => vec![text_of(&value)],
            (None, Some(values)) => values,
            (one, _) => {
                let message = match one {
                    Some(_) => format!("{} has both `value` and `values`", at.path),
                    None => format!("{} has neither `value` nor `values`", at.path),
                };
                let help = "write `value: sales`, or `values: [sales, support]`";
                let problem = ConfigProblem::error(message).about(&at.path).help(help);
                self.push(&at.node.origin, problem);
                Vec::new()
            }
        };
        let grant = RawGrantFields {
            rule: self.access_rule(at, raw.toolsets, raw.tools, raw.deny_tools, servers, sets),
            role: raw.role,
            readonly: raw.readonly,
            max_instances: raw.max_instances,
            rate: self.rate(at, raw.rate.as_deref()),
        };
        Some(ClaimRule { claim: raw.claim?, values, grant: grant.grant() })
    }

    fn access_rule(
        &mut self,
        at: &At<'_>,
        toolsets: Option<Vec<String>>,
        tools: Option<Vec<String>>,
        deny_tools: Option<Vec<String>>,
        servers: &Names,
        sets: &Names,
    ) -> AccessRule {
        self.refuse_unknown(at, "toolsets", sets);
        for key in ["tools", "deny_tools"] {
            self.check_patterns(at, key, servers);
        }
        let deny_tools = deny_tools.unwrap_or_default();
        AccessRule { toolsets, tools, deny_tools, read_only: false }
    }

    /// Parses the `rate` of a tool, a server or a grant.
    pub(super) fn rate(&mut self, at: &At<'_>, text: Option<&str>) -> Option<Rate> {
        match text?.parse() {
            Ok(rate) => Some(rate),
            Err(why) => {
                let why: BadRate = why;
                self.refuse(&at.get("rate")?, &why.to_string(), BadRate::HELP);
                None
            }
        }
    }
}

/// The fields of a grant that are carried over as they are.
struct RawGrantFields {
    rule: AccessRule,
    role: Option<RawRole>,
    readonly: Option<bool>,
    max_instances: Option<u32>,
    rate: Option<Rate>,
}

impl RawGrantFields {
    fn grant(self) -> ClaimGrant {
        let Self { rule, role, readonly, max_instances, rate } = self;
        ClaimGrant {
            role: role.map(|role| match role {
                RawRole::Client => Role::Client,
                RawRole::Operator => Role::Operator,
                RawRole::Admin => Role::Admin,
            }),
            rule: AccessRule { read_only: readonly.unwrap_or_default(), ..rule },
            limits: CallerLimits { max_instances, rate },
        }
    }
}

/// A value as it is compared with a claim.
fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
