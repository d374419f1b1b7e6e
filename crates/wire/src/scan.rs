//! Finds members of a JSON object without parsing the others.
//!
//! Every delta of every model passes through here, and most of its bytes are not needed. The scanner handles the common
//! form only: for anything unusual it returns `None`, and the caller uses a real parser.

use memchr::memchr2;

use crate::borrowed::Text;

/// How much of the text a callback consumed.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Took {
    /// This many bytes.
    Bytes(usize),
    /// Nothing: the scanner skips the value.
    Unread,
    /// Everything needed has been found; the scan ends.
    Enough,
}

/// Calls `on` for each member of the object at the start of `text`, with the key and the text from its value on.
/// Returns the length of the object.
pub(crate) fn each<'a>(
    text: &'a [u8],
    mut on: impl FnMut(&'a [u8], &'a [u8]) -> Option<Took>,
) -> Option<usize> {
    let mut rest = text.strip_prefix(b"{")?.trim_ascii_start();
    if let Some(after) = rest.strip_prefix(b"}") {
        return Some(text.len() - after.len());
    }
    loop {
        let (key, after) = rest.split_at_checked(string_end(rest)?)?;
        let value = after.trim_ascii_start().strip_prefix(b":")?.trim_ascii_start();
        let key = key.get(1..key.len().checked_sub(1)?)?;
        if key.contains(&b'\\') {
            return None;
        }
        let took = match on(key, value)? {
            Took::Bytes(took) => took,
            Took::Unread => value_end(value)?,
            Took::Enough => return Some(text.len()),
        };
        let after = value.get(took..)?.trim_ascii_start();
        match after.split_first()? {
            (b',', next) => rest = next.trim_ascii_start(),
            (b'}', after) => return Some(text.len() - after.len()),
            _ => return None,
        }
    }
}

/// The value at the start of `text`.
pub(crate) fn value(text: &[u8]) -> Option<&[u8]> {
    text.get(..value_end(text)?)
}

/// Calls `on` for the only element of the list at the start of `text`; `on` returns the element's length. Returns the
/// length of the list.
pub(crate) fn only<'a>(
    text: &'a [u8],
    on: impl FnOnce(&'a [u8]) -> Option<usize>,
) -> Option<usize> {
    let element = text.strip_prefix(b"[")?.trim_ascii_start();
    let after = element.get(on(element)?..)?.trim_ascii_start().strip_prefix(b"]")?;
    Some(text.len() - after.len())
}

/// Parses a string or `null` at the start of `rest`.
pub(crate) fn text<'a>(rest: &'a [u8], place: &mut Text<'a>) -> Option<Took> {
    let value = value(rest)?;
    *place = Text::written(value)?;
    Some(Took::Bytes(value.len()))
}

/// Parses a number at the start of `rest`.
pub(crate) fn number<N: std::str::FromStr>(rest: &[u8], place: &mut Option<N>) -> Option<Took> {
    let value = value(rest)?;
    *place = Some(str::from_utf8(value).ok()?.parse().ok()?);
    Some(Took::Bytes(value.len()))
}

/// Accepts `null`; for any other value the real parser is needed.
pub(crate) fn null(rest: &[u8]) -> Option<Took> {
    rest.starts_with(b"null").then_some(Took::Bytes(4))
}

/// Length up to which strings are scanned byte by byte; for longer ones `memchr` is faster.
const SHORT: usize = 24;

fn string_end(text: &[u8]) -> Option<usize> {
    let (b'"', inner) = text.split_first()? else { return None };
    let mut at = 0;
    for byte in inner.iter().take(SHORT) {
        match byte {
            b'"' => return Some(at + 2),
            b'\\' => break,
            _ => at += 1,
        }
    }
    loop {
        let found = at + memchr2(b'"', b'\\', inner.get(at..)?)?;
        if inner.get(found) == Some(&b'"') {
            return Some(found + 2);
        }
        at = found + 2;
    }
}

fn value_end(text: &[u8]) -> Option<usize> {
    match text.first()? {
        b'"' => string_end(text),
        b'{' | b'[' => {
            let (mut at, mut depth) = (0, 0_usize);
            loop {
                match text.get(at)? {
                    b'"' => {
                        at += string_end(text.get(at..)?)?;
                        continue;
                    }
                    b'{' | b'[' => depth += 1,
                    b'}' | b']' => depth = depth.checked_sub(1)?,
                    _ => {}
                }
                at += 1;
                if depth == 0 {
                    return Some(at);
                }
            }
        }
        _ => {
            let is_end =
                |byte: &u8| matches!(byte, b',' | b'}' | b']') || byte.is_ascii_whitespace();
            text.iter().position(is_end).filter(|end| *end > 0)
        }
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    fn members(text: &str) -> Option<Vec<(String, String)>> {
        let mut found = Vec::new();
        let text_of = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let end = each(text.as_bytes(), |key, rest| {
            found.push((text_of(key), text_of(value(rest)?)));
            Some(Took::Unread)
        })?;
        assert_eq!(end, text.len());
        Some(found)
    }

    #[test]
    fn what_breaks_off_has_no_members() {
        let whole = r#"{"a":"\"}\\","b":[{"c":"]"}, 1] , "d":null}"#;
        let found = members(whole).unwrap();
        let values: Vec<&str> = found.iter().map(|(_, value)| value.as_str()).collect();
        assert_eq!(values, [r#""\"}\\""#, r#"[{"c":"]"}, 1]"#, "null"]);
        for at in 0..whole.len() {
            assert_eq!(members(whole.get(..at).unwrap()), None, "{at}");
        }
        assert_eq!(members("{ }"), Some(vec![]));
        for odd in
            ["", "[]", "{,}", "{a:1}", r#"{"a" 1}"#, r#"{"a":}"#, r#"{"a":1 2}"#, r#"{"\u0061":1}"#]
        {
            assert_eq!(members(odd), None, "{odd}");
        }
        let one = |list: &'static str| only(list.as_bytes(), |text| value(text).map(<[u8]>::len));
        assert_eq!((one("[ {} ] "), one("[]"), one("[1,2]")), (Some(6), None, None));
    }

    proptest! {
        #[test]
        fn members_are_those_that_a_parser_finds(keys in proptest::collection::btree_map("[a-zé {}:,]{0,5}", ".{0,9}", 0..6), is_pretty: bool) {
            let object: Value = keys.iter().map(|(key, text)| (key.clone(), serde_json::json!([text, {"k": text}]))).collect();
            let text = if is_pretty { serde_json::to_string_pretty(&object) } else { serde_json::to_string(&object) }.unwrap();
            let found = members(&text).unwrap();
            let parsed: Value = found.iter().map(|(key, value)| {
                let key: String = serde_json::from_str(&format!("\"{key}\"")).unwrap();
                (key, serde_json::from_str::<Value>(value).unwrap())
            }).collect();
            prop_assert_eq!(parsed, object);
        }
    }
}
