//! The tokens that callers showed to the board, for servers whose tokens are exchanged for them.
//!
//! They are in memory only, and only while a server of the configuration needs them. They are sent to the issuer of the
//! exchange and nowhere else.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use parking_lot::Mutex;
use serde_json::Value;
use switchboard_model::Secret;

/// How many persons have a token here; for a further one, that of the person who was silent for longest is forgotten.
const MAX_PERSONS: usize = 1024;

/// The newest token of each person.
#[derive(Default)]
pub struct SubjectTokens {
    is_wanted: AtomicBool,
    known: Mutex<KnownSubjects>,
}

#[derive(Default)]
struct KnownSubjects {
    by_person: HashMap<Arc<str>, SubjectToken>,
    /// Counts uses, to tell who was silent for longest.
    uses: u64,
    /// Counts changes.
    version: u64,
}

struct SubjectToken {
    token: Secret,
    expires_at_ms: Option<i64>,
    used: u64,
}

impl fmt::Debug for SubjectTokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SubjectTokens").finish_non_exhaustive()
    }
}

impl SubjectTokens {
    /// Says whether a server needs them. Without one, those that are here are forgotten.
    pub fn set_wanted(&self, is_wanted: bool) {
        self.is_wanted.store(is_wanted, Ordering::Relaxed);
        if !is_wanted {
            *self.known.lock() = KnownSubjects::default();
        }
    }

    /// Whether a server needs them.
    pub fn is_wanted(&self) -> bool {
        self.is_wanted.load(Ordering::Relaxed)
    }

    /// Notes the token of a request, which was verified. Does nothing unless a server needs it.
    pub fn note(&self, person: &Arc<str>, token: &str) {
        if !self.is_wanted() {
            return;
        }
        let mut known = self.known.lock();
        known.uses += 1;
        let used = known.uses;
        if let Some(present) = known.by_person.get_mut(person)
            && present.token.expose() == token
        {
            present.used = used;
            return;
        }
        if known.by_person.len() >= MAX_PERSONS
            && !known.by_person.contains_key(person)
            && let Some(silent) = known
                .by_person
                .iter()
                .min_by_key(|(_, it)| it.used)
                .map(|(person, _)| person.clone())
        {
            known.by_person.remove(&silent);
        }
        let expires_at_ms = expiry_of(token);
        let token = SubjectToken { token: Secret::new(token), expires_at_ms, used };
        known.by_person.insert(person.clone(), token);
        known.version += 1;
    }

    /// The newest token of a person, unless it has expired.
    pub(crate) fn of(&self, person: &str, now_ms: i64) -> Option<Secret> {
        let mut known = self.known.lock();
        let found = known.by_person.get(person)?;
        if found.expires_at_ms.is_some_and(|end| end <= now_ms) {
            known.by_person.remove(person);
            return None;
        }
        Some(found.token.clone())
    }

    /// The persons who have a token here, the one who used it last first, and a number that changes with the tokens.
    pub fn persons(&self) -> (u64, Vec<Arc<str>>) {
        let known = self.known.lock();
        let mut persons: Vec<_> =
            known.by_person.iter().map(|(person, it)| (it.used, person.clone())).collect();
        persons.sort_by_key(|(used, _)| std::cmp::Reverse(*used));
        (known.version, persons.into_iter().map(|(_, person)| person).collect())
    }
}

/// When a JSON Web Token expires, as it says itself; `None` if it does not.
fn expiry_of(token: &str) -> Option<i64> {
    let claims = URL_SAFE_NO_PAD.decode(token.split('.').nth(1)?).ok()?;
    let claims: Value = serde_json::from_slice(&claims).ok()?;
    claims.get("exp")?.as_i64()?.checked_mul(1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(exp: i64, mark: &str) -> String {
        let claims = URL_SAFE_NO_PAD.encode(format!(r#"{{"exp":{exp}}}"#));
        format!("h.{claims}.{mark}")
    }

    #[test]
    fn the_newest_token_of_a_person_is_used_until_it_expires() {
        let (subjects, anna): (_, Arc<str>) = (SubjectTokens::default(), "jwt:i|anna".into());
        subjects.note(&anna, &token(10, "a"));
        assert_eq!(subjects.of(&anna, 0), None, "no server needs it");
        subjects.set_wanted(true);
        subjects.note(&anna, &token(10, "a"));
        subjects.note(&anna, &token(20, "b"));
        assert_eq!(subjects.of(&anna, 0).unwrap().expose(), token(20, "b"));
        assert_eq!(subjects.of("jwt:i|ben", 0), None);
        assert_eq!(subjects.of(&anna, 20_000), None);
        assert_eq!(subjects.persons().1, Vec::<Arc<str>>::new(), "an expired one is forgotten");
        subjects.note(&anna, "opaque");
        assert!(subjects.of(&anna, i64::MAX).is_some(), "without a time it has no end");
        subjects.set_wanted(false);
        assert_eq!(subjects.of(&anna, 0), None);
    }

    #[test]
    fn there_is_a_bound_and_the_silent_go_first() {
        let subjects = SubjectTokens::default();
        subjects.set_wanted(true);
        let person = |number: usize| Arc::<str>::from(format!("p{number}"));
        for number in 0..MAX_PERSONS {
            subjects.note(&person(number), "t");
        }
        subjects.note(&person(0), "t");
        subjects.note(&person(MAX_PERSONS), "t");
        assert_eq!(subjects.persons().1.len(), MAX_PERSONS);
        assert!(subjects.of("p0", 0).is_some() && subjects.of("p1", 0).is_none());
        assert_eq!(*subjects.persons().1[0], *format!("p{MAX_PERSONS}"));
        assert!(!format!("{subjects:?}").contains("\"t\""));
    }
}
