//! Configuration files of the chatagent format (root key `myai`) load unchanged.

use std::time::Duration;

use pretty_assertions::assert_eq;
use switchboard_model::{AdmissionMode, LocalToolChoice, RootKey};

use crate::support::{load_text, problems};

fn summary(text: &str) -> String {
    let loaded = load_text(text).unwrap_or_else(|problems| panic!("{problems}"));
    assert_eq!(loaded.warnings, []);
    let plan = loaded.plan;
    assert_eq!((plan.root, &plan.local_tools), (RootKey::Myai, &LocalToolChoice::NamedInTools));
    let tools = plan.tools.iter().map(|tool| format!("{} {}", tool.name, tool.limits));
    let servers = plan.servers.iter().map(|server| {
        let limits = server.default_limits.map(|limits| limits.to_string()).unwrap_or_default();
        let spec = &server.spec;
        format!("{} {} {} {limits}", spec.name, server.mode.as_str(), spec.endpoint)
            .trim()
            .to_owned()
    });
    let lines: Vec<_> = tools.chain(servers).collect();
    format!("{}\n{}", plan.max_concurrent, lines.join("\n"))
}

#[test]
fn the_whole_structure() {
    assert_eq!(
        summary(include_str!("../fixtures/structure.yaml")),
        "10\n\
         sum_numbers {max_instances=20, timeout=30s}\n\
         multiply_numbers {max_instances=15}\n\
         get_customer {max_instances=10}\n\
         customers dynamic http://localhost:8180/mcp/http/mcp {max_instances=10, timeout=30s}\n\
         internal-tools strict http://localhost:8181/mcp/http/mcp"
    );
}

#[test]
fn both_migrated_files() {
    assert_eq!(
        summary(include_str!("../fixtures/migration_strict.yaml")),
        "64\ncustomers strict http://localhost:8180/mcp/http/mcp"
    );
    assert_eq!(
        summary(include_str!("../fixtures/migration_dynamic.yaml")),
        "64\ncustomers dynamic http://localhost:8180/mcp/http/mcp {max_instances=10, timeout=30s}"
    );
}

#[test]
fn the_appendix() {
    assert_eq!(
        summary(include_str!("../fixtures/minimal_strict.yaml")),
        "10\nget_customer {max_instances=10}\ncustomers strict http://localhost:8180/mcp/http/mcp"
    );
    assert_eq!(
        summary(include_str!("../fixtures/minimal_dynamic.yaml")),
        "10\ncustomers dynamic http://localhost:8180/mcp/http/mcp {max_instances=10, timeout=30s}"
    );
    assert_eq!(
        summary(include_str!("../fixtures/mixed.yaml")),
        "10\n\
         sum_numbers {max_instances=20}\n\
         get_customer {max_instances=50, timeout=1m}\n\
         customers dynamic http://localhost:8180/mcp/http/mcp {max_instances=10, timeout=30s}\n\
         external-api strict http://external.com/mcp"
    );
}

#[test]
fn an_unmigrated_file_is_told_how_to_migrate() {
    assert_eq!(
        problems(include_str!("../fixtures/migration_before.yaml"), &[]),
        "error: missing key `mode` in myai.toolbox.mcps[0]
  --> switchboard.yaml:4:9
   |
 4 |       - name: customers
   |         ^
   = help: add `mode: strict` (keeps the old behaviour: every tool must be in toolbox.tools), \
         or `mode: dynamic` together with `default_tool_config`

1 problem found"
    );
}

#[test]
fn an_entry_keeps_what_it_left_open() {
    let plan = load_text(include_str!("../fixtures/mixed.yaml")).unwrap().plan;
    assert_eq!(plan.tools[0].limits.timeout, None);
    assert_eq!(plan.tools[1].limits.timeout, Some(Duration::from_mins(1)));
    assert_eq!(plan.servers[0].mode, AdmissionMode::Dynamic);
    assert!(plan.servers.iter().all(|server| server.required));
}
