//! The suite as a server, with the program as its client. First with the driver alone, so that a fault of the
//! driver is not taken for one of the program, then with the program between the two.
//!
//! The scenarios of `auth/` are not here: a server that wants OAuth needs a client that speaks it.

use switchboard_test_support::peers;

use crate::suite::Suite;

const OLD: Suite = Suite::Active;
const LEGACY: Suite = Suite::Requirements("2025-11-25");
const MODERN: Suite = Suite::Requirements("2026-07-28");

const OLD_SCENARIOS: &[&str] =
    &["initialize", "tools_call", "elicitation-sep1034-client-defaults", "sse-retry"];
const LEGACY_SCENARIOS: &[&str] = &[
    "initialize",
    "tools_call",
    "elicitation-sep1034-client-defaults",
    "sse-retry",
    "json-schema-2020-12-preservation",
];
const MODERN_SCENARIOS: &[&str] = &[
    "tools_call",
    "request-metadata",
    "sep-2322-client-request-state",
    "http-standard-headers",
    "http-custom-headers",
    "http-invalid-tool-headers",
    "json-schema-ref-no-deref",
    "json-schema-2020-12-preservation",
];

async fn driver_alone(suite: Suite, scenarios: &[&str]) {
    let driver = format!("{} --direct", peers::conformance_driver().display());
    for scenario in scenarios {
        suite.test_client(&driver, scenario).await;
    }
}

#[tokio::test]
async fn the_driver_alone_passes_the_old_suite() {
    driver_alone(OLD, OLD_SCENARIOS).await;
}

#[tokio::test]
async fn the_driver_alone_passes_the_legacy_requirements() {
    driver_alone(LEGACY, LEGACY_SCENARIOS).await;
}

#[tokio::test]
async fn the_driver_alone_passes_the_modern_requirements() {
    driver_alone(MODERN, MODERN_SCENARIOS).await;
}

/// A scenario that is in the lists above, through the program.
async fn through_the_gateway(suite: Suite, scenarios: &[&str], scenario: &str) {
    assert!(scenarios.contains(&scenario), "{scenario} is not in the list");
    suite.test_client(&peers::conformance_driver().display().to_string(), scenario).await;
}

macro_rules! gateway_passes {
    ($($name:ident: $suite:expr, $scenarios:expr, $scenario:literal;)*) => {
        $(#[tokio::test]
        async fn $name() {
            through_the_gateway($suite, $scenarios, $scenario).await;
        })*

        #[test]
        fn no_scenario_is_forgotten() {
            let tested = [$($scenario),*].len();
            assert_eq!(tested, OLD_SCENARIOS.len() + LEGACY_SCENARIOS.len() + MODERN_SCENARIOS.len());
        }
    };
}

gateway_passes! {
    old_initialize: OLD, OLD_SCENARIOS, "initialize";
    old_tools_call: OLD, OLD_SCENARIOS, "tools_call";
    old_elicitation_defaults: OLD, OLD_SCENARIOS, "elicitation-sep1034-client-defaults";
    old_sse_retry: OLD, OLD_SCENARIOS, "sse-retry";
    legacy_initialize: LEGACY, LEGACY_SCENARIOS, "initialize";
    legacy_tools_call: LEGACY, LEGACY_SCENARIOS, "tools_call";
    legacy_elicitation_defaults: LEGACY, LEGACY_SCENARIOS, "elicitation-sep1034-client-defaults";
    legacy_sse_retry: LEGACY, LEGACY_SCENARIOS, "sse-retry";
    legacy_schema_preservation: LEGACY, LEGACY_SCENARIOS, "json-schema-2020-12-preservation";
    modern_tools_call: MODERN, MODERN_SCENARIOS, "tools_call";
    modern_request_metadata: MODERN, MODERN_SCENARIOS, "request-metadata";
    modern_request_state: MODERN, MODERN_SCENARIOS, "sep-2322-client-request-state";
    modern_standard_headers: MODERN, MODERN_SCENARIOS, "http-standard-headers";
    modern_custom_headers: MODERN, MODERN_SCENARIOS, "http-custom-headers";
    modern_invalid_tool_headers: MODERN, MODERN_SCENARIOS, "http-invalid-tool-headers";
    modern_no_dereference: MODERN, MODERN_SCENARIOS, "json-schema-ref-no-deref";
    modern_schema_preservation: MODERN, MODERN_SCENARIOS, "json-schema-2020-12-preservation";
}
