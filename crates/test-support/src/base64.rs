//! Decodes header values of the form `=?base64?...?=`, which carry names that are not valid in a header.

/// The decoded value of a header; `None` if its base64 is invalid.
pub(crate) fn plain_header_value(value: &str) -> Option<String> {
    match value.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?=")) {
        Some(encoded) => String::from_utf8(decode(encoded)?).ok(),
        None => Some(value.to_owned()),
    }
}

fn decode(encoded: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let (mut buffer, mut bits) = (0_u32, 0_u32);
    for symbol in encoded.trim_end_matches('=').bytes() {
        let value = match symbol {
            b'A'..=b'Z' => symbol - b'A',
            b'a'..=b'z' => symbol - b'a' + 26,
            b'0'..=b'9' => symbol - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        buffer = (buffer << 6) | u32::from(value);
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push(u8::try_from((buffer >> bits) & 0xff).ok()?);
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::plain_header_value;

    #[test]
    fn both_forms_are_read() {
        for (header, expected) in [
            ("echo", Some("echo")),
            ("=?base64?Z3LDvMOfZQ==?=", Some("grüße")),
            ("=?base64?YWJj?=", Some("abc")),
            ("=?base64?!!?=", None),
        ] {
            assert_eq!(plain_header_value(header).as_deref(), expected, "{header}");
        }
    }
}
