//! Headers of a server that come from the caller of each request.

use pretty_assertions::assert_eq;
use switchboard_model::{CallerField, Endpoint, HeaderPart, Secret};

use crate::support::{load_with, problems, with_server};

fn server(headers: &str) -> String {
    with_server(&format!(
        "- name: crm\n  url: http://h/mcp\n  mode: strict\n  headers: {{{headers}}}\n"
    ))
}

#[test]
fn a_header_of_the_caller_is_kept_for_each_request() {
    let text = server(
        "X-User: 'u-${TENANT}-${caller.subject}', X-Mail: '${caller.email:-none}', X-Static: '${TENANT}'",
    );
    let loaded = load_with(Some(&text), &[("TENANT", "acme-s3cret")]).unwrap();
    let spec = &loaded.plan.servers[0].spec;
    let names: Vec<_> = spec.caller_headers.iter().map(|header| header.name.as_str()).collect();
    assert_eq!(names, ["X-User", "X-Mail"]);
    let subject = HeaderPart::Caller { field: CallerField::Subject, default: None };
    let text = HeaderPart::Text(Secret::new("u-acme-s3cret-"));
    assert_eq!(spec.caller_headers[0].value.0, [text, subject]);
    let Endpoint::StreamableHttp { headers, .. } = &spec.endpoint else { panic!("{spec:?}") };
    assert_eq!(headers.keys().collect::<Vec<_>>(), ["X-Static"]);
    assert_eq!(spec.referenced, [Secret::new("acme-s3cret"), Secret::new("acme-s3cret")]);
    let shown = loaded.to_yaml();
    assert!(shown.contains("X-Mail: ${caller.email:-none}"), "{shown}");
    assert!(!shown.contains("s3cret") && shown.contains(r#"X-User: "***""#), "{shown}");
}

#[test]
fn an_unknown_value_is_an_error_with_the_known_ones() {
    insta::assert_snapshot!(problems(&server("X-User: '${caller.token}'"), &[]), @"
    error: switchboard.toolbox.mcps[0].headers.X-User refers to `${caller.token}`, which no caller has
      --> switchboard.yaml:7:27
       |
     7 | (not shown: this line may hold a secret)
       |
       = help: the known ones are `${caller.subject}`, `${caller.email}`, `${caller.name}`, `${caller.person}`, `${caller.key}`, `${session}`

    1 problem found
    ");
}

#[test]
fn the_caller_is_known_only_in_headers_of_http_servers() {
    let stdio = with_server(
        "- name: crm\n  command: x\n  mode: strict\n  headers: {X-User: '${caller.subject}'}\n  env: {U: '${caller.subject}'}\n",
    );
    insta::assert_snapshot!(problems(&stdio, &[]), @"
    error: `headers` does not belong to a `stdio` server (switchboard.toolbox.mcps[0])
      --> switchboard.yaml:7:9
       |
     7 | (not shown: this line may hold a secret)
       |
       = help: remove it, or change `transport`

    error: switchboard.toolbox.mcps[0].env.U refers to the caller with `${caller.subject}`, and only `headers` of an HTTP server can
      --> switchboard.yaml:8:18
       |
     8 | (not shown: this line may hold a secret)
       |
       = help: write it in `headers` of an entry of `toolbox.mcps`, or `$${` for a literal `${`

    2 problems found
    ");
    let url = with_server("- {name: crm, url: 'http://h/${caller.subject}', mode: strict}\n");
    insta::assert_snapshot!(problems(&url, &[]), @"
    error: switchboard.toolbox.mcps[0].url refers to the caller with `${caller.subject}`, and only `headers` of an HTTP server can
      --> switchboard.yaml:4:26
       |
     4 |       - {name: crm, url: 'http://h/${caller.subject}', mode: strict}
       |                          ^^^^^^^^^^^^^^^^^^^^^^^^^^^^
       = help: write it in `headers` of an entry of `toolbox.mcps`, or `$${` for a literal `${`

    1 problem found
    ");
}

#[test]
fn headers_of_the_connection_and_of_credentials_cannot_come_from_the_caller() {
    let headers = "Authorization: 'Bearer ${caller.subject}', Mcp-Session-Id: '${session}', X-Ok: '${session}'";
    insta::assert_snapshot!(problems(&server(headers), &[]), @r#"
    error: switchboard.toolbox.mcps[0].headers: the header "Authorization" is set by the connection and cannot come from the caller
      --> switchboard.yaml:7:19
       |
     7 | (not shown: this line may hold a secret)
       |

    error: switchboard.toolbox.mcps[0].headers: the header "Mcp-Session-Id" is set by the connection and cannot come from the caller
      --> switchboard.yaml:7:62
       |
     7 | (not shown: this line may hold a secret)
       |

    2 problems found
    "#);
}
