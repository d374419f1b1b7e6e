//! The requests of a connection: those that it forwards for callers, and its own.

use std::collections::BTreeSet;
use std::sync::Arc;

use switchboard_model::{ConnectError, ConnectErrorKind, Era};
use switchboard_protocol::{EntryKind, quoted};
use tokio::sync::mpsc;

use crate::connection::Connection;
use crate::envelope::{ResponseError, ResponseResult};
use crate::events::EventSender;
use crate::http_transport::HttpWire;
use crate::message_sink::MessageSink;
use crate::request::{
    Features, ListedEntries, RawResult, RequestFailure, RequestOrigin, UpstreamNews,
    UpstreamRequest,
};

/// The route of requests to the server.
#[derive(Debug)]
pub(crate) enum RequestRoute {
    /// Each request is an HTTP request, and its response carries the answer.
    Http(Arc<HttpWire>),
    /// All messages share one route, and all answers come back on one stream.
    Stream(Arc<dyn MessageSink>),
}

impl RequestRoute {
    /// The route of messages that need no answer.
    pub(crate) fn sink(&self) -> Arc<dyn MessageSink> {
        match self {
            Self::Http(wire) => wire.clone(),
            Self::Stream(sink) => sink.clone(),
        }
    }
}

impl Connection {
    /// Forwards a request and waits for its response. Dropping the future cancels the request: with
    /// `notifications/cancelled` in the session era and over stdio, by closing the stream over HTTP in the stateless
    /// era. If `events` is full, notifications are dropped and server requests refused.
    pub async fn ask(
        &self,
        ask: UpstreamRequest,
        events: Option<EventSender>,
    ) -> Result<RawResult, RequestFailure> {
        self.ask_with(&ask, events).await
    }

    /// Like [`Connection::ask`], with a borrowed request.
    pub async fn ask_with(
        &self,
        ask: &UpstreamRequest,
        events: Option<EventSender>,
    ) -> Result<RawResult, RequestFailure> {
        match self.exchange(ask, events, RequestOrigin::Caller).await {
            Ok(result) => Ok(result),
            Err(ResponseError::Rpc(error)) => Err(RequestFailure::Rpc(error)),
            Err(ResponseError::Lost(error)) => Err(Box::pin(self.describe(error)).await),
        }
    }

    /// Sends a request of Switchboard itself.
    pub(crate) async fn ask_for_us(
        &self,
        method: &'static str,
        params: String,
    ) -> Result<RawResult, ResponseError> {
        let ask = UpstreamRequest { method, params, ..UpstreamRequest::default() };
        self.exchange(&ask, None, RequestOrigin::Us).await
    }

    async fn exchange(
        &self,
        ask: &UpstreamRequest,
        events: Option<EventSender>,
        asker: RequestOrigin,
    ) -> ResponseResult {
        let pending = self.pending();
        let outcome = match &self.route {
            RequestRoute::Http(wire) => wire.ask(pending, ask, events, asker).await,
            RequestRoute::Stream(_) => pending.ask(ask, events, asker).await,
        };
        outcome.map_err(|failure| failure.redacted(&self.redactor))
    }

    async fn describe(&self, error: ConnectError) -> RequestFailure {
        if let Some(child) = self.lost_child(&error).await {
            return RequestFailure::Unavailable(format!(
                "the connection closed: {}",
                child.reason()
            ));
        }
        match error.kind {
            ConnectErrorKind::Protocol => RequestFailure::BadAnswer(error.message),
            ConnectErrorKind::SignIn => RequestFailure::SignIn(error.message),
            ConnectErrorKind::Unreachable
            | ConnectErrorKind::Overloaded
            | ConnectErrorKind::Unauthorized
            | ConnectErrorKind::Timeout
            | ConnectErrorKind::Process
            | ConnectErrorKind::Forbidden => RequestFailure::Unavailable(error.message),
        }
    }

    /// The capabilities of the server besides tools.
    pub fn features(&self) -> &Features {
        self.known_features()
    }

    /// Reads the server's complete list of prompts.
    pub async fn list_prompts(&self) -> Result<ListedEntries, ConnectError> {
        self.list_raw("prompts/list", "prompts", EntryKind::Prompt).await
    }

    /// Reads the server's complete list of resources.
    pub async fn list_resources(&self) -> Result<ListedEntries, ConnectError> {
        self.list_raw("resources/list", "resources", EntryKind::Resource).await
    }

    /// Reads the server's complete list of resource templates.
    pub async fn list_templates(&self) -> Result<ListedEntries, ConnectError> {
        let kind = EntryKind::ResourceTemplate;
        self.list_raw("resources/templates/list", "resourceTemplates", kind).await
    }

    /// Subscribes to updates of exactly these resources, which arrive as [`UpstreamNews::ResourceUpdated`].
    pub async fn watch_resources(&self, uris: &BTreeSet<String>) -> Result<(), ConnectError> {
        match self.era() {
            Era::Modern => {
                let replaced = self.watch().replace(uris).await;
                replaced.map_err(|error| self.redactor.redact_error(error))
            }
            Era::Legacy => self.subscribe_to_exactly(uris).await,
        }
    }

    /// Subscribes to added resources and unsubscribes from removed ones. Completed changes stay when a later one fails.
    /// Resources in an unknown state are corrected by the next call, after all others.
    async fn subscribe_to_exactly(&self, wanted: &BTreeSet<String>) -> Result<(), ConnectError> {
        let pending = self.pending();
        let (added, gone) = pending.kept(|kept| {
            kept.refused.retain(|uri| wanted.contains(uri));
            let is_new = |uri: &&String| {
                !kept.refused.contains(*uri)
                    && (!kept.watched.contains(*uri) || kept.unsure.contains(*uri))
            };
            let added: Vec<_> = wanted.iter().filter(is_new).cloned().collect();
            let told = kept.watched.union(&kept.unsure);
            let gone: Vec<_> = told.filter(|uri| !wanted.contains(*uri)).cloned().collect();
            (added, gone)
        });
        let added = added.into_iter().map(|uri| ("resources/subscribe", uri));
        let gone = gone.into_iter().map(|uri| ("resources/unsubscribe", uri));
        let mut due: Vec<_> = added.chain(gone).collect();
        due.sort_by_key(|(_, uri)| pending.kept(|kept| kept.unsure.contains(uri)));
        let mut outcome = Ok(());
        for (method, uri) in due {
            pending.kept(|kept| kept.unsure.insert(uri.clone()));
            let answer = self.ask_for_us(method, format!(r#""uri":{}"#, quoted(&uri))).await;
            let is_refused = match &answer {
                Ok(_) => false,
                Err(ResponseError::Rpc(_)) => true,
                // An invalid response concerns only this resource.
                Err(ResponseError::Lost(error)) => error.kind == ConnectErrorKind::Protocol,
            };
            if let Err(failure) = answer {
                let what = format!("{method} {uri}");
                let is_busy = matches!(
                    &failure,
                    ResponseError::Lost(error) if error.kind == ConnectErrorKind::Overloaded
                );
                let refused = refused(failure, &what);
                if is_busy {
                    // Another resource may be accepted.
                    outcome = Err(refused);
                    continue;
                }
                if !is_refused {
                    return Err(refused);
                }
                // A failure that is worth repeating takes precedence.
                outcome = outcome.and(Err(refused));
            }
            pending.kept(|kept| {
                kept.unsure.remove(&uri);
                match (method, is_refused) {
                    ("resources/subscribe", false) => kept.watched.insert(uri),
                    ("resources/subscribe", true) => kept.refused.insert(uri),
                    _ => kept.watched.remove(&uri),
                }
            });
        }
        outcome
    }

    /// Sets the log level of a session-era server. In the stateless era the level is part of each request
    /// ([`UpstreamRequest::log_level`]), and nothing is sent here.
    pub async fn set_log_level(&self, level: &str) -> Result<(), ConnectError> {
        if self.era() == Era::Modern {
            return Ok(());
        }
        self.ask_for_us("logging/setLevel", format!(r#""level":{}"#, quoted(level)))
            .await
            .map_err(|failure| refused(failure, "logging/setLevel"))?;
        self.pending().kept(|kept| kept.log_level = Some(level.to_owned()));
        Ok(())
    }

    /// The receiver of notifications that belong to no request, oldest first. There is one receiver; later calls return
    /// `None`. Notifications beyond its capacity are dropped.
    pub fn take_news(&self) -> Option<mpsc::Receiver<UpstreamNews>> {
        self.pending().take_news()
    }
}

fn refused(failure: ResponseError, what: &str) -> ConnectError {
    match failure {
        ResponseError::Lost(error) => error,
        ResponseError::Rpc(error) => {
            let message = format!("the server refused {what}: {}", error.message);
            ConnectError::new(ConnectErrorKind::Protocol, message)
        }
    }
}
