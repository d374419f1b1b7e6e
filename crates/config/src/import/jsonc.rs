//! JSON with comments and trailing commas, as editors accept it in their configuration files.

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::CstRootNode;
use jsonc_parser::errors::ParseError;
use serde_json::Value as Json;

/// Of all extensions of JSON that the library knows, only the two that editors accept.
const SYNTAX: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_trailing_commas: true,
    allow_loose_object_property_names: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

/// The text as a tree that keeps comments and whitespace, for editing.
pub(crate) fn tree(text: &str) -> Result<CstRootNode, ParseError> {
    CstRootNode::parse(text, &SYNTAX)
}

/// The value of a text, which may begin with a byte order mark. `None` for a text without a value.
pub(crate) fn read(text: &str) -> Result<Option<Json>, ParseError> {
    Ok(tree(text.strip_prefix('\u{feff}').unwrap_or(text))?.to_serde_value())
}

/// Why a text cannot be read, without the place. As part of a sentence, it begins with a small letter.
pub(crate) fn reason(error: &ParseError) -> String {
    let reason = error.kind().to_string();
    let mut chars = reason.chars();
    chars.next().into_iter().flat_map(char::to_lowercase).chain(chars).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn comments_and_trailing_commas_are_skipped_and_strings_stay() {
        let text = "\u{feff}{ // a \"b\"\n \"x\": \"//,]\\\"\", /* , */ \"y\": [1, 2, ], }";
        assert_eq!(read(text).unwrap(), Some(json!({"x": "//,]\"", "y": [1, 2]})));
        assert_eq!(read("// nothing else").unwrap(), None);
    }

    #[test]
    fn other_extensions_of_json_are_refused() {
        for text in
            ["{a: 1}", "{'a': 1}", "[1 2]", "[0x1]", "[+1]", "[.5]", "[NaN]", "[1,,]", "{} {}"]
        {
            assert!(read(text).is_err(), "{text}");
        }
        let deep = "[".repeat(100_000);
        assert_eq!(reason(&read(&deep).unwrap_err()), "maximum nesting depth exceeded");
    }
}
