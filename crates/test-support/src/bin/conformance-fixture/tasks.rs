//! Calls as tasks: the extension of 2026-07-28 with which a client polls for the result of a call.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use rmcp::ErrorData;
use rmcp::model::{
    ClientCapabilities, CreateTaskResult, DetailedTask, GetTaskResult, InputResponses, JsonObject,
    Task, TaskPayload, TaskStatus,
};
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use crate::listing::typed;
use crate::tool::{confirmation, text};

const TTL_MS: u64 = 600_000;
const POLL_INTERVAL_MS: u64 = 100;
/// Default duration of a job.
const A_WHILE: Duration = Duration::from_millis(300);

/// A tool call that runs in the background.
#[derive(Debug)]
pub(crate) struct Job {
    takes: Duration,
    /// Requests for input, by key, that must be answered first.
    asks: BTreeMap<String, Value>,
    ends: End,
}

#[derive(Debug)]
enum End {
    /// The result, including a failure reported by the tool.
    Result(Value),
    /// A protocol error.
    Error(Value),
}

impl Job {
    /// The job that a call of this tool starts; `None` for tools that answer at once.
    pub(crate) fn of(tool: &str, arguments: &Map<String, Value>) -> Option<Self> {
        let argument = |key: &str| arguments.get(key).and_then(Value::as_str).unwrap_or_default();
        let done = |words: String| End::Result(json!({"content": [text(words)]}));
        let job = |takes, ends| Self { takes, asks: BTreeMap::new(), ends };
        let asking = |keys: &[&str], words: String| {
            let asks = keys.iter().map(|key| ((*key).to_owned(), confirmation(&words)));
            Self { takes: Duration::ZERO, asks: asks.collect(), ends: done(words.clone()) }
        };
        Some(match tool {
            "slow_compute" => {
                let seconds = arguments.get("seconds").and_then(Value::as_f64).unwrap_or(1.0);
                let takes = Duration::try_from_secs_f64(seconds).unwrap_or(A_WHILE);
                job(takes, done(format!("Computed {}", argument("label"))))
            }
            "failing_job" => {
                let failed = json!({"isError": true, "content": [text("The job failed.")]});
                job(A_WHILE, End::Result(failed))
            }
            "protocol_error_job" => {
                job(A_WHILE, End::Error(json!({"code": -32603, "message": "The job broke down."})))
            }
            "confirm_delete" => asking(&["confirm"], format!("Delete {}", argument("filename"))),
            "multi_input" => asking(&["first", "second"], "Two things".into()),
            _ => return None,
        })
    }

    /// A job with a given result.
    pub(crate) fn ending_with(result: Value) -> Self {
        Self { takes: A_WHILE, asks: BTreeMap::new(), ends: End::Result(result) }
    }

    /// Waits for the result of the job.
    pub(crate) async fn wait(self, tool: &str) -> Result<Value, ErrorData> {
        match self.ends {
            End::Result(result) if tool == "slow_compute" => {
                // The suite asks for a minute where it expects a task; a shorter wait is enough.
                tokio::time::sleep(self.takes.min(A_WHILE)).await;
                Ok(result)
            }
            End::Result(_) | End::Error(_) => Err(required()),
        }
    }
}

/// The error of a tool that requires task support.
fn required() -> ErrorData {
    let tasks = ClientCapabilities::builder().enable_tasks().build();
    ErrorData::missing_required_client_capability(tasks)
}

#[derive(Debug)]
struct Begun {
    job: Job,
    since: Instant,
    created: Timestamp,
    changed: Timestamp,
    is_cancelled: bool,
}

impl Begun {
    fn payload(&self) -> Result<TaskPayload, ErrorData> {
        let object = |value: &Value| typed::<JsonObject>(value.clone());
        Ok(if self.is_cancelled {
            TaskPayload::Cancelled
        } else if !self.job.asks.is_empty() {
            TaskPayload::InputRequired { input_requests: typed(json!(self.job.asks))? }
        } else if self.since.elapsed() < self.job.takes {
            TaskPayload::Working
        } else {
            match &self.job.ends {
                End::Result(result) => TaskPayload::Completed { result: object(result)? },
                End::Error(error) => TaskPayload::Failed { error: object(error)? },
            }
        })
    }

    fn shown(&self, id: &str, status: TaskStatus) -> Task {
        Task::new(id, status, self.created.to_string(), self.changed.to_string())
            .with_ttl_ms(TTL_MS)
            .with_poll_interval_ms(POLL_INTERVAL_MS)
    }
}

/// All tasks of the fixture.
#[derive(Debug, Default)]
pub(crate) struct Tasks(Mutex<HashMap<String, Begun>>);

impl Tasks {
    fn all(&self) -> MutexGuard<'_, HashMap<String, Begun>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn begin(&self, job: Job) -> CreateTaskResult {
        let now = Timestamp::now();
        let begun =
            Begun { job, since: Instant::now(), created: now, changed: now, is_cancelled: false };
        let mut all = self.all();
        let id = format!("task {}", all.len());
        let task = begun.shown(&id, TaskStatus::Working);
        all.insert(id, begun);
        CreateTaskResult::new(task)
    }

    pub(crate) fn get(&self, id: &str) -> Result<GetTaskResult, ErrorData> {
        let all = self.all();
        let begun = all.get(id).ok_or_else(unknown)?;
        let payload = begun.payload()?;
        let task = begun.shown(id, payload.status());
        Ok(GetTaskResult::new(DetailedTask::new(task, payload)))
    }

    pub(crate) fn update(&self, id: &str, answers: &InputResponses) -> Result<(), ErrorData> {
        let mut all = self.all();
        let begun = all.get_mut(id).ok_or_else(unknown)?;
        begun.job.asks.retain(|key, _| !answers.contains_key(key));
        begun.changed = Timestamp::now();
        Ok(())
    }

    pub(crate) fn cancel(&self, id: &str) -> Result<(), ErrorData> {
        let mut all = self.all();
        let begun = all.get_mut(id).ok_or_else(unknown)?;
        if !begun.payload()?.status().is_terminal() {
            begun.is_cancelled = true;
            begun.changed = Timestamp::now();
        }
        Ok(())
    }
}

fn unknown() -> ErrorData {
    ErrorData::invalid_params("There is no such task", None)
}
