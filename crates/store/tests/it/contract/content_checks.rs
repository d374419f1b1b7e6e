//! Records of content checks.

use std::time::Duration;

use pretty_assertions::assert_eq;
use switchboard_model::{CanonicalName, CheckHook, ContentCheckRecord, ServerName};
use switchboard_store::ContentCheckFilter;

use super::database::new_store;

fn record(n: u64, hook: CheckHook, conversation: &str) -> ContentCheckRecord {
    ContentCheckRecord {
        id: format!("0190-{n:04}"),
        at_ms: 1_700_000_000_000,
        hook,
        verdict: "refused".into(),
        blocked: n.is_multiple_of(2),
        reason: Some("injection".into()),
        principal: Some("key:1".into()),
        conversation: Some(conversation.into()),
        message: format!("m{n}"),
        tool: Some(CanonicalName::new(&ServerName::new("crm"), "find.one")),
        messages: n,
        bytes: 10 * n,
        took: Duration::from_nanos(n),
    }
}

#[tokio::test]
async fn records_read_as_they_were_written_and_the_oldest_leave() {
    let store = new_store().await;
    let mut all = vec![
        record(1, CheckHook::BeforeModel, "a"),
        record(2, CheckHook::BeforeTool, "b"),
        record(3, CheckHook::AfterTool, "a"),
        record(4, CheckHook::Received, "b"),
    ];
    all[3] = ContentCheckRecord {
        tool: None,
        reason: None,
        principal: None,
        conversation: None,
        ..all[3].clone()
    };
    for record in &all {
        store.record_content_check(record, 3).await.unwrap();
        store.record_content_check(record, 3).await.unwrap();
    }
    let read = async |filter: ContentCheckFilter| store.content_checks(&filter).await.unwrap();
    let filter = ContentCheckFilter { limit: 10, ..ContentCheckFilter::default() };
    let newest = vec![all[3].clone(), all[2].clone(), all[1].clone()];
    assert_eq!(read(filter.clone()).await, newest);
    assert_eq!(read(ContentCheckFilter { limit: 1, ..filter.clone() }).await, newest[..1]);
    let conversation = Some("a".to_owned());
    assert_eq!(read(ContentCheckFilter { conversation, ..filter.clone() }).await, newest[1..2]);
    let before = Some(all[2].id.clone());
    assert_eq!(read(ContentCheckFilter { before, ..filter }).await, newest[2..]);
}
