//! Validates the `discovery` section.

use std::time::Duration;

use http::HeaderValue;
use serde_json::Value as Json;
use switchboard_model::{
    AUTO_SOURCE, AdmissionMode, ContentCheckOverlay, DEFAULT_SOURCE_SERVERS, DiscoveryPlan,
    GatewaySource, LimitsOverlay, RecordOverlay, RegistryPlace, Secret, SourceKind, SourcePlan,
    SourcePolicy,
};

use super::server::ServerDefaults;
use super::threat_protection::content_check;
use super::{At, Planner, admission_mode, entries};
use crate::problem::ConfigProblem;
use crate::raw::{RawMode, RawToolDefaults};
use crate::raw_discovery::{RawSource, RawSourceType};
use crate::raw_threat_protection::RawContentCheck;

const EXAMPLE: &str = "https://gateway.example.com";

/// The placeholder of the agent's id in `path_template`.
const AGENT_ID: &str = "{agent_id}";

/// What a source inherits from the section.
struct Inherited {
    mode: AdmissionMode,
    limits: LimitsOverlay,
    connect_timeout: Option<Duration>,
    content_check: ContentCheckOverlay,
    record: RecordOverlay,
}

impl Planner<'_> {
    pub(super) fn discovery(
        &mut self,
        config: &At<'_>,
        sound: &Json,
        defaults: &ServerDefaults,
    ) -> DiscoveryPlan {
        let below = defaults.limits.unwrap_or_default();
        let Some(at) = config.get("discovery") else {
            let policy = SourcePolicy {
                default_limits: below,
                connect_timeout: defaults.connect_timeout,
                content_check: defaults.content_check,
                record: defaults.record,
                ..SourcePolicy::default()
            };
            return DiscoveryPlan { policy, ..DiscoveryPlan::default() };
        };
        let json = &sound["discovery"];
        let text = |key: &str| json[key].as_str().map(str::to_owned);
        // A part that does not deserialize failed the schema check and has been reported.
        let mode = serde_json::from_value::<RawMode>(json["mode"].clone()).ok();
        let limits = serde_json::from_value::<RawToolDefaults>(json["default_tool_config"].clone());
        let limits = limits.ok().filter(|_| at.has("default_tool_config"));
        let limits = limits.map(|limits| self.default_limits(&at, limits)).unwrap_or_default();
        let connect_timeout = serde_json::from_value(json["connect_timeout"].clone()).ok();
        let connect_timeout = connect_timeout.filter(|_| at.has("connect_timeout"));
        let connect_timeout = self.duration(&at, "connect_timeout", connect_timeout);
        let checks = serde_json::from_value::<RawContentCheck>(json["content_check"].clone()).ok();
        let inherited = Inherited {
            mode: mode.map_or(AdmissionMode::Dynamic, admission_mode),
            limits: limits.over(below),
            connect_timeout: connect_timeout.or(defaults.connect_timeout),
            content_check: content_check(checks).over(defaults.content_check),
            record: defaults.record,
        };
        let written = entries::<RawSource>(&at, "sources", json);
        self.refuse_duplicates(&written, "sources", |raw| raw.name.as_deref());
        let sources = written.into_iter().filter_map(|(at, raw)| self.source(&at, raw, &inherited));
        let sources = sources.collect();
        let endpoint = text("endpoint").and_then(|text| self.url(&at, "endpoint", &text, EXAMPLE));
        DiscoveryPlan {
            auto: json["auto"].as_bool().unwrap_or(true),
            orchestrator_name: self.header_text(
                &at,
                "orchestrator_name",
                text("orchestrator_name"),
            ),
            agent_id: self.agent_id(&at, text("agent_id")),
            token: self.source_token(&at, text("token")),
            endpoint,
            policy: SourcePolicy {
                mode: inherited.mode,
                default_limits: inherited.limits,
                connect_timeout: inherited.connect_timeout,
                content_check: inherited.content_check,
                record: inherited.record,
                ..SourcePolicy::default()
            },
            sources,
        }
    }

    fn source(
        &mut self,
        at: &At<'_>,
        mut raw: RawSource,
        inherited: &Inherited,
    ) -> Option<SourcePlan> {
        if raw.name.as_deref() == Some(AUTO_SOURCE)
            && let Some(name) = at.get("name")
        {
            let help = "it stands for the source that the environment chooses; take another name";
            self.refuse(&name, "is reserved", help);
        }
        // All checks run before an incomplete entry is dropped.
        let kind = raw.kind.and_then(|kind| self.source_kind(at, kind, &mut raw));
        let refresh = self.duration(at, "refresh", raw.refresh.take());
        let policy = self.source_policy(at, &mut raw, inherited);
        let kind = kind?;
        Some(SourcePlan {
            name: raw.name?,
            refresh: refresh.unwrap_or_else(|| kind.default_refresh()),
            kind,
            policy,
        })
    }

    fn source_kind(
        &mut self,
        at: &At<'_>,
        kind: RawSourceType,
        raw: &mut RawSource,
    ) -> Option<SourceKind> {
        let url = raw.url.take().map(|text| self.url(at, "url", &text, EXAMPLE));
        let token = self.source_token(at, raw.token.take());
        let agent_id = self.agent_id(at, raw.agent_id.take());
        let path = raw.path.take().map(|path| self.directory.join(path));
        match kind {
            RawSourceType::Manifest => {
                self.refuse_source_keys(
                    at,
                    "manifest",
                    &["url", "agent_id", "token", "path_template"],
                );
                Some(SourceKind::Manifest { path })
            }
            RawSourceType::Gateway => {
                self.refuse_source_keys(at, "gateway", &["path"]);
                let template = raw.path_template.take();
                self.check_path_template(at, template.as_deref());
                let url = match url {
                    Some(None) => return None,
                    Some(url) => url,
                    None => None,
                };
                Some(SourceKind::Gateway(GatewaySource {
                    url,
                    agent_id,
                    token,
                    path_template: template,
                }))
            }
            RawSourceType::Registry => {
                self.refuse_source_keys(at, "registry", &["agent_id", "path_template"]);
                let place = match (url, path) {
                    (Some(url), None) => RegistryPlace::Url { url: url?, token },
                    (None, Some(path)) => {
                        if let Some(at) = at.get("token") {
                            let help = "a file needs no token: remove it";
                            self.refuse(&at, "has no effect on a file", help);
                        }
                        RegistryPlace::File(path)
                    }
                    (both, _) => {
                        let word = if both.is_some() { "both" } else { "neither" };
                        let joined = if both.is_some() { "and" } else { "nor" };
                        let message = format!("{} has {word} `path` {joined} `url`", at.path);
                        let help = "a registry is a file or an address: keep one of the two";
                        let problem = ConfigProblem::error(message).about(&at.path).help(help);
                        self.push(&at.node.origin, problem);
                        return None;
                    }
                };
                Some(SourceKind::Registry(place))
            }
        }
    }

    fn check_path_template(&mut self, at: &At<'_>, template: Option<&str>) {
        let (Some(text), Some(at)) = (template, at.get("path_template")) else { return };
        let help = "write for example `/mcp/servers?agentId={agent_id}`";
        if !text.starts_with('/') || text.starts_with("//") {
            self.refuse(&at, "is not a path: it must start with one `/`", help);
        } else if !text.contains(AGENT_ID) {
            self.refuse(&at, "has no place for the agent: `{agent_id}`", help);
        }
    }

    fn source_policy(
        &mut self,
        at: &At<'_>,
        raw: &mut RawSource,
        inherited: &Inherited,
    ) -> SourcePolicy {
        let limits = raw.default_tool_config.take();
        let limits = limits.map(|limits| self.default_limits(at, limits)).unwrap_or_default();
        let connect_timeout = self.duration(at, "connect_timeout", raw.connect_timeout.take());
        let servers = raw.servers.take().unwrap_or_default();
        SourcePolicy {
            mode: raw.mode.map_or(inherited.mode, admission_mode),
            default_limits: limits.over(inherited.limits),
            tool_allowlist: raw.allow.take(),
            tool_denylist: raw.deny.take().unwrap_or_default(),
            server_allowlist: servers.allow,
            server_denylist: servers.deny.unwrap_or_default(),
            prefix: raw.prefix.take().unwrap_or_default(),
            max_servers: raw.max_servers.unwrap_or(DEFAULT_SOURCE_SERVERS),
            connect_timeout: connect_timeout.or(inherited.connect_timeout),
            content_check: content_check(raw.content_check.take()).over(inherited.content_check),
            record: inherited.record,
        }
    }

    /// A blank id would name no agent.
    fn agent_id(&mut self, at: &At<'_>, text: Option<String>) -> Option<String> {
        let is_blank = text.as_ref().is_some_and(|text| text.trim().is_empty());
        if let Some(at) = at.get("agent_id").filter(|_| is_blank) {
            self.refuse(&at, "is blank", "write the id of the agent, or remove the key");
        }
        text.filter(|text| !text.trim().is_empty())
    }

    fn source_token(&mut self, at: &At<'_>, text: Option<String>) -> Option<Secret> {
        self.header_text(at, "token", text).map(Secret::new)
    }

    /// A text that becomes a part of a header.
    fn header_text(&mut self, at: &At<'_>, key: &str, text: Option<String>) -> Option<String> {
        let text = text?;
        if text.trim().is_empty() || HeaderValue::from_str(&text).is_err() {
            let message = format!(
                "{}.{key} is empty or holds characters that a header cannot carry",
                at.path
            );
            let problem = ConfigProblem::error(message).about(&at.path.key(key));
            self.push(at.key_origin(key), problem);
            return None;
        }
        Some(text)
    }

    fn refuse_source_keys(&mut self, at: &At<'_>, kind: &str, keys: &[&str]) {
        for key in keys.iter().filter(|key| at.has(key)) {
            let message = format!("`{key}` does not belong to a `{kind}` source ({})", at.path);
            let problem = ConfigProblem::error(message).about(&at.path.key(key));
            self.push(at.key_origin(key), problem.help("remove it, or change `type`"));
        }
    }
}
