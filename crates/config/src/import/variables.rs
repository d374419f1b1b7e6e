//! Converts the placeholders of other programs to `${VAR}`.

/// Variables that only an editor can fill in.
const EDITOR_VARIABLES: [&str; 4] =
    ["workspaceFolder", "workspaceFolderBasename", "userHome", "fileWorkspaceFolder"];

/// Converts `${env:VAR}` to `${VAR}`, `${input:api-key}` to `${API_KEY}`, and so on. Adds a note for each variable that
/// the user must set.
pub(super) fn convert(text: &str, notes: &mut Vec<String>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        out.push_str(before);
        let Some((reference, after)) = after.split_once('}') else {
            // An unknown placeholder: keep its characters.
            out.push_str("$${");
            rest = after;
            continue;
        };
        out.push_str(&reference_in_our_words(reference, notes));
        rest = after;
    }
    out.push_str(rest);
    out
}

/// Whether a converted text contains a reference. `$${` is an escaped `${`.
pub(super) fn has_reference(text: &str) -> bool {
    text.replace("$${", "").contains("${")
}

fn reference_in_our_words(reference: &str, notes: &mut Vec<String>) -> String {
    if matches!(reference, "/" | "pathSeparator") {
        return "/".into();
    }
    let (name, default) = match reference.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (reference, None),
    };
    if is_name(name) {
        if EDITOR_VARIABLES.contains(&name) {
            push_once(
                notes,
                format!("set the environment variable {name}, for which the editor asked you"),
            );
        }
        return format!("${{{reference}}}");
    }
    let variable = match name.split_once(':') {
        Some(("env", variable)) if is_name(variable) => variable.to_owned(),
        Some(("input", id)) => {
            let variable = upper(id);
            push_once(
                notes,
                format!("set the variable {variable}, which the editor used to ask for"),
            );
            variable
        }
        _ => {
            let variable = upper(name);
            push_once(
                notes,
                format!(
                    "set the environment variable {variable}; the other file has `${{{name}}}` in its place"
                ),
            );
            variable
        }
    };
    match default {
        Some(default) => format!("${{{variable}:-{default}}}"),
        None => format!("${{{variable}}}"),
    }
}

fn upper(id: &str) -> String {
    let letter = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    let name: String = id.chars().map(letter).collect();
    if is_name(&name) { name } else { format!("VAR_{name}") }
}

fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn push_once(notes: &mut Vec<String>, note: String) {
    if !notes.contains(&note) {
        notes.push(note);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_told_from_characters() {
        let rows = [
            ("${KEY}", true),
            ("${KEY:-d}", true),
            ("Token ${KEY}", true),
            ("$${KEY", false),
            ("$${a ${B}", true),
            ("KEY", false),
        ];
        for (text, expected) in rows {
            assert_eq!(has_reference(text), expected, "{text}");
        }
    }

    #[test]
    fn placeholders_of_other_programs() {
        let rows = [
            ("a", "a", 0),
            ("${TOKEN}", "${TOKEN}", 0),
            ("${TOKEN:-x}", "${TOKEN:-x}", 0),
            ("Bearer ${env:TOKEN}!", "Bearer ${TOKEN}!", 0),
            ("${env:A:-b}", "${A:-b}", 0),
            ("${input:api-key}${input:api-key}", "${API_KEY}${API_KEY}", 1),
            ("${workspaceFolder}${/}x", "${workspaceFolder}/x", 1),
            ("${config:a.b}", "${CONFIG_A_B}", 1),
            ("${1}", "${VAR_1}", 1),
            ("${open", "$${open", 0),
        ];
        for (text, expected, count) in rows {
            let mut notes = Vec::new();
            assert_eq!(convert(text, &mut notes), expected);
            assert_eq!(notes.len(), count, "{notes:?}");
        }
    }
}
