//! Waits for a client to list its tools again, before the call that changed them is answered.
//!
//! Agents ask their model again as soon as a call is answered. One that lists its tools only then sends the model the old
//! ones, so that what `enable_toolset` brought is a request late.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use crate::client::Client;

/// How long a client that heard of the change may take to ask for the list.
const LIST_WITHIN: Duration = Duration::from_millis(1_500);
/// How long the list may take to be read, once it was asked for.
const READ_WITHIN: Duration = Duration::from_millis(100);
/// A client that was this often too late lists after the answer, or never: later changes do not wait for it.
const MOST_LATE_LISTS: u8 = 2;

/// A client as it was before its tools were changed.
pub(crate) struct Relist {
    client: Arc<Client>,
    listed: watch::Receiver<()>,
    tools_told: u64,
}

impl Relist {
    /// `None` for a client that would not hear of the change, or does not list its tools when it does.
    pub(crate) fn expected(client: &Arc<Client>) -> Option<Self> {
        let is_expected = client.has_stream() && client.late_lists() < MOST_LATE_LISTS;
        is_expected.then(|| Self {
            client: client.clone(),
            listed: client.tools_listed.subscribe(),
            tools_told: client.tools_told(),
        })
    }

    /// Returns when the client has its new list, or has had the time to get it.
    pub(crate) async fn done(mut self) {
        if self.client.tools_told() == self.tools_told {
            return;
        }
        let listed = tokio::time::timeout(LIST_WITHIN, self.listed.changed()).await;
        self.client.note_relist(listed.is_err());
        if listed.is_ok() {
            tokio::time::sleep(READ_WITHIN).await;
        }
    }
}
