//! The cost of rendering a thousand tools for each provider, and of reusing a rendering.

use std::hint::black_box;
use std::time::Duration;

use anyhow::{Context, ensure};
use switchboard_model::{JsonText, ToolDescriptor};
use switchboard_react::PromptTemplate;
use switchboard_render::{NamedTool, Provider, Rendering};
use switchboard_test_support::market_catalogue;
use tokio::time::Instant;

use crate::Row;

const TOOLS: usize = 1_000;
const PROMPT_TOOLS: usize = 250;
const ROUNDS: usize = 25;
const SHOWN: u32 = 1_000_000;

pub(crate) fn measure() -> anyhow::Result<Vec<Row>> {
    let tools = thousand();
    let declared = || tools.iter().map(|tool| NamedTool { name: &tool.name, descriptor: tool });
    let mut rows = Vec::new();
    for provider in Provider::ALL {
        let mut times = Vec::new();
        for _ in 0..ROUNDS {
            let start = cpu_time();
            let rendering = black_box(Rendering::new(provider, declared()));
            times.push(cpu_time().saturating_sub(start));
            ensure!(rendering.quarantined.is_empty(), "{provider} refuses a tool of the market");
        }
        times.sort();
        let median = times.get(ROUNDS / 2).copied().unwrap_or_default();
        rows.push(Row {
            what: format!("render 1,000 tools for {provider}, CPU (median)"),
            measured: milliseconds(median),
            aim: "< 20 ms",
        });
    }
    rows.push(again(&Rendering::new(Provider::Anthropic, declared())));
    rows.push(react_prompt(&Rendering::new(Provider::React, declared().take(PROMPT_TOOLS)))?);
    rows.extend(tokens(&Rendering::new(Provider::Anthropic, declared()))?);
    Ok(rows)
}

/// The prompt of a ReACT turn, from tools that are rendered already. A turn whose tools did not change reuses the prompt.
fn react_prompt(rendering: &Rendering) -> anyhow::Result<Row> {
    let template = PromptTemplate::built_in()?;
    let mut times = Vec::new();
    let mut size = 0;
    for _ in 0..ROUNDS {
        let start = cpu_time();
        let tools = serde_json::from_slice(&rendering.json())?;
        size = black_box(template.render(&tools)?).len();
        times.push(cpu_time().saturating_sub(start));
    }
    times.sort();
    let median = times.get(ROUNDS / 2).copied().unwrap_or_default();
    Ok(Row {
        what: format!("write the ReACT prompt of {PROMPT_TOOLS} tools, {} KiB, CPU", size >> 10),
        measured: milliseconds(median),
        aim: "< 2 ms",
    })
}

/// A cached rendering is reused by copying a pointer.
fn again(rendering: &Rendering) -> Row {
    let start = Instant::now();
    for _ in 0..SHOWN {
        black_box(rendering.json());
    }
    let nanoseconds = start.elapsed().as_secs_f64() * 1e9 / f64::from(SHOWN);
    Row {
        what: format!("show {} KiB again", rendering.json().len() >> 10),
        measured: format!("{nanoseconds:.0} ns"),
        aim: "a pointer",
    }
}

fn tokens(rendering: &Rendering) -> anyhow::Result<Vec<Row>> {
    let before = resident_kib()?;
    let start = Instant::now();
    let first = rendering.tools.first().context("no tools")?.tokens();
    let loaded = start.elapsed();
    ensure!(first > 0, "a tool costs no tokens");
    let memory = resident_kib()? - before;
    let start = Instant::now();
    let cost = rendering.cost();
    let counted = start.elapsed();
    let row = |what: String, measured: String| Row { what, measured, aim: "" };
    Ok(vec![
        row("load the tokenizer, once".into(), milliseconds(loaded)),
        row("memory of the tokenizer".into(), format!("{:.1} MB", memory / 1024.0)),
        row(format!("count {} tokens of 1,000 tools", cost.total), milliseconds(counted)),
    ])
}

/// The tools of the fixture four times, under different names.
pub(crate) fn thousand() -> Vec<ToolDescriptor> {
    let market = market_catalogue();
    (0..TOOLS)
        .filter_map(|number| market.get(number % market.len()).map(|tool| (number, tool)))
        .map(|(number, tool)| ToolDescriptor {
            description: Some(tool.description.clone()),
            input_schema: JsonText::from(&tool.input_schema),
            ..ToolDescriptor::named(format!("m{}__{}", number / market.len(), tool.name))
        })
        .collect()
}

pub(crate) fn milliseconds(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1e3)
}

/// CPU time of this thread; wall-clock time is noise on a shared machine.
pub(crate) fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

pub(crate) fn resident_kib() -> anyhow::Result<f64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
    Ok(line.split_whitespace().next().context("no number")?.parse()?)
}
