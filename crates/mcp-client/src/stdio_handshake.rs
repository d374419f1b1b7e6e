//! The handshake with a child process: finds out its era over its only pipe.
//!
//! A child may need minutes until it reads its input: `npx` and `uvx` download a package first. Silence therefore says
//! nothing about the era, and every response is matched by its id, however late it comes.
//!
//! Usually `initialize` is sent at once. A server that rejects it, or that is silent for [`ProbeTimes::other`], is sent
//! `server/discover`.
//!
//! A server that exited at `initialize` is started again and sent `server/discover` first. After [`ProbeTimes::ping`] a
//! `ping` follows, which both eras answer before any handshake. A server that answers the `ping` but not
//! `server/discover` ignores unknown methods, and is sent `initialize`. After [`ProbeTimes::other`] it is sent
//! `initialize` in any case.
//!
//! The era of a server that was sent both follows from its response to `initialize`: a result begins a session, after
//! an error it is stateless. Responses that arrive after the handshake are dropped.

use std::time::Duration;

use bytes::Bytes;
use rmcp::ClientHandler as _;
use rmcp::model::{DiscoverResult, InitializeResult, ProtocolVersion, ServerPeerInfo};
use serde_json::json;
use serde_json::value::RawValue;
use switchboard_model::{ConnectError, ConnectErrorKind, Era};
use tokio::io::AsyncRead;
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::connect_progress::ConnectProgress;
use crate::envelope::{ServerMessage, read_error};
use crate::handler::UpstreamHandler;
use crate::stdio_messages::TappedLines;

/// When a silent child is sent further requests.
#[derive(Debug, Clone, Copy)]
pub struct ProbeTimes {
    /// The time until `ping` is sent to a child that has not answered `server/discover`.
    pub ping: Duration,
    /// How long after the response to `ping` that to `server/discover` may come.
    pub after_ping: Duration,
    /// The time until the other request is sent to a child that has answered nothing.
    pub other: Duration,
}

impl Default for ProbeTimes {
    fn default() -> Self {
        Self {
            ping: Duration::from_secs(3),
            after_ping: Duration::from_secs(1),
            other: Duration::from_mins(1),
        }
    }
}

impl ProbeTimes {
    /// Shortens the times so that the last request can be answered within `limit`.
    pub(crate) fn within(self, limit: Duration) -> Self {
        Self {
            ping: self.ping.min(limit / 4),
            after_ping: self.after_ping.min(limit / 4),
            other: self.other.min(limit / 2),
        }
    }
}

/// The first request to a child, and whether others follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FirstQuestion {
    Discover,
    Initialize,
    /// The configuration sets the era.
    Only(Era),
}

/// The self-description of a server that is ready for requests.
#[derive(Debug)]
pub(crate) struct Greeting {
    pub(crate) info: ServerPeerInfo,
    /// Whether the era was determined by the server and may be remembered. It is not if the configuration sets it, or
    /// if a response was missing.
    pub(crate) is_certain: bool,
}

/// Why the handshake failed.
#[derive(Debug)]
pub(crate) enum HandshakeFailure {
    /// The output of the child has ended.
    Closed,
    Refused(ConnectError),
}

/// A handshake in progress.
pub(crate) struct StdioHandshake<'a, R> {
    pub(crate) output: &'a mut TappedLines<R>,
    pub(crate) input: &'a mpsc::Sender<Bytes>,
    pub(crate) handler: &'a UpstreamHandler,
    pub(crate) progress: &'a ConnectProgress,
    pub(crate) times: ProbeTimes,
}

/// The requests of one handshake and their responses so far.
#[derive(Default)]
struct HandshakeRequests {
    discover: HandshakeRequest<DiscoverOutcome>,
    initialize: HandshakeRequest<String>,
    ping: HandshakeRequest<()>,
    initialize_at: Option<Instant>,
    discover_at: Option<Instant>,
    /// When to stop waiting for the response to `initialize`, after that to `server/discover`.
    settled_at: Option<Instant>,
    /// Whether the era was chosen before all responses arrived.
    is_guess: bool,
}

/// A request of the handshake; `answer` is the response to a rejected `initialize` or to any `server/discover`.
struct HandshakeRequest<T> {
    id: Option<String>,
    answer: Option<T>,
}

impl<T> Default for HandshakeRequest<T> {
    fn default() -> Self {
        Self { id: None, answer: None }
    }
}

impl<T> HandshakeRequest<T> {
    fn is_sent(&self) -> bool {
        self.id.is_some()
    }

    fn is_answered(&self) -> bool {
        self.answer.is_some()
    }

    fn is_open(&self) -> bool {
        self.is_sent() && self.answer.is_none()
    }

    /// `None` is the id of an error to a request that the server could not read.
    fn is_answered_by(&self, id: Option<&str>) -> bool {
        self.is_open() && (id.is_none() || id == self.id.as_deref())
    }
}

impl HandshakeRequests {
    /// The response to `server/discover`, if that to `initialize` is overdue.
    fn settled(&mut self) -> Option<DiscoverOutcome> {
        self.settled_at.filter(|at| Instant::now() >= *at)?;
        self.discover.answer.take()
    }
}

/// The response to `server/discover`.
#[derive(Debug)]
enum DiscoverOutcome {
    Modern(Box<ServerPeerInfo>),
    Legacy(String),
}

impl<R: AsyncRead + Unpin> StdioHandshake<'_, R> {
    /// Returns when the server is ready for requests. Has no time limit of its own.
    pub(crate) async fn run(mut self, first: FirstQuestion) -> Result<Greeting, HandshakeFailure> {
        let mut asked = HandshakeRequests::default();
        let start = Instant::now();
        match first {
            FirstQuestion::Discover => {
                asked.initialize_at = Some(start + self.times.other);
                self.discover(&mut asked).await;
            }
            FirstQuestion::Only(Era::Modern) => self.discover(&mut asked).await,
            FirstQuestion::Initialize => {
                asked.discover_at = Some(start + self.times.other);
                self.initialize(&mut asked).await;
            }
            FirstQuestion::Only(Era::Legacy) => self.initialize(&mut asked).await,
        }
        let ping_at = start + self.times.ping;
        let info = loop {
            let may_ping = asked.initialize_at.is_some() && !asked.ping.is_sent();
            let next_ping = may_ping.then_some(ping_at);
            let times = [next_ping, asked.initialize_at, asked.discover_at, asked.settled_at];
            let line = tokio::select! {
                line = self.output.read_line() => line,
                () = until(times.into_iter().flatten().min()) => {
                    if let Some(DiscoverOutcome::Modern(info)) = asked.settled() {
                        asked.is_guess = true;
                        break *info;
                    }
                    if may_ping && Instant::now() >= ping_at {
                        self.ping(&mut asked).await;
                    } else if asked.discover_at.is_some() {
                        self.discover(&mut asked).await;
                    } else {
                        asked.is_guess = !asked.ping.is_answered();
                        self.initialize(&mut asked).await;
                    }
                    continue;
                }
            };
            let Ok(Some(line)) = line else { return Err(HandshakeFailure::Closed) };
            if let Some(at) = self.output.pending().read_on() {
                tokio::time::sleep_until(at).await;
            }
            if let Some(ended) = self.take(&line, &mut asked, first).await {
                break ended.map_err(HandshakeFailure::Refused)?;
            }
        };
        let is_certain = !asked.is_guess && !matches!(first, FirstQuestion::Only(_));
        Ok(Greeting { info, is_certain })
    }

    /// Handles one line. `Some` ends the handshake.
    async fn take(
        &mut self,
        line: &Bytes,
        asked: &mut HandshakeRequests,
        first: FirstQuestion,
    ) -> Option<Result<ServerPeerInfo, ConnectError>> {
        // Launchers write their progress to standard output, too.
        let Ok(message) = ServerMessage::read(line) else {
            self.output.pending().take(line);
            return None;
        };
        if message.method.is_some() {
            if message.method.as_deref() == Some("ping")
                && let Some(id) = message.id
            {
                self.send(format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{}}}}"#, id.get())).await;
            } else {
                self.output.pending().take(line);
            }
            return None;
        }
        let id = match message.id {
            Some(id) => Some(text_of(id)?),
            // Only an error may lack the id.
            None => message.error.map(|_| None)?,
        };
        if asked.ping.is_answered_by(id) && id.is_some() {
            asked.ping.answer = Some(());
            if asked.discover.is_open() && !asked.initialize.is_sent() {
                asked.initialize_at = Some(Instant::now() + self.times.after_ping);
            }
        } else if asked.initialize.is_answered_by(id) {
            match read_initialize(&message) {
                Ok(info) => {
                    let text = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
                    self.send(text.to_owned()).await;
                    return Some(Ok(info));
                }
                Err(reason) => asked.initialize.answer = Some(reason),
            }
        } else if asked.discover.is_answered_by(id) {
            asked.initialize_at = None;
            match read_discover(&message) {
                Ok(discovered) => asked.discover.answer = Some(discovered),
                Err(error) => return Some(Err(error)),
            }
        } else {
            return None;
        }
        self.decide(asked, first).await
    }

    /// Decides the next step from the responses so far.
    async fn decide(
        &mut self,
        asked: &mut HandshakeRequests,
        first: FirstQuestion,
    ) -> Option<Result<ServerPeerInfo, ConnectError>> {
        if asked.initialize.is_open() {
            // It decides the era, and usually follows directly after the response to an earlier request.
            let is_modern = matches!(asked.discover.answer, Some(DiscoverOutcome::Modern(_)));
            asked.settled_at = is_modern.then(|| Instant::now() + self.times.after_ping);
            return None;
        }
        let refused = |reason: &str| {
            let message = format!("the server refused the handshake: {reason}");
            Some(Err(ConnectError::new(ConnectErrorKind::Protocol, message)))
        };
        match (asked.discover.answer.take(), &asked.initialize.answer) {
            (Some(DiscoverOutcome::Modern(info)), _) => Some(Ok(*info)),
            (Some(legacy @ DiscoverOutcome::Legacy(_)), None)
                if first == FirstQuestion::Discover =>
            {
                asked.discover.answer = Some(legacy);
                self.initialize(asked).await;
                None
            }
            (Some(DiscoverOutcome::Legacy(reason)), None) => refused(&reason),
            // A server of the stateless era rejects `initialize`, possibly before it answers `server/discover`.
            (None, Some(_)) if asked.discover.is_sent() => None,
            (None, Some(_)) if first == FirstQuestion::Initialize => {
                self.discover(asked).await;
                None
            }
            (Some(DiscoverOutcome::Legacy(_)) | None, Some(reason)) => refused(reason),
            (None, None) => None,
        }
    }

    async fn discover(&mut self, asked: &mut HandshakeRequests) {
        self.progress.set_step(if asked.initialize.is_open() {
            "initialize or server/discover"
        } else {
            "server/discover"
        });
        asked.discover_at = None;
        let us = self.handler.get_info();
        let params = json!({"_meta": {
            "io.modelcontextprotocol/protocolVersion": ProtocolVersion::V_2026_07_28,
            "io.modelcontextprotocol/clientInfo": us.client_info,
            "io.modelcontextprotocol/clientCapabilities": us.capabilities,
        }});
        asked.discover.id = Some(self.request("server/discover", &params).await);
    }

    async fn initialize(&mut self, asked: &mut HandshakeRequests) {
        let is_first = !asked.discover.is_open();
        self.progress.set_step(if is_first {
            "initialize"
        } else {
            "initialize or server/discover"
        });
        asked.initialize_at = None;
        let params = serde_json::to_value(self.handler.get_info()).unwrap_or_default();
        asked.initialize.id = Some(self.request("initialize", &params).await);
    }

    async fn ping(&mut self, asked: &mut HandshakeRequests) {
        asked.ping.id = Some(self.request("ping", &json!({})).await);
    }

    async fn request(&mut self, method: &str, params: &serde_json::Value) -> String {
        let pending = self.output.pending();
        let id = pending.ids().id(pending.next_number());
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.send(request.to_string()).await;
        id
    }

    /// A child that no longer reads its input is detected by the end of its output, or by the time limit.
    async fn send(&mut self, mut text: String) {
        text.push('\n');
        let _unread = self.input.send(text.into()).await;
    }
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

/// The text of an id without escapes. Ids of Switchboard have none, so any other id belongs to another sender.
fn text_of(id: &RawValue) -> Option<&str> {
    id.get().strip_prefix('"')?.strip_suffix('"')
}

fn read_initialize(message: &ServerMessage<'_>) -> Result<ServerPeerInfo, String> {
    if let Some(error) = message.error {
        return Err(read_error(error).message);
    }
    let result = message.result.map(RawValue::get).unwrap_or_default();
    serde_json::from_str::<InitializeResult>(result)
        .map(ServerPeerInfo::from)
        .map_err(|error| format!("its answer to initialize cannot be read: {error}"))
}

/// Only a positive sign of 2026-07-28 selects the stateless era. An error means that a server of that era rejects the
/// connection.
fn read_discover(message: &ServerMessage<'_>) -> Result<DiscoverOutcome, ConnectError> {
    const UNSUPPORTED_VERSION: i64 = -32_022;
    const REFUSALS: [i64; 2] = [-32_021, -32_020];
    let refused = |message: String| ConnectError::new(ConnectErrorKind::Protocol, message);
    let no_common = |versions: &[ProtocolVersion]| {
        let versions: Vec<_> = versions.iter().map(ToString::to_string).collect();
        refused(format!("no common protocol version; the server speaks {}", versions.join(", ")))
    };
    if let Some(error) = message.error {
        let error = read_error(error);
        if REFUSALS.contains(&error.code) {
            return Err(refused(format!("the server refused the handshake: {}", error.message)));
        }
        let supported = error.data.filter(|_| error.code == UNSUPPORTED_VERSION);
        let supported = supported.and_then(|data| {
            let supported = data.parse().get("supported").cloned()?;
            serde_json::from_value::<Vec<ProtocolVersion>>(supported).ok()
        });
        return match supported {
            Some(versions) if !versions.iter().any(ProtocolVersion::has_initialize) => {
                Err(no_common(&versions))
            }
            Some(_) | None => Ok(DiscoverOutcome::Legacy(error.message)),
        };
    }
    let result = message.result.map(RawValue::get).unwrap_or_default();
    let versions = serde_json::from_str::<serde_json::Value>(result).ok().and_then(|result| {
        let versions = result.get("supportedVersions")?.clone();
        serde_json::from_value::<Vec<ProtocolVersion>>(versions).ok()
    });
    match versions {
        None => {
            Ok(DiscoverOutcome::Legacy("its answer to server/discover names no versions".into()))
        }
        Some(versions) if versions.contains(&ProtocolVersion::V_2026_07_28) => {
            let result = serde_json::from_str::<DiscoverResult>(result).map_err(|error| {
                refused(format!("the answer to server/discover cannot be read: {error}"))
            })?;
            let version = ProtocolVersion::V_2026_07_28;
            let info = ServerPeerInfo::from_discover_result(version, result);
            Ok(DiscoverOutcome::Modern(Box::new(info)))
        }
        Some(versions) if versions.iter().any(ProtocolVersion::has_initialize) => {
            let shown: Vec<_> = versions.iter().map(ToString::to_string).collect();
            Ok(DiscoverOutcome::Legacy(format!("it speaks {}", shown.join(", "))))
        }
        Some(versions) => Err(no_common(&versions)),
    }
}
