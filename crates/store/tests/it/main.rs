//! The store against real databases: files of `SQLite`, and a temporary cluster of `PostgreSQL`.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![allow(clippy::duplicate_mod, reason = "both databases keep one contract")]

mod copying;
mod hints;
mod opening;
mod opening_postgres;

mod postgres {
    mod database;

    #[path = "../contract/mod.rs"]
    mod contract;
}

mod sqlite {
    mod database;

    #[path = "../contract/mod.rs"]
    mod contract;
}

use std::time::Duration;

use switchboard_model::{
    CallId, CallOutcome, CallRecord, CanonicalName, Face, RecordedCaller, ServerName,
};
use switchboard_store::{NewResult, ResultBounds};

const NO_BOUNDS: ResultBounds =
    ResultBounds { total_bytes: u64::MAX, owner_bytes: u64::MAX, count: u64::MAX };

fn kept<'a>(
    handle: &'a str,
    call: &'a CallId,
    body: &'a (impl AsRef<[u8]> + ?Sized),
    now_ms: i64,
) -> NewResult<'a> {
    NewResult { handle, call, owner: "me", body: body.as_ref(), now_ms }
}

/// An ordinary call; the larger `n`, the newer.
fn record(n: i64) -> CallRecord {
    CallRecord {
        id: CallId(format!("0190-{n:012}")),
        started_at_ms: 1_700_000_000_000 + n,
        face: Face::Http,
        caller: RecordedCaller {
            principal: Some("local".into()),
            client: Some("inspector".into()),
            ..RecordedCaller::default()
        },
        session: Some("work".into()),
        tool: Some(CanonicalName::new(&ServerName::new("crm"), "find.one")),
        requested: "find.one".into(),
        revision: 3,
        policy: None,
        argument_digest: "blake3:abc".into(),
        outcome: CallOutcome::Ok,
        message: None,
        wait: Duration::from_micros(7),
        run: Duration::from_millis(12),
        result_bytes: 99,
        result_handle: None,
        arguments: None,
        result: None,
    }
}
