//! Loading from texts.

use std::io;
use std::path::Path;

use switchboard_config::{ConfigInput, Loaded, Problems, SourceFile, load};

/// The value that `${VAR}` and `file:` have in these tests.
pub(crate) const API_KEY: &str = "key-4711";
pub(crate) const BEARER: &str = "token-0815";

pub(crate) fn read_secret(path: &Path) -> io::Result<String> {
    match path.to_str() {
        Some("/etc/switchboard/token.txt") => Ok(format!("{BEARER}\n")),
        Some("/etc/switchboard/two-lines.txt") => Ok("a\nb\r\n".into()),
        _ => Err(io::Error::new(io::ErrorKind::NotFound, "leaky reason")),
    }
}

pub(crate) fn load_with(text: Option<&str>, env: &[(&str, &str)]) -> Result<Loaded, Problems> {
    let env: Vec<_> = env.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    let directory = Path::new("/etc/switchboard");
    let file = text.map(|text| SourceFile { name: "switchboard.yaml", directory, text });
    load(&ConfigInput { file, env: &env, read_secret: &read_secret, read_keyring: None })
}

pub(crate) fn load_text(text: &str) -> Result<Loaded, Problems> {
    load_with(Some(text), &[])
}

/// The file with everything in it, and its environment.
pub(crate) const EVERYTHING: &str = include_str!("../fixtures/everything.yaml");
pub(crate) const EVERYTHING_ENV: [(&str, &str); 2] =
    [("API_KEY", API_KEY), ("WORK_DIR", "/srv/w0rk")];

/// The rendered problems of an invalid file.
pub(crate) fn problems(text: &str, env: &[(&str, &str)]) -> String {
    match load_with(Some(text), env) {
        Ok(loaded) => format!("no problems: {loaded:#?}"),
        Err(problems) => problems.to_string(),
    }
}

/// Indents the entry of a server or a tool to its place in a file.
pub(crate) fn with_server(entry: &str) -> String {
    within("mcps", entry)
}

pub(crate) fn with_tool(entry: &str) -> String {
    within("tools", entry)
}

fn within(list: &str, entry: &str) -> String {
    let lines: Vec<_> = entry.lines().map(|line| format!("      {line}")).collect();
    format!("switchboard:\n  toolbox:\n    {list}:\n{}\n", lines.join("\n"))
}
