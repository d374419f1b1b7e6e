//! The keys that encrypt the sign-ins in the store.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};

/// An encryption key of 256 bits. Prints as `***`.
#[derive(Clone, PartialEq, Eq)]
pub struct StoreKey([u8; 32]);

/// The keys of a board.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StoreKeys {
    /// Encrypts what is written.
    pub current: Option<StoreKey>,
    /// Earlier keys, which only decrypt what was written with them.
    pub previous: Vec<StoreKey>,
}

impl StoreKey {
    /// Parses 32 bytes in base64 or in 64 hexadecimal digits. Blanks around them are ignored.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let decoded = hexadecimal(text).or_else(|| {
            let engines = [STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD];
            engines.into_iter().find_map(|engine| engine.decode(text).ok())
        });
        decoded?.try_into().ok().map(Self)
    }

    /// The key itself, for the code that encrypts with it.
    pub fn expose(&self) -> &[u8; 32] {
        &self.0
    }
}

fn hexadecimal(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> =
        text.chars().map(|c| c.to_digit(16).and_then(|digit| u8::try_from(digit).ok())).collect();
    let digits = digits.filter(|digits| digits.len() == 64)?;
    Some(digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}

impl fmt::Debug for StoreKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_32_bytes_in_base64_or_hexadecimal() {
        let base64 = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHv8=";
        let hexadecimal = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1eff";
        let key = StoreKey::parse(base64).unwrap();
        assert_eq!((key.expose()[1], key.expose()[31]), (1, 255));
        for same in [hexadecimal, &hexadecimal.to_uppercase(), &format!(" {base64}\n")] {
            assert_eq!(StoreKey::parse(same).as_ref(), Some(&key), "{same}");
        }
        assert_eq!(StoreKey::parse(&base64.replace('=', "").replace('/', "_")), Some(key));
        let short = hexadecimal.trim_start_matches("00");
        for bad in ["", "secret", "AAEC", short, &format!("{hexadecimal}00"), "é"] {
            assert_eq!(StoreKey::parse(bad), None, "{bad}");
        }
        assert_eq!(format!("{:?}", StoreKey::parse(base64)), "Some(***)");
    }
}
