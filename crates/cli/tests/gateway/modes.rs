//! Each exposure mode from each source (command line, environment, file), and exposure settings of a connection.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use pretty_assertions::assert_eq;

use crate::board::{ALL, Board, META, META_NAMES, QUOTES, THREE_SETS, market};
use crate::peer::{BOTH, Era, Peer};
use crate::support::Serve;

const SETS: &str = "search,company,quotes";

/// Both eras see that many tools, and the log says why.
async fn check(serve: &Serve, path: &str, count: usize, reason: &str) {
    for era in BOTH {
        let seen = Peer::open(era, serve, path).await.list().await;
        assert_eq!(seen.len(), count, "{era:?} {path}, {reason}");
        let has_meta = seen.iter().any(|name| META_NAMES.contains(&name.as_str()));
        assert_eq!(has_meta, count == META, "{era:?} {path}, {reason}");
    }
    let said = serve.stderr();
    let lines: Vec<_> = said.lines().filter(|line| line.contains("exposure: ")).collect();
    assert!(lines.len() == 1 && lines[0].ends_with(&format!("exposure: {reason}")), "{said}");
}

#[tokio::test]
async fn the_command_line_chooses_each_mode() {
    let Board { home, server: _server } = market("").await;
    let nothing = "legacy (all tools) because nothing else is configured";
    check(&home.serve().await, "/mcp", ALL, nothing).await;
    let serve = home.serve_with(&["--tool-sets", SETS]).await;
    let of_sets = "static (search, company, quotes) because --tool-sets says so";
    check(&serve, "/mcp", THREE_SETS, of_sets).await;
    for flag in ["--dynamic-tool-discovery", "--dynamic-tool-discovery=1"] {
        let serve = home.serve_with(&[flag]).await;
        let dynamic = "dynamic (meta-tools) because --dynamic-tool-discovery says so";
        check(&serve, "/mcp", META, dynamic).await;
    }
}

#[tokio::test]
async fn the_environment_chooses_each_mode_below_the_command_line() {
    let Board { home, server: _server } = market("").await;
    let home = home.with_variable("TOOL_SETS", "");
    let nothing = "legacy (all tools) because nothing else is configured";
    check(&home.serve().await, "/mcp", ALL, nothing).await;
    let home = home.with_variable("TOOL_SETS", SETS);
    let of_sets = "static (search, company, quotes) because TOOL_SETS says so";
    check(&home.serve().await, "/mcp", THREE_SETS, of_sets).await;
    let home = home.with_variable("TOOL_SETS", "").with_variable("DYNAMIC_TOOL_DISCOVERY", "true");
    let dynamic = "dynamic (meta-tools) because DYNAMIC_TOOL_DISCOVERY says so";
    check(&home.serve().await, "/mcp", META, dynamic).await;
    let serve = home.serve_with(&["--dynamic-tool-discovery=false"]).await;
    let off = "legacy (all tools) because --dynamic-tool-discovery is off and no toolset is named";
    check(&serve, "/mcp", ALL, off).await;
}

#[tokio::test]
async fn the_file_chooses_each_mode_below_the_environment() {
    for (gateway, count, reason) in [
        (
            "exposure: legacy",
            ALL,
            "legacy (all tools) because gateway.exposure in the configuration says so",
        ),
        (
            "exposure: static, tool_sets: [search, company, quotes]",
            THREE_SETS,
            "static (search, company, quotes) because gateway.tool_sets in the configuration says so",
        ),
        (
            "exposure: dynamic",
            META,
            "dynamic (meta-tools) because gateway.exposure in the configuration says so",
        ),
    ] {
        let Board { home, server: _server } = market(gateway).await;
        check(&home.serve().await, "/mcp", count, reason).await;
    }
    let Board { home, server: _server } = market("exposure: dynamic").await;
    let home = home.with_variable("TOOL_SETS", SETS).with_variable("DYNAMIC_TOOL_DISCOVERY", "no");
    let of_sets = "static (search, company, quotes) because TOOL_SETS says so";
    check(&home.serve().await, "/mcp", THREE_SETS, of_sets).await;
}

#[tokio::test]
async fn a_connection_chooses_below_all_of_them() {
    let Board { home, server: _server } = market("").await;
    let serve = home.serve().await;
    let nothing = "legacy (all tools) because nothing else is configured";
    for (path, count) in [
        ("/mcp?toolsets=search,company,quotes", THREE_SETS),
        ("/mcp?toolsets=search&toolsets=search,quotes", 18),
        ("/mcp?dynamic=true", META),
        ("/mcp?toolsets=", ALL),
        ("/mcp?something=else", ALL),
    ] {
        check(&serve, path, count, nothing).await;
    }
    // What is configured decides: a connection cannot leave a static set.
    let serve = home.serve_with(&["--tool-sets", SETS]).await;
    let of_sets = "static (search, company, quotes) because --tool-sets says so";
    check(&serve, "/mcp?dynamic=true", META, of_sets).await;
    check(&serve, "/mcp?toolsets=quotes", 16, of_sets).await;
    let dynamic = Peer::open(Era::Legacy, &serve, "/mcp?dynamic=true").await;
    assert_eq!(dynamic.enable("quotes").await["tools"].as_array().unwrap().len(), 16);
    let outside = dynamic.refused("enable_toolset", serde_json::json!({"name": "bulk"})).await;
    assert_eq!(outside, "there is no toolset 'bulk' here; there are: search, company, quotes");
}

/// Exposure settings of a connection, as one object or as single settings.
#[tokio::test]
async fn the_settings_of_a_connection_choose_each_mode() {
    let Board { home, server: _server } = market("").await;
    let serve = home.serve().await;
    let nothing = "legacy (all tools) because nothing else is configured";
    let of = |settings: &str| format!("/mcp?config={}", BASE64_URL_SAFE_NO_PAD.encode(settings));
    for (path, count) in [
        (of(r#"{"DYNAMIC_TOOL_DISCOVERY": "true"}"#), META),
        (of(r#"{"FMP_TOOL_SETS": "search,company,quotes"}"#), THREE_SETS),
        (of(r#"{"TOOL_SETS": ["search", "company", "quotes"]}"#), THREE_SETS),
        (of(r#"{"DYNAMIC_TOOL_DISCOVERY": "false", "FMP_TOOL_SETS": ""}"#), ALL),
        (of("{}"), ALL),
        ("/mcp?DYNAMIC_TOOL_DISCOVERY=true".into(), META),
        (format!("/mcp?TOOL_SETS={SETS}"), THREE_SETS),
        (format!("/mcp?FMP_TOOL_SETS={SETS}&api_key=none"), THREE_SETS),
        ("/mcp?FMP_TOOL_SETS=".into(), ALL),
    ] {
        check(&serve, &path, count, nothing).await;
    }
    for bad in ["/mcp?config=%21", &of("[]"), &of(r#"{"TOOL_SETS": 1}"#)] {
        for era in BOTH {
            let (status, _) = Peer::try_open(era, &serve, bad, &[]).await.unwrap_err();
            assert_eq!(status, 400, "{era:?} {bad}");
        }
    }
    // It narrows what the other sources chose, and widens nothing.
    let serve = home.serve_with(&["--tool-sets", SETS]).await;
    let of_sets = "static (search, company, quotes) because --tool-sets says so";
    check(&serve, &of("{}"), THREE_SETS, of_sets).await;
    check(&serve, &of(r#"{"TOOL_SETS": "quotes"}"#), QUOTES, of_sets).await;
    let (status, _) = Peer::try_open(Era::Legacy, &serve, &of(r#"{"TOOL_SETS": "bulk"}"#), &[])
        .await
        .unwrap_err();
    assert_eq!(status, 400);
}

#[tokio::test]
async fn the_older_name_of_the_variable_counts_where_the_other_is_not_set() {
    let Board { home, server: _server } = market("").await;
    let home = home.with_variable("FMP_TOOL_SETS", SETS);
    let of_alias = "static (search, company, quotes) because FMP_TOOL_SETS says so";
    check(&home.serve().await, "/mcp", THREE_SETS, of_alias).await;
    let home = home.with_variable("TOOL_SETS", "quotes");
    check(&home.serve().await, "/mcp", QUOTES, "static (quotes) because TOOL_SETS says so").await;
}

#[tokio::test]
async fn an_unknown_set_is_an_error_everywhere() {
    let Board { home, server: _server } = market("").await;
    let ended = home.line("serve --listen 127.0.0.1:0 --tool-sets search,nowhere").expect(1);
    let told =
        "error: --tool-sets: there is no toolset `nowhere`\nthe toolsets are `search`, `company`, ";
    assert!(ended.stderr.starts_with(told), "{}", ended.stderr);
    let serve = home.serve().await;
    for era in BOTH {
        for (path, status) in [
            ("/mcp?toolsets=search,nowhere", 400),
            ("/mcp/toolsets/search,nowhere", 404),
            ("/mcp/servers/nowhere", 404),
            ("/mcp/sessions/nowhere", 404),
            ("/mcp?dynamic=maybe", 400),
        ] {
            let (found, body) = Peer::try_open(era, &serve, path, &[]).await.unwrap_err();
            assert_eq!(found, status, "{era:?} {path}: {body}");
            let message = body["error"]["message"].as_str().unwrap();
            if path.contains("toolsets") {
                let told = "there is no toolset 'nowhere' here; there are: search, company, quotes";
                assert!(message.starts_with(told), "{message}");
            }
        }
    }
}
