//! Callers of tools and readers of lists, which no fault of the store and no reload may affect.

use std::sync::Arc;

use reqwest::{Method, StatusCode};
use serde_json::json;

use crate::ledger::count;
use crate::program::{Got, Place};

pub(crate) async fn work(place: Arc<Place>) {
    let mut step = 0_u64;
    while !place.is_stopped() {
        step += 1;
        let (kills, was_failing) = (place.kills(), place.is_store_failing());
        let got = if step.is_multiple_of(4) {
            place.api(Method::GET, "/tools", None).await
        } else {
            let body = json!({"arguments": {"n": step}});
            place.api(Method::POST, "/tools/shop.find/call", Some(body)).await
        };
        // What was asked of a program that was killed, or is starting, says nothing.
        if place.kills() != kills || kills % 2 == 1 {
            continue;
        }
        match got {
            Got::Answer(StatusCode::OK, _) => {
                count(&place.ledger.calls);
                if was_failing && place.is_store_failing() {
                    count(&place.ledger.calls_in_outages);
                }
            }
            other => place.ledger.violation(format!("a call of a tool failed: {other:?}")),
        }
    }
}
