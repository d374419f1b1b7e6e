//! A session with a conversation.

use std::time::Duration;

use reqwest::header::ACCEPT;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use switchboard_chat::{History, Message};
use switchboard_test_support::wait_until;

use crate::chat::{Answer, Chat};
use crate::events::{Event, Events};
use crate::lab::SECRET;
use crate::support::PATIENCE;

#[derive(Debug, Clone)]
pub(crate) struct Talk {
    pub(crate) chat: Chat,
}

/// A turn as its events tell it.
#[derive(Debug)]
pub(crate) struct EventReceiver(pub(crate) Vec<Event>);

impl Talk {
    /// A turn, waited for.
    pub(crate) async fn try_turn(&self, body: Value) -> Answer {
        self.chat.api.send(Method::POST, &self.chat.path("/turns"), Some(body)).await
    }

    pub(crate) async fn turn(&self, body: Value) -> Value {
        let turn = self.try_turn(body).await.good();
        assert!(!turn.to_string().contains(SECRET), "{turn:#}");
        turn
    }

    /// A turn that has to work, and the text of its end.
    pub(crate) async fn say(&self, provider: &str, text: &str) -> String {
        let turn = self.turn(json!({"provider": provider, "message": text})).await;
        assert_eq!(turn["status"], "completed", "{provider}: {turn:#}");
        self.history().await;
        turn["text"].as_str().unwrap().to_owned()
    }

    /// Begins a turn and follows it.
    pub(crate) async fn begin(&self, body: Value) -> Events {
        let request = self.chat.api.request(Method::POST, &self.chat.path("/turns"));
        let response =
            request.header(ACCEPT, "text/event-stream").json(&body).send().await.unwrap();
        assert_eq!(response.status(), StatusCode::OK, "{:?}", response.text().await);
        Events::of(response)
    }

    /// A turn from its first event to its last.
    pub(crate) async fn hear(&self, body: Value) -> EventReceiver {
        heard_out(self.begin(body).await).await
    }

    /// A change that the running turn sees at once.
    pub(crate) async fn apply_now(&self, method: Method, tail: &str, body: Value) -> Value {
        let path = self.chat.path(&format!("{tail}?apply=now"));
        self.chat.api.send(method, &path, Some(body)).await.good()
    }

    /// The stored conversation, which is valid.
    pub(crate) async fn history(&self) -> Vec<Message> {
        let written = self.chat.get("/history").await;
        assert!(!written.to_string().contains(SECRET), "{written:#}");
        let history: History = serde_json::from_value(written).unwrap();
        switchboard_chat::check(&history.messages).unwrap();
        history.messages
    }

    /// The ids of all calls, in their order.
    pub(crate) async fn call_ids(&self) -> Vec<String> {
        let messages = self.history().await;
        let calls = messages.iter().filter_map(|message| match message {
            Message::Assistant(reply) => Some(reply.calls()),
            Message::System(_) | Message::User(_) | Message::Tool(_) => None,
        });
        calls.flatten().map(|call| call.id.clone()).collect()
    }

    /// The texts and error flags of all results, in their order.
    pub(crate) async fn results(&self) -> Vec<(String, bool)> {
        let messages = self.history().await;
        let results = messages.into_iter().filter_map(|message| match message {
            Message::Tool(result) => Some((text_of(&json!(result.content)), result.is_error)),
            Message::System(_) | Message::User(_) | Message::Assistant(_) => None,
        });
        results.collect()
    }
}

/// All texts of a content, joined.
pub(crate) fn text_of(content: &Value) -> String {
    let parts = content.as_array().into_iter().flatten();
    parts.filter_map(|part| part["text"].as_str()).collect()
}

/// Waits until an event of this name came.
pub(crate) async fn until_event(events: &Events, name: &str) -> Event {
    let found = tokio::time::timeout(PATIENCE, async {
        loop {
            if let Some(event) = events.heard().into_iter().find(|event| event.name == name) {
                return event;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    found.await.unwrap_or_else(|_| panic!("no {name} in {:#?}", events.heard()))
}

/// Waits for the end of the stream, which is the end of the turn.
pub(crate) async fn heard_out(mut events: Events) -> EventReceiver {
    events.ended().await;
    let heard = EventReceiver(events.heard());
    heard.assert_whole();
    heard
}

pub(crate) async fn until(what: impl AsyncFn() -> bool) {
    wait_until(PATIENCE, async || what().await.then_some(())).await;
}

impl EventReceiver {
    /// Ids are counted without a gap, `done` is the last event and the only one of its kind, and no key is shown.
    #[track_caller]
    pub(crate) fn assert_whole(&self) {
        let ids: Vec<_> = self.0.iter().map(|event| event.id.parse::<usize>().unwrap()).collect();
        assert_eq!(ids, (1..=self.0.len()).collect::<Vec<_>>(), "{:#?}", self.names());
        assert_eq!(self.count("done"), 1, "{:?}", self.names());
        assert_eq!(self.0.last().unwrap().name, "done");
        assert!(self.count("error") <= 1, "{:?}", self.names());
        for event in &self.0 {
            assert!(!event.data.to_string().contains(SECRET), "{event:#?}");
        }
    }

    pub(crate) fn names(&self) -> Vec<&str> {
        self.0.iter().map(|event| event.name.as_str()).collect()
    }

    pub(crate) fn count(&self, name: &str) -> usize {
        self.0.iter().filter(|event| event.name == name).count()
    }

    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Value> {
        self.0.iter().filter(move |event| event.name == name).map(|event| &event.data)
    }

    pub(crate) fn status(&self) -> &str {
        self.0.last().unwrap().data["status"].as_str().unwrap()
    }

    /// The kind of the one error.
    pub(crate) fn error(&self) -> &str {
        let error = self.all("error").next();
        error.map_or("", |data| data["error"]["kind"].as_str().unwrap())
    }

    /// What was said since a model was asked last.
    pub(crate) fn text(&self) -> String {
        let last = self.0.iter().rposition(|event| event.name == "started").unwrap_or_default();
        let deltas = self.0.iter().skip(last).filter(|event| event.name == "content");
        deltas.map(|event| event.data["delta"].as_str().unwrap()).collect()
    }
}
