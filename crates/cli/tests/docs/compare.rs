//! Compares the output of a command with the output on a page.
//!
//! `[..]` matches any part of a line, a line of `...` matches any number of lines. Runs of spaces count as one, because
//! the width of a column depends on its content.

/// Whether the output is what the page says.
pub(crate) fn is_as_written(expected: &str, actual: &str) -> bool {
    let expected: Vec<_> = expected.trim_end().lines().map(squeeze).collect();
    let actual: Vec<_> = actual.trim_end().lines().map(squeeze).collect();
    lines_fit(&expected, &actual)
}

fn lines_fit(expected: &[String], actual: &[String]) -> bool {
    match expected.split_first() {
        None => actual.is_empty(),
        Some((first, rest)) if first == "..." => {
            (0..=actual.len()).any(|skipped| lines_fit(rest, actual.get(skipped..).unwrap_or(&[])))
        }
        Some((first, rest)) => actual
            .split_first()
            .is_some_and(|(line, behind)| line_fits(first, line) && lines_fit(rest, behind)),
    }
}

fn line_fits(expected: &str, actual: &str) -> bool {
    let mut parts = expected.split("[..]");
    let Some(mut rest) = parts.next().and_then(|head| actual.strip_prefix(head)) else {
        return false;
    };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        let Some((_, behind)) = rest.split_once(part) else { return false };
        rest = behind;
    }
    true
}

fn squeeze(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn wildcards_stand_for_parts_of_lines_and_for_lines() {
    for (expected, actual, is_same) in [
        ("a", "a\n", true),
        ("a  b", "a b", true),
        ("a", "b", false),
        ("a", "a\nb", false),
        ("in [..] ms", "in 12 ms", true),
        ("in [..] ms", "in 12 s", false),
        ("[..]", "", false),
        ("[..]", "anything", true),
        ("x[..]y[..]z", "x1y2z", true),
        ("x[..]y[..]z", "x1z", false),
        ("a\n...\nd", "a\nb\nc\nd", true),
        ("a\n...", "a", true),
        ("...\nz", "a\nb", false),
    ] {
        assert_eq!(is_as_written(expected, actual), is_same, "{expected:?} {actual:?}");
    }
}
