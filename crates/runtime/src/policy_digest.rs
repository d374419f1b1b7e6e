//! A digest of a configuration, so that a record says which one decided.

use std::fmt::{self, Write as _};
use std::sync::Arc;

use switchboard_model::{Plan, RequiredOrigin};

/// Number of hexadecimal digits of a digest: enough to tell the configurations of one installation apart.
const DIGITS: usize = 16;

/// The digest of a plan. Equal plans have equal digests in all processes of one version; secrets and the places of lines
/// are no part of it.
pub(crate) fn policy_digest(plan: &Plan) -> Arc<str> {
    let mut plan = plan.clone();
    for server in &mut plan.servers {
        server.required_origin = RequiredOrigin::Nowhere;
    }
    let mut digest = Digest(blake3::Hasher::new());
    // Writing to a hasher does not fail.
    let _ok = write!(digest, "{plan:?}");
    digest.0.finalize().to_hex().chars().take(DIGITS).collect::<String>().into()
}

struct Digest(blake3::Hasher);

impl fmt::Write for Digest {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.update(text.as_bytes());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use switchboard_model::ToolEntry;

    use super::*;

    #[test]
    fn a_digest_is_that_of_the_meaning() {
        let plan = Plan { tools: vec![ToolEntry::named("a")], ..Plan::default() };
        assert_eq!(policy_digest(&plan), policy_digest(&plan.clone()));
        assert_eq!(policy_digest(&plan).len(), DIGITS);
        assert_ne!(policy_digest(&plan), policy_digest(&Plan::default()));
    }
}
