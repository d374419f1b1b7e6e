//! Descriptions of requests that got no response, or only a part of one.

use std::error::Error;

use switchboard_loopback::{LoopbackError, RequestPhase};
use switchboard_model::{ConnectError, ConnectErrorKind};

use crate::egress::EgressRefused;

const BROKE_OFF: &str = "the answer broke off";
const NO_CONNECTION: &str = "cannot connect";

/// The beginnings of messages that only name a layer of the HTTP client.
const LAYERS: [&str; 5] = [
    "client error (",
    "tcp connect error",
    "error trying to connect",
    "request or response body error",
    "error reading a body from connection",
];

/// The error of a request without any response.
pub fn describe_failure(error: &reqwest::Error) -> ConnectError {
    let kind =
        if error.is_timeout() { ConnectErrorKind::Timeout } else { ConnectErrorKind::Unreachable };
    let what = match (error.is_connect(), error.is_body() || error.is_decode()) {
        (true, _) => NO_CONNECTION,
        (_, true) => BROKE_OFF,
        _ => "no answer",
    };
    // The error itself is left out: it names the URL, which may hold credentials.
    describe_causes(kind, what, error.source())
}

/// The error of a request over the loopback client.
pub fn describe_loopback_failure(error: &LoopbackError) -> ConnectError {
    let what = match error.stage {
        RequestPhase::Connecting => NO_CONNECTION,
        RequestPhase::Waiting => "no answer",
        RequestPhase::Reading => BROKE_OFF,
    };
    let cause: &(dyn Error + 'static) = &*error.cause;
    let causes = std::iter::successors(Some(cause), |cause| (**cause).source());
    let mut io = causes.filter_map(|cause| cause.downcast_ref::<std::io::Error>());
    let is_late = io.any(|error| error.kind() == std::io::ErrorKind::TimedOut);
    let kind = if is_late { ConnectErrorKind::Timeout } else { ConnectErrorKind::Unreachable };
    describe_causes(kind, what, Some(cause))
}

/// The causes of a failure, without the layers of the HTTP client, which say nothing about it.
fn describe_causes(
    kind: ConnectErrorKind,
    what: &str,
    mut cause: Option<&(dyn Error + 'static)>,
) -> ConnectError {
    let mut chain = String::new();
    while let Some(inner) = cause {
        if let Some(refused) = inner.downcast_ref::<EgressRefused>() {
            return refused.into();
        }
        let message = inner.to_string();
        let is_layer = LAYERS.iter().any(|layer| message.starts_with(layer));
        if !is_layer && !chain.contains(&message) {
            let separator = if chain.is_empty() { "" } else { ": " };
            chain = format!("{chain}{separator}{message}");
        }
        cause = inner.source();
    }
    let message = if chain.is_empty() { what.to_owned() } else { format!("{what}: {chain}") };
    let described = ConnectError::new(kind, message);
    if what == NO_CONNECTION {
        return described
            .with_operator_hint("check host and port of `url`, and whether the server runs");
    }
    described
}

/// The messages of an error and its causes, each once, outermost first. Many crates repeat the cause in their own
/// message, so a message that the previous one already ends with is left out.
pub fn error_chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let message = error.to_string();
        if !text.ends_with(&message) {
            text = format!("{text}: {message}");
        }
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{0}")]
    struct Layer(&'static str, #[source] Option<Box<Layer>>);

    #[test]
    fn a_cause_that_was_already_told_is_not_told_again() {
        let root = || Some(Box::new(Layer("refused", None)));
        assert_eq!(error_chain(&Layer("cannot send: refused", root())), "cannot send: refused");
        assert_eq!(error_chain(&Layer("cannot send", root())), "cannot send: refused");
    }

    #[test]
    fn the_layers_of_the_http_client_are_not_named() {
        let layers = Layer("client error (Connect)", Some(Box::new(Layer("refused", None))));
        let described =
            describe_causes(ConnectErrorKind::Unreachable, NO_CONNECTION, Some(&layers));
        assert_eq!(described.message, "cannot connect: refused");
    }
}
