//! The log: one line for what was chosen, one for each new failure, none where nothing is set.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use pretty_assertions::assert_eq;
use switchboard_discovery::Discovery;
use switchboard_model::{DiscoveryPlan, SourceKind};
use switchboard_test_support::wait_until;
use tracing::field::{Field, Visit};
use tracing::subscriber::DefaultGuard;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};

use crate::support::{context, list, plan_of};

const PATIENCE: Duration = Duration::from_secs(9);

/// The lines of this thread above debug.
#[derive(Debug, Clone, Default)]
struct Logs(Arc<Mutex<Vec<(Level, String)>>>);

impl Logs {
    fn listen() -> (Self, DefaultGuard) {
        let logs = Self::default();
        let subscriber = tracing_subscriber::registry().with(logs.clone());
        (logs, tracing::subscriber::set_default(subscriber))
    }

    fn lines(&self) -> Vec<(Level, String)> {
        self.0.lock().clone()
    }
}

impl<S: Subscriber> Layer<S> for Logs {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let data = event.metadata();
        if data.target().starts_with("switchboard") && *data.level() < Level::DEBUG {
            let mut message = Message(String::new());
            event.record(&mut message);
            self.0.lock().push((*data.level(), message.0));
        }
    }
}

struct Message(String);

impl Visit for Message {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            self.0 = format!("{value:?}");
        }
    }
}

#[tokio::test]
async fn nothing_is_logged_where_nothing_is_set() {
    let (logs, _guard) = Logs::listen();
    let root = tempfile::tempdir().unwrap();
    let context = context(&[], root.path(), None);
    let discovery = Discovery::start(&DiscoveryPlan::default(), context);
    discovery.follow(&DiscoveryPlan::default());
    tokio::time::sleep(Duration::from_millis(50)).await;
    discovery.shutdown().await;
    assert_eq!(logs.lines(), []);
}

#[tokio::test]
async fn one_line_says_what_was_chosen_and_one_which_file_was_read() {
    let (logs, _guard) = Logs::listen();
    let root = tempfile::tempdir().unwrap();
    let manifest = root.path().join("ToolingManifest.json");
    std::fs::write(&manifest, list(&[("m", "http://m.example/")])).unwrap();
    let variables = [("ENVIRONMENT", "Development")];
    let plan = DiscoveryPlan::default();
    let discovery = Discovery::start(&plan, context(&variables, root.path(), None));
    wait_until(PATIENCE, async || (discovery.status()[0].state() == "ok").then_some(())).await;
    discovery.follow(&plan);
    discovery.shutdown().await;
    let chosen = format!(
        "discovery reads the tooling manifest because ENVIRONMENT is Development, and {} was found",
        manifest.display()
    );
    let expected = [chosen, "the source was read".to_owned()].map(|text| (Level::INFO, text));
    assert_eq!(logs.lines(), expected);
}

#[tokio::test]
async fn development_without_a_manifest_is_no_failure_until_there_was_one() {
    let (logs, _guard) = Logs::listen();
    let root = tempfile::tempdir().unwrap();
    let manifest = root.path().join("ToolingManifest.json");
    let variables = [("ENVIRONMENT", "Development")];
    let plan = DiscoveryPlan::default();
    let discovery = Discovery::start(&plan, context(&variables, root.path(), None));
    let (looked, _) = Discovery::look(&plan, &context(&variables, root.path(), None)).await;
    assert_eq!((looked[0].state(), &looked[0].failure), ("waiting", &None));
    let chosen = "discovery reads the tooling manifest because ENVIRONMENT is Development; \
                  ToolingManifest.json was not found and is looked for again";
    assert_eq!(logs.lines(), [(Level::INFO, chosen.to_owned())]);

    std::fs::write(&manifest, list(&[("m", "http://m.example/")])).unwrap();
    discovery.refresh();
    let state = || discovery.status()[0].state();
    wait_until(PATIENCE, async || (state() == "ok").then_some(())).await;
    std::fs::remove_file(&manifest).unwrap();
    discovery.refresh();
    wait_until(PATIENCE, async || (state() == "failing").then_some(())).await;
    assert_eq!(discovery.found()[0].servers.len(), 1, "the last known servers stay");
    discovery.shutdown().await;
}

#[tokio::test]
async fn a_failure_that_lasts_is_logged_once_and_counted() {
    let (logs, _guard) = Logs::listen();
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("m.json");
    let plan = plan_of(SourceKind::Manifest { path: Some(path.clone()) });
    let discovery = Discovery::start(&plan, context(&[], root.path(), None));
    let failures = || discovery.status()[0].failure.as_ref().map_or(0, |failure| failure.count);
    wait_until(PATIENCE, async || (failures() >= 5).then_some(())).await;
    let fresh = root.path().join("fresh.json");
    std::fs::write(&fresh, list(&[("m", "http://m.example/")])).unwrap();
    std::fs::rename(fresh, &path).unwrap();
    wait_until(PATIENCE, async || (discovery.status()[0].state() == "ok").then_some(())).await;
    discovery.shutdown().await;
    let failed = "the source cannot be read; its last known servers stay, and it is tried again";
    let expected = [(Level::WARN, failed), (Level::INFO, "the source was read")];
    assert_eq!(logs.lines(), expected.map(|(level, text)| (level, text.to_owned())));
}
