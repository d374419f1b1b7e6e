//! Tries a server that is not configured: connects it once, lists its tools and closes the connection.

use std::sync::Arc;
use std::time::Duration;

use switchboard_mcp_client::{ConnectProgress, Connection};
use switchboard_model::{
    AttachedServer, ConnectError, ConnectErrorKind, DEFAULT_CONNECT_TIMEOUT, Era, EraChoice,
    QuarantinedTool, ServerSpec, Sharing,
};
use tokio::time::Instant;

use crate::attach::check;
use crate::attach_error::AttachError;
use crate::attachments::guarded_options;
use crate::board::Board;

/// How long connecting and listing may take together.
const WITHIN: Duration = Duration::from_secs(45);

/// A server that was connected and listed its tools.
#[derive(Debug, Clone)]
pub struct TriedServer {
    pub era: Era,
    pub protocol: String,
    pub reported_name: Option<String>,
    pub reported_version: Option<String>,
    pub tools: Vec<String>,
    pub quarantined: Vec<QuarantinedTool>,
    pub took: Duration,
}

/// Why a server could not be tried.
#[derive(Debug)]
pub enum TrialFailure {
    /// The address or the headers are refused; nothing was sent.
    Refused(AttachError),
    /// It could not be connected, and what it was doing then.
    Failed { error: ConnectError, step: &'static str, took: Duration },
}

impl Board {
    /// Connects a server over HTTP, within `security.egress` and without the credentials of the configuration, lists its tools and
    /// closes the connection. Dropping the future closes it too.
    pub async fn try_server(&self, server: AttachedServer) -> Result<TriedServer, TrialFailure> {
        let egress = self.plan().security.egress.clone();
        check(&server, &egress).map_err(TrialFailure::Refused)?;
        let spec = ServerSpec {
            name: server.name.clone(),
            endpoint: server.endpoint(),
            place: server.place(),
            referenced: server.secret_parts(),
            caller_headers: Vec::new(),
            era: EraChoice::Auto,
            connect_timeout: DEFAULT_CONNECT_TIMEOUT,
            sharing: Sharing::Shared,
            egress: None,
        };
        let progress = Arc::new(ConnectProgress::default());
        let mut options = guarded_options(&egress);
        options.progress = Some(progress.clone());
        let start = Instant::now();
        let opening = tokio::time::timeout(WITHIN, Connection::open(&spec, &options));
        let opened = opening.await.unwrap_or_else(|_| {
            let message = "the server did not answer in time";
            Err(ConnectError::new(ConnectErrorKind::Timeout, message))
        });
        let took = start.elapsed();
        let (connection, list) =
            opened.map_err(|error| TrialFailure::Failed { error, step: progress.step(), took })?;
        let info = connection.info().clone();
        let era = connection.era();
        connection.close().await;
        Ok(TriedServer {
            era,
            protocol: info.protocol,
            reported_name: info.name,
            reported_version: info.version,
            tools: list.tools.into_iter().map(|tool| tool.name).collect(),
            quarantined: list.quarantined,
            took,
        })
    }
}
