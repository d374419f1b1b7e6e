//! Removal of a secret from a text, in each form in which a server may quote it: verbatim, percent-encoded and
//! percent-decoded, whole or cut off at the end of the text.

/// Minimum length of a value that is treated as a secret: a shorter one is a word that occurs everywhere.
pub(crate) const SHORTEST: usize = 6;

/// Stands in the place of a secret.
pub(crate) const REDACTED: &str = "***";

/// The text without the secret. A secret that is shorter than [`SHORTEST`] is not looked for.
pub(crate) fn redact(text: &str, secret: &str) -> String {
    forms(secret).iter().fold(text.to_owned(), |text, form| {
        let text = DecodedText::verbatim(&text).without(form).unwrap_or(text);
        DecodedText::percent_decoded(&text).without(form).unwrap_or(text)
    })
}

/// The secret, and its percent-decoded form, in which `+` may stand for a blank.
fn forms(secret: &str) -> Vec<Vec<u8>> {
    let verbatim = secret.as_bytes().to_vec();
    let decoded = percent_decoded(secret);
    let as_plus =
        |form: &Vec<u8>| form.iter().map(|byte| if *byte == b' ' { b'+' } else { *byte }).collect();
    let mut forms = vec![as_plus(&verbatim), as_plus(&decoded), verbatim, decoded];
    forms.retain(|form| form.len() >= SHORTEST);
    forms.sort_unstable_by(|one, other| other.len().cmp(&one.len()).then(one.cmp(other)));
    forms.dedup();
    forms
}

/// The bytes of a percent-encoded text.
pub(crate) fn percent_decoded(text: &str) -> Vec<u8> {
    DecodedText::percent_decoded(text).bytes
}

/// The percent-decoded bytes of a text, with the position of each in the text.
struct DecodedText<'a> {
    text: &'a str,
    bytes: Vec<u8>,
    starts: Vec<usize>,
}

impl<'a> DecodedText<'a> {
    fn verbatim(text: &'a str) -> Self {
        Self { text, bytes: text.as_bytes().to_vec(), starts: (0..text.len()).collect() }
    }

    fn percent_decoded(text: &'a str) -> Self {
        let written = text.as_bytes();
        let (mut bytes, mut starts) = (Vec::new(), Vec::new());
        let mut at = 0;
        while let Some(byte) = written.get(at) {
            let encoded = (*byte == b'%').then(|| hex_byte(written.get(at + 1..at + 3)?)).flatten();
            bytes.push(encoded.unwrap_or(*byte));
            starts.push(at);
            at += if encoded.is_some() { 3 } else { 1 };
        }
        Self { text, bytes, starts }
    }

    /// Removes this secret from the text; `None` if it does not occur.
    fn without(&self, secret: &[u8]) -> Option<String> {
        let mut redacted = String::new();
        let (mut searched, mut copied) = (0, 0);
        while let Some((start, end)) = self.find(secret, searched) {
            let from = self.text.floor_char_boundary(self.start(start)).max(copied);
            redacted.push_str(self.text.get(copied..from)?);
            redacted.push_str(REDACTED);
            (searched, copied) = (end, self.text.ceil_char_boundary(self.start(end)));
        }
        redacted.push_str(self.text.get(copied..)?);
        (searched > 0).then_some(redacted)
    }

    /// The next occurrence: the whole secret, or its beginning at the end of the text.
    fn find(&self, secret: &[u8], from: usize) -> Option<(usize, usize)> {
        let rest = self.bytes.get(from..)?;
        if let Some(at) = rest.windows(secret.len()).position(|window| window == secret) {
            return Some((from + at, from + at + secret.len()));
        }
        let longest = rest.len().min(secret.len());
        let cut = (SHORTEST..=longest).rev().find(|length| {
            secret.get(..*length).is_some_and(|beginning| rest.ends_with(beginning))
        })?;
        Some((self.bytes.len() - cut, self.bytes.len()))
    }

    fn start(&self, byte: usize) -> usize {
        self.starts.get(byte).copied().unwrap_or(self.text.len())
    }
}

fn hex_byte(digits: &[u8]) -> Option<u8> {
    // `from_str_radix` would accept a sign, too.
    let digits = digits.iter().all(u8::is_ascii_hexdigit).then_some(digits)?;
    u8::from_str_radix(str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_found_in_every_form_of_an_address() {
        for (secret, text, expected) in [
            ("s3cret/key", "at /s3cret/key/mcp", "at /***/mcp"),
            ("s3cret/key", "at /s3cret%2fkey/mcp and /s3cret%2Fkey", "at /***/mcp and /***"),
            ("s3cret key", "/s3cret%20key?k=s3cret+key s3cret key", "/***?k=*** ***"),
            ("s3cret%20key", "/s3cret key/ /s3cret%20key/ /s3cret%2520key/", "/***/ /***/ /***/"),
            ("s3crét-é", "%73%33cr%C3%A9t-%c3%a9 s3crét-é", "*** ***"),
            ("s3cret", "%7s3cret %%s3cret 100% s3cret%", "%7*** %%*** 100% ***%"),
            ("s3cret-token", "cut off: %733cret-to", "cut off: ***"),
            ("s3cret-token", "too short a piece: s3cre", "too short a piece: s3cre"),
            ("41bcdef", "the digits of an escape: %41bcdef", "the digits of an escape: %***"),
            ("short", "short", "short"),
            ("%41%42%43", "ABC %41%42%43 é", "ABC *** é"),
            ("s3cret", "", ""),
        ] {
            assert_eq!(redact(text, secret), expected, "{secret} in {text}");
        }
    }
}
