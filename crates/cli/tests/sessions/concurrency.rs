//! A write with an old revision is refused, and of many concurrent writes with the same revision one succeeds.

use pretty_assertions::assert_eq;
use reqwest::Method;
use serde_json::json;
use tokio::task::JoinSet;

use crate::board::two_servers;
use crate::chat::Api;
use crate::restarts::everything;

#[tokio::test]
async fn a_stale_revision_is_refused_and_changes_nothing() {
    let board = two_servers("").await;
    let serve = board.home.serve().await;
    let chat = Api::of(&serve).new_chat(json!({})).await;
    chat.put("/toolsets/buy", json!({"enabled": false})).await;
    let before = everything(&chat).await;
    let events = chat.follow(None).await;
    let writes = [
        (Method::PATCH, "", json!({"title": "late", "toolsets": {"look": false}})),
        (Method::PUT, "/bindings", json!({"servers": ["notes"]})),
        (Method::PUT, "/toolsets/look", json!({"enabled": false})),
        (Method::PUT, "/tools/shop.find", json!({"enabled": false})),
    ];
    for (method, tail, body) in writes {
        for stale in [1, 3, u64::MAX] {
            let mut body = body.clone();
            body["tools_revision"] = json!(stale);
            let answer = chat.api.send(method.clone(), &chat.path(tail), Some(body)).await;
            let refused = answer.refused(409, "stale_revision");
            assert_eq!(
                refused,
                format!(
                    "the tools of this session are at revision 2, not {stale}: read them again, then repeat the change"
                )
            );
        }
        assert_eq!(everything(&chat).await, before, "{method} {tail}");
    }
    events.settles(1).await;
    // With what there is it works, also from one change to the next.
    let seen = chat.patch(json!({"toolsets": {"look": false}, "tools_revision": 2})).await;
    assert_eq!(seen["tools_revision"], 3);
    let seen = chat.put("/bindings", json!({"servers": ["notes"], "tools_revision": 3})).await;
    assert_eq!(seen["tools_revision"], 4);
    let seen = chat.put("/tools/notes.read", json!({"enabled": false, "tools_revision": 4})).await;
    assert_eq!(seen["tools_revision"], 5);
    let seen = chat.put("/toolsets/notes", json!({"enabled": false, "tools_revision": 5})).await;
    assert_eq!(seen["tools_revision"], 6);
    events.settles(5).await;
}

#[tokio::test]
async fn of_twenty_who_write_with_the_same_revision_one_wins() {
    let board = two_servers("").await;
    let serve = board.home.serve().await;
    let chat = Api::of(&serve).new_chat(json!({})).await;
    let events = chat.follow(None).await;
    let mut writers = JoinSet::new();
    for n in 0..20 {
        let chat = chat.clone();
        writers.spawn(async move {
            // Half of them want the same, half something else.
            let set = if n % 2 == 0 { "look" } else { "notes" };
            let body =
                json!({"title": format!("of {n}"), "toolsets": {set: false}, "tools_revision": 1});
            (n, chat.try_patch(body).await)
        });
    }
    let mut winners = Vec::new();
    for (n, answer) in writers.join_all().await {
        if answer.status.is_success() {
            winners.push(n);
        } else {
            answer.refused(409, "stale_revision");
        }
    }
    assert_eq!(winners.len(), 1, "{winners:?}");
    let view = chat.view().await;
    assert_eq!(view["title"], format!("of {}", winners[0]));
    assert_eq!(view["tools_revision"], 2);
    assert_eq!(view["disabled_toolsets"].as_array().unwrap().len(), 1);
    events.settles(2).await;
}

/// Writes without a revision are never refused, and no change is lost.
#[tokio::test]
async fn changes_at_the_same_time_do_not_undo_each_other() {
    let board = two_servers("").await;
    let serve = board.home.serve().await;
    let chat = Api::of(&serve).new_chat(json!({})).await;
    let tools = ["shop.find", "shop.price", "shop.order", "notes.read", "notes.write"];
    let mut writers = JoinSet::new();
    for tool in tools {
        let chat = chat.clone();
        writers.spawn(async move {
            chat.put(&format!("/tools/{tool}"), json!({"enabled": false})).await;
        });
    }
    writers.join_all().await;
    assert_eq!(chat.names().await, [""; 0]);
    assert_eq!(chat.view().await["tools"].as_object().unwrap().len(), tools.len());
    assert_eq!(chat.revision().await, 6);
}
