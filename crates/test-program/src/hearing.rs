//! A client's stream of server-initiated messages.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use reqwest::Response;
use serde_json::Value;
use switchboard_test_support::wait_until;
use tokio::task::JoinSet;

use crate::support::PATIENCE;

pub const CHANGED: &str = "notifications/tools/list_changed";
/// How long to wait before concluding that no further message comes.
const QUIET: Duration = Duration::from_secs(1);

/// Collects messages; dropping it closes the stream.
#[derive(Debug)]
pub struct Hearing {
    heard: Arc<Mutex<Vec<Value>>>,
    reading: JoinSet<()>,
}

impl Hearing {
    pub fn of(mut response: Response) -> Self {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let gathered = heard.clone();
        let mut reading = JoinSet::new();
        reading.spawn(async move {
            let mut text = Vec::new();
            while let Ok(Some(chunk)) = response.chunk().await {
                text.extend_from_slice(&chunk);
                while let Some(end) = text.iter().position(|byte| *byte == b'\n') {
                    let line: Vec<u8> = text.drain(..=end).collect();
                    gathered.lock().unwrap().extend(message(&line));
                }
            }
        });
        Self { heard, reading }
    }

    pub fn heard(&self) -> Vec<Value> {
        self.heard.lock().unwrap().clone()
    }

    /// Number of received `notifications/tools/list_changed`.
    pub fn changes(&self) -> usize {
        self.heard().iter().filter(|message| message["method"] == CHANGED).count()
    }

    /// Waits for that many changes, and checks that no more come.
    #[track_caller]
    pub fn settles(&self, expected: usize) -> impl Future<Output = ()> {
        let place = std::panic::Location::caller();
        async move {
            self.until(expected).await;
            tokio::time::sleep(QUIET).await;
            assert_eq!(self.changes(), expected, "{place}: {:#?}", self.heard());
        }
    }

    /// Waits for that many changes.
    pub async fn until(&self, expected: usize) {
        let enough = async || (self.changes() >= expected).then_some(());
        wait_until(PATIENCE, enough).await;
    }

    /// Waits for a message that matches.
    pub async fn message(&self, is_wanted: impl Fn(&Value) -> bool) -> Value {
        let wanted = async || self.heard().into_iter().find(|message| is_wanted(message));
        wait_until(PATIENCE, wanted).await
    }

    /// Waits until the server has closed the stream.
    pub async fn ended(&mut self) {
        tokio::time::timeout(PATIENCE, self.reading.join_next()).await.expect("it ends");
    }
}

/// The message in a line of an event stream.
pub fn message(line: &[u8]) -> Option<Value> {
    serde_json::from_slice(line.strip_prefix(b"data:")?).ok()
}
