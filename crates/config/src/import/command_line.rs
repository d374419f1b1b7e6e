//! A command that other programs let people write in one text, such as `FOO=1 npx -y foo`.

/// What the text of a command is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum CommandText {
    /// The name or the path of a program, as it is.
    Program,
    Line(CommandLine),
    /// Several words, with a quote that is not closed.
    OpenQuote,
    /// It sets variables and names no program.
    NoProgram,
}

/// A command in one text, taken apart.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct CommandLine {
    /// The variables that are set before the program, as in `FOO=1 npx`.
    pub(super) env: Vec<(String, String)>,
    pub(super) program: String,
    pub(super) args: Vec<String>,
}

/// Takes a command apart. A text whose first word is a path is that of a program: a path may have blanks in it.
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

/// The name and the value of a word such as `FOO=1`.
pub(super) fn assignment(word: &str) -> Option<(&str, &str)> {
    let (name, value) = word.split_once('=')?;
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    is_name.then_some((name, value))
}

/// The words of a command line. Quotes keep blanks, a backslash keeps the next character; `None` where a quote is open.
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
