//! The syntax of `${VAR}`, `${VAR:-default}`, `${caller.subject}` and `$${`.

use switchboard_model::{CallerField, HeaderPart, HeaderTemplate, Secret};

/// A text after expansion.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Expanded {
    pub(crate) text: String,
    /// Whether a variable or a default was inserted; an escaped `$${` does not count.
    pub(crate) substituted: bool,
    /// The values of the variables, without defaults, which are visible in the file.
    pub(crate) values: Vec<Secret>,
    /// The parts, if the text refers to the caller of each request. `text` is empty then.
    pub(crate) of_caller: Option<HeaderTemplate>,
}

/// Whether a text may refer to the caller of each request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallerReferences {
    Allowed,
    Refused,
}

/// Why a text cannot be expanded. Contains no part of the text except the name of a variable.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum TemplateError {
    Unresolved(String),
    Unclosed,
    BadName,
    /// A reference to the caller where there is none.
    NoCaller(String),
    /// A reference to a value that callers do not have.
    UnknownField(String),
}

/// Replaces every reference once, from left to right.
pub(crate) fn expand<'v>(
    text: &str,
    callers: CallerReferences,
    lookup: impl Fn(&str) -> Option<&'v str>,
) -> Result<Expanded, TemplateError> {
    let mut parts = Vec::new();
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
        let is_nested = default.is_some_and(|default| default.contains("${"));
        if let Some(field) = caller_field(name, callers)?.filter(|_| !is_nested) {
            if !out.is_empty() {
                parts.push(HeaderPart::Text(Secret::new(std::mem::take(&mut out))));
            }
            parts.push(HeaderPart::Caller { field, default: default.map(str::to_owned) });
            substituted = true;
            rest = after;
            continue;
        }
        // A nested reference in a default is not supported: it would end at the wrong brace.
        if !is_name(name) || is_nested {
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
    if parts.is_empty() {
        return Ok(Expanded { text: out, substituted, values, of_caller: None });
    }
    if !out.is_empty() {
        parts.push(HeaderPart::Text(Secret::new(out)));
    }
    let of_caller = Some(HeaderTemplate(parts));
    Ok(Expanded { text: String::new(), substituted, values, of_caller })
}

/// The value of the caller that a reference names; `None` for a variable of the environment.
fn caller_field(
    name: &str,
    callers: CallerReferences,
) -> Result<Option<CallerField>, TemplateError> {
    let is_callers = name == "caller" || name.starts_with("caller.");
    match (callers, CallerField::from_name(name)) {
        (CallerReferences::Allowed, Some(field)) => Ok(Some(field)),
        (CallerReferences::Allowed, None) if is_callers => {
            Err(TemplateError::UnknownField(name.to_owned()))
        }
        (CallerReferences::Refused, _) if name.starts_with("caller.") => {
            Err(TemplateError::NoCaller(name.to_owned()))
        }
        _ => Ok(None),
    }
}

/// Whether a text has a `${...}` that is not escaped, so that loading it reads a variable or fails.
pub fn has_reference(text: &str) -> bool {
    expand(text, CallerReferences::Refused, |_| None).map_or(true, |expanded| expanded.substituted)
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

    fn plain(text: &str) -> Result<Expanded, TemplateError> {
        expand(text, CallerReferences::Refused, lookup)
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
            assert_eq!(plain(text).map(|e| e.text), Ok(expected.into()), "{text}");
        }
        assert!(!plain("$${A}").unwrap().substituted);
        let values = plain("x${A}${B:-two}${REF:-three}").unwrap().values;
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
            assert_eq!(plain(text), Err(fault), "{text}");
        }
    }

    #[test]
    fn references_to_the_caller_stay_for_each_request() {
        #[track_caller]
        fn check(text: &str, expected: &[HeaderPart]) {
            let expanded = expand(text, CallerReferences::Allowed, lookup).unwrap();
            let (parts, text) = (expanded.of_caller.map(|it| it.0), expanded.text);
            assert_eq!((parts.as_deref(), text.as_str()), (Some(expected), ""));
        }
        let caller = |field, default: Option<&str>| HeaderPart::Caller {
            field,
            default: default.map(str::to_owned),
        };
        let text = |text: &str| HeaderPart::Text(Secret::new(text));
        let subject = || caller(CallerField::Subject, None);
        check("${caller.subject}", &[subject()]);
        check("a${A}${caller.subject}b", &[text("a1"), subject(), text("b")]);
        check("${caller.email:-nobody}", &[caller(CallerField::Email, Some("nobody"))]);
        check("${caller.email:-}", &[caller(CallerField::Email, Some(""))]);
        check(
            "${session}${caller.key}",
            &[caller(CallerField::Session, None), caller(CallerField::Key, None)],
        );
        check("$${caller.name}${caller.subject}", &[text("${caller.name}"), subject()]);
        let literal = expand("$${caller.name}", CallerReferences::Allowed, lookup).unwrap();
        assert_eq!((literal.text.as_str(), literal.of_caller), ("${caller.name}", None));
    }

    #[test]
    fn a_reference_to_the_caller_is_known_and_in_its_place() {
        let allowed = |text: &str| expand(text, CallerReferences::Allowed, lookup);
        for name in ["caller", "caller.", "caller.token", "caller.Subject", "caller.subject.x"] {
            let text = format!("${{{name}}}");
            assert_eq!(allowed(&text), Err(TemplateError::UnknownField(name.into())), "{text}");
        }
        assert_eq!(allowed("${caller.name:-${A}}"), Err(TemplateError::BadName));
        assert_eq!(allowed("${caller.name"), Err(TemplateError::Unclosed));
        let elsewhere = TemplateError::NoCaller("caller.subject".into());
        assert_eq!(plain("x${caller.subject}"), Err(elsewhere));
        assert_eq!(plain("${session}"), Err(TemplateError::Unresolved("session".into())));
        // A variable may be named so; it is one outside of headers.
        assert_eq!(plain("${caller}"), Err(TemplateError::Unresolved("caller".into())));
    }

    proptest::proptest! {
        #[test]
        fn a_value_of_the_environment_never_refers_to_the_caller(
            before in "[a-z ]{0,5}", after in "[a-z ]{0,5}",
        ) {
            let lookup = |_: &str| Some("${caller.subject}");
            let text = format!("{before}${{A}}{after}");
            let expanded = expand(&text, CallerReferences::Allowed, lookup).unwrap();
            proptest::prop_assert_eq!(expanded.of_caller, None);
            proptest::prop_assert_eq!(expanded.text, format!("{before}${{caller.subject}}{after}"));
        }


        #[test]
        fn an_escaped_text_expands_to_itself(text in "[${}A:x-]{0,12}") {
            proptest::prop_assert_eq!(plain(&escape(&text)).map(|e| e.text), Ok(text));
        }
    }
}
