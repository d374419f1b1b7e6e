//! The browser's way back to this machine: one page on a loopback port, which receives the authorization response.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{RawQuery, State};
use axum::response::Html;
use axum::routing::get;
use http::StatusCode;
use switchboard_model::{ConnectError, ConnectErrorKind, LoopbackRedirect, RedirectHost};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::authorization_response::AuthorizationResponse;
use crate::failure::unusable;

/// How long the browser may take to load the final page.
const LAST_PAGE: Duration = Duration::from_secs(2);

/// A page that waits for the browser.
#[derive(Debug)]
pub struct CallbackListener {
    listener: TcpListener,
    /// The same port of the IPv6 loopback address, to which `localhost` may lead.
    second: Option<TcpListener>,
    path: String,
    /// The address that the browser comes back to.
    pub redirect_uri: String,
}

#[derive(Debug, Clone)]
struct CallbackState {
    state: Arc<str>,
    /// Holds one callback; later ones are ignored.
    callbacks: mpsc::Sender<AuthorizationResponse>,
}

impl CallbackListener {
    /// Listens at the configured port, or at any.
    pub async fn bind(redirect: &LoopbackRedirect) -> Result<Self, ConnectError> {
        let failed = |error: std::io::Error| no_port(redirect, &error);
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, redirect.port.unwrap_or(0)));
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let port = listener.local_addr().map_err(failed)?.port();
        let second = match redirect.host {
            RedirectHost::Address => None,
            // Where there is no IPv6, nothing leads there.
            RedirectHost::Localhost => {
                TcpListener::bind(SocketAddr::from((Ipv6Addr::LOCALHOST, port))).await.ok()
            }
        };
        let redirect_uri = format!("http://{}:{port}{}", redirect.host.as_str(), redirect.path);
        Ok(Self { listener, second, path: redirect.path.clone(), redirect_uri })
    }

    /// Serves the page until a response with this `state` arrives. Others are refused.
    pub async fn wait(self, state: &str) -> Result<AuthorizationResponse, ConnectError> {
        let (callbacks, mut answers) = mpsc::channel(1);
        let done = CancellationToken::new();
        let expected = CallbackState { state: state.into(), callbacks };
        let router = Router::new().route(&self.path, get(come_back)).with_state(expected);
        let serve = |listener, router: Router| {
            let stopped = done.clone().cancelled_owned();
            axum::serve(listener, router).with_graceful_shutdown(stopped).into_future()
        };
        let first = serve(self.listener, router.clone());
        let second = self.second.map(|second| serve(second, router));
        let serving = async move {
            match second {
                Some(second) => {
                    let _ended = tokio::join!(first, second);
                }
                None => {
                    let _ended = first.await;
                }
            }
        };
        let mut serving = std::pin::pin!(serving);
        let answer = tokio::select! {
            answer = answers.recv() => answer,
            () = &mut serving => None,
        };
        done.cancel();
        let _undelivered = tokio::time::timeout(LAST_PAGE, serving).await;
        answer.ok_or_else(|| unusable("the browser did not return to the callback"))
    }
}

fn no_port(redirect: &LoopbackRedirect, error: &std::io::Error) -> ConnectError {
    let port = redirect.port.map(|port| format!(" {port}")).unwrap_or_default();
    let message =
        format!("cannot listen for the browser's callback: port{port} of 127.0.0.1: {error}");
    ConnectError::new(ConnectErrorKind::Process, message)
        .with_operator_hint("end what uses the port, or choose another `redirect_port`")
}

async fn come_back(
    State(expected): State<CallbackState>,
    RawQuery(query): RawQuery,
) -> (StatusCode, Html<&'static str>) {
    let response = AuthorizationResponse::from_query(&query.unwrap_or_default());
    if response.state.as_deref() != Some(&*expected.state) {
        let page = "<!doctype html><title>Switchboard</title>This is not the response to a pending sign-in.";
        return (StatusCode::BAD_REQUEST, Html(page));
    }
    // A second callback changes nothing.
    let _second = expected.callbacks.try_send(response);
    let page = "<!doctype html><title>Switchboard</title>Switchboard has received the response. You can close \
                this page; the terminal shows the result.";
    (StatusCode::OK, Html(page))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_the_answer_with_our_state_counts() {
        for host in [RedirectHost::Address, RedirectHost::Localhost] {
            let redirect = LoopbackRedirect { host, port: None, path: "/back/here".into() };
            let listener = CallbackListener::bind(&redirect).await.unwrap();
            let address = listener.redirect_uri.clone();
            assert!(
                address.contains(host.as_str()) && address.ends_with("/back/here"),
                "{address}"
            );
            let browser = async {
                for query in ["", "?code=forged", "?code=forged&state=guess"] {
                    let page = reqwest::get(format!("{address}{query}")).await.unwrap();
                    assert_eq!(page.status(), 400, "{query}");
                }
                reqwest::get(format!("{address}?code=real&state=word")).await.unwrap().status()
            };
            let (response, status) = tokio::join!(listener.wait("word"), browser);
            assert_eq!((response.unwrap().code.as_deref(), status.as_u16()), (Some("real"), 200));
        }
    }
}
