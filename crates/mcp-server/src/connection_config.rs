//! `?config=`: the settings of one connection as base64 of a JSON object, in the format in which Smithery sends its users'
//! settings. As with the rest of the query, they can only narrow what the connection sees.

use base64::Engine as _;
use base64::alphabet::{STANDARD, URL_SAFE};
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde_json::{Map, Value};
use switchboard_view::Scope;

use crate::http_answer::Refused;
use crate::scope_values::{bad, flag, names};

/// The maximum length of the encoded settings.
const MAX_TEXT: usize = 64 * 1024;

const LENIENT: GeneralPurposeConfig =
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);

/// Narrows `scope` by the settings. Unknown settings are ignored, because the sending service may have others. Errors
/// never repeat a value, because some are secrets.
pub(crate) fn narrow(scope: &mut Scope, text: &str) -> Result<(), Refused> {
    for (name, value) in read(text)? {
        match name.to_ascii_lowercase().as_str() {
            "tool_sets" | "toolsets" | "fmp_tool_sets" => {
                scope.toolsets.push(list(&name, &value)?);
            }
            "dynamic_tool_discovery" | "dynamic" => scope.dynamic |= switch(&name, &value)?,
            _ => {}
        }
    }
    Ok(())
}

fn read(text: &str) -> Result<Map<String, Value>, Refused> {
    let refuse = |why: &str| bad(format!("config: {why}; it is base64 of a JSON object"));
    if text.len() > MAX_TEXT {
        return Err(refuse("the text is too long"));
    }
    // A `+` in a query is a space; both alphabets are in use, with and without padding.
    let text = text.trim().replace(' ', "+");
    // A service without settings for this user sends an empty parameter.
    if text.is_empty() {
        return Ok(Map::new());
    }
    let alphabet = if text.contains(['-', '_']) { &URL_SAFE } else { &STANDARD };
    let bytes = GeneralPurpose::new(alphabet, LENIENT).decode(text);
    let bytes = bytes.map_err(|_| refuse("the text is not base64"))?;
    match serde_json::from_slice(&bytes) {
        Ok(Value::Object(settings)) => Ok(settings),
        Ok(_) | Err(_) => Err(refuse("the content is not a JSON object")),
    }
}

fn list(name: &str, value: &Value) -> Result<Vec<String>, Refused> {
    match value {
        Value::Null => Ok(Vec::new()),
        Value::String(text) => Ok(names(text)),
        Value::Array(items) => {
            let texts: Option<Vec<&str>> = items.iter().map(Value::as_str).collect();
            let texts = texts
                .ok_or_else(|| bad(format!("config: {name} must have only strings as items")))?;
            Ok(names(&texts.join(",")))
        }
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => {
            Err(bad(format!("config: {name} must be a string such as `search,quotes`, or a list")))
        }
    }
}

fn switch(name: &str, value: &Value) -> Result<bool, Refused> {
    match value {
        Value::Null => Ok(false),
        Value::Bool(is_on) => Ok(*is_on),
        // An empty string is a form field that was left blank.
        Value::String(text) if text.trim().is_empty() => Ok(false),
        Value::String(text) => flag(name, text),
        Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            Err(bad(format!("config: {name} must be true or false")))
        }
    }
}

#[cfg(test)]
mod tests {
    use base64::prelude::{BASE64_STANDARD, BASE64_STANDARD_NO_PAD, BASE64_URL_SAFE_NO_PAD};
    use serde_json::json;

    use super::*;

    fn narrowed(settings: &Value) -> Result<(Vec<Vec<String>>, bool), String> {
        let texts = [
            BASE64_STANDARD.encode(settings.to_string()),
            BASE64_STANDARD_NO_PAD.encode(settings.to_string()),
            BASE64_URL_SAFE_NO_PAD.encode(settings.to_string()),
        ];
        let mut read = texts.map(|text| {
            let mut scope = Scope::default();
            narrow(&mut scope, &text).map_err(|Refused(_, message)| message)?;
            Ok((scope.toolsets, scope.dynamic))
        });
        assert!(read.windows(2).all(|pair| pair[0] == pair[1]), "{read:?}");
        std::mem::replace(&mut read[0], Err(String::new()))
    }

    #[test]
    fn settings_are_read_as_texts_lists_and_switches() {
        let sets = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
        for (settings, toolsets, dynamic) in [
            (json!({}), vec![], false),
            (json!({"FMP_ACCESS_TOKEN": "???>>>", "other": [1]}), vec![], false),
            (json!({"TOOL_SETS": "search, company"}), vec![sets(&["company", "search"])], false),
            (json!({"FMP_TOOL_SETS": ["search"]}), vec![sets(&["search"])], false),
            (json!({"TOOL_SETS": ""}), vec![sets(&[])], false),
            (json!({"DYNAMIC_TOOL_DISCOVERY": "true"}), vec![], true),
            (json!({"DYNAMIC_TOOL_DISCOVERY": true}), vec![], true),
            (json!({"DYNAMIC_TOOL_DISCOVERY": "false"}), vec![], false),
            (json!({"DYNAMIC_TOOL_DISCOVERY": ""}), vec![], false),
            (json!({"DYNAMIC_TOOL_DISCOVERY": null}), vec![], false),
        ] {
            assert_eq!(narrowed(&settings), Ok((toolsets, dynamic)), "{settings}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_refused_without_being_repeated() {
        for (settings, said) in [
            (json!({"TOOL_SETS": 7}), "TOOL_SETS must be a string"),
            (json!({"TOOL_SETS": ["a", 7]}), "must have only strings"),
            (json!({"DYNAMIC_TOOL_DISCOVERY": 1}), "must be true or false"),
            (json!(["search"]), "not a JSON object"),
        ] {
            let refused = narrowed(&settings).unwrap_err();
            assert!(refused.contains(said), "{settings}: {refused}");
        }
        let secret = BASE64_STANDARD.encode(r#"{"token": "s3cret""#);
        for text in [secret.as_str(), "s3cret!", "e30x", &"A".repeat(MAX_TEXT + 1)] {
            let Err(Refused(status, message)) = narrow(&mut Scope::default(), text) else {
                panic!("{text} was read")
            };
            assert_eq!(status, 400);
            assert!(message.contains("base64 of a JSON object") && !message.contains("s3cret"));
        }
    }

    #[test]
    fn an_empty_text_has_no_settings() {
        for text in ["", " ", "e30"] {
            let mut scope = Scope::default();
            narrow(&mut scope, text).unwrap_or_else(|refused| panic!("{text:?}: {}", refused.1));
            assert_eq!(scope, Scope::default(), "{text:?}");
        }
    }

    #[test]
    fn a_plus_that_a_query_made_a_space_is_read() {
        // `~` and `?` encode to the two characters in which the alphabets differ.
        let text = BASE64_STANDARD.encode(r#"{"a":"~~~???","TOOL_SETS":"search"}"#);
        assert!(text.contains(['+', '/']), "{text}");
        let mut scope = Scope::default();
        narrow(&mut scope, &text.replace('+', " "))
            .unwrap_or_else(|refused| panic!("{}", refused.1));
        assert_eq!(scope.toolsets, [["search"]]);
    }
}
