//! Clients that were quiet for so long that they left the memory.

use std::time::Duration;

use futures::FutureExt as _;
use pretty_assertions::assert_eq;
use serde_json::json;
use switchboard_test_support::{ScriptedServer, Tool};

use crate::support::{World, later};

const LIST_CHANGED: &str = "notifications/tools/list_changed";
/// A minute, and the time until somebody looks.
const QUIET: Duration = Duration::from_secs(80);

#[tokio::test]
async fn a_client_that_was_quiet_for_a_minute_comes_back_and_is_told_what_changed() {
    let server = ScriptedServer::builder().legacy().tools([Tool::new("a")]).start().await;
    let world = World::of(&[("one", &server)]).await;
    let (quiet, there) = (world.open(json!({})).await, world.open(json!({})).await);
    let mut heard = there.listen().await;
    later(QUIET).await;
    server.set_tools_and_notify([Tool::new("a"), Tool::new("b")]).await;
    assert_eq!(heard.next().await.unwrap()["method"], LIST_CHANGED);
    let mut stream = quiet.listen().await;
    assert_eq!(stream.next().await.unwrap()["method"], LIST_CHANGED);
    assert_eq!(stream.next().now_or_never(), None, "it is told once");
    let list = quiet.ask("tools/list", json!({})).await.result().await;
    assert_eq!(list["tools"].as_array().unwrap().len(), 2, "{list}");
}
