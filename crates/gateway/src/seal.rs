//! States of modern servers, bound to who may come back with them.
//!
//! A server sees the gateway's credentials and nobody else's, so it cannot tell whose state it is given. We can: a
//! state leaves us sealed for its principal and its request, and goes back to the server only unbroken.

use serde_json::Value;

use crate::conversation::Job;

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
    pub(crate) fn close(&self, principal: &str, job: &Job, state: &str) -> String {
        format!("{}.{state}", self.mark(principal, job, state).to_hex())
    }

    /// The server's own state, when it was given to this principal for this request.
    pub(crate) fn open<'s>(&self, principal: &str, job: &Job, sealed: &'s str) -> Option<&'s str> {
        let (mark, state) = sealed.split_once('.')?;
        let mark = blake3::Hash::from_hex(mark).ok()?;
        // Hashes are compared in constant time.
        (mark == self.mark(principal, job, state)).then_some(state)
    }

    fn mark(&self, principal: &str, job: &Job, state: &str) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new_keyed(&self.0);
        let (target, method, given) = match job {
            Job::Call { tool, arguments } => {
                (tool.as_str(), "tools/call", arguments.clone().unwrap_or_else(|| "{}".into()))
            }
            Job::Pass { server, method, params, .. } => {
                (server.as_str(), *method, format!("{{{params}}}"))
            }
        };
        for part in [principal, method, target, state] {
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
        let job = call("t", r#"{"a":1,"b":[2]}"#);
        let sealed = seal.close("alice", &job, "the.state");
        assert_eq!(seal.open("alice", &job, &sealed), Some("the.state"));
        let rewritten = call("t", r#"{ "b": [2], "a": 1 }"#);
        assert_eq!(seal.open("alice", &rewritten, &sealed), Some("the.state"));
        assert_eq!(seal.open("bob", &job, &sealed), None);
        assert_eq!(seal.open("alice", &call("u", r#"{"a":1,"b":[2]}"#), &sealed), None);
        assert_eq!(seal.open("alice", &call("t", r#"{"a":1,"b":[3]}"#), &sealed), None);
        assert_eq!(seal.open("alice", &job, &format!("{sealed}x")), None);
        assert_eq!(seal.open("alice", &job, "the.state"), None);
        assert_eq!(Seal::new([8; 32]).open("alice", &job, &sealed), None);
    }
}
