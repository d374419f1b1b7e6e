//! `calls --follow`: shows calls as they end.
//!
//! A record is written when its call ends, but records are ordered by the start of the call. New records are therefore
//! found by their end time, not by their position in the list. All times come from the records, so the clock of this
//! machine does not matter.

use std::collections::HashMap;
use std::time::Duration;

use jiff::Timestamp;
use switchboard_api::RecordView;
use switchboard_model::CallId;
use switchboard_store::CallFilter;

use super::calls_source::CallSource;
use crate::failure::Failure;

/// Pause between two polls.
const PAUSE: Duration = Duration::from_secs(1);
/// How far back each poll looks again, because records of calls that ended at about the same time may be written out of
/// order.
const OVERLAP_MS: i64 = 5_000;
/// Number of records per request.
const PAGE: u32 = 1000;
/// Maximum number of pages per poll; further records count as missed.
const MAX_PAGES: usize = 20;

/// The records that are new since the last poll.
#[derive(Debug, Default)]
pub(crate) struct NewRecords {
    /// The records in the order in which their calls ended.
    pub(crate) calls: Vec<RecordView>,
    /// Whether there were more records than one poll reads.
    pub(crate) is_incomplete: bool,
}

/// Polls for new records that match a filter.
pub(crate) struct Follower {
    filter: CallFilter,
    /// Ids of shown records that the next poll may return again, with their end times.
    seen: HashMap<String, i64>,
    newest_end_ms: Option<i64>,
}

impl Follower {
    pub(crate) fn new(filter: CallFilter) -> Self {
        Self { filter, seen: HashMap::new(), newest_end_ms: None }
    }

    /// The first batch: the newest records, up to the filter's limit.
    pub(crate) async fn first(&mut self, source: &CallSource) -> Result<NewRecords, Failure> {
        let calls = source.read(&self.filter).await?;
        Ok(NewRecords { calls: self.unseen(calls), is_incomplete: false })
    }

    /// Waits for the pause and polls again.
    pub(crate) async fn next(&mut self, source: &CallSource) -> Result<NewRecords, Failure> {
        tokio::time::sleep(PAUSE).await;
        self.look(source).await
    }

    async fn look(&mut self, source: &CallSource) -> Result<NewRecords, Failure> {
        let ended_since_ms = self.newest_end_ms.map(|end| end - OVERLAP_MS);
        let mut filter =
            CallFilter { limit: PAGE, ended_since_ms, before: None, ..self.filter.clone() };
        let mut calls = Vec::new();
        for _page in 0..MAX_PAGES {
            let page = source.read(&filter).await?;
            let is_last = page.len() < PAGE as usize;
            filter.before = page.last().map(|call| CallId(call.id.clone()));
            calls.extend(page);
            if is_last {
                return Ok(NewRecords { calls: self.unseen(calls), is_incomplete: false });
            }
        }
        Ok(NewRecords { calls: self.unseen(calls), is_incomplete: true })
    }

    fn unseen(&mut self, calls: Vec<RecordView>) -> Vec<RecordView> {
        let mut new: Vec<_> = calls
            .into_iter()
            .filter(|call| !self.seen.contains_key(&call.id))
            .map(|call| (end_ms(&call), call))
            .collect();
        new.sort_by(|(one, a), (other, b)| one.cmp(other).then_with(|| a.id.cmp(&b.id)));
        for (end, call) in &new {
            self.seen.insert(call.id.clone(), *end);
            self.newest_end_ms = self.newest_end_ms.max(Some(*end));
        }
        // The next poll does not look back further than this.
        let oldest = self.newest_end_ms.map_or(i64::MIN, |end| end - 2 * OVERLAP_MS);
        self.seen.retain(|_, end| *end >= oldest);
        new.into_iter().map(|(_, call)| call).collect()
    }
}

fn end_ms(call: &RecordView) -> i64 {
    let start: Timestamp = call.started_at.parse().unwrap_or_default();
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a duration in milliseconds is far below 2^63"
    )]
    let took = (call.wait_ms + call.run_ms) as i64;
    start.as_millisecond().saturating_add(took)
}

#[cfg(test)]
mod tests {
    use switchboard_model::{CallOutcome, CallRecord, Face, RecordedCaller};
    use switchboard_store::Store;

    use super::*;

    const START: i64 = 1_700_000_000_000;

    fn record(id: &str, start_ms: i64, took_ms: u64) -> CallRecord {
        CallRecord {
            id: CallId(id.into()),
            started_at_ms: START + start_ms,
            face: Face::Cli,
            caller: RecordedCaller::default(),
            session: None,
            tool: None,
            requested: id.into(),
            revision: 1,
            policy: None,
            argument_digest: String::new(),
            outcome: CallOutcome::Ok,
            message: None,
            wait: Duration::ZERO,
            run: Duration::from_millis(took_ms),
            result_bytes: 0,
            result_handle: None,
            arguments: None,
            result: None,
        }
    }

    async fn look(follower: &mut Follower, source: &CallSource) -> Vec<String> {
        let news = follower.look(source).await.map_err(|failure| failure.text()).unwrap();
        assert!(!news.is_incomplete);
        news.calls.into_iter().map(|call| call.id).collect()
    }

    #[tokio::test]
    async fn a_call_that_began_early_and_ended_late_is_shown_once() {
        let store = Store::in_memory().await.unwrap();
        store.record_calls(&[record("b", 600_000, 10)]).await.unwrap();
        let source = CallSource::Store(store.clone());
        let mut follower = Follower::new(CallFilter::newest(20));
        let first = follower.first(&source).await.map_err(|failure| failure.text()).unwrap();
        assert_eq!(first.calls.len(), 1);
        assert_eq!(look(&mut follower, &source).await, Vec::<String>::new());
        // This call started before the call that was shown, and ended after it.
        store.record_calls(&[record("a", 0, 700_000)]).await.unwrap();
        store.record_calls(&[record("c", 600_020, 1)]).await.unwrap();
        assert_eq!(look(&mut follower, &source).await, ["c", "a"]);
        assert_eq!(look(&mut follower, &source).await, Vec::<String>::new());
    }

    #[tokio::test]
    async fn more_calls_than_a_page_are_all_shown() {
        let store = Store::in_memory().await.unwrap();
        let source = CallSource::Store(store.clone());
        let mut follower = Follower::new(CallFilter::newest(20));
        follower.first(&source).await.map_err(|failure| failure.text()).unwrap();
        let many: Vec<_> = (0..2500).map(|n| record(&format!("{n:05}"), n, 0)).collect();
        store.record_calls(&many).await.unwrap();
        let shown = look(&mut follower, &source).await;
        assert_eq!(shown, many.into_iter().map(|call| call.id.0).collect::<Vec<_>>());
    }
}
