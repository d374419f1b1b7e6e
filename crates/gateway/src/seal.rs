//! States of modern servers, bound to who may come back with them.
//!
//! A server sees the gateway's credentials and nobody else's, so it cannot tell whose state it is given. We can: a
//! state leaves us sealed for its principal, its request and a while, and goes back to the server only unbroken.

use jiff::Timestamp;
use serde_json::Value;

use crate::asker::Job;
use crate::parked::PATIENCE;

/// The seal of this installation; another process of it and a later run know it too.
#[derive(Clone)]
pub(crate) struct Seal([u8; 32]);

impl std::fmt::Debug for Seal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Seal")
    }
}

impl Seal {
    pub(crate) fn new(key: [u8; 32]) -> Self {
        Self(key)
    }

    /// The state as the client gets it.
    pub(crate) fn close(&self, principal: &str, job: &Job, state: &str, now: Timestamp) -> String {
        let dated = format!("{:x}.{state}", now.as_second());
        format!("{}.{dated}", self.mark(principal, job, &dated).to_hex())
    }

    /// The server's own state, when it was given to this principal for this request, not long ago.
    pub(crate) fn open<'s>(
        &self,
        principal: &str,
        job: &Job,
        sealed: &'s str,
        now: Timestamp,
    ) -> Option<&'s str> {
        let (mark, dated) = sealed.split_once('.')?;
        let mark = blake3::Hash::from_hex(mark).ok()?;
        // Hashes are compared in constant time.
        if mark != self.mark(principal, job, dated) {
            return None;
        }
        let (since, state) = dated.split_once('.')?;
        let age = now.as_second().checked_sub(i64::from_str_radix(since, 16).ok()?)?;
        // A clock that was set back makes no state last longer than it should.
        u64::try_from(age).is_ok_and(|age| age < PATIENCE.as_secs()).then_some(state)
    }

    fn mark(&self, principal: &str, job: &Job, dated: &str) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new_keyed(&self.0);
        let (target, method, given) = match job {
            Job::Call { tool, arguments } => {
                (tool.as_str(), "tools/call", arguments.clone().unwrap_or_else(|| "{}".into()))
            }
            Job::Pass { server, method, params, .. } => {
                (server.as_str(), *method, format!("{{{params}}}"))
            }
        };
        for part in [principal, method, target, dated] {
            take(&mut hasher, part);
        }
        // Clients may write the same arguments in another way the second time.
        take_value(&mut hasher, &serde_json::from_str(&given).unwrap_or_default());
        hasher.finalize()
    }
}

/// Takes a text with its length, so that no two lists of parts look the same.
fn take(hasher: &mut blake3::Hasher, part: &str) {
    hasher.update(&part.len().to_le_bytes()).update(part.as_bytes());
}

fn take_value(hasher: &mut blake3::Hasher, value: &Value) {
    match value {
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_by_key(|(key, _)| *key);
            hasher.update(b"{").update(&members.len().to_le_bytes());
            for (key, value) in members {
                take(hasher, key);
                take_value(hasher, value);
            }
        }
        Value::Array(items) => {
            hasher.update(b"[").update(&items.len().to_le_bytes());
            for item in items {
                take_value(hasher, item);
            }
        }
        plain => take(hasher, &plain.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use switchboard_model::{CanonicalName, ServerName};

    use super::*;

    fn call(tool: &str, arguments: &str) -> Job {
        let tool = CanonicalName::new(&ServerName::new("s"), tool);
        Job::Call { tool, arguments: Some(arguments.into()) }
    }

    #[test]
    fn a_state_goes_back_only_with_whom_and_what_it_was_given_for() {
        let seal = Seal::new([7; 32]);
        let now = Timestamp::from_second(1_800_000_000).unwrap();
        let job = call("t", r#"{"a":1,"b":[2]}"#);
        let sealed = seal.close("alice", &job, "the.state", now);
        let open = |who: &str, job: &Job, sealed: &str| {
            seal.open(who, job, sealed, now).map(str::to_owned)
        };
        let opened = Some("the.state".to_owned());
        assert_eq!(open("alice", &job, &sealed), opened);
        let rewritten = call("t", r#"{ "b": [2], "a": 1 }"#);
        assert_eq!(open("alice", &rewritten, &sealed), opened);
        assert_eq!(open("bob", &job, &sealed), None);
        assert_eq!(open("alice", &call("u", r#"{"a":1,"b":[2]}"#), &sealed), None);
        assert_eq!(open("alice", &call("t", r#"{"a":1,"b":[3]}"#), &sealed), None);
        let prompt = Job::Pass {
            server: ServerName::new("s"),
            method: "prompts/get",
            name: Some("t".into()),
            params: r#""a":1,"b":[2]"#.into(),
        };
        assert_eq!(open("alice", &prompt, &sealed), None);
        assert_eq!(open("alice", &job, &format!("{sealed}x")), None);
        assert_eq!(open("alice", &job, "the.state"), None);
        assert_eq!(Seal::new([8; 32]).open("alice", &job, &sealed, now), None);
    }

    #[test]
    fn a_state_expires_and_cannot_be_dated_anew() {
        let seal = Seal::new([7; 32]);
        let at = |second: i64| Timestamp::from_second(1_800_000_000 + second).unwrap();
        let job = call("t", "{}");
        let sealed = seal.close("alice", &job, "state", at(0));
        for (second, is_good) in
            [(0, true), (599, true), (600, false), (100_000, false), (-5, false)]
        {
            let opened = seal.open("alice", &job, &sealed, at(second));
            assert_eq!(opened, is_good.then_some("state"), "after {second} s");
        }
        let later = sealed.replace(
            &format!(".{:x}.", at(0).as_second()),
            &format!(".{:x}.", at(500).as_second()),
        );
        assert_ne!(later, sealed);
        assert_eq!(seal.open("alice", &job, &later, at(501)), None);
    }
}
