//! The cost of ten thousand sessions over one catalog of a thousand tools.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::Context;
use switchboard_model::{CanonicalName, Exposure, ExposureMode, Plan, ServerName};
use switchboard_registry::{Catalog, CatalogTool};
use switchboard_render::Provider;
use switchboard_runtime::{PublishedSnapshot, Snapshot};
use switchboard_sessions::{Change, Session, Sessions};
use switchboard_store::Store;
use tokio::time::Instant;

use crate::Row;
use crate::render::{milliseconds, resident_kib, thousand};

const SESSIONS: u32 = 10_000;
/// Number of sessions with a tool switched individually.
const DIFFERENT: u32 = 100;

pub(crate) async fn measure() -> anyhow::Result<Vec<Row>> {
    let directory = tempfile::tempdir()?;
    let tools = catalog();
    let catalog_of = |tools: Vec<Arc<CatalogTool>>| Arc::new(Catalog::new(1, tools));
    let exposure = Exposure { mode: ExposureMode::Legacy, ..Exposure::default() };
    let snapshot =
        Snapshot::of_catalog(Arc::new(Plan::default()), exposure, catalog_of(tools.clone()));
    let store = Store::open(directory.path()).await?;
    let sessions = Sessions::new(store, PublishedSnapshot::new(snapshot));
    // Shared data is created first: the view, its list and a rendering.
    let first = create(&sessions, 0).await?;
    first.now().cached.rendering(Provider::Anthropic);
    let before = resident_kib()?;
    let mut kept: Vec<Arc<Session>> = Vec::new();
    for number in 1..=SESSIONS {
        let session = create(&sessions, number).await?;
        session.now().cached.rendering(Provider::Anthropic);
        kept.push(session);
    }
    sessions.writes.flush().await;
    let each = (resident_kib()? - before) / f64::from(SESSIONS);
    let one = tools.get(tools.len() / 2).context("no tools")?.clone();
    let fewer = tools.iter().filter(|tool| !Arc::ptr_eq(tool, &one)).cloned().collect();
    let start = Instant::now();
    sessions.published().replace_catalog(catalog_of(fewer));
    sessions.refresh_all();
    let stepped = start.elapsed();
    anyhow::ensure!(kept.iter().all(|session| session.revision() == 2), "a session took no step");
    sessions.writes.flush().await;
    let start = Instant::now();
    for session in kept.iter().take(DIFFERENT as usize) {
        let tool = format!("market.{}", one.name.tool());
        let allow = BTreeMap::from([("openai".to_owned(), Some(vec![tool]))]);
        sessions.change(session, None, Change { allow, ..Change::default() }).await?;
    }
    let changed = start.elapsed() / DIFFERENT;
    Ok(vec![
        Row {
            what: "memory of each of 10,000 sessions over 1,000 tools".into(),
            measured: format!("{each:.2} KiB"),
            aim: "< 4 KB",
        },
        Row {
            what: "one tool less: a step of all 10,000 sessions".into(),
            measured: milliseconds(stepped),
            aim: "",
        },
        Row { what: "change one session".into(), measured: milliseconds(changed), aim: "" },
    ])
}

async fn create(sessions: &Sessions, number: u32) -> anyhow::Result<Arc<Session>> {
    let name = format!("s{number}");
    Ok(sessions.create(Some(&name), "bench", usize::MAX, Change::default()).await?)
}

fn catalog() -> Vec<Arc<CatalogTool>> {
    let server = ServerName::new("market");
    let tools = thousand().into_iter().map(|descriptor| {
        CatalogTool::new(CanonicalName::new(&server, &descriptor.name), descriptor)
    });
    tools.map(Arc::new).collect()
}
