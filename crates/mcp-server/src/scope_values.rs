//! The values of scope settings as texts: lists of names, and switches.

use std::collections::BTreeSet;

use http::StatusCode;

use crate::http_answer::Refused;

/// The refusal of a value.
pub(crate) fn bad(message: String) -> Refused {
    Refused(StatusCode::BAD_REQUEST, message)
}

/// The names in a comma-separated list, without duplicates.
pub(crate) fn names(list: &str) -> Vec<String> {
    let names = list.split(',').map(str::trim).filter(|name| !name.is_empty());
    let names: BTreeSet<&str> = names.collect();
    names.into_iter().map(str::to_owned).collect()
}

/// A switch; an empty text switches on.
pub(crate) fn flag(name: &str, text: &str) -> Result<bool, Refused> {
    match text.trim().to_ascii_lowercase().as_str() {
        "true" | "1" | "yes" | "on" | "" => Ok(true),
        "false" | "0" | "no" | "off" => Ok(false),
        other => Err(bad(format!(
            "{name}: '{other}' is neither `true`, `1`, `yes`, `on` nor `false`, `0`, `no`, `off`"
        ))),
    }
}
