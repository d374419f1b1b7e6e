//! The syntax of `${VAR}`, `${VAR:-default}` and `$${`.

use switchboard_model::Secret;

/// A text after expansion.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Expanded {
    pub(crate) text: String,
    /// Whether a variable or a default was inserted; an escaped `$${` does not count.
    pub(crate) substituted: bool,
    /// The values of the variables, without defaults, which are visible in the file.
    pub(crate) values: Vec<Secret>,
}

/// Why a text cannot be expanded. Contains no part of the text except the name of a variable.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum TemplateError {
    Unresolved(String),
    Unclosed,
    BadName,
}

/// Replaces every reference once, from left to right.
pub(crate) fn expand<'v>(
    text: &str,
    lookup: impl Fn(&str) -> Option<&'v str>,
) -> Result<Expanded, TemplateError> {
    let mut out = String::with_capacity(text.len());
    let mut substituted = false;
    let mut values = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        out.push_str(before);
        if before.ends_with('$') {
            // `$${` is the escape: the dollar is already in `out`, the brace follows it.
            out.push('{');
            rest = after;
            continue;
        }
        let (reference, after) = after.split_once('}').ok_or(TemplateError::Unclosed)?;
        let (name, default) = match reference.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (reference, None),
        };
        // A nested reference in a default is not supported: it would end at the wrong brace.
        if !is_name(name) || default.is_some_and(|default| default.contains("${")) {
            return Err(TemplateError::BadName);
        }
        // As in a shell, a default also replaces an empty variable.
        let value = lookup(name).filter(|value| default.is_none() || !value.is_empty());
        out.push_str(value.or(default).ok_or_else(|| TemplateError::Unresolved(name.into()))?);
        values.extend(value.map(Secret::new));
        substituted = true;
        rest = after;
    }
    out.push_str(rest);
    Ok(Expanded { text: out, substituted, values })
}

/// Whether a text has a `${...}` that is not escaped, so that loading it reads a variable or fails.
pub fn has_reference(text: &str) -> bool {
    expand(text, |_| None).map_or(true, |expanded| expanded.substituted)
}

/// Escapes a text so that the configuration means it literally, without references.
pub fn escape(text: &str) -> String {
    text.replace("${", "$${")
}

fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lookup(name: &str) -> Option<&'static str> {
        match name {
            "A" => Some("1"),
            "EMPTY" => Some(""),
            "REF" => Some("${A}"),
            _ => None,
        }
    }

    #[test]
    fn references_are_replaced_once() {
        let rows = [
            ("plain $A {A}", "plain $A {A}"),
            ("x${A}y${A}", "x1y1"),
            ("${B:-two}", "two"),
            ("${A:-two}", "1"),
            ("${EMPTY:-two}", "two"),
            ("${EMPTY}", ""),
            ("${B:-}", ""),
            ("${REF}", "${A}"),
            ("$${A}", "${A}"),
            ("$$${A}", "$${A}"),
            ("$${A}${A}", "${A}1"),
        ];
        for (text, expected) in rows {
            assert_eq!(expand(text, lookup).map(|e| e.text), Ok(expected.into()), "{text}");
        }
        assert!(!expand("$${A}", lookup).unwrap().substituted);
        let values = expand("x${A}${B:-two}${REF:-three}", lookup).unwrap().values;
        assert_eq!(values, ["1", "${A}"].map(Secret::new));
    }

    #[test]
    fn what_cannot_be_expanded() {
        let rows = [
            ("${B}", TemplateError::Unresolved("B".into())),
            ("${A", TemplateError::Unclosed),
            ("${}", TemplateError::BadName),
            ("${1A}", TemplateError::BadName),
            ("${a b}", TemplateError::BadName),
            ("${B:-${A}}", TemplateError::BadName),
        ];
        for (text, fault) in rows {
            assert_eq!(expand(text, lookup), Err(fault), "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn an_escaped_text_expands_to_itself(text in "[${}A:x-]{0,12}") {
            proptest::prop_assert_eq!(expand(&escape(&text), lookup).map(|e| e.text), Ok(text));
        }
    }
}
