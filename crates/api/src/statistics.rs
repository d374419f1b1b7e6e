//! Statistics of calls: over time, and of this moment.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// How many calls there were, how many failed, and how long they ran, over time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CallStatistics {
    /// The beginning of the first interval, in milliseconds since 1970.
    pub from_ms: i64,
    /// The end of the last interval.
    pub to_ms: i64,
    /// The length of an interval.
    pub step_ms: i64,
    /// The series, the one with the most calls first. At most 100; the others are counted in one with `key` `null`.
    pub series: Vec<CallSeries>,
    /// Whether there are more calls than are read at once; then the oldest ones are missing.
    pub cut: bool,
}

/// The calls of one outcome, tool, server or interface.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CallSeries {
    /// The outcome, tool, server or interface; `null` for calls without one, and for all series beyond the limit.
    #[schema(required)]
    pub key: Option<String>,
    /// The whole period.
    pub total: CallNumbers,
    /// The intervals with calls, oldest first.
    pub points: Vec<CallPoint>,
}

/// The calls of one interval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CallPoint {
    /// The beginning of the interval, in milliseconds since 1970.
    pub t_ms: i64,
    #[serde(flatten)]
    pub numbers: CallNumbers,
}

/// The number of calls, and how long they ran.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CallNumbers {
    pub count: u64,
    /// Calls with an outcome other than `ok`.
    pub errors: u64,
    pub p50_ms: f64,
    pub p95_ms: f64,
    pub p99_ms: f64,
    pub max_ms: f64,
}

/// What runs at this moment, as far as the caller may see it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LoadView {
    pub at_ms: i64,
    /// The number of calls that wait or run.
    pub in_flight: usize,
    /// The number of those that wait for a slot.
    pub waiting: usize,
    /// The maximum number of calls that run at the same time (`toolbox.max_concurrent`).
    pub max_concurrent: u32,
    /// The tools with calls that wait or run.
    pub slots: Vec<SlotView>,
    /// The calls that wait or run, oldest first. At most 1000.
    pub calls: Vec<RunningCallView>,
    /// The turns that run, by provider and model.
    pub models: Vec<ModelLoad>,
}

/// The calls of one tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SlotView {
    /// The canonical name of the tool.
    pub tool: String,
    pub used: usize,
    pub waiting: usize,
    /// The maximum number of calls that run at the same time (`max_instances`); `null` if the tool is no longer there.
    #[schema(required)]
    pub max: Option<u32>,
    /// Who has the slots, if boards share them in a database. For operators only.
    #[serde(default)]
    #[schema(required)]
    pub holders: Vec<SlotHolderView>,
}

/// What a board has of the slots of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SlotHolderView {
    /// The id of the board, made anew at each start.
    pub board: String,
    /// The name of its machine.
    pub name: String,
    /// The slots that it was lent.
    pub held: u32,
    /// Those of them that calls used when it traded last.
    pub used: u32,
    pub waiting: u32,
    /// Whether it fell silent; then its slots come free later.
    pub silent: bool,
}

/// A call that waits or runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RunningCallView {
    pub id: String,
    /// The canonical name of the tool.
    pub tool: String,
    #[schema(required)]
    pub session: Option<String>,
    /// The interface that the call came through: `cli`, `http`, `mcp` or `turn`.
    pub face: String,
    pub principal: String,
    pub started_at_ms: i64,
    /// Whether it waits for a slot.
    pub waiting: bool,
}

/// The turns that wait for one model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ModelLoad {
    pub provider: String,
    pub model: String,
    /// The number of turns that run.
    pub turns: usize,
}
