//! Detects entries of other programs that lead to Switchboard itself. Importing one would make Switchboard call itself
//! endlessly.

use serde_json::Value as Json;
use switchboard_model::is_on_this_machine;
use url::Url;

use super::command_line::{self, CommandText};
use super::entry::url_of;

/// The name that `connect` gives its entry.
const USUAL_NAME: &str = "switchboard";
/// The name of the program.
const PROGRAM: &str = "switchboard";
/// Subcommands of the program that serve or forward MCP.
const COMMANDS: [&str; 2] = ["stdio", "connect"];
/// Shells, which take a command line as the argument of `-c`.
const SHELLS: [&str; 4] = ["sh", "bash", "dash", "zsh"];
/// The last path segment of an MCP endpoint, and the segments that may follow it at a Switchboard.
const ENDPOINT: &str = "mcp";
const PARTS: [&str; 3] = ["servers", "sessions", "toolsets"];

/// Whether the entry leads to a Switchboard: by the program that it starts, or by an address of one of `boards`.
///
/// Other instances are recognized by the name that `connect` gives, or by a path that only Switchboard has, such as
/// `/mcp/toolsets/x`, on this machine.
pub(super) fn is_switchboard(name: &str, entry: &Json, boards: &[Url]) -> bool {
    let words = words_of(entry);
    if runs_switchboard(&words) {
        return true;
    }
    // Bridges such as `mcp-remote` take the address as an argument.
    let url = entry.as_object().and_then(url_of);
    let mut addresses = url.into_iter().chain(words.iter().map(String::as_str));
    addresses.any(|text| Url::parse(text).is_ok_and(|url| leads_to_board(&url, boards)))
        || name == USUAL_NAME
            && url.and_then(|url| Url::parse(url).ok()).is_some_and(|url| endpoint(&url).is_some())
}

/// The words of the entry's command line, without variable assignments.
fn words_of(entry: &Json) -> Vec<String> {
    let command = entry.get("command").and_then(Json::as_str).unwrap_or_default();
    let mut words = match command_line::read(command) {
        CommandText::Line(line) => [vec![line.program], line.args].concat(),
        CommandText::Program | CommandText::OpenQuote | CommandText::NoProgram => {
            vec![command.to_owned()]
        }
    };
    let args = entry.get("args").and_then(Json::as_array).into_iter().flatten();
    words.extend(args.filter_map(Json::as_str).map(str::to_owned));
    let is_prefix = |word: &String| word == "env" || command_line::assignment(word).is_some();
    let prefix = words.iter().take_while(|word| is_prefix(word)).count();
    words.split_off(prefix)
}

fn runs_switchboard(words: &[String]) -> bool {
    let Some((program, args)) = words.split_first() else { return false };
    let program = file_name(program);
    if program == PROGRAM {
        return args.iter().any(|arg| COMMANDS.contains(&arg.as_str()));
    }
    let text = args.iter().skip_while(|arg| *arg != "-c").nth(1);
    let Some(text) = text.filter(|_| SHELLS.contains(&program)) else { return false };
    let words: Vec<_> = text.split_whitespace().collect();
    let starts = words.iter().position(|word| file_name(word) == PROGRAM);
    starts.is_some_and(|at| words.iter().skip(at).any(|word| COMMANDS.contains(word)))
}

fn file_name(program: &str) -> &str {
    let name = program.rsplit(['/', '\\']).next().unwrap_or_default();
    name.strip_suffix(".exe").unwrap_or(name)
}

fn leads_to_board(url: &Url, boards: &[Url]) -> bool {
    let Some((base, part)) = endpoint(url) else { return false };
    let is_board = |board: &Url| {
        let board_base = endpoint(board).map_or_else(|| segments(board), |(base, _)| base);
        let is_same_host = url.host_str() == board.host_str()
            || is_on_this_machine(url) && is_on_this_machine(board);
        is_same_host
            && url.port_or_known_default() == board.port_or_known_default()
            && base == board_base
    };
    boards.iter().any(is_board) || part.is_some() && is_on_this_machine(url)
}

/// Splits a URL path at `/mcp`: the segments before it, and the kind of endpoint after it.
fn endpoint(url: &Url) -> Option<(Vec<&str>, Option<&str>)> {
    if !matches!(url.scheme(), "http" | "https") {
        return None;
    }
    let mut base = segments(url);
    let at = base.iter().rposition(|segment| *segment == ENDPOINT)?;
    let behind = base.split_off(at);
    match behind.get(1).copied() {
        None => Some((base, None)),
        Some(part) => PARTS.contains(&part).then_some((base, Some(part))),
    }
}

fn segments(url: &Url) -> Vec<&str> {
    url.path().split('/').filter(|segment| !segment.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_entry_that_leads_to_a_board_is_known_by_its_program_or_its_address() {
        #[track_caller]
        fn check(name: &str, entry: &Json, expected: bool) {
            let boards = ["http://127.0.0.1:8420/mcp", "https://tools.example.com/ai/mcp"]
                .map(|url| url.parse().unwrap());
            assert_eq!(is_switchboard(name, entry, &boards), expected, "{name}: {entry}");
        }
        let program = |command: &str, args: &[&str]| json!({"command": command, "args": args});
        check("x", &program("/usr/bin/switchboard", &["--config", "x", "stdio"]), true);
        check("x", &program(r"C:\bin\switchboard.exe", &["stdio"]), true);
        check("x", &json!({"command": "switchboard stdio"}), true);
        check("x", &json!({"command": "RUST_LOG=1 /opt/switchboard --url http://h stdio"}), true);
        check("x", &program("env", &["A=1", "switchboard", "stdio"]), true);
        check("x", &program("sh", &["-c", "cd /srv && exec switchboard stdio"]), true);
        check("x", &program("switchboard", &["connect", "codex"]), true);
        check("x", &program("switchboard", &["demo-server", "--stdio"]), false);
        check("x", &program("npx", &["server", "/home/me/switchboard", "stdio"]), false);
        check("x", &program("sh", &["-c", "exec my-server stdio"]), false);
        check("x", &program("npx", &["-y", "mcp-remote", "http://localhost:8420/mcp"]), true);
        check("x", &program("npx", &["-y", "mcp-remote", "http://localhost:9000/mcp"]), false);
        for (url, expected) in [
            ("http://127.0.0.1:8420/mcp", true),
            ("http://localhost:8420/mcp/", true),
            ("http://[::1]:8420/mcp/toolsets/a,b?x=1", true),
            ("https://tools.example.com/ai/mcp/servers/crm", true),
            ("http://localhost:9000/mcp/sessions/a", true),
            ("http://localhost:9000/mcp", false),
            ("https://tools.example.com/mcp", false),
            ("https://api.example.com/mcp/toolsets/a", false),
            ("http://localhost:8420/other", false),
            ("http://localhost:8420/mcp/x/issues", false),
            ("not an address", false),
        ] {
            check("x", &json!({"url": url}), expected);
            check("x", &json!({"httpUrl": url}), expected);
        }
        check("switchboard", &json!({"url": "https://gateway.example.com/mcp"}), true);
        check("switchboard", &json!({"url": "https://gateway.example.com/sse"}), false);
        check("x", &json!("text"), false);
        check("x", &json!({}), false);
    }
}
