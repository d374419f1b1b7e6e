//! Failures of an app's turn, in the words of its API.

use std::time::Duration;

use http::header::RETRY_AFTER;
use http::{HeaderMap, HeaderName, HeaderValue};
use switchboard_chat::{FaultKind, ModelFault, wait_before_next};
use switchboard_providers::PassedFault;
use switchboard_splice::{Refusal, RefusalKind};

/// The header by which the SDKs of OpenAI and Anthropic learn whether another attempt makes sense.
const SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");

/// A turn or a request that failed.
#[derive(Debug, Clone)]
pub struct Failure {
    pub refusal: Refusal,
    /// Headers of the provider's response that the app gets.
    pub headers: Box<HeaderMap>,
    fault: Option<Box<ModelFault>>,
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        Self { refusal, headers: Box::default(), fault: None }
    }
}

impl From<ModelFault> for Failure {
    fn from(fault: ModelFault) -> Self {
        Self::of(fault.into(), false)
    }
}

impl Failure {
    /// The failure of a request to a provider. A refused credential of the board is not the app's: an app that got 401
    /// would ask its user for another key.
    pub(crate) fn of(passed: PassedFault, is_credential_of_app: bool) -> Self {
        let PassedFault { fault, body, mut headers } = passed;
        let is_about_credential =
            matches!(fault.kind, FaultKind::Credentials | FaultKind::SignIn | FaultKind::Forbidden);
        let mut refusal = Refusal::new(kind(fault.kind), fault.message.clone());
        if is_about_credential && !is_credential_of_app {
            headers.insert(SHOULD_RETRY, HeaderValue::from_static("false"));
        } else {
            refusal.status = fault.status.filter(|status| *status >= 400);
            refusal.body = body.map(String::into_boxed_str);
        }
        if let Some(wait) = fault.retry_after.filter(|_| !headers.contains_key(RETRY_AFTER)) {
            headers.insert(RETRY_AFTER, HeaderValue::from(wait.as_secs().max(1)));
        }
        Self { refusal, headers: Box::new(headers), fault: Some(Box::new(fault)) }
    }

    /// A failure after which the app may try again, after `wait`.
    pub(crate) fn busy(text: &str, wait: Duration) -> Self {
        let mut failure = Self::from(Refusal::new(RefusalKind::Overloaded, text));
        failure.headers.insert(RETRY_AFTER, HeaderValue::from(wait.as_secs().max(1)));
        failure
    }

    /// The same failure, after which an SDK does not try again by itself.
    pub(crate) fn final_for_sdk(mut self) -> Self {
        self.headers.insert(SHOULD_RETRY, HeaderValue::from_static("false"));
        self
    }

    /// The delay before the round is repeated for the `attempt`th time; `None` if that does not help.
    pub(crate) fn wait_before_next(&self, attempt: u32) -> Option<Duration> {
        let of_event = || {
            let kind = match self.refusal.kind {
                RefusalKind::RateLimited => FaultKind::RateLimited,
                RefusalKind::Overloaded => FaultKind::Overloaded,
                RefusalKind::Upstream => FaultKind::Provider,
                _ => return None,
            };
            Some(ModelFault::new(kind, String::new()))
        };
        let fault = self.fault.as_deref().cloned();
        wait_before_next(&fault.or_else(of_event)?, attempt)
    }

    /// The word in logs and metrics.
    pub(crate) fn word(&self) -> &'static str {
        match &self.fault {
            Some(fault) => fault.kind.as_str(),
            None => match self.refusal.kind {
                RefusalKind::Invalid | RefusalKind::ThreadUnsupported => "bad_request",
                RefusalKind::Unauthorized => "credentials",
                RefusalKind::Forbidden => "forbidden",
                RefusalKind::NotFound => "not_found",
                RefusalKind::TooLarge => "too_large",
                RefusalKind::RateLimited => "rate_limited",
                RefusalKind::Overloaded => "overloaded",
                RefusalKind::Upstream => "provider_error",
                RefusalKind::Internal => "internal",
            },
        }
    }
}

fn kind(kind: FaultKind) -> RefusalKind {
    match kind {
        FaultKind::Quota | FaultKind::RateLimited => RefusalKind::RateLimited,
        FaultKind::Overloaded => RefusalKind::Overloaded,
        FaultKind::NotFound => RefusalKind::NotFound,
        FaultKind::TooLong
        | FaultKind::BadRequest
        | FaultKind::NoNativeTools
        | FaultKind::Refused => RefusalKind::Invalid,
        FaultKind::TooLarge => RefusalKind::TooLarge,
        FaultKind::Blocked => RefusalKind::Forbidden,
        FaultKind::Credentials
        | FaultKind::SignIn
        | FaultKind::Forbidden
        | FaultKind::Provider
        | FaultKind::Unreachable
        | FaultKind::Timeout
        | FaultKind::Interrupted
        | FaultKind::Unreadable
        | FaultKind::MalformedCall
        | FaultKind::UnexpectedCall => RefusalKind::Upstream,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(kind: FaultKind, status: u16, is_credential_of_app: bool) -> Failure {
        let fault = ModelFault { status: Some(status), ..ModelFault::new(kind, "no") };
        let body = Some("{\"error\":1}".to_owned());
        Failure::of(PassedFault { fault, body, headers: HeaderMap::new() }, is_credential_of_app)
    }

    #[test]
    fn an_app_gets_the_words_of_the_provider_but_not_about_the_boards_credential() {
        let limited = refused(FaultKind::RateLimited, 429, false);
        assert_eq!((limited.refusal.status(), limited.refusal.body.is_some()), (429, true));
        let of_board = refused(FaultKind::Credentials, 401, false);
        assert_eq!((of_board.refusal.status(), of_board.refusal.body.is_some()), (502, false));
        assert_eq!(of_board.headers[SHOULD_RETRY], "false");
        let of_app = refused(FaultKind::Credentials, 401, true);
        assert_eq!((of_app.refusal.status(), of_app.refusal.body.is_some()), (401, true));
    }

    #[test]
    fn what_may_pass_is_repeated() {
        assert!(refused(FaultKind::Overloaded, 503, false).wait_before_next(0).is_some());
        assert!(refused(FaultKind::BadRequest, 400, false).wait_before_next(0).is_none());
        let event = Failure::from(Refusal::new(RefusalKind::Overloaded, "x"));
        assert!(event.wait_before_next(1).is_some());
        let event = Failure::from(Refusal::new(RefusalKind::Invalid, "x"));
        assert!(event.wait_before_next(0).is_none());
    }
}
