//! The opaque values that backends issue and expect back unchanged: a keyed hash over their context.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use blake3::Hasher;
use serde_json::Value;

/// The same key for all fakes, so that one accepts the values of another.
const KEY: [u8; 32] = *b"the fake backends seal with this";

/// Number of hash bytes in a value.
pub(crate) const SEAL: usize = 18;

pub(crate) fn hasher(purpose: &str) -> Hasher {
    let mut hasher = Hasher::new_keyed(&KEY);
    feed(&mut hasher, purpose.as_bytes());
    hasher
}

/// Hashes bytes with their length, so that adjacent values cannot be confused.
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

/// Decodes both base64 alphabets, with or without padding, as the providers do.
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

/// The JSON text of a value with sorted object members.
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
