//! The suite as a server, with the program as its client. First with the driver alone, so that a fault of the
//! driver is not taken for one of the program, then with the program between the two.
//!
//! In the scenarios of `auth/` the driver is the person who signs in: it runs `switchboard auth login` when the
//! program asks for it, and plays the browser. It has no OAuth of its own, so those are not run with it alone.

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

/// What both revisions require of a client that signs in.
const LEGACY_AUTH: &[&str] = &[
    "auth/metadata-default",
    "auth/metadata-var1",
    "auth/metadata-var2",
    "auth/metadata-var3",
    "auth/basic-cimd",
    "auth/scope-from-www-authenticate",
    "auth/scope-from-scopes-supported",
    "auth/scope-omitted-when-undefined",
    "auth/scope-step-up",
    "auth/scope-retry-limit",
    "auth/token-endpoint-auth-basic",
    "auth/token-endpoint-auth-post",
    "auth/token-endpoint-auth-none",
    "auth/pre-registration",
];
/// What the newer one requires besides.
const MODERN_AUTH_TOO: &[&str] = &[
    "auth/resource-mismatch",
    "auth/offline-access-scope",
    "auth/offline-access-not-supported",
    "auth/authorization-server-migration",
    "auth/iss-supported",
    "auth/iss-not-advertised",
    "auth/iss-supported-missing",
    "auth/iss-wrong-issuer",
    "auth/iss-unexpected",
    "auth/iss-normalized",
    "auth/metadata-issuer-mismatch",
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
            let lists =
                [OLD_SCENARIOS, LEGACY_SCENARIOS, MODERN_SCENARIOS, LEGACY_AUTH, LEGACY_AUTH, MODERN_AUTH_TOO];
            assert_eq!(tested, lists.iter().map(|list| list.len()).sum::<usize>());
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
    legacy_auth_metadata_default: LEGACY, LEGACY_AUTH, "auth/metadata-default";
    legacy_auth_metadata_var1: LEGACY, LEGACY_AUTH, "auth/metadata-var1";
    legacy_auth_metadata_var2: LEGACY, LEGACY_AUTH, "auth/metadata-var2";
    legacy_auth_metadata_var3: LEGACY, LEGACY_AUTH, "auth/metadata-var3";
    legacy_auth_basic_cimd: LEGACY, LEGACY_AUTH, "auth/basic-cimd";
    legacy_auth_scope_from_www_authenticate: LEGACY, LEGACY_AUTH, "auth/scope-from-www-authenticate";
    legacy_auth_scope_from_scopes_supported: LEGACY, LEGACY_AUTH, "auth/scope-from-scopes-supported";
    legacy_auth_scope_omitted_when_undefined: LEGACY, LEGACY_AUTH, "auth/scope-omitted-when-undefined";
    legacy_auth_scope_step_up: LEGACY, LEGACY_AUTH, "auth/scope-step-up";
    legacy_auth_scope_retry_limit: LEGACY, LEGACY_AUTH, "auth/scope-retry-limit";
    legacy_auth_token_endpoint_auth_basic: LEGACY, LEGACY_AUTH, "auth/token-endpoint-auth-basic";
    legacy_auth_token_endpoint_auth_post: LEGACY, LEGACY_AUTH, "auth/token-endpoint-auth-post";
    legacy_auth_token_endpoint_auth_none: LEGACY, LEGACY_AUTH, "auth/token-endpoint-auth-none";
    legacy_auth_pre_registration: LEGACY, LEGACY_AUTH, "auth/pre-registration";
    modern_auth_metadata_default: MODERN, LEGACY_AUTH, "auth/metadata-default";
    modern_auth_metadata_var1: MODERN, LEGACY_AUTH, "auth/metadata-var1";
    modern_auth_metadata_var2: MODERN, LEGACY_AUTH, "auth/metadata-var2";
    modern_auth_metadata_var3: MODERN, LEGACY_AUTH, "auth/metadata-var3";
    modern_auth_basic_cimd: MODERN, LEGACY_AUTH, "auth/basic-cimd";
    modern_auth_scope_from_www_authenticate: MODERN, LEGACY_AUTH, "auth/scope-from-www-authenticate";
    modern_auth_scope_from_scopes_supported: MODERN, LEGACY_AUTH, "auth/scope-from-scopes-supported";
    modern_auth_scope_omitted_when_undefined: MODERN, LEGACY_AUTH, "auth/scope-omitted-when-undefined";
    modern_auth_scope_step_up: MODERN, LEGACY_AUTH, "auth/scope-step-up";
    modern_auth_scope_retry_limit: MODERN, LEGACY_AUTH, "auth/scope-retry-limit";
    modern_auth_token_endpoint_auth_basic: MODERN, LEGACY_AUTH, "auth/token-endpoint-auth-basic";
    modern_auth_token_endpoint_auth_post: MODERN, LEGACY_AUTH, "auth/token-endpoint-auth-post";
    modern_auth_token_endpoint_auth_none: MODERN, LEGACY_AUTH, "auth/token-endpoint-auth-none";
    modern_auth_pre_registration: MODERN, LEGACY_AUTH, "auth/pre-registration";
    modern_auth_resource_mismatch: MODERN, MODERN_AUTH_TOO, "auth/resource-mismatch";
    modern_auth_offline_access_scope: MODERN, MODERN_AUTH_TOO, "auth/offline-access-scope";
    modern_auth_offline_access_not_supported: MODERN, MODERN_AUTH_TOO, "auth/offline-access-not-supported";
    modern_auth_authorization_server_migration: MODERN, MODERN_AUTH_TOO, "auth/authorization-server-migration";
    modern_auth_iss_supported: MODERN, MODERN_AUTH_TOO, "auth/iss-supported";
    modern_auth_iss_not_advertised: MODERN, MODERN_AUTH_TOO, "auth/iss-not-advertised";
    modern_auth_iss_supported_missing: MODERN, MODERN_AUTH_TOO, "auth/iss-supported-missing";
    modern_auth_iss_wrong_issuer: MODERN, MODERN_AUTH_TOO, "auth/iss-wrong-issuer";
    modern_auth_iss_unexpected: MODERN, MODERN_AUTH_TOO, "auth/iss-unexpected";
    modern_auth_iss_normalized: MODERN, MODERN_AUTH_TOO, "auth/iss-normalized";
    modern_auth_metadata_issuer_mismatch: MODERN, MODERN_AUTH_TOO, "auth/metadata-issuer-mismatch";
}
