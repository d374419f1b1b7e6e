//! Reads server-sent events one by one.

use reqwest::{Method, Response};
use serde_json::Value;

use crate::api_server::{Api, PATIENCE};

/// One event.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Event {
    pub(crate) name: String,
    pub(crate) id: String,
    pub(crate) data: Value,
}

/// An open event stream. Dropping it closes the connection.
#[derive(Debug)]
pub(crate) struct EventReader {
    response: Response,
    text: String,
}

impl EventReader {
    /// Opens the stream at this path, after the event with the id `last`.
    pub(crate) async fn open(api: &Api, path: &str, last: Option<&str>) -> Self {
        let request = api.request(Method::GET, path);
        Self::of(match last {
            Some(last) => request.header("last-event-id", last),
            None => request,
        })
        .await
    }

    /// Begins a turn and reads its events.
    pub(crate) async fn begin_turn(api: &Api, session: &str, body: Value) -> Self {
        let request = api.request(Method::POST, &format!("{session}/turns"));
        Self::of(request.header("accept", "text/event-stream").json(&body)).await
    }

    pub(crate) async fn of(request: reqwest::RequestBuilder) -> Self {
        let response = tokio::time::timeout(PATIENCE, request.send()).await.unwrap().unwrap();
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        assert_eq!(response.headers()["cache-control"], "no-cache");
        Self { response, text: String::new() }
    }

    /// The next event; `None` at the end of the stream. Comments are skipped.
    pub(crate) async fn next(&mut self) -> Option<Event> {
        let next = tokio::time::timeout(PATIENCE, self.read_next()).await;
        next.unwrap_or_else(|_| panic!("neither an event nor the end of the stream"))
    }

    async fn read_next(&mut self) -> Option<Event> {
        loop {
            if let Some((frame, rest)) = self.text.split_once("\n\n") {
                let (event, rest) = (read(frame), rest.to_owned());
                self.text = rest;
                match event {
                    Some(event) => return Some(event),
                    None => continue,
                }
            }
            let chunk = self.response.chunk().await.unwrap()?;
            self.text.push_str(std::str::from_utf8(&chunk).unwrap());
        }
    }

    /// The events up to and including the first one of this name.
    pub(crate) async fn until(&mut self, name: &str) -> Vec<Event> {
        let mut events = Vec::new();
        while events.last().is_none_or(|event: &Event| event.name != name) {
            let Some(event) = self.next().await else { panic!("no {name} in {events:#?}") };
            events.push(event);
        }
        events
    }

    /// The events up to the end of the stream.
    pub(crate) async fn rest(&mut self) -> Vec<Event> {
        let mut events = Vec::new();
        while let Some(event) = self.next().await {
            events.push(event);
        }
        events
    }
}

/// An event, or `None` for a comment.
fn read(frame: &str) -> Option<Event> {
    let mut event = Event::default();
    for line in frame.lines() {
        match line.split_once(": ") {
            Some(("event", name)) => name.clone_into(&mut event.name),
            Some(("id", id)) => id.clone_into(&mut event.id),
            Some(("data", data)) => event.data = serde_json::from_str(data).unwrap(),
            _ if line.starts_with(':') => {}
            _ => panic!("this is no line of an event: {line:?}"),
        }
    }
    (event != Event::default()).then_some(event)
}

/// The names and ids of events.
pub(crate) fn names_and_ids(events: &[Event]) -> Vec<(&str, &str)> {
    events.iter().map(|event| (&*event.name, &*event.id)).collect()
}
