//! The section `records`, and `record` of tools and servers.

use std::time::Duration;

use pretty_assertions::assert_eq;
use switchboard_model::{RecordOverlay, RecordsPlan};

use crate::support::{load_text, problems};

const FULL: &str = "\
switchboard:
  toolbox:
    defaults: {record: {arguments: true}}
    tools:
      - {name: get, record: {arguments: false}}
      - {name: put}
    mcps:
      - {name: a, url: 'http://h', mode: strict, record: {results: true}}
      - {name: b, url: 'http://h', mode: strict}
  records: {max_age: 90d, max_count: 5000, max_content_bytes: 1048576, redact: ['card-\\d+']}
";

#[test]
fn every_setting_is_read_and_shown() {
    let loaded = load_text(FULL).unwrap();
    let expected = RecordsPlan {
        max_age: Duration::from_hours(90 * 24),
        max_count: 5000,
        max_content_bytes: 1 << 20,
        redact: vec![r"card-\d+".into()],
    };
    assert_eq!(loaded.plan.records, expected);
    let overlay = |arguments, results| RecordOverlay { arguments, results };
    let tools: Vec<_> = loaded.plan.tools.iter().map(|tool| tool.record).collect();
    assert_eq!(tools, [overlay(Some(false), None), overlay(None, None)]);
    let servers: Vec<_> = loaded.plan.servers.iter().map(|server| server.record).collect();
    assert_eq!(servers, [overlay(Some(true), Some(true)), overlay(Some(true), None)]);
    assert_eq!(loaded.plan.discovery.policy.record, overlay(Some(true), None));
    let shown = loaded.to_yaml();
    for line in ["max_age: 2160h", "max_count: 5000", "arguments: false", "results: true"] {
        assert!(shown.contains(line), "{line} is not in {shown}");
    }
    assert_eq!(load_text("switchboard: {}").unwrap().plan.records, RecordsPlan::default());
}

#[test]
fn values_that_would_keep_nothing_are_refused() {
    let text = "switchboard:\n  records: {max_age: 0s, max_count: 0, redact: ['(']}\n";
    insta::assert_snapshot!(problems(text, &[]), @r#"
    error: switchboard.records.max_age: the string "0s" is not above zero
      --> switchboard.yaml:2:22
       |
     2 |   records: {max_age: 0s, max_count: 0, redact: ['(']}
       |                      ^^
       = help: write a duration above zero, such as `30s`, `1m30s`, `250ms`, `2h`, `PT30S`, `00:00:30` or `30` (seconds)

    error: switchboard.records.max_count: the integer 0 is below the minimum of 1
      --> switchboard.yaml:2:37
       |
     2 |   records: {max_age: 0s, max_count: 0, redact: ['(']}
       |                                     ^

    error: switchboard.records.redact[0]: the string "(" is not a regular expression
      --> switchboard.yaml:2:49
       |
     2 |   records: {max_age: 0s, max_count: 0, redact: ['(']}
       |                                                 ^^^
       = help: write one such as `\b\d{3}-\d{2}-\d{4}\b`, in single quotes

    3 problems found
    "#);
}
