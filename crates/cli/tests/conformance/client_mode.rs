//! The suite as a server, with the program as its client. First with the driver alone, so that a fault of the
//! driver is not taken for one of the program, then with the program between the two.
//!
//! In the scenarios of `auth/` the driver is the person who signs in: it runs `switchboard auth login` when the
//! program asks for it, and plays the browser. It has no OAuth of its own, so those are not run with it alone.

use std::collections::BTreeSet;

use switchboard_test_support::peers;

use crate::suite::{LeftOut, Suite, Weight};

const OLD: Suite = Suite::Active;
const LEGACY: Suite = Suite::Requirements("2025-11-25");
const MODERN: Suite = Suite::Requirements("2026-07-28");

const NO_EXCHANGE: &str = "a token of another authority in exchange for one of the server's, which the program does not have";
const NO_PROOF: &str =
    "tokens that are bound to a key (DPoP), an extension that the program does not have";
const ANOTHER_ISSUER: &str = "metadata that names another issuer than the address where it is, which 2026-07-28 says is to be \
    refused (`auth/metadata-issuer-mismatch`)";
const NO_METADATA: &str = "no metadata at all: the endpoints would have to be guessed, and tokens would be bound to no issuer";

const fn extension(suite: Suite, scenario: &'static str, reason: &'static str) -> (Suite, LeftOut) {
    (suite, LeftOut { scenario, weight: Weight::Reported, reason })
}

/// Every scenario that the program does not pass, with its suite and a reason.
const LEFT_OUT: &[(Suite, LeftOut)] = &[
    extension(OLD, "auth/2025-03-26-oauth-metadata-backcompat", ANOTHER_ISSUER),
    extension(OLD, "auth/2025-03-26-oauth-endpoint-fallback", NO_METADATA),
    extension(OLD, "auth/cross-app-access-complete-flow", NO_EXCHANGE),
    extension(LEGACY, "auth/enterprise-managed-authorization", NO_EXCHANGE),
    extension(LEGACY, "auth/dpop", NO_PROOF),
    extension(LEGACY, "auth/dpop-nonce", NO_PROOF),
    extension(LEGACY, "auth/wif-jwt-bearer", NO_EXCHANGE),
    extension(MODERN, "auth/enterprise-managed-authorization", NO_EXCHANGE),
    extension(MODERN, "auth/dpop", NO_PROOF),
    extension(MODERN, "auth/dpop-nonce", NO_PROOF),
    extension(MODERN, "auth/wif-jwt-bearer", NO_EXCHANGE),
];

async fn driver_alone(suite: Suite) {
    let driver = format!("{} --direct", peers::conformance_driver().display());
    for (_, scenario) in RUN.iter().filter(|(run, _)| *run == suite) {
        if !scenario.starts_with("auth/") {
            suite.test_client(&driver, scenario).await;
        }
    }
}

#[tokio::test]
async fn the_driver_alone_passes_the_old_suite() {
    driver_alone(OLD).await;
}

#[tokio::test]
async fn the_driver_alone_passes_the_legacy_requirements() {
    driver_alone(LEGACY).await;
}

#[tokio::test]
async fn the_driver_alone_passes_the_modern_requirements() {
    driver_alone(MODERN).await;
}

#[tokio::test]
async fn every_scenario_that_the_suite_has_is_run_or_left_out_with_a_reason() {
    for suite in [OLD, LEGACY, MODERN] {
        let has = suite.client_scenarios().await;
        assert!(has.len() > 20, "{suite:?} has {has:?}");
        let run = RUN.iter().filter(|(run, _)| *run == suite).map(|(_, scenario)| *scenario);
        let left_out = LEFT_OUT.iter().filter(|(run, _)| *run == suite);
        let left_out = left_out.map(|(_, left_out)| left_out.scenario);
        let known: Vec<_> = run.chain(left_out).map(str::to_owned).collect();
        assert_eq!(known.iter().cloned().collect::<BTreeSet<_>>(), has, "{suite:?}");
        assert_eq!(known.len(), has.len(), "{suite:?} names something twice");
    }
}

/// It would be run by now if it passed.
async fn what_is_left_out_fails(suite: Suite) {
    let driver = peers::conformance_driver().display().to_string();
    for (_, left_out) in LEFT_OUT.iter().filter(|(run, _)| *run == suite) {
        suite.client_fails(&driver, *left_out).await;
    }
}

#[tokio::test]
async fn what_is_left_out_of_the_old_suite_fails() {
    what_is_left_out_fails(OLD).await;
}

#[tokio::test]
async fn what_is_left_out_of_the_legacy_requirements_fails() {
    what_is_left_out_fails(LEGACY).await;
}

#[tokio::test]
async fn what_is_left_out_of_the_modern_requirements_fails() {
    what_is_left_out_fails(MODERN).await;
}

macro_rules! gateway_passes {
    ($($name:ident: $suite:expr, $scenario:literal;)*) => {
        /// What is run through the program, each as a test of its own.
        const RUN: &[(Suite, &str)] = &[$(($suite, $scenario)),*];

        $(#[tokio::test]
        async fn $name() {
            let driver = peers::conformance_driver().display().to_string();
            $suite.test_client(&driver, $scenario).await;
        })*
    };
}

gateway_passes! {
    old_initialize: OLD, "initialize";
    old_tools_call: OLD, "tools_call";
    old_elicitation_defaults: OLD, "elicitation-sep1034-client-defaults";
    old_sse_retry: OLD, "sse-retry";
    legacy_initialize: LEGACY, "initialize";
    legacy_tools_call: LEGACY, "tools_call";
    legacy_elicitation_defaults: LEGACY, "elicitation-sep1034-client-defaults";
    legacy_sse_retry: LEGACY, "sse-retry";
    legacy_schema_preservation: LEGACY, "json-schema-2020-12-preservation";
    modern_tools_call: MODERN, "tools_call";
    modern_request_metadata: MODERN, "request-metadata";
    modern_request_state: MODERN, "sep-2322-client-request-state";
    modern_standard_headers: MODERN, "http-standard-headers";
    modern_custom_headers: MODERN, "http-custom-headers";
    modern_invalid_tool_headers: MODERN, "http-invalid-tool-headers";
    modern_no_dereference: MODERN, "json-schema-ref-no-deref";
    modern_schema_preservation: MODERN, "json-schema-2020-12-preservation";
    old_auth_metadata_default: OLD, "auth/metadata-default";
    old_auth_metadata_var1: OLD, "auth/metadata-var1";
    old_auth_metadata_var2: OLD, "auth/metadata-var2";
    old_auth_metadata_var3: OLD, "auth/metadata-var3";
    old_auth_basic_cimd: OLD, "auth/basic-cimd";
    old_auth_scope_from_www_authenticate: OLD, "auth/scope-from-www-authenticate";
    old_auth_scope_from_scopes_supported: OLD, "auth/scope-from-scopes-supported";
    old_auth_scope_omitted_when_undefined: OLD, "auth/scope-omitted-when-undefined";
    old_auth_scope_step_up: OLD, "auth/scope-step-up";
    old_auth_scope_retry_limit: OLD, "auth/scope-retry-limit";
    old_auth_token_endpoint_auth_basic: OLD, "auth/token-endpoint-auth-basic";
    old_auth_token_endpoint_auth_post: OLD, "auth/token-endpoint-auth-post";
    old_auth_token_endpoint_auth_none: OLD, "auth/token-endpoint-auth-none";
    old_auth_pre_registration: OLD, "auth/pre-registration";
    old_auth_resource_mismatch: OLD, "auth/resource-mismatch";
    old_auth_offline_access_scope: OLD, "auth/offline-access-scope";
    old_auth_offline_access_not_supported: OLD, "auth/offline-access-not-supported";
    old_auth_client_credentials_jwt: OLD, "auth/client-credentials-jwt";
    old_auth_client_credentials_basic: OLD, "auth/client-credentials-basic";
    legacy_auth_metadata_default: LEGACY, "auth/metadata-default";
    legacy_auth_metadata_var1: LEGACY, "auth/metadata-var1";
    legacy_auth_metadata_var2: LEGACY, "auth/metadata-var2";
    legacy_auth_metadata_var3: LEGACY, "auth/metadata-var3";
    legacy_auth_basic_cimd: LEGACY, "auth/basic-cimd";
    legacy_auth_scope_from_www_authenticate: LEGACY, "auth/scope-from-www-authenticate";
    legacy_auth_scope_from_scopes_supported: LEGACY, "auth/scope-from-scopes-supported";
    legacy_auth_scope_omitted_when_undefined: LEGACY, "auth/scope-omitted-when-undefined";
    legacy_auth_scope_step_up: LEGACY, "auth/scope-step-up";
    legacy_auth_scope_retry_limit: LEGACY, "auth/scope-retry-limit";
    legacy_auth_token_endpoint_auth_basic: LEGACY, "auth/token-endpoint-auth-basic";
    legacy_auth_token_endpoint_auth_post: LEGACY, "auth/token-endpoint-auth-post";
    legacy_auth_token_endpoint_auth_none: LEGACY, "auth/token-endpoint-auth-none";
    legacy_auth_pre_registration: LEGACY, "auth/pre-registration";
    legacy_auth_client_credentials_jwt: LEGACY, "auth/client-credentials-jwt";
    legacy_auth_client_credentials_basic: LEGACY, "auth/client-credentials-basic";
    modern_auth_metadata_default: MODERN, "auth/metadata-default";
    modern_auth_metadata_var1: MODERN, "auth/metadata-var1";
    modern_auth_metadata_var2: MODERN, "auth/metadata-var2";
    modern_auth_metadata_var3: MODERN, "auth/metadata-var3";
    modern_auth_basic_cimd: MODERN, "auth/basic-cimd";
    modern_auth_scope_from_www_authenticate: MODERN, "auth/scope-from-www-authenticate";
    modern_auth_scope_from_scopes_supported: MODERN, "auth/scope-from-scopes-supported";
    modern_auth_scope_omitted_when_undefined: MODERN, "auth/scope-omitted-when-undefined";
    modern_auth_scope_step_up: MODERN, "auth/scope-step-up";
    modern_auth_scope_retry_limit: MODERN, "auth/scope-retry-limit";
    modern_auth_token_endpoint_auth_basic: MODERN, "auth/token-endpoint-auth-basic";
    modern_auth_token_endpoint_auth_post: MODERN, "auth/token-endpoint-auth-post";
    modern_auth_token_endpoint_auth_none: MODERN, "auth/token-endpoint-auth-none";
    modern_auth_pre_registration: MODERN, "auth/pre-registration";
    modern_auth_resource_mismatch: MODERN, "auth/resource-mismatch";
    modern_auth_offline_access_scope: MODERN, "auth/offline-access-scope";
    modern_auth_offline_access_not_supported: MODERN, "auth/offline-access-not-supported";
    modern_auth_authorization_server_migration: MODERN, "auth/authorization-server-migration";
    modern_auth_iss_supported: MODERN, "auth/iss-supported";
    modern_auth_iss_not_advertised: MODERN, "auth/iss-not-advertised";
    modern_auth_iss_supported_missing: MODERN, "auth/iss-supported-missing";
    modern_auth_iss_wrong_issuer: MODERN, "auth/iss-wrong-issuer";
    modern_auth_iss_unexpected: MODERN, "auth/iss-unexpected";
    modern_auth_iss_normalized: MODERN, "auth/iss-normalized";
    modern_auth_client_credentials_jwt: MODERN, "auth/client-credentials-jwt";
    modern_auth_client_credentials_basic: MODERN, "auth/client-credentials-basic";
    modern_auth_metadata_issuer_mismatch: MODERN, "auth/metadata-issuer-mismatch";
}
