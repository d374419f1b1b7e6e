//! The source of call records: a running instance, or the store in the data directory.

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp};
use switchboard_api::{RecordList, RecordView};
use switchboard_http::present;
use switchboard_model::{CallId, CanonicalName};
use switchboard_sessions::recorded_session_ids;
use switchboard_store::{CallExport, CallFilter, ExportError, Store};

use super::calls_none::KnownNames;
use crate::args::Globals;
use crate::calls_args::CallFilterArguments;
use crate::embedded::open_store;
use crate::failure::Failure;
use crate::remote::{Remote, RemoteLines};

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

    /// One record.
    pub(crate) async fn call(&self, id: &str) -> Result<Option<RecordView>, Failure> {
        match self {
            Self::Remote(remote) => remote.get::<RecordView>(&["calls", id], &[]).await.map(Some),
            Self::Store(store) => {
                let found = store.call(&CallId(id.to_owned()), None).await?;
                Ok(found.as_ref().map(present::record))
            }
        }
    }

    /// Starts an export. The records come in the order in which they were written.
    pub(crate) async fn export(
        &self,
        filter: CallFilter,
        after: Option<&str>,
    ) -> Result<RecordLines, Failure> {
        match self {
            Self::Remote(remote) => {
                let mut query = conditions(&filter);
                query.extend(after.map(|id| ("after", id.to_owned())));
                let body = remote.lines(&["calls", "export"], &query).await?;
                Ok(RecordLines::Remote(body))
            }
            Self::Store(store) => {
                let after = after.map(|id| CallId(id.to_owned()));
                let export = store.export_calls(filter, after.as_ref()).await;
                Ok(RecordLines::Store(export.map_err(export_failure)?))
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

/// The records of an export as JSON lines, in pieces of any length.
pub(crate) enum RecordLines {
    Remote(RemoteLines),
    Store(CallExport),
}

impl RecordLines {
    /// The next piece; `None` at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<Vec<u8>>, Failure> {
        match self {
            Self::Remote(body) => body.next().await,
            Self::Store(export) => {
                let page = export.next().await.map_err(export_failure)?;
                Ok(page.map(|records| present::record_lines(&records)))
            }
        }
    }
}

fn export_failure(error: ExportError) -> Failure {
    match error {
        ExportError::Store(error) => error.into(),
        ExportError::UnknownRecord(_) => Failure::usage(error.to_string())
            .with_hint(Some("use the id of the last record of an export, or --since".into())),
        ExportError::Deleted => Failure::start(error.to_string())
            .with_hint(Some("continue with --after and the id of the last line".into())),
    }
}

/// The filter from the command line.
pub(crate) fn filter(wanted: &CallFilterArguments, now: Timestamp) -> Result<CallFilter, Failure> {
    let moment = |option: &str, text: &Option<String>| {
        text.as_deref().map(|text| moment(now, option, text)).transpose()
    };
    let (since, until) = (moment("--since", &wanted.since)?, moment("--until", &wanted.until)?);
    Ok(CallFilter {
        tool: wanted.tool.clone(),
        server: wanted.server.clone(),
        sessions: wanted.session.iter().cloned().collect(),
        outcome: wanted.outcome,
        principal: wanted.principal.clone(),
        person: wanted.person.clone(),
        owner: wanted.owner.clone(),
        since_ms: since.map(Timestamp::as_millisecond),
        until_ms: until.map(Timestamp::as_millisecond),
        ..CallFilter::default()
    })
}

fn query(filter: &CallFilter) -> Vec<(&'static str, String)> {
    let mut query = vec![("limit", filter.limit.to_string())];
    query.extend(conditions(filter));
    let before = filter.before.as_ref().map(|CallId(id)| id.clone());
    query.extend(before.map(|id| ("before", id)));
    query
}

/// The query of a filter without its page.
fn conditions(filter: &CallFilter) -> Vec<(&'static str, String)> {
    let moment = |at_ms: i64| {
        Timestamp::from_millisecond(at_ms).unwrap_or(Timestamp::UNIX_EPOCH).to_string()
    };
    let optional = [
        ("tool", filter.tool.clone()),
        ("server", filter.server.clone()),
        // A running instance resolves the other ids of the session.
        ("session", filter.sessions.first().cloned()),
        ("outcome", filter.outcome.map(|outcome| outcome.as_str().to_owned())),
        ("principal", filter.principal.clone()),
        ("person", filter.person.clone()),
        ("owner", filter.owner.clone()),
        ("since", filter.since_ms.map(moment)),
        ("until", filter.until_ms.map(moment)),
        ("ended_since", filter.ended_since_ms.map(moment)),
    ];
    optional.into_iter().filter_map(|(key, value)| Some((key, value?))).collect()
}

/// Parses a past time: a timestamp, a date, or a duration before now. The default time zone is UTC.
fn moment(now: Timestamp, option: &str, text: &str) -> Result<Timestamp, Failure> {
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
        Failure::usage(format!("the value {text:?} of {option} {what}"))
            .with_hint(Some(hint.into()))
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
            let moment = moment(now, "--since", text).map(|moment| moment.to_string());
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
