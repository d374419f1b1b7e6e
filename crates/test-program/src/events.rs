//! The event stream of a session.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use reqwest::Response;
use serde_json::Value;
use switchboard_test_support::wait_until;
use tokio::task::JoinSet;

use crate::support::PATIENCE;

/// How long to wait before concluding that no further event comes.
const QUIET: Duration = Duration::from_millis(600);

/// One event.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Event {
    pub name: String,
    pub id: String,
    pub data: Value,
}

/// Collects events; dropping it closes the stream.
#[derive(Debug)]
pub struct Events {
    heard: Arc<Mutex<Vec<Event>>>,
    reading: JoinSet<()>,
}

impl Events {
    pub fn of(mut response: Response) -> Self {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let gathered = heard.clone();
        let mut reading = JoinSet::new();
        reading.spawn(async move {
            let (mut text, mut event) = (Vec::new(), Event::default());
            while let Ok(Some(chunk)) = response.chunk().await {
                text.extend_from_slice(&chunk);
                while let Some(end) = text.iter().position(|byte| *byte == b'\n') {
                    let line: Vec<u8> = text.drain(..=end).collect();
                    if read(&mut event, String::from_utf8(line).unwrap().trim_end()) {
                        gathered.lock().unwrap().push(std::mem::take(&mut event));
                    }
                }
            }
        });
        Self { heard, reading }
    }

    pub fn heard(&self) -> Vec<Event> {
        self.heard.lock().unwrap().clone()
    }

    /// Waits for that many events, and checks that no more come.
    #[track_caller]
    pub fn settles(&self, expected: usize) -> impl Future<Output = Vec<Event>> {
        let place = std::panic::Location::caller();
        async move {
            let enough = async || (self.heard().len() >= expected).then_some(());
            let came = tokio::time::timeout(PATIENCE, wait_until(PATIENCE * 2, enough)).await;
            assert!(came.is_ok(), "{place}: {expected} expected, {:#?} heard", self.heard());
            tokio::time::sleep(QUIET).await;
            let heard = self.heard();
            assert_eq!(heard.len(), expected, "{place}: {heard:#?}");
            heard
        }
    }

    /// Waits until the server has closed the stream.
    pub async fn ended(&mut self) {
        tokio::time::timeout(PATIENCE, self.reading.join_next()).await.expect("it ends");
    }
}

/// Reads a line; returns whether the event is complete.
fn read(event: &mut Event, line: &str) -> bool {
    match line.split_once(':') {
        Some(("event", name)) => name.trim().clone_into(&mut event.name),
        Some(("id", id)) => id.trim().clone_into(&mut event.id),
        Some(("data", data)) => event.data = serde_json::from_str(data).unwrap(),
        _ => return line.is_empty() && !event.name.is_empty(),
    }
    false
}
