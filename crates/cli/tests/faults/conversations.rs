//! A conversation with the demo model: acknowledged messages are kept, in order.

use std::sync::Arc;
use std::time::Duration;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::ledger::count;
use crate::program::{Got, Place};

const SESSION: &str = "talk";
/// A conversation is shown to its model whole; a longer one would measure only that.
const MOST_SAID: usize = 150;

/// What was said, and whether that was acknowledged.
#[derive(Debug, Default)]
pub(crate) struct Talk {
    said: Vec<(String, bool)>,
    refused: Vec<String>,
}

pub(crate) async fn work(place: Arc<Place>) -> Talk {
    let body = json!({"id": SESSION, "provider": "demo"});
    while !place.is_stopped() {
        // An answer that was lost is asked for again.
        match place.api(Method::POST, "/sessions", Some(body.clone())).await {
            Got::Answer(StatusCode::CREATED | StatusCode::CONFLICT, _) => break,
            Got::Answer(..) | Got::Nothing => sleep(Duration::from_millis(50)).await,
        }
    }
    let mut talk = Talk::default();
    let mut step = 0_usize;
    while !place.is_stopped() {
        step += 1;
        if talk.said.len() >= MOST_SAID {
            talk.verify(&place).await;
            sleep(Duration::from_millis(200)).await;
            continue;
        }
        let text = format!("message {step}.");
        let path = format!("/sessions/{SESSION}/turns");
        let got =
            place.api(Method::POST, &path, Some(json!({"message": format!("/say {text}")}))).await;
        match got {
            Got::Answer(StatusCode::OK | StatusCode::CREATED, _) => {
                count(&place.ledger.acknowledged);
                talk.said.push((text, true));
            }
            // A turn that was left by its client runs on.
            Got::Answer(StatusCode::SERVICE_UNAVAILABLE | StatusCode::CONFLICT, _) => {
                count(&place.ledger.refused);
                talk.refused.push(text);
                sleep(Duration::from_millis(50)).await;
            }
            Got::Answer(status, body) => {
                place.ledger.violation(format!("a turn is answered with {status}: {body}"));
            }
            Got::Nothing => {
                count(&place.ledger.unanswered);
                talk.said.push((text, false));
            }
        }
    }
    talk
}

impl Talk {
    pub(crate) async fn verify(&self, place: &Place) {
        let got = place.api(Method::GET, &format!("/sessions/{SESSION}/history"), None).await;
        let Got::Answer(StatusCode::OK, history) = got else { return };
        let messages = history["messages"].as_array().cloned().unwrap_or_default();
        let users = messages.iter().filter(|message| message["role"] == "user");
        let stored: Vec<String> = users.map(Value::to_string).collect();
        let mut rest = stored.iter();
        count(&place.ledger.compared);
        for (text, _) in self.said.iter().filter(|(_, is_acknowledged)| *is_acknowledged) {
            if !rest.any(|message| message.contains(text.as_str())) {
                place.ledger.violation(format!("{text:?} is lost, or not in its place"));
                return;
            }
        }
        for text in &self.refused {
            if stored.iter().any(|message| message.contains(text.as_str())) {
                place.ledger.violation(format!("{text:?} was refused and is there"));
            }
        }
    }
}
