//! Memory of an idle board with a thousand tools.

use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use switchboard_test_support::{ScriptedServer, demo_catalogue};

use crate::Row;
use crate::start::{LOCAL_ONLY, serve, wait_until_ready};

pub(crate) async fn measure(program: &Path) -> anyhow::Result<Vec<Row>> {
    let server = ScriptedServer::builder().tools(demo_catalogue(1000)).start().await;
    let with_tools = format!(
        "{LOCAL_ONLY}    mcps:\n      - name: many\n        url: {}\n        transport: streamable_http\n        \
         mode: dynamic\n        default_tool_config: {{max_instances: 5}}\n",
        server.url()
    );
    let empty = resident_kib(program, LOCAL_ONLY).await?;
    let full = resident_kib(program, &with_tools).await?;
    let shown = |kib: f64| format!("{:.1} MB", kib / 1024.0);
    let per_tool = (full - empty) / 1000.0;
    Ok(vec![
        Row { what: "idle RSS, no servers".into(), measured: shown(empty), aim: "" },
        Row { what: "idle RSS, 1,000 catalog tools".into(), measured: shown(full), aim: "< 25 MB" },
        Row {
            what: "RSS per catalog tool".into(),
            measured: format!("{per_tool:.1} KiB"),
            aim: "",
        },
    ])
}

async fn resident_kib(program: &Path, yaml: &str) -> anyhow::Result<f64> {
    let directory = tempfile::tempdir()?;
    let config = directory.path().join("switchboard.yaml");
    std::fs::write(&config, yaml)?;
    let mut child = serve(program, &config, &directory.path().join("data"))?;
    wait_until_ready(&mut child)?;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id()))?;
    child.kill()?;
    child.wait()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
    let kib = line.split_whitespace().next().context("no number")?;
    Ok(kib.parse()?)
}
