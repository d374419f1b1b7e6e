//! Sessions that are created, changed, read and deleted over the API.

use std::collections::BTreeMap;
use std::sync::Arc;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::ledger::count;
use crate::program::{Got, Place};

/// How many sessions one worker has at a time.
const MOST: usize = 12;

/// What is known of one session.
#[derive(Debug, Default)]
struct Known {
    /// Titles that it may have: the last acknowledged one, and later ones without a response.
    titles: Vec<String>,
    /// It may be there, and may be gone.
    may_exist: bool,
    may_be_gone: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Model {
    sessions: BTreeMap<String, Known>,
}

pub(crate) async fn work(place: Arc<Place>, worker: usize) -> Model {
    let mut model = Model::default();
    let mut step = 0_usize;
    while !place.is_stopped() {
        step += 1;
        // Writes go to sessions that may be there, reads also to those that are gone.
        let is_write = (1..4).contains(&(step % 5));
        let fits = |known: &Known| known.may_exist || !is_write;
        let known = model.sessions.iter().filter(|(_, known)| fits(known));
        let known: Vec<String> = known.map(|(id, _)| id.clone()).collect();
        let one = known.get(step * 7 % known.len().max(1)).cloned();
        let live = model.sessions.values().filter(|known| known.may_exist).count();
        match (step % 5, one) {
            (0, _) | (_, None) if live < MOST => {
                let (id, title) = (format!("w{worker}-{step}"), format!("made {step}"));
                let body = json!({"id": id, "title": title});
                let got = place.api(Method::POST, "/sessions", Some(body)).await;
                let is_done = judge(&place, &got, &[201], "create");
                let known = model.sessions.entry(id).or_default();
                known.titles.push(title);
                (known.may_exist, known.may_be_gone) = match is_done {
                    Some(true) => (true, false),
                    Some(false) => (false, true),
                    None => (true, true),
                };
            }
            (1 | 2, Some(id)) => {
                let title = format!("changed {step}");
                let body = json!({"title": title, "toolsets": {"look": step.is_multiple_of(2)}});
                let path = format!("/sessions/{id}");
                let got = place.api(Method::PATCH, &path, Some(body)).await;
                model.compare_status(&place, &id, &got);
                let known = model.sessions.get_mut(&id).unwrap();
                match judge(&place, &got, &[200], "change") {
                    Some(true) => {
                        known.titles = vec![title];
                        known.may_be_gone = false;
                    }
                    Some(false) => {}
                    None => known.titles.push(title),
                }
            }
            (3, Some(id)) if live >= MOST => {
                let got = place.api(Method::DELETE, &format!("/sessions/{id}"), None).await;
                model.compare_status(&place, &id, &got);
                let known = model.sessions.get_mut(&id).unwrap();
                match judge(&place, &got, &[204], "end") {
                    Some(true) => (known.may_exist, known.may_be_gone) = (false, true),
                    Some(false) => {}
                    None => known.may_be_gone = true,
                }
            }
            (_, Some(id)) => {
                let got = place.api(Method::GET, &format!("/sessions/{id}"), None).await;
                model.compare(&place, &id, &got);
            }
            (_, None) => {}
        }
    }
    model
}

/// Whether a write happened; `None` if unknown.
pub(crate) fn judge(place: &Place, got: &Got, done: &[u16], what: &str) -> Option<bool> {
    let ledger = &place.ledger;
    match got {
        Got::Answer(status, _) if done.contains(&status.as_u16()) => {
            count(&ledger.acknowledged);
            Some(true)
        }
        Got::Answer(StatusCode::SERVICE_UNAVAILABLE | StatusCode::NOT_FOUND, _) => {
            count(&ledger.refused);
            Some(false)
        }
        Got::Answer(status, body) => {
            ledger.violation(format!("{what} is answered with {status}: {body}"));
            Some(false)
        }
        Got::Nothing => {
            count(&ledger.unanswered);
            None
        }
    }
}

impl Model {
    /// Compares whether a session is there with what was promised.
    fn compare_status(&self, place: &Place, id: &str, got: &Got) {
        let Got::Answer(status, body) = got else { return };
        let known = &self.sessions[id];
        let is_wrong = match *status {
            StatusCode::NOT_FOUND => !known.may_be_gone,
            StatusCode::OK | StatusCode::NO_CONTENT => !known.may_exist,
            _ => false,
        };
        count(&place.ledger.compared);
        if is_wrong {
            place
                .ledger
                .violation(format!("session {id} answers {status}, known is {known:?}: {body}"));
        }
    }

    fn compare(&self, place: &Place, id: &str, got: &Got) {
        self.compare_status(place, id, got);
        let Got::Answer(StatusCode::OK, body) = got else { return };
        let title = body["title"].as_str().unwrap_or_default();
        let known = &self.sessions[id];
        if !known.titles.iter().any(|known| known == title) {
            let text = format!("session {id} has the title {title:?}, known is {known:?}");
            place.ledger.violation(text);
        }
    }

    /// Compares everything, once the program has come back.
    pub(crate) async fn verify(&self, place: &Place) {
        for id in self.sessions.keys() {
            let got = place.api(Method::GET, &format!("/sessions/{id}"), None).await;
            if let Got::Answer(StatusCode::OK | StatusCode::NOT_FOUND, _) = &got {
                self.compare(place, id, &got);
            } else {
                place.ledger.violation(format!("session {id} cannot be read at the end: {got:?}"));
            }
        }
        let list = place.api(Method::GET, "/sessions", None).await;
        let Got::Answer(StatusCode::OK, list) = list else { panic!("no list: {list:?}") };
        let listed: Vec<&Value> = list["sessions"].as_array().unwrap().iter().collect();
        for (id, known) in &self.sessions {
            let is_listed = listed.iter().any(|session| session["id"] == *id);
            if (is_listed && !known.may_exist) || (!is_listed && !known.may_be_gone) {
                place.ledger.violation(format!("session {id} is listed: {is_listed}, {known:?}"));
            }
        }
    }
}
