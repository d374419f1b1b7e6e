//! The cost of one call within this process: resolution, validation, concurrency limits, execution, accounting. No
//! network, no other process.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::anyhow;
use rustix::time::{ClockId, clock_gettime};
use serde_json::json;
use switchboard_config::{ConfigInput, SourceFile, load};
use switchboard_model::{Caller, Face};
use switchboard_runtime::{Board, BoardOptions, CallRequest, ExposureRule, LocalTools, Memory};
use switchboard_store::Store;
use tokio::time::Instant;

use crate::Row;
use crate::start::LOCAL_ONLY;

const CALLS: u32 = 20_000;

pub(crate) async fn measure() -> anyhow::Result<Vec<Row>> {
    let directory = tempfile::tempdir()?;
    let file = SourceFile { name: "bench.yaml", directory: Path::new("."), text: LOCAL_ONLY };
    let nothing = |_: &Path| Err(std::io::ErrorKind::NotFound.into());
    let loaded = load(&ConfigInput {
        file: Some(file),
        env: &[],
        read_secret: &nothing,
        read_keyring: None,
    })
    .map_err(|problems| anyhow!("{problems}"))?;
    let options = BoardOptions {
        store: Store::open(directory.path()).await?,
        memory: Memory::ReadOnly,
        local_tools: LocalTools::built_in(),
        exposure: ExposureRule::default(),
        guard: None,
    };
    let board = Board::start(loaded.plan, options, |_| {}).await?;
    call(&board).await?;
    let (cpu, wall) = (cpu_time(), Instant::now());
    for _ in 0..CALLS {
        call(&board).await?;
    }
    let (cpu, wall) = (cpu_time().saturating_sub(cpu), wall.elapsed());
    board.shutdown(Duration::from_secs(5)).await;
    let each = |time: Duration| format!("{:.1} µs", time.as_secs_f64() * 1e6 / f64::from(CALLS));
    Ok(vec![
        Row {
            what: "CPU per tool call in process (with its record)".into(),
            measured: each(cpu),
            aim: "",
        },
        Row {
            what: "time per tool call in process, one caller".into(),
            measured: each(wall),
            aim: "",
        },
    ])
}

async fn call(board: &Board) -> anyhow::Result<()> {
    let request = CallRequest {
        check: None,
        tool: "sum_numbers".to_owned().into(),
        arguments: json!({"a": 1, "b": 2}),
        caller: Arc::new(Caller::local(Face::Cli)),
        requested: None,
        progress: None,
        conversation: None,
    };
    board.call(request).await.result.map(drop).map_err(Into::into)
}

fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or_default())
}
