//! The reqwest clients that all remote providers share.

use std::error::Error;
use std::io;
use std::sync::OnceLock;
use std::time::Duration;

use reqwest::redirect::Policy;
use reqwest::{Client, ClientBuilder};
use switchboard_chat::{FaultKind, ModelFault};
use switchboard_loopback::{LONGEST_CONNECT, LoopbackError, RequestPhase};
use switchboard_model::is_on_this_machine;
use url::Url;

/// Interval of keep-alive probes, which detect a peer that is gone.
const KEEP_ALIVE: Duration = Duration::from_secs(30);

pub(crate) const USER_AGENT: &str = concat!("switchboard/", env!("CARGO_PKG_VERSION"));

/// One client for remote providers, and one without a proxy for this machine. Each is created when it is first needed.
#[derive(Debug, Default)]
pub(crate) struct HttpClients {
    local: OnceLock<Result<Client, ModelFault>>,
    remote: OnceLock<Result<Client, ModelFault>>,
}

impl HttpClients {
    pub(crate) fn of(&self, url: &Url) -> Result<Client, ModelFault> {
        if is_on_this_machine(url) {
            self.local.get_or_init(|| build(Client::builder().no_proxy())).clone()
        } else {
            self.remote.get_or_init(|| build(Client::builder())).clone()
        }
    }
}

/// Follows no redirects: providers do not use them, and credentials must not be sent elsewhere.
fn build(builder: ClientBuilder) -> Result<Client, ModelFault> {
    let built = builder
        .connect_timeout(LONGEST_CONNECT)
        .tcp_nodelay(true)
        .tcp_keepalive(KEEP_ALIVE)
        .http2_keep_alive_interval(KEEP_ALIVE)
        .redirect(Policy::none())
        .user_agent(USER_AGENT)
        .build();
    built.map_err(|error| {
        let text = format!("the HTTP client does not start: {}", innermost(&error));
        ModelFault::new(FaultKind::Unreachable, text)
    })
}

/// The error of a request without a response. Names host and port, and nothing else of the URL.
pub(crate) fn transport_fault(error: &reqwest::Error, url: &Url) -> ModelFault {
    let how = match (error.is_timeout(), error.is_connect()) {
        (true, _) => Failed::TooLate,
        (_, true) => Failed::Unreachable,
        _ => Failed::BrokeOff,
    };
    unanswered(how, url, &innermost(error))
}

/// The error of a request over the loopback client.
pub(crate) fn loopback_fault(error: &LoopbackError, url: &Url) -> ModelFault {
    let is_late = error.cause.downcast_ref::<io::Error>();
    let is_late = is_late.is_some_and(|error| error.kind() == io::ErrorKind::TimedOut);
    let how = match error.stage {
        RequestPhase::Connecting if is_late => Failed::TooLate,
        RequestPhase::Connecting => Failed::Unreachable,
        RequestPhase::Waiting | RequestPhase::Reading => Failed::BrokeOff,
    };
    unanswered(how, url, &innermost(&*error.cause))
}

#[derive(Clone, Copy)]
enum Failed {
    TooLate,
    Unreachable,
    BrokeOff,
}

fn unanswered(how: Failed, url: &Url, cause: &str) -> ModelFault {
    let place = place(url);
    let (kind, text) = match how {
        Failed::TooLate => {
            let text =
                format!("{place} accepted no connection within {} s", LONGEST_CONNECT.as_secs());
            (FaultKind::Unreachable, text)
        }
        Failed::Unreachable => {
            (FaultKind::Unreachable, format!("{place} cannot be reached: {cause}"))
        }
        Failed::BrokeOff => (
            FaultKind::Interrupted,
            format!("{place} closed the connection before it answered: {cause}"),
        ),
    };
    ModelFault::new(kind, text)
}

/// Host and port.
pub(crate) fn place(url: &Url) -> String {
    let host = url.host_str().unwrap_or("?");
    url.port_or_known_default().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

/// The innermost cause. The outer ones repeat the URL with its query.
pub(crate) fn innermost(error: &(dyn Error + 'static)) -> String {
    let mut innermost = error.source();
    while let Some(deeper) = innermost.and_then(Error::source) {
        innermost = Some(deeper);
    }
    match (innermost, error.downcast_ref::<reqwest::Error>()) {
        (Some(innermost), _) => innermost.to_string(),
        (None, Some(error)) if error.is_builder() => "the request cannot be built".into(),
        (None, Some(_)) => "the connection failed".into(),
        (None, None) => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_host_and_port() {
        let place = |text: &str| place(&Url::parse(text).unwrap());
        assert_eq!(place("https://me:pw@h.example/x?key=1"), "h.example:443");
        assert_eq!(place("http://127.0.0.1:11434/v1"), "127.0.0.1:11434");
    }
}
