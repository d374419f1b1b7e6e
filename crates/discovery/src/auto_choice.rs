//! The source that the environment chooses.

use std::path::Path;

use switchboard_agent365::{Environment, MANIFEST_FILE_NAME};

/// What the environment chooses, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AutoChoice {
    /// A manifest; without a file yet, it is looked for again.
    Manifest { because: String },
    /// The tooling gateway.
    Gateway { because: String },
    /// No source. `is_partly_set` says that some of what a gateway needs is there.
    Nothing { because: String, is_partly_set: bool },
}

/// What of a tooling gateway's settings is there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GatewaySettings {
    pub has_address: bool,
    pub has_agent_id: bool,
    pub has_token: bool,
}

impl GatewaySettings {
    /// The settings that are missing.
    fn missing(self) -> Vec<&'static str> {
        let all = [
            (self.has_address, "an address (`discovery.endpoint` or MCP_PLATFORM_ENDPOINT)"),
            (self.has_agent_id, "an agent id (`discovery.agent_id` or SWITCHBOARD_AGENT_ID)"),
            (self.has_token, "a token (`discovery.token` or SWITCHBOARD_AGENT_TOKEN)"),
        ];
        all.into_iter().filter(|(is_there, _)| !is_there).map(|(_, what)| what).collect()
    }
}

/// Chooses: in `Development` a manifest that is found, else the gateway where its address, an agent id and a token are set.
pub fn choose_source(
    environment: &Environment,
    gateway: GatewaySettings,
    manifest: Option<&Path>,
) -> AutoChoice {
    let variable = environment.kind_variable().unwrap_or("ENVIRONMENT");
    let missing = gateway.missing();
    let is_set = "a tooling gateway's address, an agent id and a token are set";
    match (environment.is_development(), manifest) {
        (true, Some(path)) => AutoChoice::Manifest {
            because: format!("{variable} is Development, and {} was found", path.display()),
        },
        (true, None) if missing.is_empty() => AutoChoice::Gateway {
            because: format!(
                "{variable} is Development, but {MANIFEST_FILE_NAME} was not found, and {is_set}"
            ),
        },
        (true, None) => AutoChoice::Manifest {
            because: format!(
                "{variable} is Development; {MANIFEST_FILE_NAME} was not found and is looked for again"
            ),
        },
        (false, _) if missing.is_empty() => {
            AutoChoice::Gateway { because: format!("{variable} is not Development, and {is_set}") }
        }
        (false, _) => AutoChoice::Nothing {
            because: format!(
                "{variable} is not Development, and the tooling gateway lacks {}",
                missing.join(", ")
            ),
            // The address alone has other uses too.
            is_partly_set: gateway.has_agent_id || gateway.has_token,
        },
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    const ALL: GatewaySettings =
        GatewaySettings { has_address: true, has_agent_id: true, has_token: true };

    fn chosen(kind: Option<&'static str>, gateway: GatewaySettings, manifest: bool) -> String {
        let lookup = move |name: &str| kind.filter(|_| name == "ENVIRONMENT").map(str::to_owned);
        let manifest = manifest.then_some(Path::new("/m.json"));
        match choose_source(&Environment::from_lookup(lookup), gateway, manifest) {
            AutoChoice::Manifest { because } => format!("manifest: {because}"),
            AutoChoice::Gateway { because } => format!("gateway: {because}"),
            AutoChoice::Nothing { because, is_partly_set } => {
                format!("nothing{}: {because}", if is_partly_set { "!" } else { "" })
            }
        }
    }

    #[test]
    fn the_environment_chooses_a_manifest_the_gateway_or_nothing() {
        let none = GatewaySettings::default();
        let dev = Some("development");
        let set = "a tooling gateway's address, an agent id and a token are set";
        for (kind, gateway, manifest, expected) in [
            (dev, none, true, "manifest: ENVIRONMENT is Development, and /m.json was found".into()),
            (dev, ALL, true, "manifest: ENVIRONMENT is Development, and /m.json was found".into()),
            (
                dev,
                none,
                false,
                "manifest: ENVIRONMENT is Development; ToolingManifest.json was not found and is looked for again"
                    .to_owned(),
            ),
            (
                dev,
                ALL,
                false,
                format!(
                    "gateway: ENVIRONMENT is Development, but ToolingManifest.json was not found, and {set}"
                ),
            ),
            (None, ALL, true, format!("gateway: ENVIRONMENT is not Development, and {set}")),
            (Some("Production"), ALL, true, format!("gateway: ENVIRONMENT is not Development, and {set}")),
        ] {
            assert_eq!(chosen(kind, gateway, manifest), expected);
        }
        assert!(chosen(None, none, true).starts_with("nothing: "), "a manifest alone is not taken");
        let part = GatewaySettings { has_token: false, ..ALL };
        assert_eq!(
            chosen(None, part, false),
            "nothing!: ENVIRONMENT is not Development, and the tooling gateway lacks a token \
             (`discovery.token` or SWITCHBOARD_AGENT_TOKEN)"
        );
        let address = GatewaySettings { has_address: true, ..none };
        assert!(chosen(None, address, false).starts_with("nothing: "), "it has other uses");
    }
}
