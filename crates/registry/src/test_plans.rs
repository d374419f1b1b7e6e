//! Plans for the tests of this crate.

use std::collections::BTreeMap;
use std::time::Duration;

use switchboard_model::{
    AdmissionMode, ContentCheckOverlay, DEFAULT_CONNECT_TIMEOUT, Endpoint, EraChoice,
    LimitsOverlay, RequiredOrigin, ServerName, ServerPlan, ServerSpec, Sharing,
};

/// A server of this name. In dynamic mode its tools have 9 instances and 99 seconds.
pub(crate) fn server(name: &str, mode: AdmissionMode) -> ServerPlan {
    let defaults = LimitsOverlay {
        max_instances: Some(9),
        timeout: Some(Duration::from_secs(99)),
        ..LimitsOverlay::default()
    };
    ServerPlan {
        spec: ServerSpec {
            name: ServerName::new(name),
            endpoint: Endpoint::Stdio {
                command: format!("{name}-command"),
                args: vec![],
                env: BTreeMap::new(),
                cwd: None,
            },
            place: format!("{name}-command"),
            referenced: Vec::new(),
            caller_headers: Vec::new(),
            era: EraChoice::Auto,
            connect_timeout: DEFAULT_CONNECT_TIMEOUT,
            sharing: Sharing::Shared,
            egress: None,
        },
        mode,
        default_limits: (mode == AdmissionMode::Dynamic).then_some(defaults),
        tool_allowlist: None,
        tool_denylist: vec![],
        required: true,
        required_origin: RequiredOrigin::Nowhere,
        toolset: None,
        prompts: None,
        poll_interval: None,
        validate_arguments: true,
        content_check: ContentCheckOverlay::default(),
        record: switchboard_model::RecordOverlay::default(),
        discovered: None,
    }
}
