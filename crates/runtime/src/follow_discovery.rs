//! Puts what the sources of servers find into force while the board runs.

use std::sync::Arc;

use switchboard_discovery::Discovery;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::live_config::LiveConfig;

/// Applies the servers of the sources whenever they change, until `stop`, and brings the sources in line with each new
/// configuration. SIGHUP fetches all sources at once. A source that fails never stops or delays the board.
pub async fn follow_discovery(
    config: Arc<LiveConfig>,
    discovery: Arc<Discovery>,
    stop: CancellationToken,
) {
    config.set_discovery(discovery.clone());
    stop.run_until_cancelled(follow(&config, &discovery)).await;
    discovery.shutdown().await;
}

async fn follow(config: &LiveConfig, discovery: &Discovery) {
    let mut changes = discovery.changes();
    let mut configurations = config.revisions();
    let mut hangup = signal(SignalKind::hangup())
        .inspect_err(
            |error| tracing::warn!(%error, "SIGHUP does not refresh the sources of servers"),
        )
        .ok();
    loop {
        discovery.follow(&config.state().loaded.plan.discovery);
        changes.mark_unchanged();
        config.put_discovered(discovery.found()).await;
        let hung_up = async {
            match &mut hangup {
                Some(hangup) => hangup.recv().await,
                None => std::future::pending().await,
            }
        };
        // The senders live as long as what is borrowed here, so an error cannot happen.
        tokio::select! {
            _changed = changes.changed() => {}
            _replaced = configurations.changed() => {}
            _signal = hung_up => discovery.refresh(),
        }
    }
}
