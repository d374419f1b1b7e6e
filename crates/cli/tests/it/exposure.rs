//! The exposure that `serve` reports, from each of the three sources.

use crate::support::Home;

const BOARD: &str = "\
switchboard:
  toolbox:
    tools: [{name: sum_numbers}, {name: current_time}]
  toolsets:
    - {name: search, description: Finds, tools: [current_time]}
    - {name: quotes, description: Prices, tools: [sum_numbers]}
    - {name: hidden, description: Nobody's, tools: [sum_numbers]}
  gateway:
    deny_toolsets: [hidden]
";

async fn check(home: &Home, arguments: &[&str], expected: &str) {
    let serve = home.serve_with(arguments).await;
    serve.said("exposure: ").await;
    let said = serve.stderr();
    let lines: Vec<_> = said.lines().filter(|line| line.contains("exposure: ")).collect();
    assert_eq!(lines.len(), 1, "one line: {said}");
    assert!(lines[0].contains("INFO") && lines[0].ends_with(expected), "{expected}: {said}");
}

#[tokio::test]
async fn the_start_line_says_which_mode_and_why() {
    let home = Home::new(BOARD);
    check(&home, &[], "exposure: legacy (all tools) because nothing else is configured").await;
    let of_flag = "exposure: dynamic (meta-tools) because --dynamic-tool-discovery says so";
    for flag in ["--dynamic-tool-discovery", "--dynamic-tool-discovery=YES"] {
        check(&home, &[flag], of_flag).await;
    }
    for flags in [["--tool-sets", "search,quotes"], ["--toolsets", "search, quotes"]] {
        let expected = "exposure: static (search, quotes) because --tool-sets says so";
        check(&home, &flags, expected).await;
    }

    let home = home.with_variable("TOOL_SETS", "quotes");
    check(&home, &[], "exposure: static (quotes) because TOOL_SETS says so").await;
    let both = "exposure: dynamic (meta-tools, and search at first) because --dynamic-tool-discovery says so";
    check(&home, &["--dynamic-tool-discovery", "--tool-sets=search"], both).await;

    let home = home.with_variable("DYNAMIC_TOOL_DISCOVERY", "1");
    let of_variable = "exposure: dynamic (meta-tools, and quotes at first) because DYNAMIC_TOOL_DISCOVERY says so";
    check(&home, &[], of_variable).await;
    let off = "--dynamic-tool-discovery=off";
    check(&home, &[off], "exposure: static (quotes) because TOOL_SETS says so").await;
    let of_flag = "exposure: static (search) because --tool-sets says so";
    check(&home, &["--tool-sets", "search"], of_flag).await;

    let home = Home::new(format!("{BOARD}    exposure: dynamic\n"));
    let of_file =
        "exposure: dynamic (meta-tools) because gateway.exposure in the configuration says so";
    check(&home, &[], of_file).await;
    let home = home.with_variable("DYNAMIC_TOOL_DISCOVERY", "false");
    let of_variable = "exposure: legacy (all tools) because DYNAMIC_TOOL_DISCOVERY is off and no toolset is named";
    check(&home, &[], of_variable).await;
}

#[test]
fn a_set_that_cannot_be_shown_ends_the_start() {
    let home = Home::new(BOARD);
    let unknown = home.line("serve --listen 127.0.0.1:0 --tool-sets search,qoutes").expect(1);
    assert_eq!(
        unknown.stderr,
        "error: --tool-sets: there is no toolset `qoutes`; did you mean `quotes`?\n\
         the toolsets are `search`, `quotes`\n"
    );
    let denied = home.line("serve --listen 127.0.0.1:0 --tool-sets hidden").expect(1);
    assert!(
        denied
            .stderr
            .contains("the toolset `hidden` is not permitted: `gateway.deny_toolsets` names it"),
        "{}",
        denied.stderr
    );
    let home = home.with_variable("TOOL_SETS", "nowhere");
    let unknown = home.line("serve --listen 127.0.0.1:0").expect(1);
    assert!(unknown.stderr.contains("TOOL_SETS: there is no toolset `nowhere`"));
    let home = home.with_variable("DYNAMIC_TOOL_DISCOVERY", "maybe");
    let unread = home.line("serve --listen 127.0.0.1:0 --json").expect(1);
    let message = unread.json()["error"]["message"].as_str().unwrap().to_owned();
    assert!(message.starts_with("DYNAMIC_TOOL_DISCOVERY: \"maybe\" is neither"), "{message}");
}

#[test]
fn a_flag_that_cannot_be_read_is_a_usage_error() {
    let home = Home::new(BOARD);
    let unread = home.line("serve --dynamic-tool-discovery=maybe").expect(2);
    assert!(unread.stderr.contains("neither true nor false"), "{}", unread.stderr);
    // Without `=` the word would be an argument of its own.
    home.line("serve --dynamic-tool-discovery true").expect(2);
}
