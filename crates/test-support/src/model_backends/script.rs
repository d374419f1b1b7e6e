//! Scripts as JSON, for programs in other languages.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use super::backend::Backend;
use super::step::{Quirk, Step, Usage};

/// Steps for each backend, read from `{"anthropic": [{"text": "hello"}], ...}`.
#[derive(Debug, Clone, Default)]
pub struct Script(pub BTreeMap<Backend, Vec<Step>>);

/// Why a text is no script.
#[derive(Debug)]
pub struct ScriptError(String);

impl std::fmt::Display for ScriptError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "this is no script of model backends: {}", self.0)
    }
}

impl std::error::Error for ScriptError {}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "switches of a script, each by its name")]
struct RawStep {
    thinking: Option<String>,
    text: Option<String>,
    repeat_delta: Option<RawRepeat>,
    calls: Vec<RawCall>,
    truncated: bool,
    refused: bool,
    usage: Option<RawUsage>,
    without_usage: bool,
    status: Option<RawStatus>,
    error_event: Option<RawError>,
    raw: Option<String>,
    cut_after: Option<usize>,
    end_after: Option<usize>,
    hang: bool,
    silent: bool,
    delay_ms: u64,
    pace_ms: u64,
    split: Option<usize>,
    crlf: bool,
    comments: bool,
    unknown_events: bool,
    stamped: bool,
    quirks: Vec<RawQuirk>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRepeat {
    count: usize,
    text: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawCall {
    name: String,
    #[serde(default = "no_arguments")]
    arguments: Value,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct RawUsage {
    input: u64,
    cached: u64,
    cache_written: u64,
    output: u64,
    reasoning: u64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawStatus {
    code: u16,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(default)]
    body: Value,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawError {
    kind: String,
    message: String,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum RawQuirk {
    NoIndex,
    RepeatedName,
    NoId,
    NullId,
    NoType,
    StopWithCalls,
    WholeArguments,
    FailedResponse,
    WithIds,
    NoEnd,
}

type Switch = fn(Step) -> Step;

fn no_arguments() -> Value {
    Value::Object(serde_json::Map::new())
}

impl Script {
    pub fn parse(text: &str) -> Result<Self, ScriptError> {
        let raw: BTreeMap<String, Vec<RawStep>> =
            serde_json::from_str(text).map_err(|error| ScriptError(error.to_string()))?;
        let mut steps = BTreeMap::new();
        for (word, raw_steps) in raw {
            let backend = Backend::ALL.into_iter().find(|backend| backend.word() == word);
            let known = Backend::ALL.map(Backend::word).join(", ");
            let backend = backend
                .ok_or_else(|| ScriptError(format!("no backend is {word:?}; there are {known}")))?;
            steps.insert(backend, raw_steps.into_iter().map(Step::from).collect());
        }
        Ok(Self(steps))
    }
}

impl From<RawStep> for Step {
    fn from(raw: RawStep) -> Self {
        let mut step = Self::new();
        step = raw.thinking.into_iter().fold(step, Self::thinking);
        step = raw.text.into_iter().fold(step, Self::say);
        if let Some(RawRepeat { count, text }) = raw.repeat_delta {
            step = step.repeat_delta(count, text);
        }
        for RawCall { name, arguments } in raw.calls {
            step = step.call(name, arguments);
        }
        if let Some(RawUsage { input, cached, cache_written, output, reasoning }) = raw.usage {
            step = step.usage(Usage { input, cached, cache_written, output, reasoning });
        }
        if let Some(RawStatus { code, headers, body }) = raw.status {
            let headers: Vec<_> =
                headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
            let body = body.as_str().map_or_else(|| body.to_string(), str::to_owned);
            step = step.status(code, &headers, body);
        }
        if let Some(RawError { kind, message }) = raw.error_event {
            step = step.error_event(kind, message);
        }
        step = raw.raw.into_iter().fold(step, Self::raw);
        step = raw.cut_after.into_iter().fold(step, Self::cut_after);
        step = raw.end_after.into_iter().fold(step, Self::end_after);
        step = raw.split.into_iter().fold(step, Self::split);
        step = step.delay(Duration::from_millis(raw.delay_ms));
        step = step.pace(Duration::from_millis(raw.pace_ms));
        step = raw.quirks.into_iter().map(Quirk::from).fold(step, Self::quirk);
        let switches: [(bool, Switch); 9] = [
            (raw.truncated, Self::truncated),
            (raw.refused, Self::refused),
            (raw.without_usage, Self::without_usage),
            (raw.hang, Self::hang),
            (raw.silent, Self::silent),
            (raw.crlf, Self::crlf),
            (raw.comments, Self::comments),
            (raw.unknown_events, Self::unknown_events),
            (raw.stamped, Self::stamped),
        ];
        let wanted = switches.into_iter().filter(|(is_on, _)| *is_on);
        wanted.fold(step, |step, (_, turn_on)| turn_on(step))
    }
}

impl From<RawQuirk> for Quirk {
    fn from(raw: RawQuirk) -> Self {
        match raw {
            RawQuirk::NoIndex => Self::NoIndex,
            RawQuirk::RepeatedName => Self::RepeatedName,
            RawQuirk::NoId => Self::NoId,
            RawQuirk::NullId => Self::NullId,
            RawQuirk::NoType => Self::NoType,
            RawQuirk::StopWithCalls => Self::StopWithCalls,
            RawQuirk::WholeArguments => Self::WholeArguments,
            RawQuirk::FailedResponse => Self::FailedResponse,
            RawQuirk::WithIds => Self::WithIds,
            RawQuirk::NoEnd => Self::NoEnd,
        }
    }
}
