//! A connection to one server, for commands that inspect it. The progress is shown on standard error.

use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use switchboard_mcp_client::{ConnectOptions, ConnectProgress, Connection};
use switchboard_model::{ConnectError, ServerSpec, UpstreamToolList};
use switchboard_runtime::Waiting;
use tokio::time::Instant;

/// Interval of progress lines.
const BETWEEN_LINES: Duration = Duration::from_secs(5);

/// Why there is no connection.
#[derive(Debug)]
pub(crate) enum NotConnected {
    Failed(ConnectError),
    /// The time limit passed before it was connected.
    StillConnecting(Waiting),
}

/// Connects a server and lists its tools. Waits at most `limit`, or the server's `connect_timeout` if there is none.
pub(crate) async fn connect(
    spec: &ServerSpec,
    options: &ConnectOptions,
    limit: Option<Duration>,
) -> Result<(Arc<Connection>, UpstreamToolList), NotConnected> {
    let progress = Arc::new(ConnectProgress::default());
    let options = ConnectOptions { progress: Some(progress.clone()), ..options.clone() };
    let start = Instant::now();
    let waiting = || Waiting {
        step: progress.step(),
        elapsed: start.elapsed(),
        limit: spec.connect_timeout,
        output: progress.last_output(),
    };
    let mut opening = Box::pin(Connection::open(spec, &options));
    let enough = limit.map(|limit| start + limit);
    let mut telling = tokio::time::interval_at(start + BETWEEN_LINES, BETWEEN_LINES);
    loop {
        tokio::select! {
            biased;
            opened = &mut opening => return opened.map_err(NotConnected::Failed),
            () = tokio::time::sleep_until(enough.unwrap_or(start)), if enough.is_some() => {
                return Err(NotConnected::StillConnecting(waiting()));
            }
            _ = telling.tick() => {
                let _nobody_reads = writeln!(anstream::stderr(), "{}: {}", spec.name, waiting());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use switchboard_model::{Endpoint, EraChoice, ServerName, Sharing, UpstreamAuth};
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn a_server_that_never_answers_is_waited_for_no_longer_than_the_limit() {
        // A listener that never accepts: connections stay in its queue.
        let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", silent.local_addr().unwrap()).parse().unwrap();
        let endpoint = Endpoint::StreamableHttp {
            url,
            headers: std::collections::BTreeMap::new(),
            auth: UpstreamAuth::None,
        };
        let spec = ServerSpec {
            referenced: Vec::new(),
            caller_headers: Vec::new(),
            name: ServerName::new("silent"),
            endpoint,
            place: "http://silent".into(),
            era: EraChoice::Auto,
            connect_timeout: Duration::from_mins(5),
            sharing: Sharing::Shared,
            egress: None,
        };
        let limit = Some(Duration::from_millis(20));
        let options = ConnectOptions::default();
        let connecting = connect(&spec, &options, limit);
        let opened = tokio::time::timeout(Duration::from_mins(1), connecting).await.unwrap();
        let Err(NotConnected::StillConnecting(waiting)) = opened else { panic!("{opened:?}") };
        assert_eq!(waiting.limit, Duration::from_mins(5));
    }
}
