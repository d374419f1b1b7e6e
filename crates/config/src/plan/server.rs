//! One entry of `toolbox.mcps`.

use std::time::Duration;

use switchboard_model::{
    AccountScope, ContentCheckOverlay, DEFAULT_CONNECTION_IDLE, DEFAULT_MAX_CONNECTIONS,
    DEFAULT_MAX_OWNER_CONNECTIONS, Era, EraChoice, LimitsOverlay, RecordOverlay, RequiredOrigin,
    ServerName, ServerPlan, ServerSpec, Sharing,
};

use super::endpoint::{referenced, shown_place};
use super::oauth::scope_of;
use super::records::record;
use super::threat_protection::content_check;
use super::{At, Planner, RawLimits, admission_mode, shown_name};
use crate::place::SourceLocation;
use crate::problem::ConfigProblem;
use crate::raw::{RawConnection, RawEra, RawMode, RawServer, RawServerDefaults, RawToolDefaults};

/// The settings of per-session connections, each with its alias for stdio servers.
pub(crate) const CONNECTION_KEYS: [(&str, &str); 3] = [
    ("connection", "process"),
    ("max_connections", "max_processes"),
    ("connection_idle_timeout", "process_idle_timeout"),
];

/// `toolbox.defaults`.
#[derive(Debug, Default)]
pub(super) struct ServerDefaults {
    required: Option<bool>,
    pub(super) connect_timeout: Option<Duration>,
    pub(super) limits: Option<LimitsOverlay>,
    pub(super) content_check: ContentCheckOverlay,
    pub(super) record: RecordOverlay,
}

impl Planner<'_> {
    pub(super) fn server_defaults(
        &mut self,
        toolbox: &At<'_>,
        json: &serde_json::Value,
    ) -> ServerDefaults {
        // An entry that does not deserialize failed the schema check and has been reported.
        let raw = json.get("defaults").cloned();
        let raw = raw.and_then(|raw| serde_json::from_value::<RawServerDefaults>(raw).ok());
        let (Some(at), Some(raw)) = (toolbox.get("defaults"), raw) else {
            return ServerDefaults::default();
        };
        ServerDefaults {
            required: raw.required,
            connect_timeout: self.duration(&at, "connect_timeout", raw.connect_timeout),
            limits: raw.default_tool_config.map(|limits| self.default_limits(&at, limits)),
            content_check: content_check(raw.content_check),
            record: record(raw.record),
        }
    }

    pub(super) fn server(
        &mut self,
        at: &At<'_>,
        mut raw: RawServer,
        inherited: &ServerDefaults,
    ) -> Option<ServerPlan> {
        let name = raw.name.take();
        self.check_name(at, name.as_deref());
        if inherited.limits.is_none() {
            self.check_defaults(at, name.as_deref(), raw.mode);
        }
        let defaults = raw.default_tool_config.take();
        let own_limits = defaults.map(|defaults| self.default_limits(at, defaults));
        let default_limits = match (own_limits, inherited.limits) {
            (Some(own), Some(inherited)) => Some(own.over(inherited)),
            (own, inherited) => own.or(inherited),
        };
        let connect_timeout = self.duration(at, "connect_timeout", raw.connect_timeout.take());
        let poll_interval = self.duration(at, "poll_interval", raw.poll_interval.take());
        let sharing = self.sharing(at, &mut raw);
        // All checks run before an incomplete entry is dropped.
        let endpoint = self.endpoint(at, &mut raw);
        let caller_headers = self.caller_headers(at);
        let name = ServerName::new(name?);
        let endpoint = endpoint?;
        Some(ServerPlan {
            spec: ServerSpec {
                name,
                place: shown_place(at, &endpoint),
                referenced: referenced(at),
                caller_headers,
                era: era(raw.era),
                connect_timeout: connect_timeout
                    .or(inherited.connect_timeout)
                    .unwrap_or_else(|| endpoint.default_connect_timeout()),
                endpoint,
                sharing,
                egress: None,
            },
            mode: admission_mode(raw.mode?),
            default_limits,
            tool_allowlist: raw.tool_allowlist,
            tool_denylist: raw.tool_denylist.unwrap_or_default(),
            required: raw.required.or(inherited.required).unwrap_or(true),
            required_origin: self.required_origin(at),
            toolset: raw.toolset,
            prompts: raw.prompts,
            poll_interval,
            validate_arguments: raw.validate_arguments.unwrap_or(true),
            content_check: content_check(raw.content_check).over(inherited.content_check),
            record: record(raw.record).over(inherited.record),
            discovered: None,
        })
    }

    fn sharing(&mut self, at: &At<'_>, raw: &mut RawServer) -> Sharing {
        for (key, older) in CONNECTION_KEYS {
            if let Some(older_at) = at.get(older).filter(|_| at.has(key)) {
                let why = format!("sets the same as `{key}`");
                self.refuse(&older_at, &why, "both are names of one setting: remove one");
            }
        }
        let idle = self
            .duration(at, "connection_idle_timeout", raw.connection_idle_timeout.take())
            .or(self.duration(at, "process_idle_timeout", raw.process_idle_timeout.take()));
        match raw.connection.or(raw.process) {
            Some(RawConnection::PerSession) => Sharing::PerSession {
                most: raw.max_connections.or(raw.max_processes).unwrap_or(DEFAULT_MAX_CONNECTIONS),
                idle: idle.unwrap_or(DEFAULT_CONNECTION_IDLE),
            },
            Some(RawConnection::Shared) | None
                if scope_of(raw.auth.as_ref()) != AccountScope::Board =>
            {
                Sharing::PerOwner {
                    most: raw.max_connections.unwrap_or(DEFAULT_MAX_OWNER_CONNECTIONS),
                    idle: idle.unwrap_or(DEFAULT_CONNECTION_IDLE),
                }
            }
            Some(RawConnection::Shared) | None => {
                let [_, bounds @ ..] = CONNECTION_KEYS;
                for key in bounds.into_iter().flat_map(|(key, older)| [key, older]) {
                    if let Some(at) = at.get(key) {
                        let help =
                            "it belongs to `connection: per_session`: add that, or remove this key";
                        let why = "has no effect on a shared connection";
                        self.refuse(&at, why, help);
                    }
                }
                Sharing::Shared
            }
        }
    }

    fn required_origin(&self, at: &At<'_>) -> RequiredOrigin {
        let line = |origin| match self.source.place(origin) {
            SourceLocation::File { name, line, .. } => Some(format!("{name}:{line}")),
            place @ SourceLocation::Environment { .. } => Some(place.to_string()),
            SourceLocation::Default => None,
        };
        if at.has("required") {
            line(at.key_origin("required")).map_or(RequiredOrigin::Nowhere, RequiredOrigin::Written)
        } else {
            line(&at.node.origin).map_or(RequiredOrigin::Nowhere, RequiredOrigin::Entry)
        }
    }

    fn check_name(&mut self, at: &At<'_>, name: Option<&str>) {
        if name.is_some_and(|name| ServerName::new(name).is_local())
            && let Some(at) = at.get("name")
        {
            let help = "it stands for the built-in tools; choose another name";
            self.refuse(&at, "is reserved", help);
        }
    }

    /// Reports a dynamic server without `default_tool_config`. The text is a stable interface that users match.
    fn check_defaults(&mut self, at: &At<'_>, name: Option<&str>, mode: Option<RawMode>) {
        if mode != Some(RawMode::Dynamic) || at.has("default_tool_config") {
            return;
        }
        let name = shown_name(at, name.unwrap_or("?"));
        let message = format!(
            "MCP server '{name}' is configured with mode='dynamic' but missing required field 'default_tool_config'"
        );
        let problem = ConfigProblem::error(message).about(&at.path.key("default_tool_config")).help(
            "add `default_tool_config: {max_instances: 5, timeout: 30s}`, or use `mode: strict`",
        );
        self.push(at.value_origin("mode"), problem);
    }

    pub(super) fn default_limits(&mut self, at: &At<'_>, raw: RawToolDefaults) -> LimitsOverlay {
        let Some(at) = at.get("default_tool_config") else { return LimitsOverlay::default() };
        let limits = RawLimits {
            max_instances: raw.max_instances,
            timeout: raw.timeout,
            max_timeout: raw.max_timeout,
            queue_timeout: raw.queue_timeout,
            inactivity_timeout: raw.inactivity_timeout,
            max_result_bytes: raw.max_result_bytes,
            rate: raw.rate,
        };
        self.limits(&at, limits)
    }
}

fn era(raw: Option<RawEra>) -> EraChoice {
    match raw {
        None | Some(RawEra::Auto) => EraChoice::Auto,
        Some(RawEra::Legacy) => EraChoice::Fixed(Era::Legacy),
        Some(RawEra::Modern) => EraChoice::Fixed(Era::Modern),
    }
}
