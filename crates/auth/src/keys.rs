//! API keys: their creation, and the snapshot that requests are checked against.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use switchboard_model::{Access, Identity, LiveAccess, Secret};
use switchboard_store::{Store, StoredKey};

use crate::{AuthError, KeyAccess, Principal, Refusal, Role};

/// The prefix of every key, so that people and secret scanners recognise it.
pub const KEY_PREFIX: &str = "sbk_";

const HASH_SECRET: &str = "api-keys";
const LONGEST_NAME: usize = 64;
const LONGEST_USER: usize = 128;
/// The minimum time between two writes of a key's last use.
const NOTE_AFTER_MS: i64 = 60_000;

/// A key that was just created. It cannot be shown again later.
#[derive(Debug)]
pub struct NewKey {
    /// The key that the client sends.
    pub key: Secret,
    /// The stored record of the key, without the key.
    pub stored: StoredKey,
}

/// The properties of a key that is to be created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyDraft {
    /// The name, which no other key has that is not revoked.
    pub name: String,
    /// The role.
    pub role: Role,
    /// When it expires.
    pub expires_at_ms: Option<i64>,
    /// The person who uses it, so that the keys of one person are known to be theirs.
    pub user: Option<String>,
    /// What it grants.
    pub access: KeyAccess,
}

impl KeyDraft {
    /// A key that grants everything, does not expire and belongs to no named person.
    pub fn new(name: &str, role: Role) -> Self {
        let access = KeyAccess::default();
        Self { name: name.to_owned(), role, expires_at_ms: None, user: None, access }
    }
}

impl NewKey {
    /// Creates a random key and stores its hash.
    pub async fn add(store: &Store, draft: KeyDraft) -> Result<Self, AuthError> {
        check_name(&draft.name)?;
        draft.user.as_deref().map_or(Ok(()), check_user)?;
        check_access(&draft.access)?;
        let hasher = KeyHasher::new(store).await?;
        let key = format!("{KEY_PREFIX}{}", URL_SAFE_NO_PAD.encode(random::<32>()?));
        let stored = StoredKey {
            id: format!("{:016x}", u64::from_be_bytes(random::<8>()?)),
            name: draft.name,
            role: draft.role.as_str().to_owned(),
            created_at_ms: now_ms(),
            last_used_at_ms: None,
            revoked_at_ms: None,
            expires_at_ms: draft.expires_at_ms,
            user: draft.user,
            access: draft.access.to_stored(),
        };
        store.add_key(&stored, hasher.hash(&key).as_bytes()).await?;
        Ok(Self { key: Secret::new(key), stored })
    }
}

fn check_name(name: &str) -> Result<(), AuthError> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let reason = if name.is_empty() || name.len() > LONGEST_NAME {
        "the name of a key has 1 to 64 characters"
    } else if name.starts_with(KEY_PREFIX) {
        "the name of a key does not look like a key"
    } else if name.starts_with('-') || !name.chars().all(is_plain) {
        "the name of a key has only letters, digits, `.`, `_` and `-`"
    } else {
        return Ok(());
    };
    Err(AuthError::BadName { reason })
}

/// Checks the label of a person. It is sent in headers and shown in lists, so it is plain text without blanks.
fn check_user(user: &str) -> Result<(), AuthError> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '@' | '+');
    let reason = if user.is_empty() || user.len() > LONGEST_USER {
        "the user of a key has 1 to 128 characters"
    } else if user.starts_with(KEY_PREFIX) {
        "the user of a key does not look like a key"
    } else if user.starts_with('-') || !user.chars().all(is_plain) {
        "the user of a key has only letters, digits, `.`, `_`, `-`, `@` and `+`"
    } else {
        return Ok(());
    };
    Err(AuthError::BadUser { reason })
}

/// A change of a key. What is `None` stays as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeyEdit {
    pub role: Option<Role>,
    /// The new label; `Some(None)` removes it.
    pub user: Option<Option<String>>,
    /// The new end; `Some(None)` lets the key last until it is revoked.
    pub expires_at_ms: Option<Option<i64>>,
    pub access: Option<KeyAccess>,
}

impl KeyEdit {
    /// Changes the key with this id or name that is not revoked, and returns it; `None` if there is none.
    pub async fn apply(
        self,
        store: &Store,
        id_or_name: &str,
    ) -> Result<Option<StoredKey>, AuthError> {
        if let Some(Some(user)) = &self.user {
            check_user(user)?;
        }
        self.access.as_ref().map_or(Ok(()), check_access)?;
        let changed = store.edit_key(id_or_name, |key| {
            if let Some(role) = self.role {
                role.as_str().clone_into(&mut key.role);
            }
            if let Some(user) = &self.user {
                key.user.clone_from(user);
            }
            if let Some(end) = self.expires_at_ms {
                key.expires_at_ms = end;
            }
            if let Some(access) = &self.access {
                key.access = access.to_stored();
            }
        });
        Ok(changed.await?)
    }
}

fn check_access(access: &KeyAccess) -> Result<(), AuthError> {
    access.access().map(drop).map_err(|reason| AuthError::BadAccess { reason })
}

fn random<const N: usize>() -> Result<[u8; N], AuthError> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes)
        .map_err(|source| AuthError::NoRandomness { source: source.into() })?;
    Ok(bytes)
}

pub(crate) fn now_ms() -> i64 {
    Timestamp::now().as_millisecond()
}

/// Hashes keys with the secret of this installation. A key has 256 random bits, so one fast hash is enough.
pub(crate) struct KeyHasher([u8; 32]);

impl KeyHasher {
    pub(crate) async fn new(store: &Store) -> Result<Self, AuthError> {
        Ok(Self(store.installation_secret(HASH_SECRET).await?))
    }

    fn hash(&self, key: &str) -> blake3::Hash {
        blake3::keyed_hash(&self.0, key.as_bytes())
    }
}

/// A snapshot of the keys that are not revoked.
#[derive(Default)]
pub(crate) struct KnownKeys {
    /// By hash; `blake3::Hash` compares in constant time.
    by_hash: HashMap<blake3::Hash, KnownKey>,
    /// Whether any key was ever created.
    any_ever: bool,
    /// Whether the access of a key differs from the snapshot before.
    pub(crate) has_changed: bool,
}

struct KnownKey {
    principal: Principal,
    expires_at_ms: Option<i64>,
    used: Arc<Use>,
}

/// When a key was last used. Shared by successive snapshots.
struct Use {
    id: String,
    noted_ms: AtomicI64,
    last_ms: AtomicI64,
}

impl KnownKeys {
    /// Reads the keys, and keeps what the previous snapshot knows of their use.
    pub(crate) async fn read(store: &Store, before: &Self) -> Result<Self, AuthError> {
        let hashes = store.key_hashes().await?;
        // The store is asked only if the answer is not known yet.
        let any_ever = before.any_ever || !hashes.is_empty() || !store.keys().await?.is_empty();
        let mut by_hash = HashMap::with_capacity(hashes.len());
        let mut interned = Interned::default();
        let mut has_changed = false;
        for (stored, hash) in hashes {
            let hash = blake3::Hash::from_bytes(hash);
            let Some(role) = Role::from_word(&stored.role) else {
                tracing::warn!(key = %stored.name, role = %stored.role, "a key has a role that this version does not know; it is not accepted");
                continue;
            };
            let access = interned.access_of(&stored, now_ms());
            let (used, live) = match before.by_hash.get(&hash) {
                Some(known) => {
                    let live = known.principal.access.clone();
                    has_changed |= live.set(access);
                    (Arc::clone(&known.used), live)
                }
                None => (Arc::new(Use::new(&stored)), LiveAccess::new(access)),
            };
            let name: Arc<str> = stored.name.into();
            let identity = Identity::of_key(&stored.id, &name, stored.user.as_deref());
            let principal = Principal {
                id: format!("key:{}", stored.id).into(),
                role,
                name: Some(name),
                identity: Arc::new(identity),
                access: live,
            };
            by_hash.insert(hash, KnownKey { principal, expires_at_ms: stored.expires_at_ms, used });
        }
        // A revoked key grants nothing to what still runs with it.
        for (_, known) in before.by_hash.iter().filter(|(hash, _)| !by_hash.contains_key(*hash)) {
            has_changed |= known.principal.access.set(Access::none());
        }
        Ok(Self { by_hash, any_ever, has_changed })
    }

    /// The principal of each key, with its access.
    pub(crate) fn accesses(&self) -> impl Iterator<Item = (&Arc<str>, &LiveAccess)> {
        self.by_hash.values().map(|known| (&known.principal.id, &known.principal.access))
    }

    pub(crate) fn any_ever(&self) -> bool {
        self.any_ever
    }

    /// The principal of a key.
    pub(crate) fn admit(&self, key: &str, hasher: &KeyHasher) -> Result<Principal, Refusal> {
        let known = self
            .by_hash
            .get(&hasher.hash(key))
            .ok_or_else(|| Refusal::bad("this key is not known here; it may have been revoked"))?;
        let now = now_ms();
        if known.expires_at_ms.is_some_and(|end| end <= now) {
            return Err(Refusal::bad("this key has expired"));
        }
        known.used.last_ms.fetch_max(now, Ordering::Relaxed);
        Ok(known.principal.clone())
    }

    /// Whether a person has a key that is valid now.
    pub(crate) fn has_person(&self, person: &str) -> bool {
        let now = now_ms();
        self.by_hash.values().any(|known| {
            *known.principal.identity.person == *person
                && known.expires_at_ms.is_none_or(|end| end > now)
        })
    }

    /// Stores which keys were used since the last time.
    pub(crate) async fn note_uses(&self, store: &Store) -> Result<(), AuthError> {
        for used in self.by_hash.values().map(|known| &known.used) {
            let last = used.last_ms.load(Ordering::Relaxed);
            if last.saturating_sub(used.noted_ms.load(Ordering::Relaxed)) > NOTE_AFTER_MS {
                store.touch_key(&used.id, last).await?;
                used.noted_ms.store(last, Ordering::Relaxed);
            }
        }
        Ok(())
    }
}

/// Shares equal rules between keys, so that they share their views too.
#[derive(Default)]
struct Interned(HashMap<Option<String>, Access>);

impl Interned {
    fn access_of(&mut self, key: &StoredKey, now_ms: i64) -> Access {
        if key.expires_at_ms.is_some_and(|end| end <= now_ms) {
            return Access::none();
        }
        let read = || {
            let read = KeyAccess::from_stored(key.access.as_deref());
            read.and_then(|access| access.access()).unwrap_or_else(|reason| {
                tracing::warn!(key = %key.name, reason, "the access of a key cannot be read; it grants nothing");
                Access::none()
            })
        };
        self.0.entry(key.access.clone()).or_insert_with(read).clone()
    }
}

impl Use {
    fn new(stored: &StoredKey) -> Self {
        let noted = stored.last_used_at_ms.unwrap_or(0);
        Self {
            id: stored.id.clone(),
            noted_ms: AtomicI64::new(noted),
            last_ms: AtomicI64::new(noted),
        }
    }
}
