//! Random identifiers and the PKCE pair.

use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use switchboard_model::{ConnectError, ConnectErrorKind};

/// A text of this many random bytes that fits into a URL.
pub(crate) fn random_text<const BYTES: usize>() -> Result<String, ConnectError> {
    let mut bytes = [0; BYTES];
    getrandom::fill(&mut bytes).map_err(|_| {
        ConnectError::new(ConnectErrorKind::Process, "the system provides no random bytes")
    })?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

/// An identifier of 128 random bits.
pub fn random_id() -> Result<String, ConnectError> {
    random_text::<16>()
}

/// The `code_challenge` of a verifier, with S256 (RFC 7636).
pub(crate) fn challenge_of(verifier: &str) -> String {
    URL_SAFE_NO_PAD.encode(digest(&SHA256, verifier.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_challenge_is_that_of_the_standard() {
        // The example of RFC 7636, appendix B.
        let verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
        assert_eq!(challenge_of(verifier), "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
        assert_ne!(random_text::<32>().unwrap(), random_text::<32>().unwrap());
        assert_eq!(random_text::<16>().unwrap().len(), 22);
    }
}
