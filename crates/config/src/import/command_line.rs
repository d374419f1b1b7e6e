//! Parses a command line that is written as one string, such as `FOO=1 npx -y foo`.

/// What a `command` string contains.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum CommandText {
    /// The name or path of a program only.
    Program,
    Line(CommandLine),
    /// Several words, with an unclosed quote.
    OpenQuote,
    /// Variable assignments without a program.
    NoProgram,
}

/// A parsed command line.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct CommandLine {
    /// Variables that are assigned before the program, as in `FOO=1 npx`.
    pub(super) env: Vec<(String, String)>,
    pub(super) program: String,
    pub(super) args: Vec<String>,
}

/// Parses a command. A string that begins with a path is a single program, because paths may contain spaces.
pub(super) fn read(command: &str) -> CommandText {
    let Some(first) = command.split_whitespace().next() else { return CommandText::Program };
    let is_program = first == command.trim() || first.contains(['/', '\\', '"', '\'']);
    if is_program && assignment(first).is_none() {
        return CommandText::Program;
    }
    let Some(words) = words(command) else { return CommandText::OpenQuote };
    let mut words = words.into_iter().peekable();
    let mut env = Vec::new();
    while let Some((name, value)) = words.peek().and_then(|word| assignment(word)) {
        env.push((name.to_owned(), value.to_owned()));
        words.next();
    }
    match words.next() {
        Some(program) => CommandText::Line(CommandLine { env, program, args: words.collect() }),
        None => CommandText::NoProgram,
    }
}

/// Splits a word such as `FOO=1` into name and value.
pub(super) fn assignment(word: &str) -> Option<(&str, &str)> {
    let (name, value) = word.split_once('=')?;
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    is_name.then_some((name, value))
}

/// Splits a command line into words. Quotes keep spaces, a backslash keeps the next character; `None` if a quote is
/// unclosed.
fn words(text: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '"' | '\'') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None | Some('"'), '\\') => word.get_or_insert_default().push(chars.next()?),
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    quote.is_none().then_some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_with_arguments_is_split_and_a_path_is_not() {
        #[track_caller]
        fn check(command: &str, expected: &[&str]) {
            let CommandText::Line(line) = read(command) else { panic!("{command} is not split") };
            let env = line.env.iter().map(|(name, value)| format!("{name}={value}")).collect();
            let words = [env, vec![line.program], line.args].concat();
            assert_eq!(words, expected, "{command}");
        }
        check("npx -y foo", &["npx", "-y", "foo"]);
        check(" uvx  'a b'  \"c\\\"d\" e\\ f '' ", &["uvx", "a b", "c\"d", "e f", ""]);
        check("npx --flag=1", &["npx", "--flag=1"]);
        check("FOO=1 npx x", &["FOO=1", "npx", "x"]);
        check("FOO= _B=/x/y C='d e' /usr/bin/npx", &["FOO=", "_B=/x/y", "C=d e", "/usr/bin/npx"]);
        let programs =
            ["npx", "npx ", "", "/opt/My Server/run", "./my server", r"C:\Program Files\x.exe"];
        for program in programs {
            assert_eq!(read(program), CommandText::Program, "{program}");
        }
        assert_eq!(read("npx 'open"), CommandText::OpenQuote);
        assert_eq!(read("FOO='1 npx"), CommandText::OpenQuote);
        assert_eq!(read("FOO=1"), CommandText::NoProgram);
        assert_eq!(read("FOO=1 B=2"), CommandText::NoProgram);
    }
}
