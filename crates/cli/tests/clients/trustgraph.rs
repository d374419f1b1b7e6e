//! TrustGraph's own commands, unmodified, manage tools, call them and ask the agent.

use std::process::Command;
use std::time::Duration;

use pretty_assertions::assert_eq;
use serde_json::json;
use switchboard_test_support::{ScriptedServer, Tool, free_port, peers, wait_until};

use crate::support::{Home, Outcome, Serve};

/// A server with the tools `balance` and `pay`, which wants a token.
async fn bank() -> ScriptedServer {
    let schema = json!({
        "type": "object",
        "properties": {"account": {"type": "string"}},
        "required": ["account"],
    });
    let balance = Tool::echo("balance").schema(schema).description("What the server says");
    let tools = [balance, Tool::echo("pay")];
    ScriptedServer::builder().dual().requires_bearer("s3cret-token").tools(tools).start().await
}

/// A board that serves TrustGraph's clients, with a server that cannot be reached.
fn home() -> Home {
    Home::new(format!(
        "# the bank's board\n\
         switchboard:\n  \
           gateway: {{trustgraph: true}}\n  \
           security: {{egress: {{allow: [127.0.0.1]}}}}  # this machine\n  \
           toolbox:\n    \
             tools: []\n    \
             mcps:\n      \
               - {{name: broken, url: \"http://127.0.0.1:{}/mcp\", mode: dynamic, default_tool_config: {{}}, required: false}}\n",
        free_port()
    ))
}

/// Runs a command of TrustGraph.
fn tg(serve: &Serve, command: &str, arguments: &[&str]) -> Outcome {
    let mut process = Command::new(peers::trustgraph_commands().join(command));
    process.arg("-u").arg(serve.at("/trustgraph/")).args(arguments);
    let path = std::env::var("PATH").unwrap_or_default();
    process.env_clear().env("PATH", path).env("NO_PROXY", "*").env("PYTHONIOENCODING", "utf-8");
    Outcome::of(process)
}

/// What a command prints; it must succeed and print no error.
#[track_caller]
fn says(serve: &Serve, command: &str, arguments: &[&str]) -> String {
    let outcome = tg(serve, command, arguments).expect(0);
    assert_eq!(outcome.stderr, "", "{command}");
    assert!(!outcome.stdout.contains("Exception"), "{command}: {}", outcome.stdout);
    outcome.stdout.trim().to_owned()
}

/// The error that a command prints. The commands exit with 0 then, too.
#[track_caller]
fn refuses(serve: &Serve, command: &str, arguments: &[&str]) -> String {
    let outcome = tg(serve, command, arguments).expect(0);
    let error = outcome.stdout.trim().strip_prefix("Exception: ");
    error.unwrap_or_else(|| panic!("{command}: {}", outcome.all())).to_owned()
}

fn set_bank(serve: &Serve, server: &ScriptedServer) {
    let url = server.url();
    let bank = ["-i", "bank", "-r", "balance", "--tool-url", &url, "--auth-token", "s3cret-token"];
    assert_eq!(says(serve, "tg-set-mcp-tool", &bank), "");
}

fn set_balance(serve: &Serve) {
    let tool = [
        "--id",
        "balance-tool",
        "--name",
        "get_balance",
        "--type",
        "mcp-tool",
        "--mcp-tool",
        "bank",
        "--description",
        "The balance of an account",
        "--argument",
        "account:string:The account",
        "--group",
        "read",
        "bank",
        "--state",
        "open",
        "--applicable-states",
        "undefined",
        "open",
    ];
    assert_eq!(says(serve, "tg-set-tool", &tool), "Tool set.");
}

const BALANCE: &str = "\
+--------------+---------------------------+
| id           | balance-tool              |
| name         | get_balance               |
| description  | The balance of an account |
| type         | mcp-tool                  |
| mcp-tool     | bank                      |
| groups       | read, bank                |
| next state   | open                      |
| available in | undefined, open           |
+--------------+---------------------------+";

#[tokio::test]
async fn its_commands_set_show_call_and_delete_tools() {
    let (server, home) = (bank().await, home());
    let serve = home.serve().await;
    assert_eq!(says(&serve, "tg-show-tools", &[]), "");
    assert_eq!(says(&serve, "tg-show-mcp-tools", &[]), "");
    set_bank(&serve, &server);
    set_balance(&serve);
    let written = std::fs::read_to_string(home.config()).unwrap();
    assert!(written.starts_with("# the bank's board\n"), "{written}");
    assert!(written.contains("# this machine\n"), "{written}");

    let shown = says(&serve, "tg-show-mcp-tools", &[]);
    let rows =
        ["| id          | bank", "| remote-name | balance", "| auth        | Yes (configured)"];
    assert!(rows.iter().all(|row| shown.contains(row)) && shown.contains(&server.url()), "{shown}");
    assert_eq!(says(&serve, "tg-show-tools", &[]), BALANCE);

    for name in ["balance-tool", "bank", "get_balance", "bank.balance", "balance"] {
        let said = says(&serve, "tg-invoke-mcp-tool", &["-n", name, "-P", "{\"account\": \"7\"}"]);
        assert_eq!(said, "{\n    \"account\": \"7\"\n}", "{name}");
    }
    let calls = server.stats().calls.len();
    let wrong = refuses(&serve, "tg-invoke-mcp-tool", &["-n", "bank", "-P", "{\"acount\": \"7\"}"]);
    assert!(wrong.starts_with("tool-error: ") && wrong.contains("acount"), "{wrong}");
    assert_eq!(server.stats().calls.len(), calls, "wrong arguments do not reach the server");
    let unknown = refuses(&serve, "tg-invoke-mcp-tool", &["-n", "pay"]);
    assert!(unknown.starts_with("tool-error: there is no tool 'pay'"), "{unknown}");

    // Everything is in the file, so a board that starts again has it.
    drop(serve);
    let serve = home.serve().await;
    assert_eq!(says(&serve, "tg-show-tools", &[]), BALANCE);
    let said =
        says(&serve, "tg-invoke-mcp-tool", &["-n", "balance-tool", "-P", "{\"account\": \"8\"}"]);
    assert_eq!(said, "{\n    \"account\": \"8\"\n}");

    let deleted = says(&serve, "tg-delete-tool", &["--id", "balance-tool"]);
    assert_eq!(deleted, "Tool 'balance-tool' deleted successfully.");
    let again = says(&serve, "tg-delete-tool", &["--id", "balance-tool"]);
    assert_eq!(again, "Tool configuration for 'balance-tool' not found.");
    let deleted = says(&serve, "tg-delete-mcp-tool", &["--id", "bank"]);
    assert_eq!(deleted, "MCP tool 'bank' deleted successfully.");
    assert_eq!(says(&serve, "tg-delete-mcp-tool", &["--id", "bank"]), "MCP tool 'bank' not found.");
    assert_eq!(
        says(&serve, "tg-delete-mcp-tool", &["--id", "broken"]),
        "MCP tool 'broken' not found."
    );
    assert_eq!(says(&serve, "tg-show-tools", &[]), "");
}

#[tokio::test]
async fn a_value_that_cannot_be_used_is_refused_and_nothing_is_written() {
    let home = home();
    let serve = home.serve().await;
    let before = std::fs::read_to_string(home.config()).unwrap();
    let metadata = ["-i", "cloud", "--tool-url", "http://169.254.169.254/mcp"];
    let refused = refuses(&serve, "tg-set-mcp-tool", &metadata);
    assert!(
        refused.starts_with("config-error: the egress check refuses 169.254.169.254"),
        "{refused}"
    );
    let file =
        ["-i", "x", "--tool-url", "http://127.0.0.1:1/", "--auth-token", "file:/etc/hostname"];
    let refused = refuses(&serve, "tg-set-mcp-tool", &file);
    assert!(refused.contains("must be a token"), "{refused}");
    // The type is judged before what only another type has.
    for more in [&[][..], &["--collection", "c", "--limit", "5"], &["--group", "a"]] {
        let query = [&["--id", "x", "--name", "x", "--type", "knowledge-query"][..], more].concat();
        let refused = refuses(&serve, "tg-set-tool", &query);
        assert!(refused.contains("needs a service of TrustGraph"), "{refused}");
    }
    let name = ["--id", "x", "--name", "no spaces", "--type", "mcp-tool", "--mcp-tool", "y"];
    let refused = refuses(&serve, "tg-set-tool", &name);
    assert!(refused.contains("cannot be the name of a tool"), "{refused}");
    let refused = refuses(&serve, "tg-show-tools", &["-w", "sales"]);
    assert!(refused.contains("there is no workspace 'sales'"), "{refused}");
    assert_eq!(std::fs::read_to_string(home.config()).unwrap(), before);
}

#[tokio::test]
async fn what_is_fixed_in_the_file_stays_fixed() {
    let (server, home) = (bank().await, home().with_variable("TENANT", "acme-7"));
    let serve = home.serve().await;
    set_bank(&serve, &server);
    set_balance(&serve);
    let fixed = [
        "tool",
        "set",
        "get_balance",
        "--argument",
        "tenant:string",
        "--value",
        "tenant=${TENANT}",
    ];
    home.run(&fixed).expect(0);
    home.run(&["tool", "set", "get_balance", "--argument", "account:string:The account"]).expect(0);
    let calls_with_tenant = async || {
        let arguments = ["-n", "bank", "-P", "{\"account\": \"7\"}"];
        tg(&serve, "tg-invoke-mcp-tool", &arguments).stdout.contains("acme-7").then_some(())
    };
    wait_until(Duration::from_secs(20), calls_with_tenant).await;
    // The client sees none of it, and sets the tool as it knows it.
    let shown = says(&serve, "tg-show-tools", &[]);
    assert!(!shown.contains("tenant") && !shown.contains("TENANT"), "{shown}");
    let tool = [
        "--id",
        "balance-tool",
        "--name",
        "get_balance",
        "--type",
        "mcp-tool",
        "--mcp-tool",
        "bank",
    ];
    let set = |more: &[&'static str]| tg(&serve, "tg-set-tool", &[&tool[..], more].concat()).stdout;
    assert_eq!(set(&["--argument", "account:string:Whose"]), "Tool set.\n");
    assert_eq!(set(&[]), "Tool set.\n");
    let said = set(&["--argument", "tenant:string:Mine"]);
    assert!(
        said.contains("the argument \"tenant\" of tool 'balance-tool' is fixed or hidden"),
        "{said}"
    );
    let said = tg(&serve, "tg-delete-tool", &["--id", "balance-tool"]).stdout;
    assert!(said.starts_with("Error deleting tool 'balance-tool': config-error:"), "{said}");
    assert!(said.contains("switchboard tool delete get_balance"), "{said}");
    let written = std::fs::read_to_string(home.config()).unwrap();
    assert!(
        written.contains("value: \"${TENANT}\"") || written.contains("value: ${TENANT}"),
        "{written}"
    );
    let given = ["-n", "bank", "-P", "{\"account\": \"7\", \"tenant\": \"other\"}"];
    let said = refuses(&serve, "tg-invoke-mcp-tool", &given);
    assert!(said.contains("`tenant` is set by the configuration"), "{said}");
    let said = says(&serve, "tg-invoke-mcp-tool", &["-n", "bank", "-P", "{\"account\": \"7\"}"]);
    assert!(said.contains("acme-7"), "{said}");
}

#[tokio::test]
async fn a_text_that_looks_like_a_variable_is_not_expanded() {
    let home = home().with_variable("BOARD_SECRET", "hunter2hunter2");
    let serve = home.serve().await;
    let tool = [
        "--id",
        "t",
        "--name",
        "t",
        "--type",
        "mcp-tool",
        "--mcp-tool",
        "x",
        "--description",
        "says ${BOARD_SECRET}",
    ];
    assert_eq!(says(&serve, "tg-set-tool", &tool), "Tool set.");
    let shown = says(&serve, "tg-show-tools", &[]);
    assert!(shown.contains("| says ${BOARD_SECRET} |"), "{shown}");
    let effective = home.line("config show").expect(0);
    assert!(!effective.all().contains("hunter2"), "{}", effective.all());
}

#[tokio::test]
async fn without_the_setting_there_is_nothing_for_its_clients() {
    let home = Home::new("switchboard: {toolbox: {tools: [], mcps: []}}\n");
    let serve = home.serve().await;
    assert_eq!(refuses(&serve, "tg-show-tools", &[]), "Status code 404");
}

#[tokio::test]
async fn a_token_gives_its_role_and_a_wrong_one_is_refused() {
    let (server, home) = (bank().await, home());
    let key = |role: &str| {
        home.line(&format!("key add {role} --role {role}")).expect(0).stdout.trim().to_owned()
    };
    let (admin, operator, client) = (key("admin"), key("operator"), key("client"));
    let serve = home.serve().await;
    let url = server.url();
    let set = |token: &str| {
        let bank = [
            "-t",
            token,
            "-i",
            "bank",
            "-r",
            "balance",
            "--tool-url",
            &url,
            "--auth-token",
            "s3cret-token",
        ];
        tg(&serve, "tg-set-mcp-tool", &bank).expect(0).stdout.trim().to_owned()
    };
    assert_eq!(set("sbk_wrong"), "Exception: Status code 401");
    for (token, role) in [(&operator, "operator"), (&client, "client")] {
        let refusal = format!(
            "Exception: request-error: this needs the role admin, and the token has {role}"
        );
        assert_eq!(set(token), refusal);
    }
    assert_eq!(set(&admin), "");
    let shown = |token: &str| tg(&serve, "tg-show-mcp-tools", &["-t", token]).expect(0).stdout;
    assert!(shown(&operator).contains("Yes (configured)"), "{}", shown(&operator));
    assert!(shown(&client).contains("this needs the role operator"), "{}", shown(&client));
    let call = ["-t", &client, "-n", "bank", "-P", "{\"account\": \"7\"}"];
    assert_eq!(says(&serve, "tg-invoke-mcp-tool", &call), "{\n    \"account\": \"7\"\n}");
    assert_eq!(refuses(&serve, "tg-invoke-mcp-tool", &["-n", "bank"]), "Status code 401");

    let asked = refuses(&serve, "tg-invoke-agent", &["-t", "sbk_wrong", "-q", "hello"]);
    assert!(asked.starts_with("auth failure: "), "{asked}");
    let asked = refuses(&serve, "tg-invoke-agent", &["-q", "hello"]);
    assert!(asked.starts_with("auth failure: "), "{asked}");
}

#[tokio::test]
async fn its_agent_thinks_calls_tools_and_answers() {
    let (server, home) = (bank().await, home());
    let serve = home.serve().await;
    set_bank(&serve, &server);
    set_balance(&serve);
    let question = "/call get_balance {\"account\": \"7\"}";
    let asked = |more: &[&str]| {
        let outcome = tg(&serve, "tg-invoke-agent", &[&["-q", question], more].concat()).expect(0);
        assert_eq!(outcome.stderr, "");
        outcome.stdout
    };
    // The tool is of the group `read`, so only an agent with this group has it.
    let answer = asked(&["-g", "read"]);
    assert_eq!(answer.trim(), "get_balance answered: {\"account\":\"7\"}");
    let without = asked(&[]);
    assert!(without.contains("get_balance failed"), "{without}");
    let in_another_state = asked(&["-g", "read", "-s", "shut"]);
    assert!(in_another_state.contains("get_balance failed"), "{in_another_state}");

    for streaming in [&[][..], &["--no-streaming"]] {
        let told = asked(&[&["-g", "read", "-v"], streaming].concat());
        let (thought, rest) = told.split_once('\u{1f4a1}').expect("an observation follows");
        assert!(thought.contains('\u{1f914}') && thought.contains("I call get_balance"), "{told}");
        assert!(rest.contains("get_balance answered: {\"account\":\"7\"}"), "{told}");
    }
    let pattern = refuses(&serve, "tg-invoke-agent", &["-q", "x", "-p", "supervisor"]);
    assert!(pattern.contains("the agent of Switchboard follows `react`"), "{pattern}");
    // A question leaves no session.
    let is_empty = async || serve.get("/api/v1/sessions").await["sessions"] == json!([]);
    wait_until(Duration::from_secs(20), async || is_empty().await.then_some(())).await;
}
