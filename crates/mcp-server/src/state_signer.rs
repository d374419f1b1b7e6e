//! Signs `requestState` and task ids of stateless-era servers, so that only the principal that received them can use them.
//!
//! A server sees only the gateway's credentials, so it cannot tell whose state it gets. The gateway signs a state for its
//! principal, its request and a limited time, and passes it to the server only if the signature is valid. A task id is
//! signed for its principal and contains the tool and its server; its lifetime is up to the server.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use serde_json::{Value, json};
use switchboard_model::{CanonicalName, ServerName};

use crate::pending_input::PATIENCE;
use crate::request_context::{Task, UpstreamOperation};

/// The signing key of this installation, shared by its processes and kept over restarts.
#[derive(Clone)]
pub(crate) struct StateSigner([u8; 32]);

impl std::fmt::Debug for StateSigner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("StateSigner")
    }
}

impl StateSigner {
    pub(crate) fn new(key: [u8; 32]) -> Self {
        Self(key)
    }

    /// The signed state for the client.
    pub(crate) fn close(
        &self,
        principal: &str,
        operation: &UpstreamOperation,
        state: &str,
        now: Timestamp,
    ) -> String {
        let dated = format!("{:x}.{state}", now.as_second());
        format!("{}.{dated}", self.mark(principal, operation, &dated).to_hex())
    }

    /// The server's own state, if it was signed for this principal and this request and has not expired.
    pub(crate) fn open<'s>(
        &self,
        principal: &str,
        operation: &UpstreamOperation,
        sealed: &'s str,
        now: Timestamp,
    ) -> Option<&'s str> {
        let (mark, dated) = sealed.split_once('.')?;
        let mark = blake3::Hash::from_hex(mark).ok()?;
        // `blake3::Hash` compares in constant time.
        if mark != self.mark(principal, operation, dated) {
            return None;
        }
        let (since, state) = dated.split_once('.')?;
        let age = now.as_second().checked_sub(i64::from_str_radix(since, 16).ok()?)?;
        // A negative age (the clock was set back) is invalid.
        u64::try_from(age).is_ok_and(|age| age < PATIENCE.as_secs()).then_some(state)
    }

    /// The signed task id for the client.
    pub(crate) fn close_task(&self, principal: &str, task: &Task) -> String {
        let Task { tool, id } = task;
        let written = json!([tool.server().as_str(), tool.tool(), id]).to_string();
        // Encoded, because clients repeat the id in a header.
        let written = URL_SAFE_NO_PAD.encode(written);
        format!("{}.{written}", self.task_mark(principal, &written).to_hex())
    }

    /// The task of a signed id, if it was signed for this principal.
    pub(crate) fn open_task(&self, principal: &str, sealed: &str) -> Option<Task> {
        let (mark, written) = sealed.split_once('.')?;
        if blake3::Hash::from_hex(mark).ok()? != self.task_mark(principal, written) {
            return None;
        }
        let written = URL_SAFE_NO_PAD.decode(written).ok()?;
        let (server, tool, id): (String, String, String) = serde_json::from_slice(&written).ok()?;
        Some(Task { tool: CanonicalName::new(&ServerName::new(server), &tool), id })
    }

    /// A keyed hash that names a task. It cannot be derived from the task's id without the key.
    pub(crate) fn secret_of(&self, principal: &str, task: &Task) -> String {
        self.marked(&["result of a task", principal, task.tool.as_str(), &task.id])
            .to_hex()
            .to_string()
    }

    fn task_mark(&self, principal: &str, written: &str) -> blake3::Hash {
        self.marked(&["task", principal, written])
    }

    fn marked(&self, parts: &[&str]) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new_keyed(&self.0);
        for part in parts {
            take(&mut hasher, part);
        }
        hasher.finalize()
    }

    fn mark(&self, principal: &str, operation: &UpstreamOperation, dated: &str) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new_keyed(&self.0);
        let (target, method, given) = match operation {
            UpstreamOperation::Call { tool, arguments, .. } => {
                (tool.as_str(), "tools/call", arguments.clone().unwrap_or_else(|| "{}".into()))
            }
            UpstreamOperation::Pass { server, method, params, .. } => {
                (server.as_str(), *method, format!("{{{params}}}"))
            }
            UpstreamOperation::Task { method, task } => {
                (task.tool.as_str(), *method, json!(task.id).to_string())
            }
        };
        for part in [principal, method, target, dated] {
            take(&mut hasher, part);
        }
        // Hashed as a value: clients may format the same arguments differently the second time.
        take_value(&mut hasher, &serde_json::from_str(&given).unwrap_or_default());
        hasher.finalize()
    }
}

/// Hashes a text with its length, so that different lists of parts have different hashes.
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
    use super::*;

    fn call(tool: &str, arguments: &str) -> UpstreamOperation {
        let tool = CanonicalName::new(&ServerName::new("s"), tool);
        UpstreamOperation::Call {
            requested: tool.as_str().into(),
            tool,
            arguments: Some(arguments.into()),
            reached: switchboard_sessions::Reached::Listed,
        }
    }

    #[test]
    fn a_state_goes_back_only_with_whom_and_what_it_was_given_for() {
        let seal = StateSigner::new([7; 32]);
        let now = Timestamp::from_second(1_800_000_000).unwrap();
        let operation = call("t", r#"{"a":1,"b":[2]}"#);
        let sealed = seal.close("alice", &operation, "the.state", now);
        let open = |who: &str, operation: &UpstreamOperation, sealed: &str| {
            seal.open(who, operation, sealed, now).map(str::to_owned)
        };
        let opened = Some("the.state".to_owned());
        assert_eq!(open("alice", &operation, &sealed), opened);
        let rewritten = call("t", r#"{ "b": [2], "a": 1 }"#);
        assert_eq!(open("alice", &rewritten, &sealed), opened);
        assert_eq!(open("bob", &operation, &sealed), None);
        assert_eq!(open("alice", &call("u", r#"{"a":1,"b":[2]}"#), &sealed), None);
        assert_eq!(open("alice", &call("t", r#"{"a":1,"b":[3]}"#), &sealed), None);
        let prompt = UpstreamOperation::Pass {
            server: ServerName::new("s"),
            method: "prompts/get",
            name: Some("t".into()),
            params: r#""a":1,"b":[2]"#.into(),
        };
        assert_eq!(open("alice", &prompt, &sealed), None);
        assert_eq!(open("alice", &operation, &format!("{sealed}x")), None);
        assert_eq!(open("alice", &operation, "the.state"), None);
        assert_eq!(StateSigner::new([8; 32]).open("alice", &operation, &sealed, now), None);
    }

    #[test]
    fn the_id_of_a_task_is_good_for_its_principal_alone() {
        let seal = StateSigner::new([7; 32]);
        let tool = CanonicalName::new(&ServerName::new("s"), "a.b \u{1f600}");
        let task = Task { tool, id: "the\nid.".into() };
        let sealed = seal.close_task("alice", &task);
        assert!(sealed.bytes().all(|byte| byte.is_ascii_graphic()), "{sealed}");
        assert_eq!(seal.open_task("alice", &sealed), Some(task.clone()));
        assert_eq!(seal.open_task("bob", &sealed), None);
        assert_eq!(seal.open_task("alice", &format!("{sealed}A")), None);
        assert_eq!(StateSigner::new([8; 32]).open_task("alice", &sealed), None);
        for odd in ["", ".", "the\nid.", &"0".repeat(64), &format!("{}.", "0".repeat(64))] {
            assert_eq!(seal.open_task("alice", odd), None);
        }
        assert!(!sealed.contains(&seal.secret_of("alice", &task)));
        assert_ne!(seal.secret_of("alice", &task), seal.secret_of("bob", &task));
        // The signature of a state is not valid for a task id of the same text.
        let words = "1.WyJhIiwiYiIsImMiXQ";
        assert_ne!(seal.task_mark("alice", words), seal.mark("alice", &call("t", "{}"), words));
    }

    #[test]
    fn a_state_expires_and_cannot_be_dated_anew() {
        let seal = StateSigner::new([7; 32]);
        let at = |second: i64| Timestamp::from_second(1_800_000_000 + second).unwrap();
        let operation = call("t", "{}");
        let sealed = seal.close("alice", &operation, "state", at(0));
        for (second, is_good) in
            [(0, true), (599, true), (600, false), (100_000, false), (-5, false)]
        {
            let opened = seal.open("alice", &operation, &sealed, at(second));
            assert_eq!(opened, is_good.then_some("state"), "after {second} s");
        }
        let later = sealed.replace(
            &format!(".{:x}.", at(0).as_second()),
            &format!(".{:x}.", at(500).as_second()),
        );
        assert_ne!(later, sealed);
        assert_eq!(seal.open("alice", &operation, &later, at(501)), None);
    }
}
