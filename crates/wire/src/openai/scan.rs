//! The members of an object, where they lie.
//!
//! Every delta of every model goes through here, and most of its bytes say nothing that is needed. So the few members that
//! are wanted are found without reading the others. What looks odd is `None`, and then a real parser has the word.

use memchr::memchr2;

/// Shows each member, its key and its value as they are written, until `on` wants no more.
pub(super) fn each<'a>(
    object: &'a [u8],
    mut on: impl FnMut(&'a [u8], &'a [u8]) -> bool,
) -> Option<()> {
    let mut rest = object.trim_ascii_start().strip_prefix(b"{")?.trim_ascii_start();
    if rest.first() == Some(&b'}') {
        return Some(());
    }
    loop {
        let (key, after) = rest.split_at_checked(string_end(rest)?)?;
        let value = after.trim_ascii_start().strip_prefix(b":")?.trim_ascii_start();
        let (value, after) = value.split_at_checked(value_end(value)?)?;
        let key = key.get(1..key.len().checked_sub(1)?)?;
        if !on(key, value) {
            return Some(());
        }
        let after = after.trim_ascii_start();
        match after.first()? {
            b',' => rest = after.get(1..)?.trim_ascii_start(),
            b'}' => return Some(()),
            _ => return None,
        }
    }
}

/// The element of a list that has just one.
pub(super) fn only(list: &[u8]) -> Option<&[u8]> {
    let element = list.strip_prefix(b"[")?.trim_ascii_start();
    let (element, after) = element.split_at_checked(value_end(element)?)?;
    (after.trim_ascii_start() == b"]").then_some(element)
}

fn string_end(text: &[u8]) -> Option<usize> {
    if text.first() != Some(&b'"') {
        return None;
    }
    let mut at = 1;
    loop {
        let found = at + memchr2(b'"', b'\\', text.get(at..)?)?;
        if text.get(found) == Some(&b'"') {
            return Some(found + 1);
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
        each(text.as_bytes(), |key, value| {
            found.push((text_of(key), text_of(value)));
            true
        })?;
        Some(found)
    }

    #[test]
    fn what_breaks_off_has_no_members() {
        let whole = r#"{"a":"\"}\\","b":[{"c":"]"}, 1] , "d":null}"#;
        let found = members(whole).unwrap();
        let values: Vec<&str> = found.iter().map(|(_, value)| value.as_str()).collect();
        assert_eq!(values, [r#""\"}\\""#, r#"[{"c":"]"}, 1]"#, "null"]);
        for at in 0..whole.len() {
            assert_eq!(members(&whole[..at]), None, "{at}");
        }
        assert_eq!(members("{ }"), Some(vec![]));
        for odd in ["", "[]", "{,}", "{a:1}", r#"{"a" 1}"#, r#"{"a":}"#, r#"{"a":1 2}"#] {
            assert_eq!(members(odd), None, "{odd}");
        }
        assert_eq!(only(b"[ {} ]"), Some(&b"{}"[..]));
        assert_eq!((only(b"[]"), only(b"[1,2]")), (None, None));
    }

    proptest! {
        #[test]
        fn members_are_those_that_a_parser_finds(keys in proptest::collection::btree_map(".{0,5}", ".{0,9}", 0..6), is_pretty: bool) {
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
