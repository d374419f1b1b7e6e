//! `session`, `render` and `tool call --session`, with and without a running instance.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::board::{NOTES, SHOP, TwoServers, two_servers};
use crate::chat::PROVIDERS;
use crate::support::{Outcome, Serve};

/// The program in a directory of its own, with an instance to ask or without.
struct Program {
    board: TwoServers,
    serve: Option<Serve>,
}

impl Program {
    async fn alone() -> Self {
        Self { board: two_servers("").await, serve: None }
    }

    async fn at_an_instance() -> Self {
        let board = two_servers("").await;
        let serve = board.home.serve().await;
        Self { board, serve: Some(serve) }
    }

    /// Both ways of using it.
    async fn both() -> [Self; 2] {
        [Self::alone().await, Self::at_an_instance().await]
    }

    fn way(&self) -> &'static str {
        if self.serve.is_some() { "with --url" } else { "embedded" }
    }

    fn run(&self, words: &[&str]) -> Outcome {
        let mut words = words.to_vec();
        if let Some(serve) = &self.serve {
            words.extend(["--url", &serve.url]);
        }
        self.board.home.run(&words)
    }

    #[track_caller]
    fn line(&self, line: &str) -> Outcome {
        let outcome = self.run(&line.split_whitespace().collect::<Vec<_>>());
        assert_eq!(outcome.code, Some(0), "{} {line}: {}", self.way(), outcome.all());
        outcome
    }

    #[track_caller]
    fn json(&self, line: &str) -> Value {
        self.line(&format!("{line} --json")).json()
    }

    #[track_caller]
    fn tools(&self, session: &str) -> Vec<String> {
        let shown = self.line(&format!("session show {session}")).stdout;
        let lines = shown.lines().filter_map(|line| line.strip_prefix("  "));
        lines.map(str::to_owned).collect()
    }
}

#[tokio::test]
async fn a_session_is_made_looked_at_switched_and_ended() {
    for program in Program::both().await {
        let new = [
            "session",
            "new",
            "work",
            "--title",
            "Quarterly report",
            "--provider",
            "anthropic",
            "--model",
            "m-1",
            "--server",
            "shop",
            "--server",
            "notes",
            "--toolset",
            "look",
            "--tool",
            "notes.read",
            "--allow",
            "openai=shop__*",
            "--allow",
            "openai=read",
        ];
        let made = program.run(&new).expect(0);
        assert_eq!(made.stdout, "work\n");
        assert!(made.stderr.contains("/mcp/sessions/work"), "{}", made.stderr);
        let view = program.json("session show work");
        for (key, expected) in [
            ("title", json!("Quarterly report")),
            ("provider", json!("anthropic")),
            ("model", json!("m-1")),
            ("servers", json!(["notes", "shop"])),
            ("tools", json!({"notes.read": true})),
            ("allow", json!({"openai": ["shop__*", "read"]})),
            ("tools_revision", json!(1)),
        ] {
            assert_eq!(view[key], expected, "{} {key}", program.way());
        }
        assert_eq!(program.tools("work"), [&SHOP[..], &NOTES].concat());
        let other = program.line("session new").stdout;
        assert!(other.trim().len() > 20, "one that cannot be guessed: {other}");
        let list = program.line("session list").stdout;
        assert!(list.contains("Quarterly report") && list.contains(other.trim()), "{list}");
        assert_eq!(program.json("session list")["sessions"].as_array().unwrap().len(), 2);

        let mut revision = 1;
        let mut step = |line: &str, expected: &[&str]| {
            revision += 1;
            assert_eq!(program.json(line)["tools_revision"], revision, "{line}");
            assert_eq!(program.tools("work"), expected, "{} {line}", program.way());
        };
        step("session disable work buy", &["shop__find", "notes__read", "notes__write"]);
        step("session disable work notes.read shop__find", &["notes__write"]);
        step(
            "session enable work buy notes__read",
            &["notes__write", "shop__price", "shop__order", "notes__read"],
        );
        step("session bind work notes", &["notes__write", "notes__read"]);
        step(
            "session bind work --all --revision 5",
            &["notes__write", "notes__read", "shop__price", "shop__order"],
        );
        let said = program.line("session enable work shop.find").stderr;
        assert!(said.contains("session 'work' is at revision 7"), "{said}");

        assert_eq!(program.json("session delete work"), json!({"deleted": "work"}));
        program.line(&format!("session delete {}", other.trim()));
        assert_eq!(program.json("session list"), json!({"sessions": []}));
        let none = program.line("session list");
        assert!(none.all().contains("there are no sessions"), "{}", none.all());
    }
}

/// Counting tokens takes seconds in a debug build, so each way is looked at once.
#[tokio::test]
async fn render_shows_what_a_provider_gets_and_costs() {
    let program = Program::alone().await;
    program.line("session new work --allow anthropic=shop__*");
    let line = "render --session work --provider anthropic";
    let explained = program.line(&format!("{line} --explain")).stdout;
    assert!(explained.contains("3 tools for anthropic at revision 1, "), "{explained}");
    assert!(SHOP.iter().all(|name| explained.contains(name)), "{explained}");
    // Without an instance no earlier revision is known: the output is the whole list, never an empty one.
    program.line("session disable work shop.price");
    let whole = program.line(&format!("{line} --since 1"));
    assert_eq!(whole.json().as_array().map(Vec::len), Some(2), "{}", whole.stdout);
    assert!(whole.stderr.contains("this is the whole list"), "{}", whole.stderr);
}

#[tokio::test]
async fn render_shows_what_a_provider_gets_costs_and_what_changed_at_an_instance() {
    let program = Program::at_an_instance().await;
    program.line("session new work");
    for provider in PROVIDERS {
        let line = format!("render --session work --provider {provider}");
        let tools = program.line(&line).json();
        let whole = program.json(&line);
        assert_eq!(whole["tools"], tools, "{provider}");
        assert_eq!((&whole["count"], &whole["provider"]), (&json!(5), &json!(provider)));
        assert!(whole["tokens"]["total"].as_u64().unwrap() > 10, "{whole:#}");
        let explained = program.line(&format!("{line} --explain")).stdout;
        let first = format!("5 tools for {provider} at revision 1, ");
        assert!(explained.contains(&first) && explained.contains("shop__find"), "{explained}");
    }
    program.line("session disable work notes");
    let line = "render --session work --provider openai --since";
    let now = program.line(&format!("{line} 2")).stdout;
    assert!(!now.contains("notes__read"), "nothing since then: {now}");
    let delta = program.line(&format!("{line} 1")).stdout;
    assert!(delta.contains("notes__read") && !delta.contains("shop__"), "{delta}");
    let whole = program.line(&format!("{line} 99"));
    assert_eq!(whole.json().as_array().map(Vec::len), Some(3), "{}", whole.stdout);
    assert!(whole.stderr.contains("this is the whole list"), "{}", whole.stderr);
}

#[tokio::test]
async fn a_tool_is_called_as_the_session_sees_it() {
    for program in Program::both().await {
        program.line("session new work");
        program.line("session disable work buy");
        for name in ["shop__find", "shop.find", "find"] {
            let answer = program.run(&["tool", "call", name, r#"{"n": 4}"#, "--session", "work"]);
            assert_eq!(answer.expect(0).stdout.trim(), r#"{"n":4}"#, "{name}");
        }
        let call = &program.board.shop.stats().calls[0];
        assert_eq!((call.tool.as_str(), call.n), ("find", Some(4)));
        let off = program.run(&["tool", "call", "shop__order", "--session", "work"]).expect(2);
        assert!(off.stderr.contains("toolset 'buy'"), "{} {}", program.way(), off.stderr);
        // Without the session it is there.
        program.line("tool call shop.order");
    }
}

#[tokio::test]
async fn what_is_wrong_is_said_with_a_code_and_changes_nothing() {
    check_what_is_wrong(&Program::alone().await);
}

#[tokio::test]
async fn what_is_wrong_is_said_with_a_code_and_changes_nothing_at_an_instance() {
    check_what_is_wrong(&Program::at_an_instance().await);
}

fn check_what_is_wrong(program: &Program) {
    let long = "x".repeat(300);
    let longer = "x".repeat(600);
    let cases: &[(&[&str], i32, &str)] = &[
        (&["session", "show", "nowhere"], 2, "there is no session 'nowhere'"),
        (&["session", "show", ""], 2, "session"),
        (&["session", "show", ".."], 2, "session"),
        (&["session", "show", "a/b"], 2, "there is no session 'a/b'"),
        (&["session", "show", &long], 2, "there is no session"),
        (&["session", "delete", "nowhere"], 2, "there is no session 'nowhere'"),
        (&["session", "delete", "."], 2, "session"),
        (&["session", "new", ""], 2, "cannot name a session"),
        (&["session", "new", &long], 2, "cannot name a session"),
        (&["session", "new", "two words"], 2, "cannot name a session"),
        (&["session", "new", "mcp-mine"], 2, "cannot name a session"),
        (&["session", "new", "work"], 2, "there is a session 'work' already"),
        (&["session", "new", "--title", &longer], 2, "longer than 512"),
        (
            &["session", "new", "--server", "nowhere"],
            2,
            "there is no MCP server 'nowhere' here; there are: shop, notes",
        ),
        (&["session", "new", "--toolset", "nowhere"], 2, "there is no toolset 'nowhere' here"),
        (&["session", "new", "--tool", "nowhere"], 2, "there is no tool 'nowhere' here"),
        (&["session", "new", "--allow", "openai"], 2, "provider=tool"),
        (&["session", "new", "--allow", "acme=x"], 2, "there is no provider `acme`"),
        (&["session", "bind", "work"], 2, "required"),
        (&["session", "bind", "work", "nowhere"], 2, "there is no MCP server 'nowhere'"),
        (&["session", "bind", "work", "shop", "--revision", "99"], 4, "at revision 1, not 99"),
        (&["session", "bind", "nowhere", "shop"], 2, "there is no session 'nowhere'"),
        (&["session", "enable", "work", "nowhere"], 2, "nowhere"),
        (&["session", "enable", "work", &long], 2, "xxx"),
        (&["session", "disable", "work", "look", "--revision", "99"], 4, "at revision 1, not 99"),
        (&["session", "disable", "nowhere", "look"], 2, "there is no session 'nowhere'"),
        (&["render", "--session", "work", "--provider", "acme"], 2, "there is no provider `acme`"),
        (
            &["render", "--session", "nowhere", "--provider", "mcp"],
            2,
            "there is no session 'nowhere'",
        ),
        (&["render", "--session", "work"], 2, "--provider"),
        (
            &["tool", "call", "shop.find", "--session", "nowhere"],
            2,
            "there is no session 'nowhere'",
        ),
        (&["tool", "call", "nowhere", "--session", "work"], 2, "there is no tool 'nowhere'"),
        (&["tool", "call", "shop.find", "[1]", "--session", "work"], 2, "object"),
    ];
    program.line("session new work");
    let before = program.json("session list");
    for (words, code, said) in cases {
        let outcome = program.run(words);
        let what = format!("{} {words:?}: {}", program.way(), outcome.all());
        assert_eq!(outcome.code, Some(*code), "{what}");
        assert!(outcome.stderr.contains(said), "{what}");
        assert_eq!(outcome.stdout, "", "{what}");
    }
    assert_eq!(program.json("session list"), before, "{}", program.way());
    // For programs.
    for (words, code, kind) in [
        (vec!["session", "show", "nowhere"], 2, "unknown_session"),
        (vec!["session", "new", "work"], 2, "session_exists"),
        (vec!["session", "bind", "work", "shop", "--revision", "99"], 4, "stale_revision"),
        (vec!["session", "bind", "work", "nowhere"], 2, "bad_request"),
    ] {
        let outcome = program.run(&[&words[..], &["--json"]].concat()).expect(code);
        assert_eq!(outcome.json()["error"]["kind"], kind, "{words:?}");
    }
}

/// What was made without an instance is there for one, and the other way.
#[tokio::test]
async fn an_instance_and_the_program_alone_share_the_sessions() {
    let board = two_servers("").await;
    board.home.line("session new work --title Shared --server shop").expect(0);
    board.home.line("session disable work buy").expect(0);
    let shown = board.home.line("session show work --json").expect(0).json();
    let mut serve = board.home.serve().await;
    let there = board.home.line(&format!("session show work --json --url {}", serve.url));
    assert_eq!(there.expect(0).json(), shown);
    board.home.line(&format!("session enable work buy --url {}", serve.url)).expect(0);
    serve.signal("TERM");
    serve.ended().await;
    let list = board.home.line("session list --json").expect(0).json();
    assert_eq!(list["sessions"][0]["tools_revision"], 3, "{list:#}");
    let again = board.home.line("session show work --json").expect(0).json();
    assert_eq!((&again["tools_revision"], &again["title"]), (&json!(3), &json!("Shared")));
}
