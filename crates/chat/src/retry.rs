//! Decides whether and when a failed model request is repeated.

use std::time::Duration;

use crate::{FaultKind, ModelFault};

/// Longest `Retry-After` that is waited for; a longer one fails the turn.
const MAX_WAIT: Duration = Duration::from_mins(1);
const FIRST_WAIT: Duration = Duration::from_millis(500);

/// The delay before attempt number `attempt` + 1; `None` if the request must not be repeated.
pub fn wait_before_next(fault: &ModelFault, attempt: u32) -> Option<Duration> {
    if !fault.kind.may_pass() {
        return None;
    }
    if let Some(after) = fault.retry_after {
        return (after <= MAX_WAIT).then_some(after);
    }
    // The fault is the model's, so waiting does not help.
    if matches!(fault.kind, FaultKind::MalformedCall | FaultKind::UnexpectedCall) {
        return Some(Duration::ZERO);
    }
    let doubled = FIRST_WAIT.saturating_mul(2_u32.saturating_pow(attempt));
    Some(doubled.min(MAX_WAIT))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_provider_that_says_when_is_believed_unless_that_is_too_long() {
        let check = |kind, after: Option<u64>, attempt, expected: Option<u64>| {
            let retry_after = after.map(Duration::from_millis);
            let fault = ModelFault { retry_after, ..ModelFault::new(kind, "x") };
            let expected = expected.map(Duration::from_millis);
            assert_eq!(wait_before_next(&fault, attempt), expected, "{kind} {after:?}");
        };
        check(FaultKind::RateLimited, Some(3500), 0, Some(3500));
        check(FaultKind::RateLimited, Some(61_000), 0, None);
        check(FaultKind::Overloaded, None, 0, Some(500));
        check(FaultKind::Overloaded, None, 2, Some(2000));
        check(FaultKind::Overloaded, None, 40, Some(60_000));
        check(FaultKind::UnexpectedCall, None, 1, Some(0));
        check(FaultKind::Credentials, None, 0, None);
        check(FaultKind::Quota, Some(10), 0, None);
    }
}
