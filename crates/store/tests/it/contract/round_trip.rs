//! Tests that stored values are read back unchanged.

use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use serde_json::Value;
use switchboard_model::{
    CallErrorKind as Kind, CallId, CallOutcome, CallRecord, CanonicalName, Face, JsonText,
    RecordedCaller, RecordedContent, RecordedPolicy, ServerName, ToolDescriptor,
};
use switchboard_store::{CallFilter, Retention};
use tokio::runtime::Runtime;

use super::database::{CASES, NUL, new_store};

/// Any text: Unicode, quotes, null characters, nothing, and now and then a lot.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => any::<String>(),
        2 => prop::sample::select(vec!["", "\0", "a\0b", "'; DROP TABLE calls; --", "🦀é\u{202e}", "null"])
            .prop_map(Into::into),
        1 => Just("é\0x".repeat(100_000)),
    ]
    .prop_map(|text| text.replace('\0', NUL))
}

/// The id of a call, as long as an index takes it.
fn id() -> impl Strategy<Value = String> {
    text().prop_map(|text| text.chars().take(500).collect())
}

fn count() -> impl Strategy<Value = u64> {
    0..=i64::MAX.unsigned_abs()
}

fn tool_name() -> impl Strategy<Value = Option<CanonicalName>> {
    let parts = ("[a-z0-9][a-z0-9_-]{0,20}", text());
    prop::option::of(
        parts.prop_map(|(server, tool)| CanonicalName::new(&ServerName::new(server), &tool)),
    )
}

fn outcome() -> impl Strategy<Value = CallOutcome> {
    let kinds = vec![
        Kind::UnknownTool,
        Kind::InvalidArguments,
        Kind::QueueTimeout,
        Kind::Timeout,
        Kind::InactivityTimeout,
        Kind::Cancelled,
        Kind::Unavailable,
        Kind::Upstream,
        Kind::Internal,
    ];
    prop_oneof![
        Just(CallOutcome::Ok),
        Just(CallOutcome::ToolError),
        prop::sample::select(kinds).prop_map(CallOutcome::Failed),
    ]
}

fn call() -> impl Strategy<Value = CallRecord> {
    let names =
        (id(), tool_name(), text(), text(), prop::option::of(text()), prop::option::of(text()));
    let numbers = (any::<i64>(), count(), count(), count(), count());
    let face = prop::sample::select(vec![Face::Cli, Face::Http]);
    let session = prop::option::of(text());
    (names, numbers, face, outcome(), session, caller(), policy(), (content(), content())).prop_map(
        |(names, numbers, face, outcome, session, caller, policy, (arguments, result))| {
            let (id, tool, requested, argument_digest, message, result_handle) = names;
            let (started_at_ms, revision, wait, run, result_bytes) = numbers;
            CallRecord {
                id: CallId(id),
                started_at_ms,
                face,
                caller,
                session: session.map(Into::into),
                tool,
                requested,
                revision,
                policy,
                argument_digest,
                outcome,
                message,
                wait: Duration::from_nanos(wait),
                run: Duration::from_nanos(run),
                result_bytes,
                result_handle,
                arguments,
                result,
            }
        },
    )
}

fn caller() -> impl Strategy<Value = RecordedCaller> {
    prop::array::uniform7(prop::option::of(text())).prop_map(|texts| {
        let [principal, person, owner, key, client, client_version, agent] =
            texts.map(|text| text.map(Into::into));
        RecordedCaller { principal, person, owner, key, client, client_version, agent }
    })
}

fn policy() -> impl Strategy<Value = Option<RecordedPolicy>> {
    let policy = (prop::option::of(text()), prop::option::of(text()), text());
    prop::option::of(policy.prop_map(|(configured, mode, digest)| RecordedPolicy {
        configured: configured.map(Into::into),
        mode: mode.map(Into::into),
        digest: digest.into(),
    }))
}

fn content() -> impl Strategy<Value = Option<RecordedContent>> {
    let content = (text(), count(), any::<bool>());
    prop::option::of(content.prop_map(|(text, bytes, is_cut)| RecordedContent {
        text,
        bytes,
        is_cut,
    }))
}

fn json() -> impl Strategy<Value = Value> {
    let finite = any::<f64>().prop_filter("JSON has no infinity", |number| number.is_finite());
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        finite.prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((any::<String>(), inner), 0..6)
                .prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
        ]
    })
}

fn tool() -> impl Strategy<Value = ToolDescriptor> {
    let optional = || prop::option::of(json().prop_map(|value| JsonText::from(&value)));
    let words = || prop::option::of(text());
    let documents = (optional(), optional(), optional());
    (text(), words(), words(), json(), documents).prop_map(
        |(name, title, description, input_schema, (output_schema, annotations, extra))| {
            ToolDescriptor {
                title,
                description,
                input_schema: JsonText::from(&input_schema),
                output_schema,
                annotations,
                extra,
                ..ToolDescriptor::named(name)
            }
        },
    )
}

const NOTHING: Retention = Retention {
    calls_older_than_ms: i64::MAX,
    max_calls: 0,
    max_content_bytes: 0,
    results_older_than_ms: 0,
    max_result_bytes_total: 0,
};

/// Runs a property without writing a file of past failures beside the source.
fn check<S: Strategy>(strategy: &S, property: impl Fn(S::Value) -> Result<(), TestCaseError>) {
    let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(CASES) };
    TestRunner::new(config).run(strategy, property).unwrap();
}

#[test]
fn a_call_record_comes_back_as_it_was() {
    let runtime = Runtime::new().unwrap();
    let store = runtime.block_on(new_store());
    check(&call(), |record| {
        let read = runtime.block_on(async {
            store.prune(&NOTHING).await.unwrap();
            store.record_calls(std::slice::from_ref(&record)).await.unwrap();
            let filter = CallFilter {
                tool: Some(record.requested.clone()),
                outcome: Some(record.outcome),
                ..CallFilter::newest(2)
            };
            store.recent_calls(&filter).await.unwrap()
        });
        prop_assert_eq!(read, [record]);
        Ok(())
    });
}

#[test]
fn descriptors_come_back_as_they_were_and_in_order() {
    let runtime = Runtime::new().unwrap();
    let server = ServerName::new("crm");
    let store = runtime.block_on(new_store());
    check(&prop::collection::vec(tool(), 0..5), |tools| {
        let mut read = runtime.block_on(async {
            store.remember_tools(&server, &tools, 1).await.unwrap();
            store.remembered_tools().await.unwrap()
        });
        prop_assert_eq!(read.remove(&server), Some(tools));
        Ok(())
    });
}

#[test]
fn numbers_beyond_the_column_stop_at_its_edge() {
    let runtime = Runtime::new().unwrap();
    let record = CallRecord { revision: u64::MAX, wait: Duration::MAX, ..crate::record(1) };
    let read = runtime.block_on(async {
        let store = new_store().await;
        store.record_calls(&[record]).await.unwrap();
        store.recent_calls(&CallFilter::newest(1)).await.unwrap()
    });
    assert_eq!(read[0].revision, i64::MAX.unsigned_abs());
    assert_eq!(read[0].wait, Duration::from_nanos(i64::MAX.unsigned_abs()));
}
