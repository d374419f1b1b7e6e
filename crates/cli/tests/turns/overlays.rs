//! Requests that show something in place of the stored conversation, and export and import of conversations.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::lab::{ACCOUNTS, Account, Lab};
use crate::talk::Talk;

fn user(text: &str) -> Value {
    json!({"role": "user", "content": [{"type": "text", "text": text}]})
}

fn system(text: &str) -> Value {
    json!({"role": "system", "content": [{"type": "text", "text": text}]})
}

/// Four messages: what was said, a call, its result, an answer.
async fn talked(lab: &Lab, account: Account) -> Talk {
    let talk = lab.talk(json!({"provider": account.name})).await;
    talk.say(account.name, "call shop__find {\"n\": 1}").await;
    assert_eq!(talk.history().await.len(), 4);
    talk
}

#[tokio::test]
async fn edits_show_in_one_turn_only() {
    let lab = Lab::open().await;
    for account in ACCOUNTS {
        let talk = talked(&lab, account).await;
        let before = talk.chat.get("/history").await["messages"].clone();
        let edits = json!([
            {"op": "insert_before", "index": 0, "message": system("INSERTED-FIRST")},
            {"op": "replace_at", "index": 0, "message": user("REPLACED")},
            {"op": "insert_after", "index": 3, "message": user("INSERTED-LATE")},
        ]);
        let body = json!({"message": "call shop__price {\"n\": 2}", "edits": edits});
        let turn = talk.turn(body).await;
        assert_eq!(turn["status"], "completed", "{}: {turn:#}", account.name);
        let bodies = lab.bodies(account);
        for request in &bodies[bodies.len() - 2..] {
            let text = request.body.to_string();
            for word in ["INSERTED-FIRST", "REPLACED", "INSERTED-LATE"] {
                assert!(text.contains(word), "{} {word}: {text}", account.name);
            }
            let old = text.matches("call shop__find").count();
            assert_eq!(old, 0, "{}: {text}", account.name);
        }
        let after = talk.chat.get("/history").await["messages"].clone();
        let (before, after) = (before.as_array().unwrap(), after.as_array().unwrap());
        assert_eq!((&after[..4], after.len()), (&before[..], 8), "{}", account.name);
        talk.say(account.name, "plain again").await;
        let text = lab.bodies(account).pop().unwrap().body.to_string();
        assert!(!text.contains("INSERTED") && !text.contains("REPLACED"), "{}", account.name);
        // A whole round can be left out.
        let gone: Vec<_> = (0..4).map(|index| json!({"op": "delete_at", "index": index})).collect();
        let turn = talk.turn(json!({"message": "short", "edits": gone})).await;
        assert_eq!(turn["status"], "completed", "{}: {turn:#}", account.name);
        let text = lab.bodies(account).pop().unwrap().body.to_string();
        assert!(!text.contains("shop__find {"), "{}: {text}", account.name);
        lab.is_clean();
    }
}

#[tokio::test]
async fn edits_that_are_to_stay_are_stored() {
    let lab = Lab::open().await;
    for account in ACCOUNTS {
        let talk = talked(&lab, account).await;
        let edits = json!([
            {"op": "replace_at", "index": 0, "message": user("REPLACED")},
            {"op": "delete_at", "index": 1},
            {"op": "delete_at", "index": 2},
            {"op": "insert_after", "index": 3, "message": user("ADDED")},
        ]);
        let body = json!({"message": "call shop__price {}", "edits": edits, "persist": true});
        let turn = talk.turn(body).await;
        assert_eq!(turn["status"], "completed", "{}: {turn:#}", account.name);
        let messages = talk.chat.get("/history").await["messages"].clone();
        assert_eq!(messages[0], user("REPLACED"));
        let roles: Vec<_> =
            messages.as_array().unwrap().iter().map(|it| it["role"].as_str().unwrap()).collect();
        let expected = ["user", "assistant", "user", "user", "assistant", "tool", "assistant"];
        assert_eq!(roles, expected, "{}: {messages:#}", account.name);
        talk.say(account.other().name, "go on").await;
        lab.is_clean();
    }
}

#[tokio::test]
async fn edits_that_tear_a_call_from_its_result_are_refused_with_the_reason() {
    let lab = Lab::open().await;
    for account in ACCOUNTS {
        let talk = talked(&lab, account).await;
        let before = talk.history().await;
        let asked = lab.bodies(account).len();
        let refused = [
            // Between a functionCall and its functionResponse.
            (json!([{"op": "insert_after", "index": 1, "message": user("x")}]), "stay together"),
            (json!([{"op": "insert_before", "index": 2, "message": system("x")}]), "stay together"),
            (json!([{"op": "delete_at", "index": 1}]), "no call of that id"),
            (json!([{"op": "delete_at", "index": 2}]), "edits[0]"),
            (json!([{"op": "replace_at", "index": 2, "message": user("x")}]), "edits[0]"),
            (json!([{"op": "delete_at", "index": 9}]), "no message 9"),
            (json!([{"op": "delete_at", "index": -9}]), "no message -9"),
            (json!([{"op": "delete_at", "index": 0}, {"op": "delete_at", "index": 0}]), "twice"),
            (json!([{"op": "delete_at", "index": -1}]), "end with an answer"),
        ];
        for (edits, reason) in refused {
            for persist in [false, true] {
                let body = json!({"message": "more", "edits": edits, "persist": persist});
                let said = talk.try_turn(body).await.refused(422, "bad_request");
                assert!(said.contains(reason), "{reason}: {said}");
            }
        }
        assert_eq!(talk.history().await, before, "nothing of it is kept");
        assert_eq!(lab.bodies(account).len(), asked, "and nobody was asked");
        talk.say(account.name, "hello").await;
        lab.is_clean();
    }
}

#[tokio::test]
async fn a_conversation_moves_to_another_session_and_another_provider() {
    let lab = Lab::open().await;
    for account in ACCOUNTS {
        let talk = talked(&lab, account).await;
        talk.say(account.other().name, "call shop__price {}\ncall shop__find {}").await;
        let exported = talk.chat.get("/history").await;
        let other = lab.talk(json!({})).await;
        assert_eq!(other.chat.put("/history", exported.clone()).await, exported);
        assert_eq!(other.chat.get("/history").await, exported);
        assert_eq!(other.call_ids().await, talk.call_ids().await);
        for next in ACCOUNTS {
            other.say(next.name, "call shop__find {\"n\": 3}").await;
        }
        lab.is_clean();
    }
}

#[tokio::test]
async fn conversations_of_the_seed_are_taken_and_broken_ones_are_not() {
    let lab = Lab::open().await;
    let text = |text: &str| json!([{"type": "text", "text": text}]);
    let seed = json!({"version": "v1", "messages": [
        {"role": "system", "content": text("You are brief.")},
        {"role": "user", "content": text("Find it")},
        {"role": "assistant", "content": [], "tool_calls": [
            {"id": "call_abc", "name": "shop__find", "arguments": "{\"n\":1}"},
            {"id": "call_def", "name": "shop.price", "arguments": {"n": 2}},
        ]},
        {"role": "tool", "tool_call_id": "call_abc", "content": text("found"), "_meta": {"function_name": "shop__find"}},
        {"role": "assistant", "content": text("Here it is."), "_meta": {"latency_ms": 12}},
    ]});
    for account in ACCOUNTS {
        let talk = lab.talk(json!({})).await;
        talk.chat.put("/history", seed.clone()).await;
        assert_eq!(talk.call_ids().await, ["call_abc", "call_def"]);
        let results = talk.results().await;
        assert!(results.len() == 2 && results[1].1, "what had no result has one: {results:?}");
        talk.say(account.name, "call shop__find {}").await;
        lab.is_clean();
        let before = talk.history().await;
        let call = |id: &str| json!({"role": "assistant", "content": [{"type": "tool_call", "id": id, "name": "a", "arguments": {}}], "stop": "tool_calls"});
        let result = |id: &str| json!({"role": "tool", "call": id, "name": "a", "content": []});
        for (messages, reason) in [
            (json!([result("x")]), "no call of that id"),
            (json!([user("a"), call("x"), result("x"), call("x"), result("x")]), "earlier call"),
            (json!([user("a"), call("")]), "without an id"),
            (json!([{"role": "nobody"}]), "messages[0]"),
        ] {
            let body = json!({"version": 1, "messages": messages});
            let said = talk.chat.try_put("/history", body).await.refused(422, "bad_request");
            assert!(said.contains(reason), "{reason}: {said}");
        }
        let later = json!({"version": 99, "messages": []});
        talk.chat.try_put("/history", later).await.refused(422, "bad_request");
        assert_eq!(talk.history().await, before);
    }
}
