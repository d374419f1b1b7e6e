//! The browser's way back: one page on this machine, which receives the authorization code.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{RawQuery, State};
use axum::response::Html;
use axum::routing::get;
use http::StatusCode;
use switchboard_model::{ConnectError, ConnectErrorKind};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::failure::unusable;

/// The path of the page.
pub(crate) const CALLBACK: &str = "/callback";
/// How long the browser may take to load the final page.
const LAST_PAGE: Duration = Duration::from_secs(2);

/// Listens for the browser on this machine: at the configured port, or at any.
pub(crate) async fn listen(port: Option<u16>) -> Result<TcpListener, ConnectError> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port.unwrap_or(0)));
    TcpListener::bind(address).await.map_err(|error| no_port(port, &error))
}

pub(crate) fn no_port(port: Option<u16>, error: &std::io::Error) -> ConnectError {
    let port = port.map(|port| format!(" {port}")).unwrap_or_default();
    let message =
        format!("cannot listen for the browser's callback: port{port} of 127.0.0.1: {error}");
    ConnectError::new(ConnectErrorKind::Process, message)
        .with_operator_hint("end what uses the port, or choose another `redirect_port`")
}

/// A value in a query string.
pub(crate) fn query_value(query: &str, name: &str) -> Option<String> {
    let mut pairs = url::form_urlencoded::parse(query.as_bytes());
    pairs.find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
}

/// The query parameters of the callback.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Callback {
    pub(crate) code: String,
    pub(crate) issuer: Option<String>,
}

pub(crate) type CallbackResult = Result<Callback, ConnectError>;

#[derive(Debug, Clone)]
struct CallbackState {
    state: Arc<str>,
    /// Holds one callback; later ones are ignored.
    callbacks: mpsc::Sender<CallbackResult>,
}

/// Serves the callback page. Requests without the `state` of this sign-in are refused.
pub(crate) async fn wait_for_browser(listener: TcpListener, state: &str) -> CallbackResult {
    let (callbacks, mut answers) = mpsc::channel(1);
    let done = CancellationToken::new();
    let expected = CallbackState { state: state.into(), callbacks };
    let router = Router::new().route(CALLBACK, get(come_back)).with_state(expected);
    let serving = axum::serve(listener, router)
        .with_graceful_shutdown(done.clone().cancelled_owned())
        .into_future();
    let mut serving = std::pin::pin!(serving);
    let answer = tokio::select! {
        answer = answers.recv() => answer,
        _ended = &mut serving => None,
    };
    done.cancel();
    let _undelivered = tokio::time::timeout(LAST_PAGE, serving).await;
    answer.unwrap_or_else(|| Err(unusable("the browser did not return to the callback")))
}

async fn come_back(
    State(expected): State<CallbackState>,
    RawQuery(query): RawQuery,
) -> (StatusCode, Html<&'static str>) {
    let query = query.unwrap_or_default();
    if query_value(&query, "state").as_deref() != Some(&*expected.state) {
        let page = "<!doctype html><title>Switchboard</title>This is not the response to a pending sign-in.";
        return (StatusCode::BAD_REQUEST, Html(page));
    }
    // A second callback changes nothing.
    let _second = expected.callbacks.try_send(read_callback(&query));
    let page = "<!doctype html><title>Switchboard</title>Switchboard has received the response. You can close \
                this page; the terminal shows the result.";
    (StatusCode::OK, Html(page))
}

fn read_callback(query: &str) -> CallbackResult {
    let value = |name: &str| query_value(query, name);
    if let Some(error) = value("error") {
        let why = value("error_description").map(|why| format!(": {why}")).unwrap_or_default();
        let message: String = format!("the authorization server refused the sign-in: {error}{why}")
            .chars()
            .map(|c| if c.is_control() { ' ' } else { c })
            .take(500)
            .collect();
        return Err(ConnectError::new(ConnectErrorKind::Unauthorized, message));
    }
    let code = value("code").filter(|code| !code.is_empty());
    let code =
        code.ok_or_else(|| unusable("the browser returned without an authorization code"))?;
    Ok(Callback { code, issuer: value("iss") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_back_is_read_with_its_issuer_and_its_refusal() {
        let read = read_callback("code=a%20b&state=s&iss=https%3A%2F%2Fas").unwrap();
        assert_eq!(read, Callback { code: "a b".into(), issuer: Some("https://as".into()) });
        let refused = read_callback("error=access_denied&error_description=no%0Away&state=s");
        assert_eq!(
            refused.unwrap_err().message,
            "the authorization server refused the sign-in: access_denied: no way"
        );
        assert!(read_callback("state=s").is_err());
    }

    #[tokio::test]
    async fn only_the_answer_with_our_word_counts() {
        let listener = listen(None).await.unwrap();
        let address = format!("http://{}{CALLBACK}", listener.local_addr().unwrap());
        let browser = async {
            for query in ["", "?code=forged", "?code=forged&state=guess"] {
                let page = reqwest::get(format!("{address}{query}")).await.unwrap();
                assert_eq!(page.status(), 400, "{query}");
            }
            reqwest::get(format!("{address}?code=real&state=word")).await.unwrap().status()
        };
        let (callback, status) = tokio::join!(wait_for_browser(listener, "word"), browser);
        assert_eq!((callback.unwrap().code.as_str(), status.as_u16()), ("real", 200));
    }
}
