//! A command that other programs let people write with its arguments in one text, such as `npx -y foo`.

/// The program and the arguments of a command in one text; `None` where the text is the path of a program.
///
/// Only a first word without a path is split: a path may have blanks in it.
pub(super) fn split(command: &str) -> Option<(String, Vec<String>)> {
    let first = command.split_whitespace().next()?;
    if first == command.trim() || first.contains(['/', '\\', '"', '\'']) {
        return None;
    }
    let mut words = words(command)?.into_iter();
    Some((words.next()?, words.collect()))
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
        fn check(command: &str, expected: Option<&[&str]>) {
            let split = split(command);
            let words = split.map(|(program, args)| [vec![program], args].concat());
            let expected: Option<Vec<_>> =
                expected.map(|words| words.iter().map(|word| (*word).to_owned()).collect());
            assert_eq!(words, expected, "{command}");
        }
        check("npx -y foo", Some(&["npx", "-y", "foo"]));
        check(" uvx  'a b'  \"c\\\"d\" e\\ f '' ", Some(&["uvx", "a b", "c\"d", "e f", ""]));
        check("npx", None);
        check("npx ", None);
        check("", None);
        check("/opt/My Server/run", None);
        check("./my server", None);
        check(r"C:\Program Files\x.exe", None);
        check("npx 'open", None);
    }
}
