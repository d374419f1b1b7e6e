//! The suite as a client: first of the fixture itself, so that a fault of the fixture is not taken for one of the
//! program, then of the program with the fixture behind it.

use crate::fixture::Fixture;
use crate::suite::{LeftOut, Suite, Weight};
use crate::support::{Home, dynamic};

const ACTIVE: Suite = Suite::Active;
const LEGACY: Suite = Suite::Requirements("2025-11-25");
const MODERN: Suite = Suite::Requirements("2026-07-28");

/// How many scenarios each suite has, so that an empty run is no success.
const ACTIVE_SCENARIOS: usize = 30;
const LEGACY_SCENARIOS: usize = 33;
const MODERN_SCENARIOS: usize = 50;

const fn task(scenario: &'static str) -> LeftOut {
    let reason = "tasks are an extension of 2026-07-28, which a legacy server does not know";
    LeftOut { scenario, weight: Weight::Reported, reason }
}

/// What a legacy server cannot do, so that nothing in front of it can. All of it is of 2026-07-28; nothing is left out
/// of the two other suites, and nothing with a modern server.
const BEYOND_LEGACY: &[LeftOut] = &[
    LeftOut {
        scenario: "input-required-result-basic-elicitation",
        weight: Weight::Scored,
        reason: "expects the question under the key `user_name`, and a legacy request has no key",
    },
    task("tasks-lifecycle"),
    task("tasks-capability-negotiation"),
    task("tasks-wire-fields"),
    task("tasks-request-state-removal"),
    task("tasks-mrtr-input"),
    task("tasks-request-headers"),
    task("tasks-dispatch-and-envelope"),
    task("tasks-mrtr-composition"),
];

fn left_out(suite: Suite, era: &str) -> &'static [LeftOut] {
    if suite == MODERN && era == "legacy" { BEYOND_LEGACY } else { &[] }
}

async fn directly(suite: Suite, era: &str, scenarios: usize) {
    let fixture = Fixture::start(era);
    suite.test_server(&fixture.url, scenarios, &[]).await;
}

async fn through_the_gateway(suite: Suite, era: &str, scenarios: usize) {
    let fixture = Fixture::start(era);
    let server = dynamic("fixture", &fixture.url);
    let home = Home::new(format!(
        "switchboard:\n  gateway:\n    naming: bare\n  toolbox:\n    max_concurrent: 64\n    mcps:\n      - {server}\n"
    ));
    let serve = home.serve().await;
    suite.test_server(&serve.at("/mcp"), scenarios, left_out(suite, era)).await;
}

#[tokio::test]
async fn the_fixture_passes_the_old_suite_in_both_eras() {
    directly(ACTIVE, "dual", ACTIVE_SCENARIOS).await;
    directly(ACTIVE, "legacy", ACTIVE_SCENARIOS).await;
}

#[tokio::test]
async fn the_fixture_passes_the_legacy_requirements() {
    directly(LEGACY, "dual", LEGACY_SCENARIOS).await;
    directly(LEGACY, "legacy", LEGACY_SCENARIOS).await;
}

#[tokio::test]
async fn the_fixture_passes_the_modern_requirements() {
    directly(MODERN, "dual", MODERN_SCENARIOS).await;
    directly(MODERN, "modern", MODERN_SCENARIOS).await;
}

macro_rules! gateway_passes {
    ($($name:ident: $suite:expr, $era:literal, $scenarios:expr;)*) => {
        $(#[tokio::test]
        async fn $name() {
            through_the_gateway($suite, $era, $scenarios).await;
        })*
    };
}

gateway_passes! {
    old_suite_with_a_modern_server: ACTIVE, "modern", ACTIVE_SCENARIOS;
    old_suite_with_a_legacy_server: ACTIVE, "legacy", ACTIVE_SCENARIOS;
    old_suite_with_a_server_of_both_eras: ACTIVE, "dual", ACTIVE_SCENARIOS;
    legacy_requirements_with_a_modern_server: LEGACY, "modern", LEGACY_SCENARIOS;
    legacy_requirements_with_a_legacy_server: LEGACY, "legacy", LEGACY_SCENARIOS;
    legacy_requirements_with_a_server_of_both_eras: LEGACY, "dual", LEGACY_SCENARIOS;
    modern_requirements_with_a_modern_server: MODERN, "modern", MODERN_SCENARIOS;
    modern_requirements_with_a_server_of_both_eras: MODERN, "dual", MODERN_SCENARIOS;
    modern_requirements_with_a_legacy_server: MODERN, "legacy", MODERN_SCENARIOS;
}
