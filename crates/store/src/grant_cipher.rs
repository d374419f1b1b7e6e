//! Encryption of the contents of grants: AES-256-GCM with a random nonce for each write.
//!
//! The associated data is the place of the row (purpose, owner, issuer), so that the content of one row does not decrypt
//! in another. The id of the key is in the row: with it a missing key is told from a changed row.

use std::fmt;

use aws_lc_rs::aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use switchboard_model::{GrantId, Secret, StoreKey, StoreKeys};

/// Separates the ids of keys from every other use of the hash.
const KEY_ID_CONTEXT: &str = "switchboard 2026-11-18 id of a store key";
/// The first byte of an encrypted content.
const FORMAT: u8 = 1;

/// The ciphers of the configured keys.
#[derive(Default)]
pub(crate) struct GrantCiphers {
    current: Option<GrantCipher>,
    previous: Vec<GrantCipher>,
}

struct GrantCipher {
    id: String,
    key: RandomizedNonceKey,
}

/// Content as it is stored.
pub(crate) struct SealedContent {
    /// `None` for clear text.
    pub(crate) key_id: Option<String>,
    pub(crate) bytes: Vec<u8>,
}

/// Why a content cannot be decrypted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GrantLock {
    /// The key with this id is not configured.
    UnknownKey(String),
    /// The key is there, but the content was changed or belongs to another row.
    Changed,
}

impl GrantLock {
    pub(crate) fn describe(&self) -> String {
        match self {
            Self::UnknownKey(id) => {
                format!("is encrypted with a key that is not configured (its id is {id})")
            }
            Self::Changed => {
                "was changed outside of this program, or belongs to another owner".into()
            }
        }
    }
}

impl fmt::Debug for GrantCiphers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ids = self.all().map(|cipher| cipher.id.as_str());
        f.debug_list().entries(ids).finish()
    }
}

impl GrantCiphers {
    pub(crate) fn new(keys: &StoreKeys) -> Self {
        Self {
            current: keys.current.as_ref().and_then(GrantCipher::new),
            previous: keys.previous.iter().filter_map(GrantCipher::new).collect(),
        }
    }

    /// The id of the key that encrypts new contents; `None` if they are kept in clear text.
    pub(crate) fn current_id(&self) -> Option<&str> {
        self.current.as_ref().map(|cipher| cipher.id.as_str())
    }

    /// Whether contents of this key can be decrypted.
    pub(crate) fn knows(&self, key_id: &str) -> bool {
        self.all().any(|cipher| cipher.id == key_id)
    }

    /// Encrypts with the current key. `None` only if the encryption itself fails.
    pub(crate) fn seal(
        &self,
        id: &GrantId,
        issuer: &str,
        content: &Secret,
    ) -> Option<SealedContent> {
        let mut bytes = content.expose().as_bytes().to_vec();
        let Some(cipher) = &self.current else {
            return Some(SealedContent { key_id: None, bytes });
        };
        let nonce = cipher.key.seal_in_place_append_tag(aad(id, issuer), &mut bytes).ok()?;
        let mut sealed = Vec::with_capacity(1 + NONCE_LEN + bytes.len());
        sealed.push(FORMAT);
        sealed.extend_from_slice(nonce.as_ref());
        sealed.extend_from_slice(&bytes);
        Some(SealedContent { key_id: Some(cipher.id.clone()), bytes: sealed })
    }

    pub(crate) fn open(
        &self,
        id: &GrantId,
        issuer: &str,
        stored: SealedContent,
    ) -> Result<Secret, GrantLock> {
        let Some(key_id) = stored.key_id else {
            let text = String::from_utf8(stored.bytes).map_err(|_| GrantLock::Changed)?;
            return Ok(Secret::new(text));
        };
        let cipher = self.all().find(|cipher| cipher.id == key_id);
        let cipher = cipher.ok_or(GrantLock::UnknownKey(key_id))?;
        let opened = cipher.open(id, issuer, &stored.bytes).ok_or(GrantLock::Changed)?;
        String::from_utf8(opened).map(Secret::new).map_err(|_| GrantLock::Changed)
    }

    fn all(&self) -> impl Iterator<Item = &GrantCipher> {
        self.current.iter().chain(&self.previous)
    }
}

impl GrantCipher {
    fn new(key: &StoreKey) -> Option<Self> {
        let derived = blake3::derive_key(KEY_ID_CONTEXT, key.expose());
        let first: [u8; 8] = *derived.first_chunk()?;
        let id = format!("{:016x}", u64::from_be_bytes(first));
        let key = RandomizedNonceKey::new(&AES_256_GCM, key.expose()).ok()?;
        Some(Self { id, key })
    }

    fn open(&self, id: &GrantId, issuer: &str, stored: &[u8]) -> Option<Vec<u8>> {
        let (&FORMAT, rest) = stored.split_first()? else { return None };
        let (nonce, sealed) = rest.split_at_checked(NONCE_LEN)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let mut sealed = sealed.to_vec();
        let opened = self.key.open_in_place(nonce, aad(id, issuer), &mut sealed).ok()?;
        Some(opened.to_vec())
    }
}

/// Each part with its length, so that no two rows have the same associated data.
fn aad(id: &GrantId, issuer: &str) -> Aad<Vec<u8>> {
    let (purpose, owner) = (id.purpose.to_string(), id.owner.to_string());
    let mut data = vec![FORMAT];
    for part in [purpose.as_str(), &owner, issuer] {
        data.extend_from_slice(&(part.len() as u64).to_be_bytes());
        data.extend_from_slice(part.as_bytes());
    }
    Aad::from(data)
}

#[cfg(test)]
mod tests {
    use switchboard_model::{GrantOwner, ServerName};

    use super::*;

    fn key(byte: u8) -> StoreKey {
        StoreKey::parse(&format!("{byte:02x}").repeat(32)).unwrap()
    }

    fn ciphers(current: Option<u8>, previous: &[u8]) -> GrantCiphers {
        let previous = previous.iter().map(|byte| key(*byte)).collect();
        GrantCiphers::new(&StoreKeys { current: current.map(key), previous })
    }

    fn row(owner: &str) -> GrantId {
        GrantId::of_server(&ServerName::new("s")).with_owner(GrantOwner::from(owner))
    }

    #[test]
    fn content_decrypts_in_its_own_row_with_its_own_key() {
        let content = Secret::new("s3cret-token");
        let seal = || ciphers(Some(1), &[]).seal(&row("alice"), "https://i", &content).unwrap();
        let sealed = seal();
        assert!(!String::from_utf8_lossy(&sealed.bytes).contains("s3cret"));
        assert_ne!(sealed.bytes, seal().bytes, "the nonce is random");
        let open =
            |ciphers: &GrantCiphers, id: &GrantId, issuer: &str| ciphers.open(id, issuer, seal());
        for able in [ciphers(Some(1), &[]), ciphers(Some(2), &[3, 1]), ciphers(None, &[1])] {
            assert_eq!(open(&able, &row("alice"), "https://i"), Ok(content.clone()), "{able:?}");
        }
        let able = ciphers(Some(1), &[]);
        for (owner, issuer) in
            [("bob", "https://i"), ("alice", "https://j"), ("board", "https://i")]
        {
            assert_eq!(open(&able, &row(owner), issuer), Err(GrantLock::Changed), "{owner}");
        }
        let unable = open(&ciphers(Some(2), &[]), &row("alice"), "https://i");
        assert_eq!(unable, Err(GrantLock::UnknownKey(sealed.key_id.clone().unwrap())));
        let mut changed = seal();
        changed.bytes[20] ^= 1;
        assert_eq!(able.open(&row("alice"), "https://i", changed), Err(GrantLock::Changed));
        let short = SealedContent { bytes: vec![FORMAT; 5], ..seal() };
        assert_eq!(able.open(&row("alice"), "https://i", short), Err(GrantLock::Changed));
    }

    #[test]
    fn without_a_key_content_is_clear_text() {
        let none = ciphers(None, &[]);
        let kept = none.seal(&row("board"), "https://i", &Secret::new("text")).unwrap();
        assert_eq!((kept.key_id.as_deref(), kept.bytes.as_slice()), (None, &b"text"[..]));
        assert_eq!(ciphers(Some(1), &[]).open(&row("board"), "i", kept), Ok(Secret::new("text")));
    }
}
