//! The source of call records: a running instance, or the store in the data directory.

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp};
use switchboard_api::{RecordList, RecordView};
use switchboard_http::present;
use switchboard_model::{CallId, CanonicalName};
use switchboard_sessions::recorded_session_ids;
use switchboard_store::{CallFilter, Store};

use super::calls_none::KnownNames;
use crate::args::{CallsArguments, Globals};
use crate::embedded::open_store;
use crate::failure::Failure;
use crate::remote::Remote;

/// Reads records and stored results.
pub(crate) enum CallSource {
    Remote(Remote),
    Store(Store),
}

impl CallSource {
    pub(crate) async fn open(globals: &Globals) -> Result<Self, Failure> {
        Ok(match &globals.url {
            Some(url) => Self::Remote(Remote::new(url)?),
            None => Self::Store(open_store(globals).await?),
        })
    }

    /// The records that match the filter, newest first.
    pub(crate) async fn read(&self, filter: &CallFilter) -> Result<Vec<RecordView>, Failure> {
        match self {
            Self::Remote(remote) => {
                Ok(remote.get::<RecordList>(&["calls"], &query(filter)).await?.calls)
            }
            Self::Store(store) => {
                Ok(store.recent_calls(filter).await?.iter().map(present::record).collect())
            }
        }
    }

    /// Adds every id that the named session may have to the filter when the store is read directly. A running instance
    /// does that itself.
    pub(crate) async fn prepared(&self, filter: CallFilter) -> Result<CallFilter, Failure> {
        let (Self::Store(store), Some(session)) = (self, filter.sessions.first()) else {
            return Ok(filter);
        };
        let sessions = recorded_session_ids(store, session).await?;
        Ok(CallFilter { sessions, ..filter })
    }

    /// The names of known tools and servers, including those that occur only in records.
    pub(crate) async fn known_names(&self) -> Result<KnownNames, Failure> {
        match self {
            Self::Remote(remote) => {
                let tools = remote.tools().await?.tools.into_iter();
                let servers = remote.servers().await?.servers.into_iter();
                Ok(KnownNames {
                    tools: tools.map(|tool| (tool.name, tool.server)).collect(),
                    servers: servers.map(|server| server.name).collect(),
                })
            }
            Self::Store(store) => {
                let tools = store.recorded_tools().await?;
                let named = |tool: &CanonicalName| (tool.to_string(), tool.server().to_string());
                Ok(KnownNames {
                    tools: tools.iter().map(named).collect(),
                    servers: tools.iter().map(|tool| tool.server().to_string()).collect(),
                })
            }
        }
    }

    /// A slice of a stored result and the length of the whole; `None` if there is no such result.
    pub(crate) async fn result(
        &self,
        handle: &str,
        offset: u64,
        length: u64,
    ) -> Result<Option<(Vec<u8>, u64)>, Failure> {
        match self {
            Self::Remote(remote) => remote.result(handle, offset).await.map(Some),
            Self::Store(store) => {
                let slice = store.read_result(handle, offset, length).await?;
                Ok(slice.map(|slice| (slice.bytes, slice.total)))
            }
        }
    }
}

/// The filter from the command line.
pub(crate) fn filter(wanted: &CallsArguments, now: Timestamp) -> Result<CallFilter, Failure> {
    let since = wanted.since.as_deref().map(|text| since(now, text)).transpose()?;
    Ok(CallFilter {
        limit: wanted.limit,
        tool: wanted.tool.clone(),
        server: wanted.server.clone(),
        sessions: wanted.session.iter().cloned().collect(),
        outcome: wanted.outcome,
        since_ms: since.map(Timestamp::as_millisecond),
        ended_since_ms: None,
        before: None,
    })
}

fn query(filter: &CallFilter) -> Vec<(&'static str, String)> {
    let moment = |at_ms: i64| {
        Timestamp::from_millisecond(at_ms).unwrap_or(Timestamp::UNIX_EPOCH).to_string()
    };
    let mut query = vec![("limit", filter.limit.to_string())];
    let optional = [
        ("tool", filter.tool.clone()),
        ("server", filter.server.clone()),
        // A running instance resolves the other ids of the session.
        ("session", filter.sessions.first().cloned()),
        ("outcome", filter.outcome.map(|outcome| outcome.as_str().to_owned())),
        ("since", filter.since_ms.map(moment)),
        ("ended_since", filter.ended_since_ms.map(moment)),
        ("before", filter.before.as_ref().map(|CallId(id)| id.clone())),
    ];
    query.extend(optional.into_iter().filter_map(|(key, value)| Some((key, value?))));
    query
}

/// Parses a past time: a timestamp, a date, or a duration before now. The default time zone is UTC.
fn since(now: Timestamp, text: &str) -> Result<Timestamp, Failure> {
    let text = text.trim();
    if let Ok(moment) = text.parse::<Timestamp>() {
        return Ok(moment);
    }
    // A date without a time means midnight.
    if let Ok(moment) = text.parse::<DateTime>().and_then(|local| local.to_zoned(TimeZone::UTC)) {
        return Ok(moment.timestamp());
    }
    let wrong = |what: &str| {
        let hint = "write a duration such as `15m`, `2h` or `3d`, a timestamp such as `2026-11-17T08:00:00Z`, or a date";
        Failure::usage(format!("the value {text:?} of --since {what}")).with_hint(Some(hint.into()))
    };
    let span: Span = text.parse().map_err(|_| wrong("is neither a duration nor a timestamp"))?;
    if span.is_negative() {
        return Err(wrong("is in the future"));
    }
    let moment = now.to_zoned(TimeZone::UTC).checked_sub(span).map_err(|_| wrong("is too long"))?;
    Ok(moment.timestamp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn since_is_a_duration_or_a_timestamp() {
        #[track_caller]
        fn check(text: &str, expected: Result<&str, &str>) {
            let now: Timestamp = "2026-03-01T12:00:00Z".parse().unwrap();
            let moment = since(now, text).map(|moment| moment.to_string());
            match (moment, expected) {
                (Ok(moment), Ok(expected)) => assert_eq!(moment, expected),
                (Err(failure), Err(expected)) => {
                    assert!(failure.text().contains(expected), "{}", failure.text());
                }
                (moment, _) => panic!("{text}: {:?}", moment.map_err(|failure| failure.text())),
            }
        }
        check("15m", Ok("2026-03-01T11:45:00Z"));
        check("2d", Ok("2026-02-27T12:00:00Z"));
        check("PT1H", Ok("2026-03-01T11:00:00Z"));
        check("2026-02-03T04:05:06Z", Ok("2026-02-03T04:05:06Z"));
        check("2026-02-03T04:05:06+02:00", Ok("2026-02-03T02:05:06Z"));
        check("2026-02-03", Ok("2026-02-03T00:00:00Z"));
        check("2026-02-03T04:05", Ok("2026-02-03T04:05:00Z"));
        check("2026-02-30", Err("is neither a duration nor a timestamp"));
        check("yesterday", Err("is neither a duration nor a timestamp"));
        check("-5m", Err("is in the future"));
        check("90000y", Err("--since"));
    }
}
