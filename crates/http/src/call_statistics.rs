//! Statistics of calls: over time, from the records, and of this moment.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use axum::Json;
use axum::extract::Extension;
use serde::Deserialize;
use switchboard_api::{
    CallNumbers, CallPoint, CallSeries, CallStatistics, LoadView, ModelLoad, RunningCallView,
    SlotView,
};
use switchboard_auth::Principal;
use switchboard_runtime::RunningCall;
use switchboard_store::{CallFilter, CallTimes};

use crate::answers::{BadRequest, Guarded, StoreFailed};
use crate::call_records::{moment, visible_to};
use crate::extract::FromQuery;
use crate::present;
use crate::problem::{ProblemResponse, bad_query};
use crate::ready::{Ready, ReadyParts};

/// The maximum number of calls that are read at once: that of the records by default.
const MAX_CALLS: u32 = 100_000;
/// The maximum number of intervals in a response.
const MAX_POINTS: i64 = 2_000;
/// The number of intervals if the request does not say how long they are.
const USUAL_POINTS: i64 = 60;
const MAX_SERIES: usize = 100;
const MAX_RUNNING: usize = 1_000;
const HOUR_MS: i64 = 60 * 60 * 1000;

/// Selects and groups calls.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct StatisticsQuery {
    /// Calls that started at this time or later, an RFC 3339 timestamp. If absent, an hour before the end.
    #[param(max_length = 512, nullable = false, format = DateTime, example = "2026-11-17T08:00:00Z")]
    from: Option<String>,
    /// Calls that started before this time, an RFC 3339 timestamp. If absent, now.
    #[param(max_length = 512, nullable = false, format = DateTime, example = "2026-11-17T09:00:00Z")]
    to: Option<String>,
    /// The length of an interval in seconds. If absent, a sixtieth of the period. At most 2000 intervals.
    #[param(minimum = 1, maximum = 31_536_000, nullable = false)]
    step: Option<i64>,
    /// What the calls are grouped by.
    #[serde(default)]
    #[param(inline)]
    by: GroupBy,
    /// Only calls of this tool: its canonical or bare name, or the name that the caller used.
    #[param(max_length = 512, nullable = false)]
    tool: Option<String>,
    /// Only calls of tools of this server.
    #[param(max_length = 512, nullable = false)]
    server: Option<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum GroupBy {
    #[default]
    Outcome,
    Tool,
    Server,
    Face,
}

/// Show statistics of calls over time
///
/// How many calls there were in each interval, how many failed, and how long they ran, from the records. With the role
/// `client` only the calls of the caller itself and those in its sessions.
#[utoipa::path(
    get,
    path = "/api/v1/stats/calls",
    operation_id = "getCallStatistics",
    tag = "calls",
    params(StatisticsQuery),
    responses(
        (status = 200, description = "The statistics.", body = CallStatistics),
        Guarded,
        BadRequest,
        StoreFailed,
    )
)]
pub(crate) async fn over_time(
    Ready(board): Ready,
    Extension(principal): Extension<Principal>,
    FromQuery(query): FromQuery<StatisticsQuery>,
) -> Result<Json<CallStatistics>, ProblemResponse> {
    for (name, word) in [("tool", &query.tool), ("server", &query.server)] {
        if word.as_ref().is_some_and(|word| word.chars().count() > 512) {
            return Err(bad_query(format!("`{name}` has at most 512 characters")));
        }
    }
    let now = jiff::Timestamp::now().as_millisecond();
    let to_ms = moment("to", query.to.as_deref())?.unwrap_or(now.saturating_add(1));
    let from_ms =
        moment("from", query.from.as_deref())?.unwrap_or_else(|| to_ms.saturating_sub(HOUR_MS));
    let period = Period::new(from_ms, to_ms, query.step)?;
    let filter = CallFilter {
        limit: MAX_CALLS,
        since_ms: Some(from_ms),
        until_ms: Some(to_ms),
        tool: query.tool,
        server: query.server,
        visible_to: visible_to(&principal),
        ..CallFilter::default()
    };
    board.flush_records().await;
    let calls = board.store().call_times(&filter).await?;
    Ok(Json(statistics(period, query.by, &calls)))
}

/// Times in milliseconds.
#[derive(Debug, Clone, Copy)]
struct Period {
    from: i64,
    to: i64,
    step: i64,
}

impl Period {
    fn new(from_ms: i64, to_ms: i64, step: Option<i64>) -> Result<Self, ProblemResponse> {
        let length = to_ms.saturating_sub(from_ms);
        if length <= 0 {
            return Err(bad_query("`from` must be before `to`".into()));
        }
        let step_ms = match step {
            Some(seconds) if !(1..=31_536_000).contains(&seconds) => {
                return Err(bad_query("`step` is 1 to 31536000".into()));
            }
            Some(seconds) => seconds * 1000,
            None => (length / USUAL_POINTS).max(1),
        };
        if length / step_ms > MAX_POINTS {
            let detail =
                format!("`step` is too short: the period has more than {MAX_POINTS} intervals");
            return Err(bad_query(detail));
        }
        Ok(Self { from: from_ms, to: to_ms, step: step_ms })
    }

    /// The beginning of the interval of a time.
    fn interval(self, at_ms: i64) -> i64 {
        let steps = at_ms.saturating_sub(self.from) / self.step;
        self.from.saturating_add(steps.saturating_mul(self.step))
    }
}

fn statistics(period: Period, by: GroupBy, calls: &[CallTimes]) -> CallStatistics {
    let mut groups: HashMap<Option<&str>, Vec<&CallTimes>> = HashMap::new();
    for call in calls {
        let key = match by {
            GroupBy::Outcome => Some(&*call.outcome),
            GroupBy::Tool => call.tool.as_deref(),
            GroupBy::Server => call.server.as_deref(),
            GroupBy::Face => Some(&*call.face),
        };
        groups.entry(key).or_default().push(call);
    }
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by(|one, other| other.1.len().cmp(&one.1.len()).then(one.0.cmp(&other.0)));
    let rest: Vec<_> = groups.drain(groups.len().min(MAX_SERIES)..).flat_map(|it| it.1).collect();
    if !rest.is_empty() {
        match groups.iter_mut().find(|(key, _)| key.is_none()) {
            Some((_, calls)) => calls.extend(rest),
            None => groups.push((None, rest)),
        }
    }
    let series = groups.into_iter().map(|(key, calls)| series(period, key, &calls));
    CallStatistics {
        from_ms: period.from,
        to_ms: period.to,
        step_ms: period.step,
        series: series.collect(),
        cut: calls.len() >= MAX_CALLS as usize,
    }
}

fn series(period: Period, key: Option<&str>, calls: &[&CallTimes]) -> CallSeries {
    let mut intervals: BTreeMap<i64, Vec<&CallTimes>> = BTreeMap::new();
    for call in calls {
        intervals.entry(period.interval(call.started_at_ms)).or_default().push(call);
    }
    let points = intervals.into_iter();
    let points = points.map(|(t_ms, calls)| CallPoint { t_ms, numbers: numbers(&calls) });
    CallSeries { key: key.map(str::to_owned), total: numbers(calls), points: points.collect() }
}

fn numbers(calls: &[&CallTimes]) -> CallNumbers {
    let mut runs: Vec<_> = calls.iter().map(|call| call.run).collect();
    runs.sort_unstable();
    // The nearest rank: the smallest value that this share of the calls does not exceed.
    let share = |percent: usize| {
        let rank = (runs.len() * percent).div_ceil(100).max(1) - 1;
        runs.get(rank).map_or(0.0, |run| run.as_secs_f64() * 1000.0)
    };
    CallNumbers {
        count: calls.len() as u64,
        errors: calls.iter().filter(|call| call.outcome != "ok").count() as u64,
        p50_ms: share(50),
        p95_ms: share(95),
        p99_ms: share(99),
        max_ms: share(100),
    }
}

/// Show what runs now
///
/// The calls that wait or run, the slots of their tools, and the turns that wait for a model. With the role `client` only those of
/// the caller itself and those in its sessions.
#[utoipa::path(
    get,
    path = "/api/v1/stats/now",
    operation_id = "getLoad",
    tag = "calls",
    responses((status = 200, description = "What runs now.", body = LoadView), Guarded)
)]
pub(crate) async fn now(
    ReadyParts(parts): ReadyParts,
    Extension(principal): Extension<Principal>,
) -> Json<LoadView> {
    let is_own = |owner: &Arc<str>| principal.oversees() || *owner == principal.id;
    let snapshot = parts.board.snapshot();
    let mut calls = parts.board.running_calls();
    calls.retain(|call| is_own(&call.caller.principal) || is_own(&call.caller.owner));
    let mut slots: BTreeMap<String, SlotView> = BTreeMap::new();
    for call in &calls {
        let tool = snapshot.catalog().exactly(&call.tool).ok();
        let slot = slots.entry(call.tool.to_string()).or_insert_with(|| SlotView {
            tool: call.tool.to_string(),
            used: 0,
            waiting: 0,
            max: tool.map(|tool| tool.limits.max_instances),
            holders: Vec::new(),
        });
        if call.has_slots() {
            slot.used += 1;
        } else {
            slot.waiting += 1;
        }
    }
    if principal.oversees() {
        for (name, holder) in present::slot_holders(&parts.board).await {
            let tool = snapshot.catalog().resolve(&name).ok();
            let slot = slots.entry(name.clone()).or_insert_with(|| SlotView {
                tool: name,
                used: 0,
                waiting: 0,
                max: tool.map(|tool| tool.limits.max_instances),
                holders: Vec::new(),
            });
            slot.holders.push(holder);
        }
    }
    let mut models: BTreeMap<(String, String), usize> = BTreeMap::new();
    for turn in parts.turns.all_running() {
        if let Some(request) = turn.request().filter(|_| is_own(&turn.owner)) {
            *models.entry((request.provider, request.model)).or_default() += 1;
        }
    }
    let models = models.into_iter();
    Json(LoadView {
        at_ms: jiff::Timestamp::now().as_millisecond(),
        in_flight: calls.len(),
        waiting: calls.iter().filter(|call| !call.has_slots()).count(),
        max_concurrent: snapshot.plan().max_concurrent,
        slots: slots.into_values().collect(),
        calls: calls.iter().take(MAX_RUNNING).map(|call| running(call)).collect(),
        models: models
            .map(|((provider, model), turns)| ModelLoad { provider, model, turns })
            .collect(),
    })
}

fn running(call: &RunningCall) -> RunningCallView {
    RunningCallView {
        id: call.id.to_string(),
        tool: call.tool.to_string(),
        session: call.caller.session.as_deref().map(str::to_owned),
        face: call.caller.face.as_str().into(),
        principal: call.caller.principal.to_string(),
        started_at_ms: call.started_at_ms,
        waiting: !call.has_slots(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn call(started_at_ms: i64, tool: &str, outcome: &str, run_ms: u64) -> CallTimes {
        CallTimes {
            started_at_ms,
            outcome: outcome.into(),
            tool: Some(tool.into()),
            server: Some("demo".into()),
            face: "mcp".into(),
            run: Duration::from_millis(run_ms),
        }
    }

    #[test]
    fn calls_are_grouped_and_counted_by_interval() {
        let calls = [
            call(1000, "demo.a", "ok", 10),
            call(1999, "demo.a", "timeout", 30),
            call(2000, "demo.a", "ok", 20),
            call(2500, "demo.b", "tool_error", 5),
        ];
        let period = Period::new(1000, 11_000, Some(1)).unwrap();
        let found = statistics(period, GroupBy::Tool, &calls);
        let keys: Vec<_> = found.series.iter().map(|it| it.key.as_deref().unwrap()).collect();
        assert_eq!(keys, ["demo.a", "demo.b"]);
        let points = &found.series[0].points;
        let shown = |point: &CallPoint| {
            let CallNumbers { count, errors, p50_ms, max_ms, .. } = point.numbers;
            (point.t_ms, count, errors, p50_ms, max_ms)
        };
        let points: Vec<_> = points.iter().map(shown).collect();
        assert_eq!(points, [(1000, 2, 1, 10.0, 30.0), (2000, 1, 0, 20.0, 20.0)]);
        assert_eq!(found.series[0].total.count, 3);
        let outcomes = statistics(period, GroupBy::Outcome, &calls);
        assert_eq!(outcomes.series.len(), 3);
    }

    #[test]
    fn series_beyond_the_limit_are_one() {
        let calls: Vec<_> =
            (0..150).map(|it| call(1000, &format!("demo.{it:03}"), "ok", 1)).collect();
        let period = Period::new(0, 10_000, None).unwrap();
        let found = statistics(period, GroupBy::Tool, &calls);
        assert_eq!(found.series.len(), MAX_SERIES + 1);
        let last = found.series.last().unwrap();
        assert_eq!((&last.key, last.total.count), (&None, 50));
    }

    #[test]
    fn a_share_is_a_value_that_occurred() {
        let runs: Vec<_> = (1..=100).map(|run| call(0, "demo.a", "ok", run)).collect();
        let found = numbers(&runs.iter().collect::<Vec<_>>());
        assert_eq!((found.p50_ms, found.p95_ms, found.p99_ms), (50.0, 95.0, 99.0));
        assert_eq!((found.max_ms, numbers(&[]).p99_ms), (100.0, 0.0));
    }
}
