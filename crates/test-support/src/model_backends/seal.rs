//! The opaque texts that backends give out and want back unchanged: a keyed hash over what they belong to.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use blake3::Hasher;
use serde_json::Value;

/// Every fake has the same key: what one gave out, the next one takes.
const KEY: [u8; 32] = *b"the fake backends seal with this";

/// Bytes of a hash that are given out.
pub(crate) const SEAL: usize = 18;

pub(crate) fn hasher(purpose: &str) -> Hasher {
    let mut hasher = Hasher::new_keyed(&KEY);
    feed(&mut hasher, purpose.as_bytes());
    hasher
}

/// Adds something with its length, so that the next thing cannot be confused with its end.
pub(crate) fn feed(hasher: &mut Hasher, bytes: &[u8]) {
    hasher.update(&u64::try_from(bytes.len()).unwrap_or(u64::MAX).to_le_bytes());
    hasher.update(bytes);
}

pub(crate) fn digest(hasher: &Hasher) -> Vec<u8> {
    hasher.finalize().as_bytes().iter().copied().take(SEAL).collect()
}

pub(crate) fn seal(purpose: &str, fields: &[&str]) -> Vec<u8> {
    let mut hasher = hasher(purpose);
    for field in fields {
        feed(&mut hasher, field.as_bytes());
    }
    digest(&hasher)
}

pub(crate) fn encode(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// Reads both alphabets, with or without padding, as the providers do.
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    let plain: String = text
        .trim_end_matches('=')
        .chars()
        .map(|letter| match letter {
            '-' => '+',
            '_' => '/',
            other => other,
        })
        .collect();
    let padding = "=".repeat((4 - plain.len() % 4) % 4);
    STANDARD.decode(plain + &padding).ok()
}

/// The value as text, with the members of objects in order of their names.
pub(crate) fn canonical(value: &Value) -> String {
    match value {
        Value::Object(members) => {
            let mut names: Vec<&String> = members.keys().collect();
            names.sort();
            let write = |name: &&String| {
                format!("{}:{}", Value::String((*name).clone()), canonical(&members[*name]))
            };
            format!("{{{}}}", names.iter().map(write).collect::<Vec<_>>().join(","))
        }
        Value::Array(values) => {
            format!("[{}]", values.iter().map(canonical).collect::<Vec<_>>().join(","))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.to_string(),
    }
}
