//! What narrowed access costs: memory of each key, and time of each lookup, with a thousand tools and a thousand keys.

use std::sync::Arc;

use anyhow::{Context, ensure};
use switchboard_model::{
    Access, AccessRule, CallerLimits, CanonicalName, Exposure, LiveAccess, Plan, ServerName,
    ToolDescriptor,
};
use switchboard_registry::{Catalog, CatalogTool};
use switchboard_runtime::Snapshot;
use switchboard_view::{Found, Scope};
use tokio::time::Instant;

use crate::Row;

const TOOLS: usize = 1000;
const KEYS: usize = 1000;
const ROUNDS: usize = 50;

pub(crate) fn measure() -> anyhow::Result<Vec<Row>> {
    let server = ServerName::new("s");
    let tools = (0..TOOLS).map(|n| {
        let name = CanonicalName::new(&server, &format!("tool_{n}"));
        let descriptor = ToolDescriptor::named(format!("tool_{n}"));
        Arc::new(CatalogTool::new(name, descriptor))
    });
    let catalog = Arc::new(Catalog::new(1, tools.collect()));
    let snapshot = Snapshot::of_catalog(Arc::new(Plan::default()), Exposure::default(), catalog);
    let look_up = |access: &LiveAccess, tool: usize| {
        let scope: Arc<Scope> = Arc::default();
        let scope = scope.with_access(access.tools().as_slice());
        let view = snapshot.view_without_session(&scope);
        matches!(view.view.find(&format!("s__tool_{tool}")), Found::Tool(_))
    };
    let whole = LiveAccess::default();
    ensure!(look_up(&whole, 1), "an unrestricted caller finds every tool");
    let time = |keys: &[LiveAccess]| -> anyhow::Result<f64> {
        let began = Instant::now();
        for _ in 0..ROUNDS {
            for (n, key) in keys.iter().enumerate() {
                ensure!(look_up(key, n % TOOLS), "a key finds its own tools");
            }
        }
        Ok(began.elapsed().as_secs_f64() * 1e9 / f64::from(u32::try_from(ROUNDS * keys.len())?))
    };
    let unrestricted = time(&vec![whole; KEYS])?;
    let before = resident()?;
    // Twenty tools each, all different.
    let keys: Vec<LiveAccess> = (0..KEYS)
        .map(|n| {
            let tools = (0..20).map(|k| format!("s.tool_{}", (n + k * 37) % TOOLS)).collect();
            let rule = AccessRule { tools: Some(tools), ..AccessRule::ALL };
            LiveAccess::new(Access::of(rule, CallerLimits::default()))
        })
        .collect();
    for (n, key) in keys.iter().enumerate() {
        ensure!(look_up(key, n % TOOLS) && !look_up(key, (n + 1) % TOOLS), "only its own tools");
    }
    let each = resident()?.saturating_sub(before) / KEYS;
    let narrowed = time(&keys)?;
    Ok(vec![
        Row {
            what: "memory per key, 1000 keys of different access".into(),
            measured: format!("{each} B"),
            aim: "< 4096 B",
        },
        Row {
            what: "lookup of a tool by an unrestricted caller".into(),
            measured: format!("{unrestricted:.0} ns"),
            aim: "",
        },
        Row {
            what: "lookup by 1000 callers of different access".into(),
            measured: format!("{narrowed:.0} ns"),
            aim: "",
        },
    ])
}

/// The resident memory of this process in bytes.
fn resident() -> anyhow::Result<usize> {
    let pages = std::fs::read_to_string("/proc/self/statm")?;
    let pages: usize = pages.split(' ').nth(1).context("statm has no resident size")?.parse()?;
    Ok(pages * rustix::param::page_size())
}
